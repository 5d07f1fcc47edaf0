// SPDX-License-Identifier: Apache-2.0
// The source's signature: the table through which the engine signs and verifies what only the
// source may state (manifests, checksums). It uses libsodium's Ed25519, or nothing, for simulations
// that count bytes and checks and spend no time on them.
#ifndef WEFT_PEER_TRUST_H
#define WEFT_PEER_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_SIGNATURE_BYTES 64u
#define WEFT_PUBLIC_KEY_BYTES 32u
#define WEFT_SECRET_KEY_BYTES 64u

// May serve any number of engines of one thread.
typedef struct weft_trust {
  void *user;
  // For the source only; NULL elsewhere. Returns false if the key is missing.
  bool (*sign)(void *user, const uint8_t *text, size_t bytes, uint8_t out[WEFT_SIGNATURE_BYTES]);
  bool (*verify)(void *user, const uint8_t *text, size_t bytes,
                 const uint8_t signature[WEFT_SIGNATURE_BYTES]);
} weft_trust;

typedef struct weft_trust_ed25519 {
  uint8_t public_key[WEFT_PUBLIC_KEY_BYTES];
  uint8_t secret_key[WEFT_SECRET_KEY_BYTES]; // the source's
  bool is_source;                            // secret_key is set
} weft_trust_ed25519;

weft_trust weft_trust_ed25519_table(weft_trust_ed25519 *keys); // `keys` must stay where it is

// Signs with zeros and accepts every signature: for simulations only.
extern const weft_trust weft_trust_counted;

#ifdef __cplusplus
}
#endif
#endif
