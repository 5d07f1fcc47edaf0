// SPDX-License-Identifier: Apache-2.0
// Everything that determines a run. Files and flags fill it through the table in scenario/keys.c;
// docs/sim.md explains each value.
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
  WEFT_SIM_PULL,        // RLNC, receivers request packets
  WEFT_SIM_SOURCE_ONLY, // RLNC, only the source sends
  WEFT_SIM_RAREST,      // no coding: blocks, the rarest of the playback window first
  WEFT_SIM_OWN,         // RLNC with the caller's policy (weft_sim_options.policy)
  WEFT_SIM_SCHEMES
} weft_sim_scheme;

// What is simulated.
typedef enum weft_sim_kind {
  WEFT_SIM_SWARM,  // peers that stream to each other
  WEFT_SIM_SERVER, // a streaming server that codes for each client
  WEFT_SIM_STORE   // objects kept as shards on peers that come and go
} weft_sim_kind;

typedef enum weft_sim_mode { WEFT_SIM_BULK, WEFT_SIM_VOD, WEFT_SIM_LIVE } weft_sim_mode;

// How peers find each other.
typedef enum weft_sim_topology {
  WEFT_SIM_TRACKER,   // joiners ask a tracker, then peers exchange addresses
  WEFT_SIM_GRAPH,     // a random graph, fixed from the start
  WEFT_SIM_BOOTSTRAP, // joiners know the source's address, and learn others from it
  WEFT_SIM_INVITED    // the same with the address of any present peer
} weft_sim_topology;

typedef enum weft_sim_latency {
  WEFT_SIM_UNIFORM, // drawn for each pair, between the least and the greatest
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
  double share; // weight among the classes
  uint64_t up_bits_per_s, down_bits_per_s;
  uint64_t line_bits_per_s; // rate at which datagrams leave, if the peer sends below it; 0: up
  int64_t delay_us;         // one way, added to every path
  double loss;              // at the peer's own end
  double burst;     // mean length of a run of losses in packets; 1 or less: independent losses
  double nat;       // share of peers behind NATs, which admit only peers they have sent to
  double symmetric; // share of those NATs that map every path to another port
  bool undescribed; // neither a built-in name nor described yet
} weft_sim_class;

typedef struct weft_sim_parameters {
  char name[WEFT_SIM_NAME];
  uint64_t seed;
  weft_sim_kind kind;
  // The stream.
  weft_sim_mode mode;
  weft_sim_scheme scheme;
  char policy_file[256]; // own: the file with the policy, for `weft sim`
  weft_sim_fidelity fidelity;
  bool fidelity_auto;
  uint32_t blocks, block_bytes;
  uint64_t rate_bits_per_s;
  int64_t duration_us; // of the stream; a run may last slightly longer
  uint64_t bulk_bytes; // bulk: length of the stream
  // The engine.
  uint32_t window, batch, neighbours, neighbours_max;
  uint32_t ahead; // bulk: segments to take, counted from the first one lacking; 0: the whole window
  uint32_t source_neighbours; // the source's most; 0: neighbours_max
  uint32_t gather_segments;   // vod, bulk: decoded in one batch; 0: each alone
  bool manifests;             // every segment is signed, as with real peers
  bool congestion;            // LEDBAT for each neighbour
  int64_t exchange_us;        // between requests for more addresses; 0: the engine's default
  uint32_t flights, requests, addresses; // that an engine keeps; 0: default (not for addresses)
  int64_t lag_us, startup_us, map_us, map_idle_us, checksum_us, silent_us;
  uint32_t overhead_bytes; // below each datagram: IP, UDP, the session's seal
  uint32_t handshake_bytes;
  bool coded_only; // the source sends no uncoded blocks
  // Peers and links.
  uint32_t peers;
  uint64_t source_bits_per_s;
  uint64_t source_line_bits_per_s; // as in a class
  int64_t source_delay_us;         // as in a class; WEFT_SIM_NEVER: as in the first class
  weft_sim_class classes[WEFT_SIM_MAX_CLASSES];
  size_t class_count;
  double loss;      // on every path
  int64_t queue_us; // the most that may wait in an uplink or downlink
  weft_sim_topology topology;
  weft_sim_latency latency;
  int64_t delay_min_us, delay_max_us;
  uint32_t regions;
  int64_t matrix_us[WEFT_SIM_MAX_REGIONS][WEFT_SIM_MAX_REGIONS];
  uint32_t isps;
  double isp_local; // share of a tracker's answers from the asker's own ISP
  // Coming and going.
  weft_sim_arrival arrival;
  double arrivals_per_s;
  double flash_share;
  int64_t flash_us;
  char trace_file[256];
  weft_sim_departure departure;
  double stay_mean_s, pareto_alpha;
  double polite;        // share of departures that are announced; failures never are
  int64_t failure_us;   // when many fail at once, or WEFT_SIM_NEVER
  double failure_share; // of the peers present
  double free_riders, polluters;
  double seeks_per_hour; // vod, of each viewer
  // The server.
  uint64_t coding_bytes_per_s; // coded payload; 0: as fast as this machine codes
  int64_t gather_us;           // how long a request waits for others of its segment
  uint32_t ask_packets;        // in one request
  // The store.
  char code[WEFT_SIM_NAME];
  uint32_t data_shards, parity_shards, shard_bytes, objects;
  double away_mean_s; // absence of a peer that comes back
  double gone_share;  // share of departures that are final, disk included; another peer replaces it
  int64_t repair_after_us;    // a peer absent this long counts as gone
  uint32_t repair_below;      // repair when fewer shards than this are counted; 0: any missing
  uint64_t repair_bits_per_s; // of one repair
  double reads_per_hour;      // of all objects together
  // What is recorded.
  uint32_t sampled; // peers that the trace and the report follow
} weft_sim_parameters;

#endif
