// SPDX-License-Identifier: Apache-2.0
// Secure sessions with neighbours over datagrams, without input or output of its own: datagrams and
// the time go in; opened datagrams, events and handshake datagrams come out (docs/session.md).
//
// A remote side that has not shown that it receives at its address costs no more than a cheap
// check; one that has not proved its identity gets no lasting state. The same calls with the same
// arguments give the same results: all randomness comes from the rng, which must be fit for keys.
//
// Use: after any input, take events until none is left, then output until none is left, then sleep
// until weft_sessions_deadline() or the next datagram. One thread at a time. Pointers must not be
// NULL unless a call says so; they are not checked.
//
// Memory: allocated once, by weft_sessions_new: about 5 KiB for each link and 170 KiB more.
#ifndef WEFT_PEER_SESSION_H
#define WEFT_PEER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/peer_rng.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_SESSION_DATAGRAM_BYTES 1200u // of any datagram, at most
#define WEFT_SESSION_HEADER_BYTES 12u     // before the sealed bytes
#define WEFT_SESSION_TAG_BYTES 16u        // after the sealed bytes
#define WEFT_SESSION_OVERHEAD_BYTES (WEFT_SESSION_HEADER_BYTES + WEFT_SESSION_TAG_BYTES)
#define WEFT_SESSION_PLAIN_BYTES (WEFT_SESSION_DATAGRAM_BYTES - WEFT_SESSION_OVERHEAD_BYTES)
#define WEFT_SESSION_BLOB_BYTES 160u // that each side sends about itself, at most
#define WEFT_SESSION_MAX_LINKS 1024u
#define WEFT_SESSION_NEVER INT64_MAX
#define WEFT_SESSION_MAX_TIME_US (INT64_C(1) << 50) // of an option; now_us counts from 0 to 2^60

typedef struct weft_sessions weft_sessions;

typedef struct weft_address {
  uint8_t ip[16]; // IPv6; IPv4 as ::ffff:a.b.c.d. A node's fe80::/10: bytes 4 to 7 its interface
  uint16_t port;
  // Which of this machine's own addresses the datagrams were sent to, and replies come from; all
  // zero: the system chooses. Addresses that differ only here are the same.
  uint8_t own[16];
} weft_address;

// An Ed25519 key pair: the identity of a node for as long as it keeps the pair.
typedef struct weft_identity {
  uint8_t public_key[32];
  uint8_t secret_key[64];
} weft_identity;

void weft_identity_from_seed(const uint8_t seed[32], weft_identity *out);

typedef enum weft_session_cipher {
  WEFT_CIPHER_BEST, // AES-256-GCM where both processors have it, else ChaCha20-Poly1305
  WEFT_CIPHER_CHACHA
} weft_session_cipher;

typedef struct weft_sessions_options {
  weft_identity identity;
  const uint8_t *blob; // sent to the other side when a session opens; copied
  size_t blob_bytes;   // 0..WEFT_SESSION_BLOB_BYTES
  size_t links_max;    // 1..WEFT_SESSION_MAX_LINKS
  weft_session_cipher cipher;
  int64_t rekey_us;          // age at which keys are replaced; 0: 120 s
  int64_t silent_us;         // a link with nothing received for this long is lost; 0: 30 s
  uint32_t handshakes_per_s; // most answered with a signature; 0: 100
  const weft_rng *rng;       // the table is copied; its user must outlive the sessions
  // Whether a proven identity may have a session; NULL: all may. Called once for each session, not
  // when keys are replaced; it may close other open sessions.
  bool (*admit)(void *user, const uint8_t public_key[32], const weft_address *address);
  void *user;
} weft_sessions_options;

// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_RANDOM (libsodium could not start).
weft_status weft_sessions_new(weft_ctx *ctx, const weft_sessions_options *options, int64_t now_us,
                              weft_sessions **out);
void weft_sessions_free(weft_sessions *sessions); // accepts NULL; wipes keys

// Sets the blob for later handshakes; it is copied. Errors: WEFT_E_ARGUMENT (too long).
weft_status weft_sessions_set_blob(weft_sessions *sessions, const uint8_t *blob, size_t bytes);

// Begins a session; an event reports the result. *link: a number below links_max, reused when it is
// free. public_key: the identity that must answer; NULL: any.
// Errors: WEFT_E_STATE (no room for another link).
weft_status weft_sessions_open(weft_sessions *sessions, const weft_address *address,
                               const uint8_t *public_key, int64_t now_us, size_t *link);
// Ends it at once and notifies the other side; no event.
void weft_sessions_close(weft_sessions *sessions, size_t link, int64_t now_us);

typedef struct weft_session_plain {
  size_t link;
  uint8_t *data; // inside the datagram
  size_t bytes;
} weft_session_plain;

// A datagram received from `address`; it is opened in place. WEFT_OK: *out has the sealed content.
// WEFT_PENDING: it was for this layer alone, as an empty one is. WEFT_DEPENDENT: a replay. Refused,
// changing nothing but the statistics: WEFT_E_MALFORMED, WEFT_E_FOREIGN (unknown key id, bad tag,
// cookie or signature), WEFT_E_STATE (no room, or over a rate limit).
weft_status weft_sessions_input(weft_sessions *sessions, const weft_address *address,
                                uint8_t *datagram, size_t bytes, int64_t now_us,
                                weft_session_plain *out);

// This layer's next datagram to send. WEFT_PENDING: none. Valid until the next call.
weft_status weft_sessions_output(weft_sessions *sessions, weft_address *address,
                                 const uint8_t **datagram, size_t *bytes);

void weft_sessions_tick(weft_sessions *sessions, int64_t now_us);
// 0: at once. INT64_MAX: never. Times are never negative, so now can be subtracted from the result.
int64_t weft_sessions_deadline(const weft_sessions *sessions);

// The low 12 bits of every key id that this end assigns are below this value, so that a filter can
// drop datagrams with others.
size_t weft_sessions_places(const weft_sessions *sessions);

// --- Sealing

// Counters for `count` datagrams of one link, to be used before the next call on the sessions other
// than weft_sessions_reserve: it may replace the link's key, under which these counters could then
// serve twice. Sealing only reads the key, so several threads may seal at once.
typedef struct weft_seal {
  const void *key;
  uint64_t counter;
  uint32_t remote_id;
  bool aes;
} weft_seal;

// Errors: WEFT_E_STATE (the link is not open, or its key has fewer counters left: 2^40 in all).
weft_status weft_sessions_reserve(weft_sessions *sessions, size_t link, size_t count,
                                  int64_t now_us, weft_seal *out);
// Seals datagram i of the reserved ones, i < count: plain (bytes) into out (bytes +
// WEFT_SESSION_OVERHEAD_BYTES). bytes: 1..WEFT_SESSION_PLAIN_BYTES; nothing that is longer or empty
// reaches the other side's caller. Returns the latter size. plain may be out +
// WEFT_SESSION_HEADER_BYTES.
size_t weft_seal_datagram(const weft_seal *seal, size_t i, const uint8_t *plain, size_t bytes,
                          uint8_t *out);

// --- Events

typedef enum weft_session_event_kind {
  WEFT_SESSION_OPENED, // both sides have proved their identities
  WEFT_SESSION_LOST,   // the link's number is free once this event has been taken
  WEFT_SESSION_MOVED   // the other side has a new address: see weft_sessions_peer
} weft_session_event_kind;

typedef enum weft_session_reason {
  WEFT_SESSION_NO_ANSWER,      // to an opening
  WEFT_SESSION_OTHER_IDENTITY, // another identity answered, or one that admit refused
  WEFT_SESSION_SILENT,         // nothing was received for too long
  WEFT_SESSION_CLOSED,         // by the other side
  WEFT_SESSION_REPLACED,       // by another session with the same identity
  WEFT_SESSION_EXPIRED,        // keys too old, and no new ones could be agreed on
  WEFT_SESSION_ELSEWHERE,      // by the other side, for a session of our identity that is not ours
  WEFT_SESSION_ENDED           // by this side
} weft_session_reason;

typedef struct weft_session_event {
  weft_session_event_kind kind;
  weft_session_reason reason; // of LOST
  size_t link;
} weft_session_event;

bool weft_sessions_event(weft_sessions *sessions, weft_session_event *out); // false: no more

// The other end of an open link, or of a link whose event was just taken.
typedef struct weft_session_peer {
  weft_address address;
  uint8_t public_key[32];
  const uint8_t *blob; // the other side's; valid until the next call on the sessions
  size_t blob_bytes;
  bool initiated; // by this side
  bool aes;
  int64_t heard_us; // when something was last received from it
} weft_session_peer;

// Errors: WEFT_E_STATE (not open).
weft_status weft_sessions_peer(const weft_sessions *sessions, size_t link, weft_session_peer *out);

// Sends a probe to the other side of an open link. If it is there, its heard_us (weft_session_peer)
// is updated after a round trip. The probe may be lost like any datagram.
void weft_sessions_ask(weft_sessions *sessions, size_t link, int64_t now_us);

typedef struct weft_session_statistics {
  uint64_t opened;     // sessions
  uint64_t rekeyed;    //
  uint64_t handshakes; // answered with a signature
  uint64_t retries;    // cookies handed out
  uint64_t limited;    // datagrams over a rate limit
  uint64_t malformed;  // not a datagram of this layer
  uint64_t foreign;    // unknown key id, bad tag, cookie or signature
  uint64_t replayed;   //
  uint64_t opened_datagrams, sealed_datagrams;
} weft_session_statistics;

void weft_sessions_get_statistics(const weft_sessions *sessions, weft_session_statistics *out);

#ifdef __cplusplus
}
#endif
#endif
