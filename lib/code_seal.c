// SPDX-License-Identifier: Apache-2.0
// What is kept: a mark of this format, the hash of the code, the code.
#include "lib/code_seal.h"

#include <sodium.h>
#include <stdint.h>
#include <string.h>

enum { MAGIC_BYTES = 16, HASH_BYTES = 32, HEAD_BYTES = MAGIC_BYTES + HASH_BYTES };

static const char magic[MAGIC_BYTES] = "weft kernel 1\n";

static void write_head(uint8_t *out, const void *code, size_t code_bytes) {
  memcpy(out, magic, MAGIC_BYTES);
  crypto_generichash(out + MAGIC_BYTES, HASH_BYTES, code, code_bytes, NULL, 0);
}

static weft_status load(void *user, const weft_allocator *allocator, const char *machine,
                        const char *source, void **code, size_t *code_bytes) {
  const weft_code_seal *seal = user;
  void *kept = NULL;
  size_t bytes = 0;
  *code = NULL;
  *code_bytes = 0;
  WEFT_TRY(seal->inner.load(seal->inner.user, allocator, machine, source, &kept, &bytes));
  if (!kept)
    return WEFT_OK;
  uint8_t head[HEAD_BYTES], *found = kept;
  if (bytes > HEAD_BYTES)
    write_head(head, found + HEAD_BYTES, bytes - HEAD_BYTES);
  if (bytes <= HEAD_BYTES || memcmp(head, found, HEAD_BYTES) != 0) {
    allocator->free(allocator->user, kept);
    return WEFT_OK;
  }
  *code_bytes = bytes - HEAD_BYTES;
  *code = memmove(kept, found + HEAD_BYTES, *code_bytes);
  return WEFT_OK;
}

static void save(void *user, const char *machine, const char *source, const void *code,
                 size_t code_bytes) {
  const weft_code_seal *seal = user;
  const weft_allocator *allocator = seal->allocator;
  uint8_t *kept = allocator->alloc(allocator->user, HEAD_BYTES + code_bytes, 16);
  if (!kept)
    return; // it only costs another compilation later
  write_head(kept, code, code_bytes);
  memcpy(kept + HEAD_BYTES, code, code_bytes);
  seal->inner.save(seal->inner.user, machine, source, kept, HEAD_BYTES + code_bytes);
  allocator->free(allocator->user, kept);
}

weft_code_store weft_code_seal_store(const weft_code_seal *seal) {
  return (weft_code_store){.user = (void *)seal,
                           .load = seal->inner.load ? load : NULL,
                           .save = seal->inner.save ? save : NULL};
}
