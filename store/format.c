// SPDX-License-Identifier: Apache-2.0
// The bytes of shard files and of the update journal (docs/format.md).
#include "store/format.h"

#include <string.h>

#include <sodium.h>

#include "lib/big_endian.h"

static const uint8_t shard_magic[8] = {'W', 'E', 'F', 'T', 'S', 'H', 'R', 'D'};
static const uint8_t journal_magic[8] = {'W', 'E', 'F', 'T', 'J', 'R', 'N', 'L'};

// Offsets of the shard header; the numbers of docs/format.md.
enum {
  AT_VERSION = 8,
  AT_HEADER_BYTES = 10,
  AT_K = 12,
  AT_M = 14,
  AT_SHARD = 16,
  AT_KEYED = 18,
  AT_CHUNK = 20,
  AT_LENGTH = 24,
  AT_GENERATION = 32,
  AT_ID = 40,
  AT_KEY = 56,
  AT_CODE = 88,
  AT_UPDATE = 152,
  AT_RESERVED = 160,
  AT_AUTH = 192,
  AT_DIGEST = 224
};

static bool all_zero(const uint8_t *bytes, size_t count) {
  return sodium_is_zero(bytes, count) != 0;
}

// --- Keys

void weft_store_user_key(const uint8_t *secret, size_t bytes, uint8_t out[WEFT_STORE_KEY_BYTES]) {
  (void)crypto_generichash(out, WEFT_STORE_KEY_BYTES, secret, bytes, NULL, 0);
}

void weft_store_file_key(const weft_store_header *header, const uint8_t *user_key,
                         uint8_t out[WEFT_STORE_KEY_BYTES]) {
  static const uint8_t label[16] = "weft store file";
  if (!header->keyed) {
    memcpy(out, header->key, WEFT_STORE_KEY_BYTES);
    return;
  }
  uint8_t text[sizeof label + WEFT_STORE_ID_BYTES];
  memcpy(text, label, sizeof label);
  memcpy(text + sizeof label, header->id, WEFT_STORE_ID_BYTES);
  (void)crypto_generichash(out, WEFT_STORE_KEY_BYTES, text, sizeof text, user_key,
                           WEFT_STORE_KEY_BYTES);
}

// --- Shard header

void weft_store_header_write(const weft_store_header *h, const uint8_t *file_key,
                             uint8_t out[WEFT_STORE_HEADER_BYTES]) {
  memset(out, 0, WEFT_STORE_HEADER_BYTES);
  memcpy(out, shard_magic, sizeof shard_magic);
  weft_put_number(out + AT_VERSION, 2, WEFT_STORE_VERSION);
  weft_put_number(out + AT_HEADER_BYTES, 2, WEFT_STORE_HEADER_BYTES);
  weft_put_number(out + AT_K, 2, h->k);
  weft_put_number(out + AT_M, 2, h->m);
  weft_put_number(out + AT_SHARD, 2, h->shard);
  out[AT_KEYED] = h->keyed;
  weft_put_number(out + AT_CHUNK, 4, h->chunk_bytes);
  weft_put_number(out + AT_LENGTH, 8, h->length);
  weft_put_number(out + AT_GENERATION, 8, h->generation);
  weft_put_number(out + AT_UPDATE, 8, h->update);
  memcpy(out + AT_ID, h->id, sizeof h->id);
  memcpy(out + AT_KEY, h->key, sizeof h->key);
  memcpy(out + AT_CODE, h->code, sizeof h->code);
  (void)crypto_generichash(out + AT_AUTH, AT_DIGEST - AT_AUTH, out, AT_AUTH, file_key,
                           WEFT_STORE_KEY_BYTES);
  (void)crypto_generichash(out + AT_DIGEST, WEFT_STORE_HEADER_BYTES - AT_DIGEST, out, AT_DIGEST,
                           NULL, 0);
}

// The name appears in messages: no control characters may reach a terminal.
static bool printable(const char *name, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (name[i] <= ' ' || name[i] > '~')
      return false;
  return true;
}

static const char *what_is_wrong(const uint8_t *in, const weft_store_header *h) {
  const char *end = memchr(h->code, 0, sizeof h->code);
  const size_t code = end ? (size_t)(end - h->code) : sizeof h->code;
  if (weft_get_number(in + AT_HEADER_BYTES, 2) != WEFT_STORE_HEADER_BYTES)
    return "a header of the wrong size";
  if (h->k < 1 || (size_t)h->k + h->m > WEFT_STORE_MAX_SHARDS || h->shard >= h->k + h->m)
    return "impossible numbers of shards";
  if (in[AT_KEYED] > 1 || in[AT_KEYED + 1] || !all_zero(in + AT_RESERVED, AT_AUTH - AT_RESERVED))
    return "flags that version 1 does not have";
  if (h->chunk_bytes < 1 || h->chunk_bytes > WEFT_STORE_MAX_CHUNK_BYTES ||
      h->length > WEFT_STORE_MAX_LENGTH || h->generation < 1 ||
      h->generation > WEFT_STORE_MAX_GENERATION)
    return "impossible sizes";
  if (h->keyed && !all_zero(h->key, sizeof h->key))
    return "a key of its own besides the user's";
  if (code == 0 || code == sizeof h->code || !printable(h->code, code) ||
      !all_zero((const uint8_t *)h->code + code, sizeof h->code - code))
    return "an invalid code name";
  return NULL;
}

weft_status weft_store_header_read(const uint8_t in[WEFT_STORE_HEADER_BYTES],
                                   weft_store_header *out, const char **why) {
  uint8_t digest[WEFT_STORE_HEADER_BYTES - AT_DIGEST];
  if (memcmp(in, shard_magic, sizeof shard_magic) != 0) {
    *why = "it does not begin like a shard";
    return WEFT_E_MALFORMED;
  }
  (void)crypto_generichash(digest, sizeof digest, in, AT_DIGEST, NULL, 0);
  if (memcmp(digest, in + AT_DIGEST, sizeof digest) != 0) {
    *why = "its header is corrupt";
    return WEFT_E_MALFORMED;
  }
  if (weft_get_number(in + AT_VERSION, 2) != WEFT_STORE_VERSION) {
    *why = "it has another format version";
    return WEFT_E_VERSION;
  }
  *out = (weft_store_header){.k = (uint16_t)weft_get_number(in + AT_K, 2),
                             .m = (uint16_t)weft_get_number(in + AT_M, 2),
                             .shard = (uint16_t)weft_get_number(in + AT_SHARD, 2),
                             .keyed = in[AT_KEYED] != 0,
                             .chunk_bytes = (uint32_t)weft_get_number(in + AT_CHUNK, 4),
                             .length = weft_get_number(in + AT_LENGTH, 8),
                             .generation = weft_get_number(in + AT_GENERATION, 8),
                             .update = weft_get_number(in + AT_UPDATE, 8)};
  memcpy(out->id, in + AT_ID, sizeof out->id);
  memcpy(out->key, in + AT_KEY, sizeof out->key);
  memcpy(out->code, in + AT_CODE, sizeof out->code);
  *why = what_is_wrong(in, out);
  return *why ? WEFT_E_MALFORMED : WEFT_OK;
}

bool weft_store_header_authentic(const uint8_t in[WEFT_STORE_HEADER_BYTES],
                                 const uint8_t *file_key) {
  uint8_t auth[AT_DIGEST - AT_AUTH];
  (void)crypto_generichash(auth, sizeof auth, in, AT_AUTH, file_key, WEFT_STORE_KEY_BYTES);
  return sodium_memcmp(auth, in + AT_AUTH, sizeof auth) == 0;
}

// --- Geometry

weft_status weft_store_geometry_of(const weft_store_header *h, size_t unit_bytes,
                                   weft_store_geometry *out) {
  const uint64_t stripe = (uint64_t)h->k * h->chunk_bytes;
  *out = (weft_store_geometry){.k = h->k,
                               .m = h->m,
                               .unit_bytes = unit_bytes,
                               .length = h->length,
                               .chunk_bytes = h->chunk_bytes,
                               .last_chunk_bytes = h->chunk_bytes};
  if (h->chunk_bytes % unit_bytes != 0)
    return WEFT_E_MALFORMED;
  const uint64_t whole = h->length / stripe, rest = h->length % stripe;
  // Chunks of a few bytes are smaller than their trailers.
  if (whole >= WEFT_STORE_MAX_LENGTH / (h->chunk_bytes + WEFT_STORE_TRAILER_BYTES))
    return WEFT_E_MALFORMED;
  out->stripes = whole + (rest != 0);
  if (rest != 0) {
    const uint64_t share = (rest + h->k - 1) / h->k;
    out->last_chunk_bytes = (size_t)((share + unit_bytes - 1) / unit_bytes * unit_bytes);
  }
  return WEFT_OK;
}

size_t weft_store_chunk(const weft_store_geometry *g, uint64_t stripe) {
  return stripe + 1 == g->stripes ? g->last_chunk_bytes : g->chunk_bytes;
}

uint64_t weft_store_chunk_offset(const weft_store_geometry *g, uint64_t stripe) {
  return WEFT_STORE_HEADER_BYTES + stripe * (g->chunk_bytes + WEFT_STORE_TRAILER_BYTES);
}

uint64_t weft_store_shard_bytes(const weft_store_geometry *g) {
  if (g->stripes == 0)
    return WEFT_STORE_HEADER_BYTES;
  return weft_store_chunk_offset(g, g->stripes - 1) + g->last_chunk_bytes +
         WEFT_STORE_TRAILER_BYTES;
}

uint64_t weft_store_data_offset(const weft_store_geometry *g, uint64_t stripe) {
  return stripe * g->k * g->chunk_bytes;
}

uint64_t weft_store_data_bytes(const weft_store_geometry *g, uint64_t stripe) {
  const uint64_t left = g->length - weft_store_data_offset(g, stripe);
  const uint64_t whole = (uint64_t)g->k * g->chunk_bytes;
  return left < whole ? left : whole;
}

// --- Chunks

enum { AT_CHUNK_NONCE = 8, AT_CHUNK_TAG = 16 };

// Derives a chunk's key. Poly1305 needs a key per message: generation and nonce make it new
// whenever the bytes change.
static void chunk_key(const uint8_t *file_key, uint16_t shard, uint64_t stripe,
                      const uint8_t *trailer, uint8_t out[crypto_onetimeauth_KEYBYTES]) {
  uint8_t text[32] = {0};
  weft_put_number(text, 8, stripe);
  weft_put_number(text + 8, 2, shard);
  memcpy(text + 16, trailer, AT_CHUNK_TAG);
  (void)crypto_generichash(out, crypto_onetimeauth_KEYBYTES, text, sizeof text, file_key,
                           WEFT_STORE_KEY_BYTES);
}

void weft_store_chunk_seal(const uint8_t *file_key, uint16_t shard, uint64_t stripe,
                           weft_store_trailer trailer, const uint8_t *chunk, size_t bytes,
                           uint8_t out[WEFT_STORE_TRAILER_BYTES]) {
  uint8_t key[crypto_onetimeauth_KEYBYTES];
  weft_put_number(out, 8, trailer.generation);
  weft_put_number(out + AT_CHUNK_NONCE, 8, trailer.nonce);
  chunk_key(file_key, shard, stripe, out, key);
  (void)crypto_onetimeauth(out + AT_CHUNK_TAG, chunk, bytes, key);
}

bool weft_store_chunk_good(const uint8_t *file_key, uint16_t shard, uint64_t stripe,
                           uint64_t generation, const uint8_t *chunk, size_t bytes,
                           const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]) {
  uint8_t key[crypto_onetimeauth_KEYBYTES];
  chunk_key(file_key, shard, stripe, trailer, key);
  return crypto_onetimeauth_verify(trailer + AT_CHUNK_TAG, chunk, bytes, key) == 0 &&
         weft_get_number(trailer, 8) <= generation;
}

uint64_t weft_store_chunk_generation(const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]) {
  return weft_get_number(trailer, 8);
}

uint64_t weft_store_chunk_nonce(const uint8_t trailer[WEFT_STORE_TRAILER_BYTES]) {
  return weft_get_number(trailer + AT_CHUNK_NONCE, 8);
}

// --- Journal

enum {
  AT_JOURNAL_ID = 16,
  AT_JOURNAL_GENERATION = 32,
  AT_JOURNAL_RECORDS = 40,
  AT_JOURNAL_BYTES = 48,
  AT_JOURNAL_SHARDS = 56,
  AT_JOURNAL_UPDATE = 88,
  AT_JOURNAL_DIGEST = 96
};

void weft_store_journal_write(const weft_store_journal *j, const uint8_t *file_key,
                              uint8_t out[WEFT_STORE_JOURNAL_BYTES]) {
  memset(out, 0, WEFT_STORE_JOURNAL_BYTES);
  memcpy(out, journal_magic, sizeof journal_magic);
  weft_put_number(out + AT_VERSION, 2, WEFT_STORE_VERSION);
  memcpy(out + AT_JOURNAL_ID, j->id, sizeof j->id);
  weft_put_number(out + AT_JOURNAL_GENERATION, 8, j->generation);
  weft_put_number(out + AT_JOURNAL_RECORDS, 8, j->records);
  weft_put_number(out + AT_JOURNAL_BYTES, 8, j->bytes);
  weft_put_number(out + AT_JOURNAL_UPDATE, 8, j->update);
  memcpy(out + AT_JOURNAL_SHARDS, j->shards, sizeof j->shards);
  (void)crypto_generichash(out + AT_JOURNAL_DIGEST, WEFT_STORE_JOURNAL_BYTES - AT_JOURNAL_DIGEST,
                           out, AT_JOURNAL_DIGEST, file_key, WEFT_STORE_KEY_BYTES);
}

weft_status weft_store_journal_read(const uint8_t in[WEFT_STORE_JOURNAL_BYTES],
                                    const uint8_t *file_key, weft_store_journal *out) {
  uint8_t digest[WEFT_STORE_JOURNAL_BYTES - AT_JOURNAL_DIGEST];
  (void)crypto_generichash(digest, sizeof digest, in, AT_JOURNAL_DIGEST, file_key,
                           WEFT_STORE_KEY_BYTES);
  if (memcmp(in, journal_magic, sizeof journal_magic) != 0 ||
      sodium_memcmp(digest, in + AT_JOURNAL_DIGEST, sizeof digest) != 0)
    return WEFT_E_MALFORMED;
  if (weft_get_number(in + AT_VERSION, 2) != WEFT_STORE_VERSION)
    return WEFT_E_VERSION;
  out->generation = weft_get_number(in + AT_JOURNAL_GENERATION, 8);
  out->records = weft_get_number(in + AT_JOURNAL_RECORDS, 8);
  out->bytes = weft_get_number(in + AT_JOURNAL_BYTES, 8);
  out->update = weft_get_number(in + AT_JOURNAL_UPDATE, 8);
  memcpy(out->id, in + AT_JOURNAL_ID, sizeof out->id);
  memcpy(out->shards, in + AT_JOURNAL_SHARDS, sizeof out->shards);
  return all_zero(in + AT_VERSION + 2, AT_JOURNAL_ID - AT_VERSION - 2) ? WEFT_OK : WEFT_E_MALFORMED;
}

enum { RECORD_FIELDS = 16 };

static void record_digest(const uint8_t *fields, const weft_store_journal *journal,
                          const uint8_t *file_key, uint8_t out[16]) {
  uint8_t text[RECORD_FIELDS + 8];
  memcpy(text, fields, RECORD_FIELDS);
  weft_put_number(text + RECORD_FIELDS, 8, journal->generation);
  (void)crypto_generichash(out, 16, text, sizeof text, file_key, WEFT_STORE_KEY_BYTES);
}

void weft_store_record_write(const weft_store_record *r, const weft_store_journal *journal,
                             const uint8_t *file_key, uint8_t out[WEFT_STORE_RECORD_BYTES]) {
  memset(out, 0, RECORD_FIELDS);
  weft_put_number(out, 8, r->stripe);
  weft_put_number(out + 8, 2, r->shard);
  record_digest(out, journal, file_key, out + RECORD_FIELDS);
}

weft_status weft_store_record_read(const uint8_t in[WEFT_STORE_RECORD_BYTES],
                                   const weft_store_journal *journal, const uint8_t *file_key,
                                   weft_store_record *out) {
  uint8_t digest[16];
  record_digest(in, journal, file_key, digest);
  if (sodium_memcmp(digest, in + RECORD_FIELDS, sizeof digest) != 0 || !all_zero(in + 10, 6))
    return WEFT_E_MALFORMED;
  *out = (weft_store_record){.stripe = weft_get_number(in, 8),
                             .shard = (uint16_t)weft_get_number(in + 8, 2)};
  return WEFT_OK;
}
