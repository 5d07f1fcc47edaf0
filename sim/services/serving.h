// SPDX-License-Identifier: Apache-2.0
// What the files of the streaming server share: the server's one lane (serve_lane.c), its clients
// (serve_clients.c) and the run of both (serve.c).
#ifndef WEFT_SIM_SERVICES_SERVING_H
#define WEFT_SIM_SERVICES_SERVING_H

#include <sodium.h>

#include "sim/model.h"
#include "sim/services/agenda.h"
#include "sim/services/services.h"
#include "weft/server.h"
#include "weft/weft.h"

enum {
  WEFT_SIM_SERVED_STREAM = 1,
  WEFT_SIM_TAKE = 4096 /* packets of a product, at most */,
  WEFT_SIM_WAIT_MS = 10000
};
// Kinds of agenda entries.
enum {
  WEFT_SIM_NEW_SEGMENT,
  WEFT_SIM_CLIENT_JOIN,
  WEFT_SIM_ASK,
  WEFT_SIM_REQUEST,
  WEFT_SIM_CODE,
  WEFT_SIM_DUE
};

// A client, which fetches one segment at a time.
typedef struct weft_sim_client {
  weft_decoder *decoder;
  uint64_t segment;
  uint32_t asked, coming;      // packets of this segment requested in all; those still to be coded
  uint32_t request;            // packets in the current request
  int64_t asked_us, last_us;   // time of the request; its latest arrival
  int64_t started_us;          // of this segment
  uint64_t missed, missed_end; // segments given up, until they are due
  weft_sim_link down;
  weft_sim_rng rng;
  bool bad, waiting,
      came; // waiting: for a new segment; came: a part of the request
} weft_sim_client;

typedef struct weft_sim_serving {
  const weft_sim_service_options *options;
  const weft_sim_parameters *p;
  weft_sim_model model;
  weft_ctx *ctx;
  weft_server *server;
  weft_sim_agenda agenda;
  weft_sim_service *out;
  weft_sim_client *clients; // (peers + 1)
  uint8_t *data;            // (2, n * k) a segment, and what a client decoded
  size_t segment_bytes;
  uint64_t segments;                    // that the server has had so far
  int64_t segment_us, free_us, code_us; // free_us: lane is free; code_us: earliest CODE entry
  _Atomic int64_t now_us;               // the server's clock
  double busy_us, rate;
  weft_sim_link up;
  weft_server_packet *taken;
  size_t decoders, decoders_most; // of clients
  size_t server_bytes_most;       // of segments and coded packets
  uint64_t products, packets, requests, again;
  uint64_t accepted;              // requests for segments that the server still had
  crypto_generichash_state *hash; // libsodium requires alignment to 64 bytes
} weft_sim_serving;

// serve_lane.c
void weft_sim_fill_segment(const weft_sim_serving *s, uint64_t segment, uint8_t *out);
// Adds a segment. It is due one lag later for every client that has come by now; a client's first
// segment is due one lag after the client came. Either counts, whether or not it is ever begun.
weft_status weft_sim_push_segment(weft_sim_serving *s, int64_t now_us);
weft_status weft_sim_plan_coding(weft_sim_serving *s, int64_t now_us);
// Starts what is pending if the lane is idle.
weft_status weft_sim_code(weft_sim_serving *s, int64_t now_us);

// serve_clients.c
weft_status weft_sim_client_join(weft_sim_serving *s, uint32_t number, int64_t now_us);
// Continues with this segment or the next, after everything requested has arrived or was lost.
weft_status weft_sim_client_ask(weft_sim_serving *s, uint32_t number, int64_t now_us);
weft_status weft_sim_client_request(weft_sim_serving *s, uint32_t number, int64_t now_us);
void weft_sim_client_due(weft_sim_serving *s, uint32_t number, uint64_t segment, int64_t now_us);

static inline weft_segment_id weft_sim_segment_id(const weft_sim_serving *s, uint64_t segment) {
  return (weft_segment_id){.stream = WEFT_SIM_SERVED_STREAM,
                           .segment = segment,
                           .blocks = s->p->blocks,
                           .block_bytes = s->p->block_bytes};
}

static inline size_t weft_sim_second_number(const weft_sim_serving *s, int64_t at_us) {
  const size_t second = (size_t)(at_us / 1000000), last = s->out->result.second_count - 1;
  return second < last ? second : last;
}
static inline weft_sim_second *weft_sim_second_of(const weft_sim_serving *s, int64_t at_us) {
  return &s->out->seconds[weft_sim_second_number(s, at_us)];
}
static inline weft_sim_served *weft_sim_served_of(const weft_sim_serving *s, int64_t at_us) {
  return &s->out->served[weft_sim_second_number(s, at_us)];
}

#endif
