// SPDX-License-Identifier: Apache-2.0
// Feeds input that strangers can send to a node and to its HTTP output: descriptions of streams,
// messages from and to trackers, addresses as text, ranges, and the first bytes of a stream. What
// is accepted must be within bounds, and be the same when it is written and read again.
//
// Input: which of these, then its bytes; a range is preceded by eight bytes with the length of the
// stream.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/big_endian.h"
#include "peer/runtime/describe.h"
#include "peer/runtime/http_media.h"
#include "peer/runtime/kernel_address.h"
#include "weft/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DESCRIPTION, ANNOUNCE, LIST, MEET, MAPPED, ADDRESS, RANGE, MEDIA, KINDS };

static void require(int condition) {
  if (!condition)
    abort();
}

static void description(const uint8_t *data, size_t size) {
  uint8_t again[WEFT_DESCRIPTION_BYTES];
  weft_node_role role;
  weft_stream s;
  if (!weft_described(data, size, &role, &s))
    return;
  if (role == WEFT_NODE_PEER || role == WEFT_NODE_SOURCE)
    require(s.id != 0 && s.blocks >= 1 && s.block_bytes >= 1 &&
            s.block_bytes <= WEFT_SESSION_PLAIN_BYTES);
  require(weft_describe(role, &s, again) == size && memcmp(again, data, size) == 0);
}

static void announce(const uint8_t *data, size_t size) {
  uint8_t again[WEFT_ANNOUNCE_BYTES];
  bool leaving;
  uint64_t stream;
  if (size < 2 || !weft_announce_parse(data, size, &leaving, &stream))
    return;
  require(weft_announce_write(leaving, stream, again) == size);
  require(memcmp(again + 2, data + 2, size - 2) == 0); // the caller has read the kind
}

// Interface numbers are not transferred: they have a meaning only on this machine.
static void list(const uint8_t *data, size_t size) {
  weft_list list, twice;
  uint8_t again[WEFT_LIST_MAX_BYTES];
  if (size < 2 || !weft_list_parse(data, size, &list))
    return;
  require(list.count <= WEFT_LIST_MAX && weft_list_write(&list, again) == size);
  require(weft_list_parse(again, size, &twice) && twice.stream == list.stream &&
          twice.source_first == list.source_first && twice.count == list.count &&
          memcmp(list.entries, twice.entries, list.count * sizeof *list.entries) == 0);
}

static void meet(const uint8_t *data, size_t size) {
  uint8_t again[WEFT_TRACKER_MEET_BYTES];
  weft_address at, twice;
  bool called, same;
  if (size < 2 || !weft_tracker_meet_parse(data, size, &called, &at))
    return;
  require(at.port != 0 && weft_tracker_meet_write(called, &at, again) == size);
  require(weft_tracker_meet_parse(again, size, &same, &twice) && same == called &&
          memcmp(&at, &twice, sizeof at) == 0);
}

static void mapped(const uint8_t *data, size_t size) {
  uint8_t again[WEFT_MAPPED_BYTES];
  weft_address at, twice;
  if (size < 2 || !weft_mapped_parse(data, size, &at))
    return;
  require(weft_mapped_write(&at, again) == size);
  require(weft_mapped_parse(again, size, &twice) && memcmp(&at, &twice, sizeof at) == 0);
}

static void address(const char *text) {
  char again[WEFT_ADDRESS_TEXT];
  weft_address at, twice;
  if (!weft_address_parse(text, &at) || weft_address_is_of_link(&at)) // the interface may be gone
    return;
  require(weft_address_parse(weft_address_text(&at, again), &twice) &&
          memcmp(&at, &twice, sizeof at) == 0);
}

static void range(const char *text, uint64_t length) {
  uint64_t first, end;
  bool partial;
  if (length == 0 || !weft_http_range(text, length, &first, &end, &partial))
    return;
  require(first < end && end <= length && (partial || (first == 0 && end == length)));
}

// Parses the bytes as a ring buffer that begins anywhere.
static void media(const uint8_t *data, size_t size) {
  enum { THREE = 3 * 188 };
  uint64_t first, last;
  const uint64_t from = size ? data[0] * (uint64_t)size : 0;
  const char *type = weft_http_type_of(data, size, from, from + size, false);
  const char *early = weft_http_type_of(data, size, from, from + size, true);
  require(type && (!early || early == type));
  const bool begins = weft_http_first_packet(data, size, from, from + size, &first);
  const bool ends = weft_http_last_packet(data, size, from, from + size, &last);
  require(!begins || (first >= from && first + THREE <= from + size));
  require(!ends || (last >= from && last + THREE <= from + size));
  require(!begins || !ends || first <= last);
}

static void said(unsigned kind, const uint8_t *data, size_t size) {
  static void (*const words[])(const uint8_t *data, size_t size) = {
      [DESCRIPTION] = description, [ANNOUNCE] = announce, [LIST] = list, [MEET] = meet,
      [MAPPED] = mapped,           [MEDIA] = media};
  const size_t before = kind == RANGE && size >= 8 ? 8 : 0;
  if (words[kind]) {
    words[kind](data, size);
    return;
  }
  char *text = malloc(size - before + 1);
  require(text != NULL);
  memcpy(text, data + before, size - before);
  text[size - before] = '\0';
  if (kind == RANGE)
    range(text, weft_get_number(data, before));
  else
    address(text);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0)
    said(data[0] % KINDS, data + 1, size - 1);
  return 0;
}
