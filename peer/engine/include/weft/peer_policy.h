// SPDX-License-Identifier: Apache-2.0
// The table through which the peer's engine decides what to send next, and what it lets a policy
// see. weft ships random push; others can be handed in from outside.
#ifndef WEFT_PEER_POLICY_H
#define WEFT_PEER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_rng.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the peer holds of one segment of its window.
typedef struct weft_policy_segment {
  uint16_t blocks; // n; 0: nothing is known of the segment yet
  uint16_t rank;   // 0..n
} weft_policy_segment;

// What the peer knows of the same segment at one neighbour.
typedef struct weft_policy_want {
  uint16_t rank;      // as last announced
  uint16_t in_flight; // packets sent to it that the announcement cannot have counted
  bool accepts;       // inside its window, and not complete there
} weft_policy_want;

typedef struct weft_policy_neighbour {
  bool open;                     // takes packets now
  uint16_t degree;               // how many neighbours it has itself
  const weft_policy_want *wants; // (window), segment s at s % window
} weft_policy_neighbour;

// Segments first .. first + count - 1 are in the window; segment s stands at s % window.
typedef struct weft_policy_view {
  int64_t now_us;
  uint64_t first;
  size_t count, window;
  const weft_policy_segment *segments; // (window)
  size_t neighbours;
  const weft_policy_neighbour *neighbour; // (neighbours)
  size_t batch_max;                       // packets that one burst may hold
} weft_policy_view;

typedef struct weft_policy_choice {
  size_t neighbour;
  uint64_t segment;
  size_t count; // packets, 1..batch_max
} weft_policy_choice;

typedef struct weft_policy {
  const char *name;
  void *user;
  // Names the next burst; false: nothing is worth sending before something changes. Must draw
  // chance from `rng` only. The engine refuses a choice outside the view.
  bool (*pick)(void *user, const weft_policy_view *view, const weft_rng *rng,
               weft_policy_choice *out);
} weft_policy;

// Random push after R2 (Wang & Li, "R2: Random push with random network coding in live
// peer-to-peer streaming", 2007): a random neighbour, a random segment that prefers those played
// first, and none that a brake message has stopped.
extern const weft_policy weft_policy_push;

#ifdef __cplusplus
}
#endif
#endif
