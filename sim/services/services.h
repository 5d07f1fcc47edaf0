// SPDX-License-Identifier: Apache-2.0
// Scenarios without a swarm: a streaming server with its clients, and a store of shards on peers
// that come and go. They run in virtual time on one thread, with the library's own objects and real
// bytes.
#ifndef WEFT_SIM_SERVICES_SERVICES_H
#define WEFT_SIM_SERVICES_SERVICES_H

#include "sim/figures.h"
#include "sim/swarm/swarm.h"

typedef struct weft_sim_service_options {
  const weft_sim_parameters *parameters; // must outlive the result
  const char *backend;                   // NULL: the best
  void *user;
  // The process's processor time, used only to measure how fast this machine codes.
  int64_t (*clock_us)(void *user);
  bool (*keep_on)(void *user, int64_t now_us); // false: the run ends with WEFT_PENDING
  size_t *trace_line;                          // server: as for a swarm
} weft_sim_service_options;

// One hour of a store; objects are counted at its end.
typedef struct weft_sim_hour {
  uint64_t online; // peers
  uint64_t coded_readable, copied_readable, coded_lost, copied_lost;
  uint64_t coded_repair_bytes, copied_repair_bytes; // of this hour
} weft_sim_hour;

// One second of a server.
typedef struct weft_sim_served {
  uint64_t requests, again; // `again`: after a whole segment had been requested
  uint64_t products, packets;
  double coding_us; // time for which the lane was busy
} weft_sim_served;

// How long something took, each time.
typedef struct weft_sim_times {
  double *ms; // ascending once the run is over
  size_t count, room;
} weft_sim_times;

typedef struct weft_sim_service {
  // As for a swarm; memory_bytes: of decoders, segments and coded packets at most, or of all parts.
  weft_sim_result result;
  weft_sim_metrics own; // figures that a swarm does not have
  char backend[32];
  weft_sim_viewer *viewers;
  weft_sim_second *seconds;
  weft_sim_hour *hours; // (hour_count) for a store
  size_t hour_count;
  weft_sim_served *served; // (result.second_count) for a server
  // A server's requests: from the client's asking until the last packet is coded, and until it
  // arrives.
  weft_sim_times codings, answers;
} weft_sim_service;

// Runs a server (weft_server) that codes for clients, which request the newest segments, decode and
// compare them. Coding proceeds at coding_bytes_per_s, or at the measured rate if that is 0; links
// and arrivals are the model's. Errors: WEFT_PENDING, those of weft_sim_model_init, and the
// library's.
weft_status weft_sim_serve(const weft_sim_service_options *options, weft_sim_service *out);

// Runs a store: objects as shards of a storage code, and the same objects as copies of about the
// same size, on the same peers; counts what is online, read, lost and repaired. Errors: likewise.
weft_status weft_sim_keep(const weft_sim_service_options *options, weft_sim_service *out);

void weft_sim_service_clear(weft_sim_service *service); // also after an error

#endif
