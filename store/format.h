// SPDX-License-Identifier: Apache-2.0
// The bytes of shard files and of the update journal (docs/format.md): headers, trailers, records,
// geometry, keys. Pure functions of bytes; no file access.
#ifndef WEFT_STORE_FORMAT_H
#define WEFT_STORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/status.h"

enum {
  WEFT_STORE_VERSION = 1,
  WEFT_STORE_HEADER_BYTES = 256,
  WEFT_STORE_TRAILER_BYTES = 32,
  WEFT_STORE_JOURNAL_BYTES = 128, // the journal's header
  WEFT_STORE_RECORD_BYTES = 32,   // a journal record's head
  WEFT_STORE_KEY_BYTES = 32,
  WEFT_STORE_ID_BYTES = 16,
  WEFT_STORE_CODE_BYTES = 64,
  WEFT_STORE_MAX_SHARDS = 256
};
#define WEFT_STORE_MAX_CHUNK_BYTES (UINT32_C(1) << 30)
#define WEFT_STORE_MAX_LENGTH (UINT64_C(1) << 62)
#define WEFT_STORE_MAX_GENERATION (UINT64_C(1) << 62)

// The header of a shard file. All but `shard` is the same in every shard of a set.
typedef struct weft_store_header {
  uint16_t k, m, shard;
  bool keyed;           // tags are made with the user's key, and `key` is zero
  uint32_t chunk_bytes; // a shard's bytes in every stripe but the last
  uint64_t length;      // true length of the data
  uint64_t generation;  // 1 at encode, incremented by each update
  uint64_t update;      // the update that made the generation: random; 0: none
  uint8_t id[WEFT_STORE_ID_BYTES];
  uint8_t key[WEFT_STORE_KEY_BYTES];
  char code[WEFT_STORE_CODE_BYTES]; // weft_code_name
} weft_store_header;

// Derives the user's key from a secret of any length (a key file's bytes).
void weft_store_user_key(const uint8_t *secret, size_t bytes, uint8_t out[WEFT_STORE_KEY_BYTES]);
// Derives the key of all tags of a set. `user_key` is used only if header->keyed.
void weft_store_file_key(const weft_store_header *header, const uint8_t *user_key,
                         uint8_t out[WEFT_STORE_KEY_BYTES]);

void weft_store_header_write(const weft_store_header *header, const uint8_t *file_key,
                             uint8_t out[WEFT_STORE_HEADER_BYTES]);
// Parses a header and checks everything but its authentication. On failure *why says what is wrong.
// WEFT_E_MALFORMED; WEFT_E_VERSION: another version.
weft_status weft_store_header_read(const uint8_t in[WEFT_STORE_HEADER_BYTES],
                                   weft_store_header *out, const char **why);
bool weft_store_header_authentic(const uint8_t in[WEFT_STORE_HEADER_BYTES],
                                 const uint8_t *file_key);

// Where bytes are stored. The last stripe is shorter unless the length is a whole number of
// stripes.
typedef struct weft_store_geometry {
  size_t k, m, unit_bytes;
  uint64_t length, stripes;
  size_t chunk_bytes, last_chunk_bytes;
} weft_store_geometry;

// WEFT_E_MALFORMED: the chunk size is not a multiple of the code's unit, or a shard would exceed
// 2^62 bytes.
weft_status weft_store_geometry_of(const weft_store_header *header, size_t unit_bytes,
                                   weft_store_geometry *out);
size_t weft_store_chunk(const weft_store_geometry *geometry, uint64_t stripe);
uint64_t weft_store_chunk_offset(const weft_store_geometry *geometry, uint64_t stripe);
uint64_t weft_store_shard_bytes(const weft_store_geometry *geometry);
// Return the offset of the first data byte that a stripe holds, and how many it holds.
uint64_t weft_store_data_offset(const weft_store_geometry *geometry, uint64_t stripe);
uint64_t weft_store_data_bytes(const weft_store_geometry *geometry, uint64_t stripe);

// What follows each chunk.
typedef struct weft_store_trailer {
  uint64_t generation; // in which the chunk was written
  uint64_t nonce;      // random, one per writing call
} weft_store_trailer;

void weft_store_chunk_seal(const uint8_t *file_key, uint16_t shard, uint64_t stripe,
                           weft_store_trailer trailer, const uint8_t *chunk, size_t bytes,
                           uint8_t out[WEFT_STORE_TRAILER_BYTES]);
// Returns false if the chunk is corrupt, belongs to another place or file, or is from a generation
// after `generation`.
bool weft_store_chunk_good(const uint8_t *file_key, uint16_t shard, uint64_t stripe,
                           uint64_t generation, const uint8_t *chunk, size_t bytes,
                           const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]);

uint64_t weft_store_chunk_generation(const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]);
uint64_t weft_store_chunk_nonce(const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]);

// --- The journal of an update

typedef struct weft_store_journal {
  uint8_t id[WEFT_STORE_ID_BYTES];
  uint64_t generation, update;               // the shards' after the update
  uint64_t records, bytes;                   // bytes of the whole file
  uint8_t shards[WEFT_STORE_MAX_SHARDS / 8]; // bit i % 8 of byte i / 8: shard i takes part
} weft_store_journal;

typedef struct weft_store_record {
  uint64_t stripe;
  uint16_t shard;
} weft_store_record;

static inline bool weft_store_takes_part(const weft_store_journal *journal, size_t shard) {
  return (journal->shards[shard / 8] >> (shard % 8)) & 1;
}

void weft_store_journal_write(const weft_store_journal *journal, const uint8_t *file_key,
                              uint8_t out[WEFT_STORE_JOURNAL_BYTES]);
weft_status weft_store_journal_read(const uint8_t in[WEFT_STORE_JOURNAL_BYTES],
                                    const uint8_t *file_key, weft_store_journal *out);
void weft_store_record_write(const weft_store_record *record, const weft_store_journal *journal,
                             const uint8_t *file_key, uint8_t out[WEFT_STORE_RECORD_BYTES]);
weft_status weft_store_record_read(const uint8_t in[WEFT_STORE_RECORD_BYTES],
                                   const weft_store_journal *journal, const uint8_t *file_key,
                                   weft_store_record *out);

#endif
