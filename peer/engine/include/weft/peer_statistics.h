// SPDX-License-Identifier: Apache-2.0
// What a peer's engine counts. Sums never decrease.
#ifndef WEFT_PEER_STATISTICS_H
#define WEFT_PEER_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_engine_statistics {
  uint64_t sent_packets;        // coded data
  uint64_t sent_payload_bytes;  // their payloads
  uint64_t sent_header_bytes;   // their headers and coefficients
  uint64_t sent_control;        // every other message
  uint64_t sent_control_bytes;  //
  uint64_t received_packets;    // coded data that was well-formed; the sum of the next six
  uint64_t received_innovative; // raised a rank
  uint64_t received_dependent;  // added nothing to an incomplete segment
  uint64_t received_late;       // for a segment that was complete already
  uint64_t received_outside;    // beyond the window
  uint64_t received_waiting;    // waiting now for a checksum
  uint64_t received_polluted;   // not a combination of the source's blocks
  uint64_t received_payload_bytes;
  uint64_t received_header_bytes;
  uint64_t received_control;
  uint64_t received_control_bytes;
  uint64_t refused;       // malformed, foreign, of another version
  uint64_t refused_bytes; //
  uint64_t segments;      // complete
  // Playback.
  uint64_t due;     // segments whose playback deadline came
  uint64_t in_time; // of those, complete by then: in_time / due is the continuity index
  uint64_t skipped; // live
  // Live: segments neither played nor counted as due because playback resumed at the stream's
  // current position after a pause of more than a window (sleep, an outage, or an output that
  // waited).
  uint64_t passed_over;
  uint32_t forgone;   // live: sixteenths of the stream that now come last, for lack of uplink, or,
  bool narrow;        // because our own link queues, not at all; most of the rest is requested
  uint64_t stalls;    // VoD
  int64_t stalled_us; //
  int64_t startup_us; // from the first neighbour to the first PLAY; -1: not yet
  int64_t lag_us; // live: behind the source, as far as its clock is known; -1: unknown. Less than
                  // the options' where the window holds less
  uint64_t gathered_runs, gathered_segments; // decoded together: calls, and segments in them
  // Trust.
  uint64_t signatures;        // made or checked
  uint64_t hashed_bytes;      //
  uint64_t manifests_refused; // with a wrong signature
  uint64_t hash_failures;     // segments that did not match their manifest and were fetched again
  uint64_t checksums;         // reveals made or accepted
  uint64_t verified;          // packets that waited for a reveal and agreed with it
  int64_t waited_us;          // sum of their waiting times
  int64_t waited_max_us;      // the longest
  uint64_t banned;            // neighbours
  // Pull.
  uint64_t sent_requests, received_requests, requests_expired;
} weft_engine_statistics;

typedef struct weft_neighbour_statistics {
  bool open, is_source;
  bool had_all;          // it reported that it has every segment of the stream, whose end is known
  bool anew;             // live, the source: it restarted, and is not at the stream's old position
  int64_t round_trip_us; // smoothed
  int64_t queueing_us;   // delay above the smallest seen, as LEDBAT measures it
  uint64_t window_bytes; // congestion window; 0: congestion control is off
  uint64_t sent_packets, received_packets, received_innovative;
  uint64_t first;     // it has every segment before this one complete
  uint16_t suppliers; // among how many it divides what it lacks, according to its map
} weft_neighbour_statistics;

#ifdef __cplusplus
}
#endif
#endif
