// SPDX-License-Identifier: Apache-2.0
// Messages that only the source may make: manifests and checksums, with what their signatures
// cover.
#include <string.h>

#include "lib/big_endian.h"
#include "peer/engine/messages_parse.h"

enum {
  FLAG_LAST = 1,
  DIGEST_AT = 40, // in a manifest; its signature follows
  SIGNATURE_AT = DIGEST_AT + WEFT_DIGEST_BYTES,
  SUMS_AT = WEFT_CHECKSUM_BYTES, // in a checksum; its signature lies before them
  CHECKSUM_SIGNATURE_AT = SUMS_AT - WEFT_SIGNATURE_BYTES
};
_Static_assert(SIGNATURE_AT + WEFT_SIGNATURE_BYTES == WEFT_MANIFEST_BYTES, "the manifest's parts");
static const uint64_t TIME_LIMIT = UINT64_C(1) << 60; // differences, and sums of a few, cannot wrap

weft_status weft_manifest_parse(const uint8_t *d, size_t bytes, weft_manifest *out) {
  if (bytes != WEFT_MANIFEST_BYTES)
    return WEFT_E_MALFORMED;
  *out = (weft_manifest){.last = (weft_get16(d + 2) & FLAG_LAST) != 0,
                         .segment = weft_get64(d + 4),
                         .blocks = weft_get16(d + 12),
                         .bytes = weft_get32(d + 16),
                         .at_us = weft_get64(d + 20),
                         .made_us = weft_get64(d + 28)};
  memcpy(out->digest, d + DIGEST_AT, sizeof out->digest);
  memcpy(out->signature, d + SIGNATURE_AT, sizeof out->signature);
  if (weft_get16(d + 2) & ~FLAG_LAST || weft_get16(d + 14) != 0 || weft_get32(d + 36) != 0 ||
      out->segment > WEFT_MESSAGE_MAX_SEGMENT || out->blocks > WEFT_MAX_BLOCKS ||
      (out->blocks == 0) != (out->bytes == 0) || (out->blocks == 0 && !out->last) ||
      out->at_us > TIME_LIMIT || out->made_us > TIME_LIMIT)
    return WEFT_E_MALFORMED;
  return WEFT_OK;
}

size_t weft_manifest_write(const weft_manifest *manifest, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_MANIFEST, manifest->last ? FLAG_LAST : 0);
  weft_put64(out + 4, manifest->segment);
  weft_put16(out + 12, manifest->blocks);
  weft_put16(out + 14, 0);
  weft_put32(out + 16, manifest->bytes);
  weft_put64(out + 20, manifest->at_us);
  weft_put64(out + 28, manifest->made_us);
  weft_put32(out + 36, 0);
  memcpy(out + DIGEST_AT, manifest->digest, sizeof manifest->digest);
  memcpy(out + SIGNATURE_AT, manifest->signature, sizeof manifest->signature);
  return WEFT_MANIFEST_BYTES;
}

weft_status weft_checksum_parse(const uint8_t *d, size_t bytes, weft_checksum *out) {
  if (bytes < WEFT_CHECKSUM_BYTES)
    return WEFT_E_MALFORMED;
  *out = (weft_checksum){.blocks = weft_get16(d + 2),
                         .segment = weft_get64(d + 4),
                         .made_us = weft_get64(d + 12),
                         .seed = weft_get64(d + 20),
                         .sums = d + SUMS_AT};
  memcpy(out->signature, d + CHECKSUM_SIGNATURE_AT, sizeof out->signature);
  if (out->blocks == 0 || out->blocks > WEFT_CHECKSUM_MAX_BLOCKS ||
      bytes != WEFT_CHECKSUM_BYTES + (size_t)out->blocks * WEFT_CHECKSUM_ROWS ||
      out->segment > WEFT_MESSAGE_MAX_SEGMENT || out->made_us > TIME_LIMIT)
    return WEFT_E_MALFORMED;
  return WEFT_OK;
}

size_t weft_checksum_write(const weft_checksum *checksum, uint8_t *out) {
  const size_t sums = (size_t)checksum->blocks * WEFT_CHECKSUM_ROWS;
  weft_message_start(out, WEFT_MESSAGE_CHECKSUM, checksum->blocks);
  weft_put64(out + 4, checksum->segment);
  weft_put64(out + 12, checksum->made_us);
  weft_put64(out + 20, checksum->seed);
  memcpy(out + CHECKSUM_SIGNATURE_AT, checksum->signature, sizeof checksum->signature);
  memmove(out + SUMS_AT, checksum->sums, sums);
  return WEFT_CHECKSUM_BYTES + sums;
}

weft_status weft_revealed_parse(const uint8_t *d, size_t bytes, weft_revealed *out) {
  if (bytes != WEFT_REVEALED_BYTES || weft_get16(d + 2) != 0)
    return WEFT_E_MALFORMED;
  *out = (weft_revealed){.segment = weft_get64(d + 4), .made_us = weft_get64(d + 12)};
  return out->segment <= WEFT_MESSAGE_MAX_SEGMENT && out->made_us <= TIME_LIMIT ? WEFT_OK
                                                                                : WEFT_E_MALFORMED;
}

size_t weft_revealed_write(const weft_revealed *revealed, uint8_t *out) {
  weft_message_start(out, WEFT_MESSAGE_REVEALED, 0);
  weft_put64(out + 4, revealed->segment);
  weft_put64(out + 12, revealed->made_us);
  return WEFT_REVEALED_BYTES;
}

// --- What is signed

static size_t start_text(const char label[16], uint64_t stream, uint32_t block_bytes,
                         uint8_t *out) {
  memcpy(out, label, 16);
  weft_put64(out + 16, stream);
  weft_put32(out + 24, block_bytes);
  weft_put32(out + 28, 0);
  return 32;
}

size_t weft_manifest_text(const weft_manifest *manifest, uint64_t stream, uint32_t block_bytes,
                          uint8_t out[WEFT_SIGNED_MAX]) {
  const size_t at = start_text("weft manifest 1\0", stream, block_bytes, out);
  weft_manifest_write(manifest, out + at);
  return at + SIGNATURE_AT; // the signature comes last and is left out
}

size_t weft_checksum_text(const weft_checksum *checksum, uint64_t stream, uint32_t block_bytes,
                          uint8_t out[WEFT_SIGNED_MAX]) {
  const size_t at = start_text("weft checksum 1\0", stream, block_bytes, out);
  const size_t bytes = weft_checksum_write(checksum, out + at);
  memset(out + at + CHECKSUM_SIGNATURE_AT, 0, WEFT_SIGNATURE_BYTES); // zeros in its place
  return at + bytes;
}
