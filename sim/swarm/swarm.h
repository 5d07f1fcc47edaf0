// SPDX-License-Identifier: Apache-2.0
// A swarm in virtual time: a source and viewers, each of them a real peer's engine, on the network
// that the model describes. The same parameters give the same run, bit for bit, on any backend and
// any number of threads and ranks.
#ifndef WEFT_SIM_SWARM_SWARM_H
#define WEFT_SIM_SWARM_SWARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/core/core.h"
#include "sim/parameters.h"
#include "weft/peer_engine.h"

static const int64_t WEFT_SIM_DIAL_US = 5000000; // then a dial has failed

typedef struct weft_sim_swarm weft_sim_swarm;

// Optional callbacks. feed, deliver and codec are for real bytes only.
typedef struct weft_sim_hooks {
  void *user;
  // Supplies the stream, instead of one made from the seed: up to `capacity` bytes, fewer only at
  // its end.
  weft_status (*feed)(void *user, uint8_t *out, size_t capacity, size_t *bytes);
  // Takes what a viewer (1..peers) decoded, in order; from any thread, one call at a time per
  // viewer.
  weft_status (*deliver)(void *user, uint32_t viewer, const uint8_t *data, size_t bytes);
  // Called between windows; false ends the run with WEFT_PENDING.
  bool (*keep_on)(void *user, int64_t now_us);
  // Returns the codec to use instead of `rlnc` on a lane.
  const weft_codec *(*codec)(void *user, size_t lane, bool source, const weft_codec *rlnc);
  // Called before an engine ends; from any thread, once for each peer that came (0: the source).
  void (*ended)(void *user, uint32_t peer, size_t degree, int64_t done_us,
                const weft_engine_statistics *statistics);
} weft_sim_hooks;

typedef struct weft_sim_options {
  const weft_sim_parameters *parameters; // must outlive the swarm
  size_t threads;                        // >= 1
  const char *backend;                   // for real bytes; NULL: the best
  weft_sim_transport *transport;         // NULL: one rank
  weft_sim_hooks hooks;
  // Replaces the scheme's policy; NULL: the scheme's own (WEFT_SIM_OWN needs one here). With
  // several threads it is called for several peers at once.
  const weft_policy *policy;
  uint64_t (*thread_ns)(void); // processor time of the calling thread; NULL: effort is not counted
  // Receives the trace's line with WEFT_E_MALFORMED and WEFT_E_BUFFER (0: it has no arrival); or
  // NULL.
  size_t *trace_line;
} weft_sim_options;

// What became of a viewer.
typedef struct weft_sim_viewer {
  uint32_t peer;
  uint8_t class_index;
  bool came, left, free_rider, polluter, nat;
  bool done;                      // has the whole stream; vod: reached its end
  int64_t joined_us, left_us;     // WEFT_SIM_NEVER: it did not
  int64_t done_us;                // when it had the whole stream; WEFT_SIM_NEVER
  int64_t startup_us, lag_us;     // -1: it did not play
  uint64_t due, in_time, skipped; // segments
  uint64_t stalls;
  int64_t stalled_us, seek_wait_us; // until the end, if it still waits then
  uint64_t delivered_bytes, wrong_bytes;
  uint64_t sent_bytes, received_bytes, innovative, dependent, late;
  uint64_t banned, hash_failures;
} weft_sim_viewer;

// Whether a viewer counts as audience: polluters do not.
static inline bool weft_sim_is_audience(const weft_sim_viewer *viewer) {
  return viewer->came && !viewer->polluter;
}

// One second of the run. online_us: presence of the whole audience; due, in_time and stalls are the
// audience's, too. source_bytes and peer_bytes: what left uplinks; lost_bytes: the part of it that
// reached nobody.
typedef struct weft_sim_second {
  uint64_t online_us, due, in_time, stalls, source_bytes, peer_bytes, lost_bytes;
} weft_sim_second;

// A sampled peer at one time.
typedef struct weft_sim_sample {
  int64_t time_us;
  uint32_t peer;
  uint32_t degree;
  uint64_t innovative; // packets so far: its rank over all segments
  uint64_t ahead;      // segments that it has and has not played; bulk: segments that it has
} weft_sim_sample;

// Events of a sampled peer. DATA: coded packets from `other`, which is sampled as well.
typedef enum weft_sim_trace_kind {
  WEFT_SIM_TRACE_JOIN,
  WEFT_SIM_TRACE_LEAVE,
  WEFT_SIM_TRACE_DATA,
  WEFT_SIM_TRACE_PLAY,
  WEFT_SIM_TRACE_SKIP,
  WEFT_SIM_TRACE_STALL
} weft_sim_trace_kind;

typedef struct weft_sim_trace {
  int64_t time_us;
  uint32_t peer, other;
  uint32_t packets;
  uint32_t kind;
  uint64_t segment;
} weft_sim_trace;

typedef struct weft_sim_totals {
  uint64_t events;  // handled by engines: bursts, control messages, timers, arrivals and departures
  uint64_t packets; // coded packets that arrived
  uint64_t messages;             // that entered the network
  uint64_t viewers, online_most; // audience: all that came; the most at one time
  uint64_t handshake_bytes, source_handshake_bytes;
  // The part of what engines sent that met a full uplink queue and never left. Header bytes include
  // everything below the datagrams (IP, UDP, seal), control bytes do not.
  uint64_t unsent_packets, unsent_payload_bytes, unsent_header_bytes, unsent_control_bytes;
  uint64_t source_unsent_bytes; // the source's part of all those bytes
  uint64_t lost_packets, lost_payload_bytes, lost_header_bytes;
  uint64_t lost_control, lost_control_bytes;
  uint64_t unheard_bytes; // sent to peers that were gone, or did not know the sender
  uint64_t wrong_bytes, delivered_bytes;
  weft_engine_statistics source, peers; // sums over engines
} weft_sim_totals;

#define WEFT_SIM_HASH_BYTES 32u

typedef struct weft_sim_result {
  int64_t end_us;
  uint64_t stream_bytes, segments;
  int64_t segment_us; // 0: bulk
  bool no_progress;   // bulk: the run was ended for this
  int64_t window_us;
  weft_sim_effort effort; // of all ranks
  weft_sim_totals totals;
  uint8_t hash[WEFT_SIM_HASH_BYTES];
  uint64_t memory_bytes;          // of engines, segments and messages on all ranks
  const weft_sim_viewer *viewers; // (viewer_count) rank 0 has them all
  size_t viewer_count;
  const weft_sim_second *seconds; // (second_count)
  size_t second_count;
  const weft_sim_sample *samples;
  size_t sample_count;
  const weft_sim_trace *trace;
  size_t trace_count;
  bool trace_cut; // not all events or samples were kept
} weft_sim_result;

// Returns the options of every engine of such a swarm; the source's neighbours may differ.
weft_engine_options weft_sim_engine_options(const weft_sim_parameters *parameters,
                                            const weft_codec *codec);

// Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_IO and WEFT_E_MALFORMED (trace file), WEFT_E_BUFFER
// (more arrivals in it than peers), and those of weft_ctx_new.
weft_status weft_sim_swarm_new(const weft_sim_options *options, weft_sim_swarm **out);
void weft_sim_swarm_free(weft_sim_swarm *swarm); // accepts NULL

// WEFT_PENDING: keep_on returned false. WEFT_E_STATE: bulk made no progress for ten minutes, or
// longer if uplinks are slow.
weft_status weft_sim_swarm_run(weft_sim_swarm *swarm);

// Returns this rank's counts so far; from keep_on, or between runs.
void weft_sim_swarm_progress(const weft_sim_swarm *swarm, uint64_t *events, uint64_t *packets);

// Returns the results after the run, even if it failed. All ranks call it; only rank 0's `out` is
// complete. The swarm owns the arrays.
weft_status weft_sim_swarm_result(weft_sim_swarm *swarm, weft_sim_result *out);

// Adds the audience's presence up to end_us to `seconds`; *most: the largest audience at one time.
// Errors: WEFT_E_NOMEM.
weft_status weft_sim_count_audience(const weft_sim_viewer *viewers, size_t count, int64_t end_us,
                                    weft_sim_second *seconds, size_t second_count, uint64_t *most);

// Returns the backend row's name, or the fidelity's.
const char *weft_sim_swarm_backend(const weft_sim_swarm *swarm);

#endif
