// SPDX-License-Identifier: Apache-2.0
// `weft demo`: reports the results, as tables for people or as JSON for programs.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/demo.h"
#include "tools/printable.h"

enum { ROWS = 32 }; // peers that the table lists individually

// Every byte that left an uplink is counted in exactly one of these.
typedef struct overhead {
  uint64_t useful, padding, dependent, lost, header, control;
  uint64_t sent; // their sum, counted by the senders
} overhead;

static overhead overhead_of(const demo_outcome *outcome, size_t peers, uint64_t block_bytes) {
  overhead o = {.lost = outcome->result.totals.lost_payload_bytes};
  for (size_t i = 0; i <= peers; i++) {
    const weft_engine_statistics *s = &outcome->nodes[i].statistics;
    const uint64_t innovative = s->received_innovative * block_bytes;
    o.useful += outcome->nodes[i].delivered_bytes;
    o.padding += innovative - outcome->nodes[i].delivered_bytes;
    o.dependent += s->received_payload_bytes - innovative;
    o.header += s->sent_header_bytes;
    o.control += s->sent_control_bytes;
    o.sent += s->sent_payload_bytes + s->sent_header_bytes + s->sent_control_bytes;
  }
  return o;
}

typedef struct times {
  double min, median, max; // virtual seconds; -1 if some peer never had everything
} times;

static int compare_times(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static times times_of(const demo_outcome *outcome, size_t peers) {
  int64_t *done = g_new(int64_t, peers);
  for (size_t i = 0; i < peers; i++)
    done[i] = outcome->nodes[i + 1].done_us;
  qsort(done, peers, sizeof *done, compare_times);
  times t = {.min = -1, .median = -1, .max = -1};
  if (done[0] != WEFT_SIM_NEVER)
    t = (times){.min = (double)done[0] / 1e6,
                .median = (double)(done[(peers - 1) / 2] + done[peers / 2]) / 2e6,
                .max = (double)done[peers - 1] / 1e6};
  g_free(done);
  return t;
}

static void hex(const uint8_t *bytes, size_t count, char *out) {
  for (size_t i = 0; i < count; i++)
    snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static double rate(const weft_codec_cost *cost) { // bytes/s
  return cost->nanoseconds ? (double)cost->bytes * 1e9 / (double)cost->nanoseconds : 0;
}

static uint64_t useless(const weft_engine_statistics *s) {
  return s->received_dependent + s->received_late + s->received_outside;
}

// --- Tables

static void print_head(const demo_settings *s, const demo_outcome *outcome) {
  char size[CLI_TEXT];
  const weft_sim_parameters *o = &s->swarm;
  weft_print(
      stdout,
      "%s of %s, seed %" PRIu64 "; n = %u blocks of k = %u bytes; backend %s, %zu thread%s\n",
      cli_bytes_text(outcome->input_bytes, size), s->input ? s->input : "clip", s->seed, o->blocks,
      o->block_bytes, outcome->backend, outcome->threads, outcome->threads == 1 ? "" : "s");
  printf("source and %u peers, at most %u neighbours each, %g %% loss, %g..%g ms, uplinks %g and "
         "%g Mbit/s\n\n",
         o->peers, o->neighbours, o->loss * 100, (double)o->delay_min_us / 1e3,
         (double)o->delay_max_us / 1e3, (double)o->source_bits_per_s / 1e6,
         (double)o->classes[0].up_bits_per_s / 1e6);
}

static void print_peers(const demo_settings *s, const demo_outcome *outcome) {
  const size_t shown = s->swarm.peers < ROWS ? s->swarm.peers : ROWS;
  printf(" peer  neighbours  decoded at   packets in  innovative  useless   packets out  bytes\n");
  for (size_t i = 0; i < shown; i++) {
    const demo_node *n = &outcome->nodes[i + 1];
    const weft_engine_statistics *e = &n->statistics;
    char at[CLI_TEXT] = "never";
    if (n->done_us != WEFT_SIM_NEVER)
      snprintf(at, sizeof at, "%.3f s", (double)n->done_us / 1e6);
    printf("%5zu  %10zu  %10s  %11" PRIu64 " %11" PRIu64 " %8" PRIu64 "  %12" PRIu64 "  %s\n",
           i + 1, n->degree, at, e->received_packets, e->received_innovative, useless(e),
           e->sent_packets, outcome->peers[i].same ? "= input" : "DIFFER");
  }
  if (shown < s->swarm.peers)
    printf("  ... and %zu more\n", s->swarm.peers - shown);
}

static void print_share(const char *name, uint64_t bytes, uint64_t useful) {
  char text[CLI_TEXT];
  printf("  %-28s %12s  %6.2f %%\n", name, cli_bytes_text(bytes, text),
         useful ? 100.0 * (double)bytes / (double)useful : 0.0);
}

static void print_cost(const char *name, const weft_codec_cost *cost) {
  char bytes[CLI_TEXT], speed[CLI_TEXT];
  printf("  %-28s %12s  %10s\n", name, cli_bytes_text(cost->bytes, bytes),
         cli_rate_text(rate(cost), speed));
}

void demo_report_table(const demo_settings *s, const demo_outcome *outcome) {
  const times t = times_of(outcome, s->swarm.peers);
  const overhead o = overhead_of(outcome, s->swarm.peers, s->swarm.block_bytes);
  print_head(s, outcome);
  print_peers(s, outcome);
  printf("\ntime to decode (virtual): min %.3f s, median %.3f s, max %.3f s\n", t.min, t.median,
         t.max);
  printf("\nbytes sent, and their ratio to the useful bytes\n");
  print_share("useful", o.useful, o.useful);
  print_share("dependent (of no use)", o.dependent, o.useful);
  print_share("lost on links", o.lost, o.useful);
  print_share("headers and coefficients", o.header, o.useful);
  print_share("control messages", o.control, o.useful);
  print_share("padding of the last block", o.padding, o.useful);
  printf("\ntime spent coding (of %.2f s for the whole run)\n", outcome->wall_s);
  print_cost("encoded by the source", &outcome->encode);
  print_cost("recoded by the peers", &outcome->recode);
  print_cost("decoded by the peers", &outcome->decode);
  char state[2 * WEFT_SIM_HASH_BYTES + 1], digest[2 * DEMO_DIGEST_BYTES + 1];
  hex(outcome->result.hash, sizeof outcome->result.hash, state);
  hex(outcome->digest, sizeof outcome->digest, digest);
  printf("\n%" PRIu64 " events, state hash %s\n", outcome->result.totals.events, state);
  printf("%zu of %u peers hold BLAKE2b %s = input\n", outcome->same, s->swarm.peers, digest);
}

// --- JSON

static void json_string(const char *name, const char *text) {
  printf("\"%s\":", name);
  if (!text) {
    printf("null,");
    return;
  }
  putchar('"');
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (*c == '"' || *c == '\\')
      printf("\\%c", *c);
    else if (*c < 0x20 || *c >= 0x7f) // file names need not be UTF-8: as Latin-1
      printf("\\u%04x", *c);
    else
      putchar(*c);
  printf("\",");
}

static void json_cost(const char *name, const weft_codec_cost *cost, const char *after) {
  printf("\"%s\":{\"bytes\":%" PRIu64 ",\"seconds\":%.6f,\"bytes_per_s\":%.0f}%s", name,
         cost->bytes, (double)cost->nanoseconds / 1e9, rate(cost), after);
}

static void json_peer(const demo_outcome *outcome, size_t i) {
  const demo_node *n = &outcome->nodes[i + 1];
  const weft_engine_statistics *e = &n->statistics;
  char digest[2 * DEMO_DIGEST_BYTES + 1];
  hex(outcome->peers[i].digest, DEMO_DIGEST_BYTES, digest);
  printf("%s{\"peer\":%zu,\"neighbours\":%zu,\"decode_s\":%.6f,\"bytes\":%" PRIu64
         ",\"blake2b\":\"%s\",\"same\":%s,\"packets_received\":%" PRIu64 ",\"innovative\":%" PRIu64
         ",\"dependent\":%" PRIu64 ",\"late\":%" PRIu64 ",\"outside_window\":%" PRIu64
         ",\"refused\":%" PRIu64 ",\"packets_sent\":%" PRIu64 ",\"control_sent\":%" PRIu64 "}",
         i ? "," : "", i + 1, n->degree,
         n->done_us == WEFT_SIM_NEVER ? -1.0 : (double)n->done_us / 1e6, outcome->peers[i].bytes,
         digest, outcome->peers[i].same ? "true" : "false", e->received_packets,
         e->received_innovative, e->received_dependent, e->received_late, e->received_outside,
         e->refused, e->sent_packets, e->sent_control);
}

void demo_report_json(const demo_settings *s, const demo_outcome *outcome) {
  const times t = times_of(outcome, s->swarm.peers);
  const overhead o = overhead_of(outcome, s->swarm.peers, s->swarm.block_bytes);
  const weft_sim_parameters *w = &s->swarm;
  char state[2 * WEFT_SIM_HASH_BYTES + 1], digest[2 * DEMO_DIGEST_BYTES + 1];
  hex(outcome->result.hash, sizeof outcome->result.hash, state);
  hex(outcome->digest, sizeof outcome->digest, digest);
  putchar('{');
  json_string("version", weft_version());
  json_string("input", s->input);
  json_string("backend", outcome->backend);
  printf("\"threads\":%zu,\"seed\":%" PRIu64 ",\"peers\":%u,\"degree\":%u,\"segment_blocks\":%u,"
         "\"block_bytes\":%u,\"window\":%u,\"batch\":%u,\"loss\":%.17g,",
         outcome->threads, s->seed, w->peers, w->neighbours, w->blocks, w->block_bytes, w->window,
         w->batch, w->loss);
  printf("\"source_upload_bits_per_s\":%" PRIu64 ",\"upload_bits_per_s\":%" PRIu64
         ",\"delay_min_us\":%" PRId64 ",\"delay_max_us\":%" PRId64 ",\"coded_only\":%s,",
         w->source_bits_per_s, w->classes[0].up_bits_per_s, w->delay_min_us, w->delay_max_us,
         w->coded_only ? "true" : "false");
  printf("\"input_bytes\":%" PRIu64 ",\"input_blake2b\":\"%s\",\"peers_same\":%zu,\"ok\":%s,",
         outcome->input_bytes, digest, outcome->same, outcome->same == w->peers ? "true" : "false");
  printf("\"decode_s\":{\"min\":%.6f,\"median\":%.6f,\"max\":%.6f},", t.min, t.median, t.max);
  printf("\"sent_bytes\":{\"all\":%" PRIu64 ",\"useful\":%" PRIu64 ",\"dependent\":%" PRIu64
         ",\"lost\":%" PRIu64 ",\"header\":%" PRIu64 ",\"control\":%" PRIu64 ",\"padding\":%" PRIu64
         "},",
         o.sent, o.useful, o.dependent, o.lost, o.header, o.control, o.padding);
  printf("\"coding\":{");
  json_cost("encode", &outcome->encode, ",");
  json_cost("recode", &outcome->recode, ",");
  json_cost("decode", &outcome->decode, "");
  printf("},\"wall_s\":%.3f,\"virtual_s\":%.6f,\"events\":%" PRIu64 ",\"state_hash\":\"%s\",",
         outcome->wall_s, (double)outcome->result.end_us / 1e6, outcome->result.totals.events,
         state);
  printf("\"per_peer\":[");
  for (size_t i = 0; i < w->peers; i++)
    json_peer(outcome, i);
  printf("]}\n");
}
