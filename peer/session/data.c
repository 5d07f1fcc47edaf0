// SPDX-License-Identifier: Apache-2.0
// Sealed datagrams: nonces are counters, and a window of counters seen rejects replays.
#include <string.h>

#include "peer/session/internal.h"

// The nonce is the counter; each direction of each session has a key of its own.
static void make_nonce(uint8_t nonce[12], const uint8_t *counter) {
  memset(nonce, 0, 4);
  memcpy(nonce + 4, counter, 8);
}

size_t weft_session_seal(const weft_seal *seal, uint64_t counter, uint8_t type,
                         const uint8_t *plain, size_t bytes, uint8_t *out) {
  const weft_session_key *key = seal->key;
  uint8_t *sealed = out + WEFT_SESSION_HEADER_BYTES, nonce[12];
  out[0] = type;
  weft_put24(out + 1, seal->remote_id);
  weft_put64(out + 4, counter);
  make_nonce(nonce, out + 4);
  if (seal->aes)
    (void)crypto_aead_aes256gcm_encrypt_afternm(sealed, NULL, plain, bytes, out,
                                                WEFT_SESSION_HEADER_BYTES, NULL, nonce, &key->aes);
  else
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(
        sealed, NULL, plain, bytes, out, WEFT_SESSION_HEADER_BYTES, NULL, nonce, key->chacha);
  return bytes + WEFT_SESSION_OVERHEAD_BYTES;
}

size_t weft_seal_datagram(const weft_seal *seal, size_t i, const uint8_t *plain, size_t bytes,
                          uint8_t *out) {
  return weft_session_seal(seal, seal->counter + i, WEFT_SESSION_DATA, plain, bytes, out);
}

static bool replayed(const weft_keys *keys, uint64_t counter) {
  if (counter >= keys->top)
    return false;
  if (keys->top - counter > WEFT_REPLAY_WINDOW)
    return true;
  return keys->seen[counter / 64 % WEFT_REPLAY_WORDS] >> (counter % 64) & 1;
}

static void remember(weft_keys *keys, uint64_t counter) {
  if (counter >= keys->top) {
    const uint64_t last = keys->top ? (keys->top - 1) / 64 : 0;
    uint64_t steps = counter / 64 - last;
    steps = steps < WEFT_REPLAY_WORDS ? steps : WEFT_REPLAY_WORDS;
    for (uint64_t i = 0; i < steps; i++)
      keys->seen[(counter / 64 - i) % WEFT_REPLAY_WORDS] = 0;
    keys->top = counter + 1;
  }
  keys->seen[counter / 64 % WEFT_REPLAY_WORDS] |= UINT64_C(1) << (counter % 64);
}

weft_status weft_session_unseal(weft_keys *keys, uint8_t *datagram, size_t bytes) {
  const uint64_t counter = weft_get64(datagram + 4);
  uint8_t *sealed = datagram + WEFT_SESSION_HEADER_BYTES, nonce[12];
  const size_t sealed_bytes = bytes - WEFT_SESSION_HEADER_BYTES;
  if (counter >= WEFT_COUNTER_MAX)
    return WEFT_E_FOREIGN;
  if (replayed(keys, counter))
    return WEFT_DEPENDENT;
  make_nonce(nonce, datagram + 4);
  const int bad =
      keys->aes
          ? crypto_aead_aes256gcm_decrypt_afternm(sealed, NULL, NULL, sealed, sealed_bytes,
                                                  datagram, WEFT_SESSION_HEADER_BYTES, nonce,
                                                  &keys->receive.aes)
          : crypto_aead_chacha20poly1305_ietf_decrypt(sealed, NULL, NULL, sealed, sealed_bytes,
                                                      datagram, WEFT_SESSION_HEADER_BYTES, nonce,
                                                      keys->receive.chacha);
  if (bad)
    return WEFT_E_FOREIGN;
  remember(keys, counter);
  return WEFT_OK;
}

weft_status weft_sessions_reserve(weft_sessions *s, size_t link, size_t count, int64_t now_us,
                                  weft_seal *out) {
  if (link >= s->options.links_max || s->links[link].state != LINK_OPEN)
    return WEFT_E_STATE;
  weft_keys *keys = &s->keys[s->links[link].current];
  if (count > WEFT_COUNTER_MAX - keys->counter)
    return WEFT_E_STATE;
  *out = (weft_seal){
      .key = &keys->send, .counter = keys->counter, .remote_id = keys->remote_id, .aes = keys->aes};
  keys->counter += count;
  s->links[link].sent_us = now_us;
  s->statistics.sealed_datagrams += count;
  return WEFT_OK;
}
