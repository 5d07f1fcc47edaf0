// SPDX-License-Identifier: Apache-2.0
// Ed25519 through libsodium, and the trust of simulations, which costs no time.
#include "weft/peer_trust.h"

#include <sodium.h>
#include <string.h>

static bool sign(void *user, const uint8_t *text, size_t bytes, uint8_t out[WEFT_SIGNATURE_BYTES]) {
  const weft_trust_ed25519 *keys = user;
  return keys->is_source && crypto_sign_detached(out, NULL, text, bytes, keys->secret_key) == 0;
}

static bool verify(void *user, const uint8_t *text, size_t bytes,
                   const uint8_t signature[WEFT_SIGNATURE_BYTES]) {
  const weft_trust_ed25519 *keys = user;
  return crypto_sign_verify_detached(signature, text, bytes, keys->public_key) == 0;
}

weft_trust weft_trust_ed25519_table(weft_trust_ed25519 *keys) {
  return (weft_trust){.user = keys, .sign = keys->is_source ? sign : NULL, .verify = verify};
}

static bool sign_nothing(void *user, const uint8_t *text, size_t bytes,
                         uint8_t out[WEFT_SIGNATURE_BYTES]) {
  (void)user, (void)text, (void)bytes;
  memset(out, 0, WEFT_SIGNATURE_BYTES);
  return true;
}

static bool believe(void *user, const uint8_t *text, size_t bytes,
                    const uint8_t signature[WEFT_SIGNATURE_BYTES]) {
  (void)user, (void)text, (void)bytes, (void)signature;
  return true;
}

const weft_trust weft_trust_counted = {.sign = sign_nothing, .verify = believe};
