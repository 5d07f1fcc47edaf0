// SPDX-License-Identifier: Apache-2.0
// What the files of the session layer share: byte layouts, timers, and the state of links.
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
  WEFT_CONFIRM_BOX = 8,  // the same of CONFIRM
  WEFT_PROOF_BYTES = 96, // identity and signature
  WEFT_ACCEPT_MIN = WEFT_ACCEPT_BOX + WEFT_PROOF_BYTES + 16,
  WEFT_CONFIRM_MIN = WEFT_CONFIRM_BOX + WEFT_PROOF_BYTES + 16,
  WEFT_CONTROL_MAX = WEFT_ACCEPT_MIN + (int)WEFT_SESSION_BLOB_BYTES
};
_Static_assert(WEFT_CONTROL_MAX <= 3 * WEFT_INIT_BYTES, "answers must not amplify");
_Static_assert(WEFT_SESSION_LEAST_BYTES == WEFT_SESSION_OVERHEAD_BYTES, "as short as empty DATA");

// Timers, microseconds.
enum {
  WEFT_INIT_AGAIN_US = 250000,      // doubling up to
  WEFT_INIT_AGAIN_MAX_US = 1000000, // this
  WEFT_HANDSHAKE_US = 5000000,      // a handshake must end within
  WEFT_KEEPALIVE_US = 15000000,     // nothing was sent for so long
  WEFT_ANSWER_EVERY_US = 50000,     // keep-alives that answer a repeated CONFIRM
  WEFT_PATH_EVERY_US = 50000,       // PATHs of one link
  WEFT_PATH_ANSWER_US = 1000000,    // one to a new address may be answered yet
  WEFT_PREVIOUS_US = 10000000,      // replaced keys still open datagrams
  WEFT_COOKIE_EPOCH_US = 10000000,  // a cookie holds for one to two of these
  WEFT_REKEY_US = 120000000,
  WEFT_RENEWAL_EVERY_US = 5000000, // a session's own handshakes, which no others take
  WEFT_SILENT_LINK_US = 30000000
};
#define WEFT_COUNTER_MAX (UINT64_C(1) << 40) // datagrams under one key

enum {
  WEFT_PATH_BYTES = 8,      // sealed in PATH and HERE
  WEFT_CLOSE_DISPLACED = 1, // sealed in CLOSE: another session of that identity takes its place
  WEFT_REPLAY_WORDS = 33,   // 64 counters each; one word is always being cleared
  WEFT_RING = 128,          // own datagrams that wait for output
  WEFT_HALF_OPEN = 64,
  WEFT_RETRIES_PER_S = 10000, // a newcomer's chance in a flood; each is shorter than what asks
  WEFT_RETRIES_BURST = 1000,
  WEFT_SHARES = 256,       // of the handshakes, by where they come from; in each of two rows
  WEFT_ACCEPTS_PER_S = 20, // that one opening link looks at
};
#define WEFT_REPLAY_WINDOW ((WEFT_REPLAY_WORDS - 1) * UINT64_C(64))

typedef struct weft_bucket {
  int64_t at_us; // when the bucket was last full enough to count
  int64_t tokens_us;
} weft_bucket;

// One direction's AEAD: AES-256-GCM's schedule, or 32 bytes of ChaCha20's key.
typedef union weft_session_key {
  crypto_aead_aes256gcm_state aes;
  uint8_t chacha[32];
} weft_session_key;

typedef struct weft_keys {
  weft_session_key send, receive;
  bool used, aes;
  uint32_t id, remote_id; // what the two sides call these keys
  size_t link;            // NONE: of a handshake
  int64_t born_us;
  uint64_t counter; // of the next datagram
  uint64_t top;     // greatest counter received, plus one
  uint64_t seen[WEFT_REPLAY_WORDS];
} weft_keys;

// The secrets of one handshake after the Diffie-Hellman.
typedef struct weft_secrets {
  uint8_t transcript[32];
  uint8_t accept[32], confirm[32]; // keys of the two encrypted parts
  uint8_t master[32];              // before identities
} weft_secrets;

typedef enum weft_link_state { LINK_FREE, LINK_OPENING, LINK_OPEN, LINK_LOST } weft_link_state;

typedef enum weft_opening_state { OPENING_NONE, OPENING_INIT, OPENING_CONFIRM } weft_opening_state;

// What the initiator remembers, for a first session and for new keys.
typedef struct weft_opening {
  weft_opening_state state;
  bool other_identity; // somebody answered who was not expected
  bool cookie_known;
  uint8_t cookies; // taken so far
  uint8_t secret[32], public_key[32];
  uint8_t cookie[WEFT_COOKIE_BYTES];
  size_t keys;
  int64_t started_us, next_us, wait_us;
  weft_bucket accepts;
  uint8_t confirm[WEFT_CONFIRM_MIN + WEFT_SESSION_BLOB_BYTES];
  size_t confirm_bytes;
  uint8_t identity[32]; // who answered
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
  size_t current, previous; // keys
  int64_t heard_us, sent_us, replaced_us, rekey_us;
  int64_t renewed_us; // when the last handshake of its own was answered
  weft_address moved; // where it may be now, and what PATH asked there; path_us 0: nothing
  uint8_t path[WEFT_PATH_BYTES];
  int64_t path_us;
  weft_opening opening;
} weft_link;

// What the responder remembers between ACCEPT and CONFIRM.
typedef struct weft_half_open {
  bool used;
  weft_address address;
  uint8_t init[WEFT_INIT_COOKIE]; // what was answered
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
  bool events; // some may wait to be told
  weft_session_statistics statistics;
};

static inline void weft_session_random(weft_sessions *s, void *out, size_t bytes) {
  s->rng.fill(s->rng.user, out, bytes);
}

// sessions.c
bool weft_session_take(weft_bucket *bucket, uint32_t per_s, uint32_t burst, int64_t now_us);
// A place for keys with an id of its own; NONE if there is none.
size_t weft_session_new_keys(weft_sessions *s, int64_t now_us);
void weft_session_free_keys(weft_sessions *s, size_t *keys);
weft_keys *weft_session_find_keys(weft_sessions *s, uint32_t id);
// A free link, cleared; NONE if there is none.
size_t weft_session_new_link(weft_sessions *s, const weft_address *address, int64_t now_us);
void weft_session_lose(weft_sessions *s, size_t link, weft_session_reason reason);
// Room for a datagram of this layer's own; NULL when too many wait.
uint8_t *weft_session_control(weft_sessions *s, const weft_address *address, size_t bytes);
// An empty sealed datagram of this type: keep-alive or CLOSE.
void weft_session_send_empty(weft_sessions *s, size_t link, uint8_t type, size_t keys,
                             int64_t now_us);
// The link has new keys: the older ones open datagrams for a while yet.
void weft_session_promote(weft_sessions *s, size_t link, size_t keys, int64_t now_us);
// Of two sessions with one identity one stays. False: it was not this one.
bool weft_session_settle(weft_sessions *s, size_t link, int64_t now_us);
// Something may be due earlier than was thought.
static inline void weft_session_due(weft_sessions *s, int64_t at_us) {
  s->deadline_us = at_us < s->deadline_us ? at_us : s->deadline_us;
}

// keys.c
void weft_session_cookie(const weft_sessions *s, const weft_address *address,
                         const uint8_t *initiator, int64_t epoch, uint8_t out[WEFT_COOKIE_BYTES]);
// init: the whole INIT; accept: the first WEFT_ACCEPT_BOX bytes of ACCEPT. False: a useless key.
bool weft_session_agree(const uint8_t *secret, const uint8_t *other, const uint8_t *init,
                        const uint8_t *accept, weft_secrets *out);
// The traffic keys, once the responder's identity is known.
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
// The newest datagram of the link came from another address than before: asks there.
void weft_session_ask_path(weft_sessions *s, size_t link, const weft_address *address,
                           int64_t now_us);
// What goes to the link goes out from the address that it writes to.
void weft_session_answer_from(weft_link *l, const weft_address *address);
// An opened PATH or HERE.
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
// The first datagram under the opening's keys has come: the other side has them too.
bool weft_session_confirmed(weft_sessions *s, size_t link, int64_t now_us);

#endif
