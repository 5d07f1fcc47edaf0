// SPDX-License-Identifier: Apache-2.0
#include "peer/runtime/http_media.h"

#include <glib.h>
#include <string.h>

// A packet's beginning is searched for in TS_LOOK bytes, far more than one packet: packets before
// and after a gap in the stream need not be aligned.
enum { TS_PACKET = 188, TS_SYNC = 0x47, TS_PACKETS = 3, TS_LOOK = 16384 };

// Types by their first bytes. Players rely on the Content-Type; not all of them examine the data.
static const struct {
  size_t at, bytes;
  const char *begins, *type;
} types[] = {
    {4, 4, "ftyp", "video/mp4"},       {0, 4, "\x1a\x45\xdf\xa3", "video/webm"},
    {0, 4, "OggS", "application/ogg"}, {0, 3, "FLV", "video/x-flv"},
    {0, 3, "ID3", "audio/mpeg"},       {0, 4, "fLaC", "audio/flac"},
};

static const char ts_type[] = "video/mp2t";

bool weft_http_is_ts(const char *type) { return type == ts_type; }

// Whether an MPEG-TS packet begins at `at` and two more follow. One sync byte alone may be a
// coincidence.
static bool packet_at(const uint8_t *ring, size_t size, uint64_t at) {
  for (uint64_t i = 0; i < TS_PACKETS; i++)
    if (ring[(at + i * TS_PACKET) % size] != TS_SYNC)
      return false;
  return true;
}

bool weft_http_first_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                            uint64_t *at) {
  const uint64_t most = from + TS_LOOK;
  for (*at = from; *at + TS_PACKETS * TS_PACKET <= end && *at < most; ++*at)
    if (packet_at(ring, size, *at))
      return true;
  return false;
}

bool weft_http_last_packet(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                           uint64_t *at) {
  if (end - from < TS_PACKETS * TS_PACKET)
    return false;
  const uint64_t last = end - TS_PACKETS * TS_PACKET;
  for (uint64_t back = 0; back <= last - from && back < TS_LOOK; back++)
    if (packet_at(ring, size, *at = last - back))
      return true;
  return false;
}

const char *weft_http_type_of(const uint8_t *ring, size_t size, uint64_t from, uint64_t end,
                              bool more) {
  uint8_t data[(TS_PACKETS + 1) * TS_PACKET - 1]; // a packet begins in the first 188
  const size_t bytes = (size_t)MIN(end - from, sizeof data);
  uint64_t at;
  for (size_t i = 0; i < bytes; i++)
    data[i] = ring[(from + i) % size];
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if (bytes >= types[i].at + types[i].bytes &&
        memcmp(data + types[i].at, types[i].begins, types[i].bytes) == 0)
      return types[i].type;
  if (weft_http_first_packet(data, sizeof data, 0, bytes, &at))
    return ts_type;
  return more && bytes < sizeof data ? NULL : "application/octet-stream";
}

static bool take_number(const char **at, uint64_t *value) {
  char *rest;
  if (!g_ascii_isdigit(**at))
    return false;
  *value = g_ascii_strtoull(*at, &rest, 10);
  *at = rest;
  return true;
}

// Parses FIRST-LAST, FIRST- or -COUNT, which must be the whole text.
static bool is_range(const char *at, bool suffix, uint64_t *number, uint64_t *last) {
  at += suffix;
  *last = UINT64_MAX;
  if (!take_number(&at, number) || (!suffix && *at++ != '-'))
    return false;
  if (!suffix && *at && (!take_number(&at, last) || *last < *number))
    return false;
  return !*at;
}

bool weft_http_range(const char *text, uint64_t length, uint64_t *first, uint64_t *end,
                     bool *partial) {
  static const char unit[] = "bytes=";
  uint64_t number, last;
  const char *const at = text && g_str_has_prefix(text, unit) ? text + strlen(unit) : "";
  const bool suffix = *at == '-';
  *first = 0;
  *end = length;
  *partial = is_range(at, suffix, &number, &last);
  if (!*partial) // RFC 9110: a header that is not understood is ignored
    return true;
  if (suffix) {
    *first = number < length ? length - number : 0;
    return number > 0;
  }
  *first = number;
  *end = last < length ? last + 1 : length;
  return *first < *end;
}
