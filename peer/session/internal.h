// SPDX-License-Identifier: Apache-2.0
// What the files of the session layer share: byte layouts, timers, and the state of links. A link
// is this side's end of a session, or of an opening: a handshake that this side began. A half-open
// handshake is one that the other side began and has not confirmed yet.
#ifndef WEFT_PEER_SESSION_INTERNAL_H
#define WEFT_PEER_SESSION_INTERNAL_H

#include <sodium.h>

#include "lib/big_endian.h"
#include "peer/session/common.h"
#include "peer/session/datagram.h"
#include "weft/peer_session.h"

#define NONE SIZE_MAX

// Lengths and offsets (docs/session.md).
enum {
  WEFT_INIT_COOKIE = 44,
  WEFT_INIT_PADDING = 60,
  WEFT_COOKIE_BYTES = 16,
  WEFT_ACCEPT_BOX = 44,  // where its encrypted part begins
  WEFT_CONFIRM_BOX = 8,  // likewise in CONFIRM
  WEFT_PROOF_BYTES = 96, // identity and signature
  WEFT_ACCEPT_MIN = WEFT_ACCEPT_BOX + WEFT_PROOF_BYTES + 16,
  WEFT_CONFIRM_MIN = WEFT_CONFIRM_BOX + WEFT_PROOF_BYTES + 16,
  WEFT_CONTROL_MAX = WEFT_ACCEPT_MIN + (int)WEFT_SESSION_BLOB_BYTES
};
_Static_assert(WEFT_CONTROL_MAX <= 3 * WEFT_INIT_BYTES, "answers must not amplify");
_Static_assert(WEFT_SESSION_LEAST_BYTES == WEFT_SESSION_OVERHEAD_BYTES, "as short as empty DATA");

// Timers, microseconds.
enum {
  WEFT_INIT_AGAIN_US = 250000,      // until INIT is repeated, doubling up to
  WEFT_INIT_AGAIN_MAX_US = 1000000, // this
  WEFT_HANDSHAKE_US = 5000000,      // within which a handshake must end
  WEFT_KEEPALIVE_US = 15000000,     // without sending, until a keep-alive
  WEFT_ANSWER_EVERY_US = 50000,     // between keep-alives that answer a repeated CONFIRM
  WEFT_PATH_EVERY_US = 50000,       // between PATHs of one link
  WEFT_PATH_ANSWER_US = 1000000,    // how long a PATH to a new address may still be answered
  WEFT_PREVIOUS_US = 10000000,      // how long replaced keys still open datagrams
  WEFT_COOKIE_EPOCH_US = 10000000,  // a cookie holds for one to two of these
  WEFT_REKEY_US = 120000000,
  WEFT_RENEWAL_EVERY_US = 5000000, // between handshakes that a session has to itself for new keys
  WEFT_SILENT_LINK_US = 30000000
};
#define WEFT_COUNTER_MAX (UINT64_C(1) << 40) // datagrams under one key

enum {
  WEFT_PATH_BYTES = 8,      // sealed in PATH and HERE
  WEFT_CLOSE_DISPLACED = 1, // sealed in CLOSE: another session of that identity replaces this one
  WEFT_REPLAY_WORDS = 33,   // 64 counters each; one word is always being cleared
  WEFT_RING = 128,          // own datagrams waiting for output
  WEFT_HALF_OPEN = 64,
  WEFT_RETRIES_PER_S = 10000, // a newcomer's chance in a flood; each is shorter than its INIT
  WEFT_RETRIES_BURST = 1000,
  WEFT_SHARES = 256,       // of the handshakes, by where these come from; in each of two rows
  WEFT_ACCEPTS_PER_S = 20, // that one opening examines
};
#define WEFT_REPLAY_WINDOW ((WEFT_REPLAY_WORDS - 1) * UINT64_C(64))

typedef struct weft_bucket {
  int64_t at_us; // when tokens_us was last updated
  int64_t tokens_us;
} weft_bucket;

// The AEAD key of one direction: AES-256-GCM's key schedule, or ChaCha20's 32 bytes.
typedef union weft_session_key {
  crypto_aead_aes256gcm_state aes;
  uint8_t chacha[32];
} weft_session_key;

typedef struct weft_keys {
  weft_session_key send, receive;
  bool used, aes;
  uint32_t id, remote_id; // of these keys, at the two sides
  size_t link;            // NONE: of a half-open handshake
  int64_t born_us;
  uint64_t counter; // of the next datagram
  uint64_t top;     // greatest counter received, plus one
  uint64_t seen[WEFT_REPLAY_WORDS];
} weft_keys;

// The secrets of one handshake after the Diffie-Hellman.
typedef struct weft_secrets {
  uint8_t transcript[32];
  uint8_t accept[32], confirm[32]; // keys of the two encrypted parts
  uint8_t master[32];              // before identities are mixed in
} weft_secrets;

typedef enum weft_link_state { LINK_FREE, LINK_OPENING, LINK_OPEN, LINK_LOST } weft_link_state;

typedef enum weft_opening_state { OPENING_NONE, OPENING_INIT, OPENING_CONFIRM } weft_opening_state;

// What the initiator remembers, in a first handshake or one for new keys.
typedef struct weft_opening {
  weft_opening_state state;
  bool other_identity; // an unexpected identity answered
  bool cookie_known;
  uint8_t cookies; // received so far
  uint8_t secret[32], public_key[32];
  uint8_t cookie[WEFT_COOKIE_BYTES];
  size_t keys;
  int64_t started_us, next_us, wait_us;
  weft_bucket accepts;
  uint8_t confirm[WEFT_CONFIRM_MIN + WEFT_SESSION_BLOB_BYTES];
  size_t confirm_bytes;
  uint8_t identity[32]; // that answered
  uint8_t blob[WEFT_SESSION_BLOB_BYTES];
  size_t blob_bytes;
} weft_opening;

typedef struct weft_link {
  weft_link_state state;
  weft_session_reason reason;
  bool opened_event, moved_event, initiated, identity_expected;
  weft_address address;
  uint8_t identity[32]; // expected, then known
  uint8_t blob[WEFT_SESSION_BLOB_BYTES];
  size_t blob_bytes;
  size_t current, previous; // places of keys
  int64_t heard_us, sent_us, replaced_us, rekey_us;
  int64_t renewed_us; // when a handshake that it has to itself was last answered
  weft_address moved; // where it may be now; path: what PATH asked there; path_us 0: nothing
  uint8_t path[WEFT_PATH_BYTES];
  int64_t path_us;
  weft_opening opening;
} weft_link;

// What the responder remembers between ACCEPT and CONFIRM.
typedef struct weft_half_open {
  bool used;
  weft_address address;
  uint8_t init[WEFT_INIT_COOKIE]; // the INIT that was answered
  weft_secrets secrets;
  size_t keys;
  int64_t born_us;
  uint8_t accept[WEFT_CONTROL_MAX];
  size_t accept_bytes;
} weft_half_open;

typedef struct weft_control {
  weft_address address;
  size_t bytes;
  uint8_t data[WEFT_CONTROL_MAX];
} weft_control;

struct weft_sessions {
  weft_ctx *ctx;
  weft_sessions_options options;
  weft_rng rng;
  uint8_t blob[WEFT_SESSION_BLOB_BYTES];
  bool aes;
  uint8_t cookie_key[32];
  weft_bucket handshakes, retries, shares[2][WEFT_SHARES];
  weft_link *links; // (options.links_max)
  weft_keys *keys;  // (keys_count), 3 for each link and 1 for each half-open
  size_t keys_count, keys_next;
  weft_half_open *half_open; // (WEFT_HALF_OPEN)
  weft_control *ring;        // (WEFT_RING)
  size_t ring_first, ring_count;
  int64_t deadline_us;
  bool events; // there may be some to report
  weft_session_statistics statistics;
};

static inline void weft_session_random(weft_sessions *s, void *out, size_t bytes) {
  s->rng.fill(s->rng.user, out, bytes);
}

// sessions.c
bool weft_session_take(weft_bucket *bucket, uint32_t per_s, uint32_t burst, int64_t now_us);
// Takes a place for keys and gives it a new id; NONE if there is none.
size_t weft_session_new_keys(weft_sessions *s, int64_t now_us);
void weft_session_free_keys(weft_sessions *s, size_t *keys);
weft_keys *weft_session_find_keys(weft_sessions *s, uint32_t id);
// Takes a free link and clears it; NONE if there is none.
size_t weft_session_new_link(weft_sessions *s, const weft_address *address, int64_t now_us);
void weft_session_lose(weft_sessions *s, size_t link, weft_session_reason reason);
// Queues a datagram of this layer's own and returns where to write it; NULL if too many wait.
uint8_t *weft_session_control(weft_sessions *s, const weft_address *address, size_t bytes);
// Sends an empty sealed datagram of this type: a keep-alive.
void weft_session_send_empty(weft_sessions *s, size_t link, uint8_t type, size_t keys,
                             int64_t now_us);
// Gives a link new keys; the old ones still open datagrams for a while.
void weft_session_promote(weft_sessions *s, size_t link, size_t keys, int64_t now_us);
// Of two sessions with one identity, ends one. False: it was this one.
bool weft_session_settle(weft_sessions *s, size_t link, int64_t now_us);
// Notes that something may be due earlier than was known.
static inline void weft_session_due(weft_sessions *s, int64_t at_us) {
  s->deadline_us = at_us < s->deadline_us ? at_us : s->deadline_us;
}

// keys.c
void weft_session_cookie(const weft_sessions *s, const weft_address *address,
                         const uint8_t *initiator, int64_t epoch, uint8_t out[WEFT_COOKIE_BYTES]);
// Derives a handshake's secrets. init: the whole INIT; accept: the first WEFT_ACCEPT_BOX bytes of
// ACCEPT. False: the other side's key is useless.
bool weft_session_agree(const uint8_t *secret, const uint8_t *other, const uint8_t *init,
                        const uint8_t *accept, weft_secrets *out);
// Derives the traffic keys, once the responder's identity is known.
void weft_session_traffic(const weft_secrets *secrets, const uint8_t *responder, bool initiator,
                          weft_keys *out);
void weft_session_sign(const weft_sessions *s, const weft_secrets *secrets, const char *role,
                       const uint8_t *responder, uint8_t flags, const uint8_t *blob,
                       size_t blob_bytes, uint8_t *proof);
bool weft_session_verify(const weft_secrets *secrets, const char *role, const uint8_t *responder,
                         uint8_t flags, const uint8_t *blob, size_t blob_bytes,
                         const uint8_t *proof);
void weft_session_box(uint8_t *datagram, size_t box, size_t plain_bytes, const uint8_t *key);
bool weft_session_unbox(uint8_t *datagram, size_t box, size_t bytes, const uint8_t *key);

// data.c
size_t weft_session_seal(const weft_seal *seal, uint64_t counter, uint8_t type,
                         const uint8_t *plain, size_t bytes, uint8_t *out);
// WEFT_OK, WEFT_DEPENDENT (a replay), WEFT_E_FOREIGN.
weft_status weft_session_unseal(weft_keys *keys, uint8_t *datagram, size_t bytes);

// path.c
// Sends a PATH to an address from which the newest datagram of the link came, if it is a new one.
void weft_session_ask_path(weft_sessions *s, size_t link, const weft_address *address,
                           int64_t now_us);
// At the responder: answers from the own address that the other side writes to.
void weft_session_answer_from(weft_link *l, const weft_address *address);
// Takes an opened PATH or HERE.
weft_status weft_session_take_path(weft_sessions *s, size_t link, const weft_address *address,
                                   uint8_t type, const uint8_t *plain, size_t bytes,
                                   int64_t now_us);

// handshake.c
void weft_session_begin(weft_sessions *s, size_t link, int64_t now_us);
void weft_session_repeat(weft_sessions *s, size_t link, int64_t now_us); // INIT or CONFIRM
void weft_session_forget(weft_sessions *s, size_t link);                 // ends an opening
void weft_session_drop_half_open(weft_sessions *s, weft_half_open *h);
weft_status weft_session_take_init(weft_sessions *s, const weft_address *address,
                                   const uint8_t *datagram, size_t bytes, int64_t now_us);
weft_status weft_session_take_retry(weft_sessions *s, const weft_address *address,
                                    const uint8_t *datagram, size_t bytes, int64_t now_us);
weft_status weft_session_take_accept(weft_sessions *s, const weft_address *address,
                                     uint8_t *datagram, size_t bytes, int64_t now_us);
weft_status weft_session_take_confirm(weft_sessions *s, const weft_address *address,
                                      uint8_t *datagram, size_t bytes, int64_t now_us);
// Takes the first datagram under the opening's keys: the other side has them, too. False: the link
// gave way to another session.
bool weft_session_confirmed(weft_sessions *s, size_t link, int64_t now_us);

#endif
