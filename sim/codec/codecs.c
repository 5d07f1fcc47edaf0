// SPDX-License-Identifier: Apache-2.0
// What the codecs without payload share: setup, and what the network does to tokens.
#include "sim/codec/codecs.h"

#include <string.h>

#include "kernels/cpu.h"

weft_status weft_sim_codec_init(weft_sim_codec *codec) {
  const size_t n = codec->blocks;
  if (n < 1 || n > WEFT_MAX_BLOCKS || codec->batch < 1 || codec->batch > WEFT_SIM_TOKEN_PACKETS)
    return WEFT_E_ARGUMENT;
  if (codec->fidelity != WEFT_SIM_COEFFICIENTS)
    return WEFT_OK;
  const weft_machine machine = {.cpu = weft_cpu_features()};
  WEFT_TRY(weft_backend_select(&machine, WEFT_MEM_HOST, NULL, &codec->row));
  codec->allocator = weft_sim_arena_allocator(codec->arena);
  codec->exec = (weft_exec){.allocator = &codec->allocator};
  // The vectors of a burst, and the factors of those or of the whole basis.
  codec->work = weft_sim_arena_take(codec->arena, 2 * codec->batch * n, sizeof(void *));
  return codec->work ? WEFT_OK : WEFT_E_NOMEM;
}

void weft_sim_codec_clear(weft_sim_codec *codec) {
  if (codec->work)
    weft_sim_arena_give(codec->arena, codec->work);
  codec->work = NULL;
}

weft_codec weft_sim_codec_table(weft_sim_codec *codec) {
  return codec->fidelity == WEFT_SIM_RANK ? weft_sim_codec_rank_table(codec)
                                          : weft_sim_codec_coefficients_table(codec);
}

void weft_sim_token_address(const weft_sim_codec *codec, void *token, size_t to) {
  if (codec->fidelity == WEFT_SIM_RANK)
    weft_sim_rank_address(codec, token, to);
}

void weft_sim_token_arrive(const weft_sim_codec *codec, void *token, size_t from) {
  if (codec->fidelity == WEFT_SIM_RANK)
    weft_sim_rank_arrive(token, from);
}

size_t weft_sim_token_lose(const weft_sim_codec *codec, void *token, size_t bytes, size_t count,
                           uint64_t lost) {
  if (codec->fidelity == WEFT_SIM_RANK) {
    weft_sim_rank_lose(codec, token, count, lost);
    return bytes;
  }
  uint8_t *vectors = (uint8_t *)token + 1;
  const size_t n = (bytes - 1) / count; // a stream's last segment may have fewer blocks
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!(lost >> i & 1)) {
      memmove(vectors + kept * n, vectors + i * n, n);
      kept++;
    }
  return 1 + kept * n;
}

static size_t held_rank(void *user, const void *opened) {
  (void)user;
  return ((const weft_sim_held *)opened)->rank;
}

static weft_status held_read(void *user, void *opened, size_t offset, size_t bytes, uint8_t *out) {
  (void)user, (void)opened, (void)offset;
  memset(out, 0, bytes);
  return WEFT_OK;
}

static weft_status held_digest(void *user, void *opened, size_t bytes,
                               uint8_t out[WEFT_DIGEST_BYTES]) {
  (void)user, (void)bytes;
  memset(out, ((const weft_sim_held *)opened)->polluted, WEFT_DIGEST_BYTES);
  return WEFT_OK;
}

static weft_status held_checksum(void *user, void *opened, uint64_t seed, uint8_t *sums) {
  (void)user, (void)seed;
  memset(sums, 0, (size_t)((const weft_sim_held *)opened)->blocks * WEFT_CHECKSUM_ROWS);
  return WEFT_OK;
}

// Returns the bytes of a packet as the RLNC codec would send it: vectors between peers, seeds from
// the source.
static size_t packet_bytes(void *user, const weft_segment_id *id, bool at_source) {
  (void)user;
  return weft_packet_session_bytes(id, at_source ? WEFT_PACKET_DENSE : WEFT_PACKET_VECTOR);
}

weft_codec weft_sim_held_table(weft_sim_codec *codec) {
  return (weft_codec){.user = codec,
                      .rank = held_rank,
                      .read = held_read,
                      .digest = held_digest,
                      .checksum = held_checksum,
                      .token_packet_bytes = packet_bytes};
}
