// SPDX-License-Identifier: Apache-2.0
// The session layer's secrets: cookies, key agreement, signatures, the handshake's encrypted parts.
#include <string.h>

#include "peer/session/internal.h"

void weft_identity_from_seed(const uint8_t seed[32], weft_identity *out) {
  (void)crypto_sign_seed_keypair(out->public_key, out->secret_key, seed);
}

void weft_session_cookie(const weft_sessions *s, const weft_address *address,
                         const uint8_t *initiator, int64_t epoch, uint8_t out[WEFT_COOKIE_BYTES]) {
  uint8_t text[8 + 16 + 2 + 32];
  weft_put64(text, (uint64_t)epoch);
  memcpy(text + 8, address->ip, 16);
  text[24] = (uint8_t)(address->port >> 8);
  text[25] = (uint8_t)address->port;
  memcpy(text + 26, initiator, 32);
  (void)crypto_generichash(out, WEFT_COOKIE_BYTES, text, sizeof text, s->cookie_key,
                           sizeof s->cookie_key);
}

static void derive(uint8_t out[32], uint64_t number, const uint8_t master[32]) {
  (void)crypto_kdf_derive_from_key(out, 32, number, "weftsess", master);
}

bool weft_session_agree(const uint8_t *secret, const uint8_t *other, const uint8_t *init,
                        const uint8_t *accept, weft_secrets *out) {
  static const char label[] = "weft session 1";
  uint8_t shared[crypto_scalarmult_BYTES];
  if (crypto_scalarmult(shared, secret, other) != 0)
    return false;
  crypto_generichash_state state;
  (void)crypto_generichash_init(&state, NULL, 0, sizeof out->transcript);
  (void)crypto_generichash_update(&state, (const uint8_t *)label, sizeof label);
  (void)crypto_generichash_update(&state, init, WEFT_INIT_COOKIE); // the cookie may change
  (void)crypto_generichash_update(&state, accept, WEFT_ACCEPT_BOX);
  (void)crypto_generichash_final(&state, out->transcript, sizeof out->transcript);
  (void)crypto_generichash(out->master, sizeof out->master, out->transcript, sizeof out->transcript,
                           shared, sizeof shared);
  derive(out->accept, 1, out->master);
  derive(out->confirm, 2, out->master);
  sodium_memzero(shared, sizeof shared);
  return true;
}

static void set_key(weft_session_key *key, const uint8_t bytes[32], bool aes) {
  if (aes)
    (void)crypto_aead_aes256gcm_beforenm(&key->aes, bytes);
  else
    memcpy(key->chacha, bytes, 32);
}

void weft_session_traffic(const weft_secrets *secrets, const uint8_t *responder, bool initiator,
                          weft_keys *out) {
  uint8_t text[64], master[32], from_initiator[32], from_responder[32];
  memcpy(text, secrets->transcript, 32);
  memcpy(text + 32, responder, 32);
  (void)crypto_generichash(master, sizeof master, text, sizeof text, secrets->master, 32);
  derive(from_initiator, 3, master);
  derive(from_responder, 4, master);
  set_key(&out->send, initiator ? from_initiator : from_responder, out->aes);
  set_key(&out->receive, initiator ? from_responder : from_initiator, out->aes);
  sodium_memzero(master, sizeof master);
  sodium_memzero(from_initiator, sizeof from_initiator);
  sodium_memzero(from_responder, sizeof from_responder);
}

// What is signed: the role, the transcript, both identities as far as known, flags and blob.
static void hash_proof(const weft_secrets *secrets, const char *role, const uint8_t *responder,
                       uint8_t flags, const uint8_t *blob, size_t blob_bytes, const uint8_t *signer,
                       uint8_t out[64]) {
  crypto_generichash_state state;
  (void)crypto_generichash_init(&state, NULL, 0, 64);
  (void)crypto_generichash_update(&state, (const uint8_t *)role, strlen(role) + 1);
  (void)crypto_generichash_update(&state, secrets->transcript, 32);
  (void)crypto_generichash_update(&state, responder, 32);
  (void)crypto_generichash_update(&state, signer, 32);
  (void)crypto_generichash_update(&state, &flags, 1);
  (void)crypto_generichash_update(&state, blob, blob_bytes);
  (void)crypto_generichash_final(&state, out, 64);
}

void weft_session_sign(const weft_sessions *s, const weft_secrets *secrets, const char *role,
                       const uint8_t *responder, uint8_t flags, const uint8_t *blob,
                       size_t blob_bytes, uint8_t *proof) {
  uint8_t hash[64];
  memcpy(proof, s->options.identity.public_key, 32);
  hash_proof(secrets, role, responder, flags, blob, blob_bytes, proof, hash);
  (void)crypto_sign_detached(proof + 32, NULL, hash, sizeof hash, s->options.identity.secret_key);
}

bool weft_session_verify(const weft_secrets *secrets, const char *role, const uint8_t *responder,
                         uint8_t flags, const uint8_t *blob, size_t blob_bytes,
                         const uint8_t *proof) {
  uint8_t hash[64];
  hash_proof(secrets, role, responder, flags, blob, blob_bytes, proof, hash);
  return crypto_sign_verify_detached(proof + 32, hash, sizeof hash, proof) == 0;
}

// Encrypts in place. Each key seals one message, so the nonce may be zero; what precedes the box is
// authenticated.
void weft_session_box(uint8_t *datagram, size_t box, size_t plain_bytes, const uint8_t *key) {
  static const uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
  (void)crypto_aead_chacha20poly1305_ietf_encrypt(datagram + box, NULL, datagram + box, plain_bytes,
                                                  datagram, box, NULL, nonce, key);
}

bool weft_session_unbox(uint8_t *datagram, size_t box, size_t bytes, const uint8_t *key) {
  static const uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
  return crypto_aead_chacha20poly1305_ietf_decrypt(datagram + box, NULL, NULL, datagram + box,
                                                   bytes - box, datagram, box, nonce, key) == 0;
}
