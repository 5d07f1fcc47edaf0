// SPDX-License-Identifier: Apache-2.0
// All that a run follows from. Files and flags fill it by the table in scenario/keys.c; docs/sim.md
// says what each means.
#ifndef WEFT_SIM_PARAMETERS_H
#define WEFT_SIM_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/codec/codecs.h"

#define WEFT_SIM_MAX_PEERS 20000000u
#define WEFT_SIM_MAX_CLASSES 8u
#define WEFT_SIM_MAX_REGIONS 8u
#define WEFT_SIM_NAME 48u
#define WEFT_SIM_NEVER INT64_MAX

typedef enum weft_sim_scheme {
  WEFT_SIM_PUSH,        // RLNC, random push
  WEFT_SIM_PULL,        // RLNC, receivers ask
  WEFT_SIM_SOURCE_ONLY, // RLNC, nobody but the source sends
  WEFT_SIM_RAREST,      // no coding: blocks, the rarest of the playback window first
  WEFT_SIM_OWN,         // RLNC, by a policy from outside (weft_sim_options.policy)
  WEFT_SIM_SCHEMES
} weft_sim_scheme;

// What is simulated.
typedef enum weft_sim_kind {
  WEFT_SIM_SWARM,  // peers that stream to each other
  WEFT_SIM_SERVER, // a streaming server that codes for each client
  WEFT_SIM_STORE   // objects kept as shards on peers that come and go
} weft_sim_kind;

typedef enum weft_sim_mode { WEFT_SIM_BULK, WEFT_SIM_VOD, WEFT_SIM_LIVE } weft_sim_mode;

// Who knows whom.
typedef enum weft_sim_topology {
  WEFT_SIM_TRACKER,  // joiners ask a tracker, then peers tell each other of peers
  WEFT_SIM_GRAPH,    // a random graph, fixed from the start
  WEFT_SIM_BOOTSTRAP // joiners know the source's address, which tells them of others
} weft_sim_topology;

typedef enum weft_sim_latency {
  WEFT_SIM_UNIFORM, // of each pair, between the least and the greatest
  WEFT_SIM_PLANE,   // by distance: every peer has a place
  WEFT_SIM_MATRIX   // by the peers' regions
} weft_sim_latency;

typedef enum weft_sim_arrival {
  WEFT_SIM_TOGETHER, // at the start
  WEFT_SIM_POISSON,  // at a rate
  WEFT_SIM_FLASH,    // most within a short time, the others at a rate
  WEFT_SIM_TRACE     // from a file
} weft_sim_arrival;

typedef enum weft_sim_departure {
  WEFT_SIM_STAY,
  WEFT_SIM_EXPONENTIAL,
  WEFT_SIM_PARETO
} weft_sim_departure;

// A kind of access to the network.
typedef struct weft_sim_class {
  char name[WEFT_SIM_NAME];
  double share; // of the peers, by weight
  uint64_t up_bits_per_s, down_bits_per_s;
  uint64_t
      line_bits_per_s; // at which datagrams leave, where a peer sends less than it could; 0: up
  int64_t delay_us;    // one way, added to every path
  double loss;         // at its own end
  double burst;        // mean packets of a run of losses; 1 or less: independent
  double nat;          // share behind NATs, which let in only whom they were sent to
  double symmetric;    // share of these that give every path another port
  bool undescribed;    // a name that is not known, of which nothing has been said yet
} weft_sim_class;

typedef struct weft_sim_parameters {
  char name[WEFT_SIM_NAME];
  uint64_t seed;
  weft_sim_kind kind;
  // The stream.
  weft_sim_mode mode;
  weft_sim_scheme scheme;
  char policy_file[256]; // own: where `weft sim` has the policy from
  weft_sim_fidelity fidelity;
  bool fidelity_auto;
  uint32_t blocks, block_bytes;
  uint64_t rate_bits_per_s;
  int64_t duration_us; // of the stream; the run may go on a little
  uint64_t bulk_bytes; // bulk: what is sent
  // The engine.
  uint32_t window, batch, neighbours, neighbours_max;
  uint32_t ahead; // bulk: of the window it takes so many from the first that it lacks on; 0: all
  uint32_t source_neighbours; // that the source takes at most; 0: neighbours_max
  uint32_t gather_segments;   // vod, bulk: that are decoded together; 0: each by itself
  bool manifests;             // every segment is signed for, as by real peers
  bool congestion;            // LEDBAT for each neighbour
  int64_t exchange_us;        // between questions for more addresses; 0: the engine's own
  uint32_t flights, requests, addresses; // that an engine remembers; 0 flights or requests: its own
  int64_t lag_us, startup_us, map_us, map_idle_us, checksum_us, silent_us;
  uint32_t overhead_bytes; // below each datagram: IP, UDP, the session's seal
  uint32_t handshake_bytes;
  bool coded_only; // the source sends no block as it is
  // Peers and links.
  uint32_t peers;
  uint64_t source_bits_per_s;
  uint64_t source_line_bits_per_s; // as a class's
  int64_t source_delay_us;         // as a class's; WEFT_SIM_NEVER: that of the first class
  weft_sim_class classes[WEFT_SIM_MAX_CLASSES];
  size_t class_count;
  double loss;      // on every path
  int64_t queue_us; // longest that an uplink's or downlink's queue may be
  weft_sim_topology topology;
  weft_sim_latency latency;
  int64_t delay_min_us, delay_max_us;
  uint32_t regions;
  int64_t matrix_us[WEFT_SIM_MAX_REGIONS][WEFT_SIM_MAX_REGIONS];
  uint32_t isps;
  double isp_local; // share of a tracker's answer that is of the asker's own ISP
  // Coming and going.
  weft_sim_arrival arrival;
  double arrivals_per_s;
  double flash_share;
  int64_t flash_us;
  char trace_file[256];
  weft_sim_departure departure;
  double stay_mean_s, pareto_alpha;
  double polite;        // share of the leavers, but for those that fail, that say so
  int64_t failure_us;   // when many fail at once; WEFT_SIM_NEVER
  double failure_share; //
  double free_riders, polluters;
  double seeks_per_hour; // VoD, of each viewer
  // The server.
  uint64_t coding_bytes_per_s; // coded payload that it makes; 0: as fast as this machine does
  int64_t gather_us;           // a request waits so long for others of its segment
  uint32_t ask_packets;        // in one request
  // The store.
  char code[WEFT_SIM_NAME];
  uint32_t data_shards, parity_shards, shard_bytes, objects;
  double away_mean_s;         // absence of a peer that comes back
  double gone_share;          // of departures: with disk and all; another comes instead
  int64_t repair_after_us;    // absent for so long, a peer counts as gone
  uint32_t repair_below;      // repair when fewer shards are counted; 0: all
  uint64_t repair_bits_per_s; // of one repair
  double reads_per_hour;      // of all objects together
  // What is recorded.
  uint32_t sampled; // peers that the trace and the report follow
} weft_sim_parameters;

#endif
