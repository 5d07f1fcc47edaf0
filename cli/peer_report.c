// SPDX-License-Identifier: Apache-2.0
// `weft peer`: reports on itself: Prometheus metrics, a JSON status, its health, a final summary.
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "cli/peer.h"

static const char *role_name(const peer_view *view) {
  static const char *const names[] = {"joining", "peer", "source", "tracker"};
  const weft_node_role role = view->settings->role;
  return names[role == WEFT_NODE_JOINING && weft_node_stream(view->node) ? WEFT_NODE_PEER : role];
}

static double continuity(const weft_engine_statistics *e) {
  return e->due ? (double)e->in_time / (double)e->due : 1;
}

typedef struct metric {
  const char *name, *type, *help;
  double value;
} metric;

static void put_metrics(GString *out, const metric *metrics, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %s\n", metrics[i].name,
                           metrics[i].help, metrics[i].name, metrics[i].type, metrics[i].name,
                           g_ascii_dtostr(number, sizeof number, metrics[i].value));
  }
}

static void put_traffic(GString *out, const peer_view *view, const weft_node_statistics *s) {
  const weft_engine_statistics *e = &s->engine;
  const metric metrics[] = {
      {"weft_peer_neighbours", "gauge", "Neighbours that have the stream.",
       (double)weft_node_neighbours(view->node)},
      {"weft_peer_sessions", "gauge", "Open sessions, including those with trackers.",
       (double)s->links},
      {"weft_peer_port_mapped", "gauge", "Whether --map-port has mapped a port at the router.",
       view->port.way != WEFT_ROUTER_CLOSED},
      {"weft_peer_uptime_seconds", "gauge", "Time since the start.",
       (double)(g_get_monotonic_time() - view->start_us) / 1e6},
      {"weft_peer_datagrams_sent_total", "counter", "Datagrams sent.", (double)s->sent},
      {"weft_peer_bytes_sent_total", "counter", "Bytes of datagrams sent.", (double)s->sent_bytes},
      {"weft_peer_send_calls_total", "counter", "System calls that sent datagrams.",
       (double)s->send_calls},
      {"weft_peer_datagrams_dropped_total", "counter", "Datagrams that could not be sent.",
       (double)(s->send_dropped + s->send_errors)},
      {"weft_peer_datagrams_received_total", "counter", "Datagrams received.", (double)s->received},
      {"weft_peer_bytes_received_total", "counter", "Bytes of datagrams received.",
       (double)s->received_bytes},
      {"weft_peer_packets_sent_total", "counter", "Coded packets sent.", (double)e->sent_packets},
      {"weft_peer_packets_innovative_total", "counter", "Coded packets that raised a rank.",
       (double)e->received_innovative},
      {"weft_peer_packets_dependent_total", "counter", "Coded packets that added nothing.",
       (double)e->received_dependent},
      {"weft_peer_packets_late_total", "counter", "Coded packets for complete segments.",
       (double)e->received_late},
  };
  put_metrics(out, metrics, G_N_ELEMENTS(metrics));
}

static void put_playback(GString *out, const peer_view *view, const weft_engine_statistics *e) {
  const metric metrics[] = {
      {"weft_peer_segments_total", "counter", "Complete segments.", (double)e->segments},
      {"weft_peer_segments_due_total", "counter", "Segments whose playback deadline came.",
       (double)e->due},
      {"weft_peer_segments_in_time_total", "counter",
       "Segments that were complete by their playback deadline.", (double)e->in_time},
      {"weft_peer_segments_skipped_total", "counter", "Live segments not played.",
       (double)e->skipped},
      {"weft_peer_segments_passed_over_total", "counter",
       "Live segments neither played nor due, because stream or output had paused for long.",
       (double)e->passed_over},
      {"weft_peer_forgone_ratio", "gauge", "Share of the live stream that is forgone or sent last.",
       (double)e->forgone / WEFT_POLICY_CLASSES},
      {"weft_peer_link_narrow", "gauge",
       "Whether packets from neighbours queue at this node's own link.", (double)e->narrow},
      {"weft_peer_continuity_ratio", "gauge", "Share of due segments that were complete in time.",
       continuity(e)},
      {"weft_peer_stalls_total", "counter", "Times that playback stalled.", (double)e->stalls},
      {"weft_peer_played_bytes_total", "counter", "Bytes written to the output.",
       view->sink ? (double)weft_sink_bytes(view->sink) : 0},
      {"weft_peer_taken_bytes_total", "counter", "Bytes read from the input.",
       view->feed ? (double)weft_feed_taken(view->feed) : 0},
      {"weft_peer_input_dropped_total", "counter",
       "Datagrams of the input that the kernel dropped, because they were not read in time.",
       view->feed ? (double)weft_feed_dropped(view->feed) : 0},
  };
  put_metrics(out, metrics, G_N_ELEMENTS(metrics));
}

// Sessions, what was refused, and what a tracker knows.
static void put_trust(GString *out, const weft_node_statistics *s) {
  const weft_engine_statistics *e = &s->engine;
  const metric metrics[] = {
      {"weft_peer_sessions_opened_total", "counter", "Sessions opened.",
       (double)s->sessions.opened},
      {"weft_peer_sessions_rekeyed_total", "counter", "Keys replaced.",
       (double)s->sessions.rekeyed},
      {"weft_peer_handshakes_total", "counter", "Handshakes answered with a signature.",
       (double)s->sessions.handshakes},
      {"weft_peer_cookies_total", "counter", "Cookies handed out.", (double)s->sessions.retries},
      {"weft_peer_refused_total", "counter",
       "Datagrams from strangers, damaged or over a rate limit.",
       (double)(s->sessions.malformed + s->sessions.foreign + s->sessions.limited)},
      {"weft_peer_replayed_total", "counter", "Datagrams received a second time.",
       (double)s->sessions.replayed},
      {"weft_peer_hash_failures_total", "counter", "Segments that did not match their manifest.",
       (double)e->hash_failures},
      {"weft_peer_banned_total", "counter", "Neighbours banned for pollution.", (double)e->banned},
      {"weft_peer_verified_packets_total", "counter", "Packets that agreed with a checksum.",
       (double)e->verified},
      {"weft_peer_verified_wait_seconds_total", "counter",
       "Total time that packets waited for a checksum.", (double)e->waited_us / 1e6},
      {"weft_peer_announced", "gauge", "Nodes that this tracker knows.", (double)s->announced},
  };
  put_metrics(out, metrics, G_N_ELEMENTS(metrics));
}

char *peer_metrics(const peer_view *view) {
  weft_node_statistics s;
  weft_node_get_statistics(view->node, &s);
  GString *out = g_string_new(NULL);
  put_traffic(out, view, &s);
  put_playback(out, view, &s.engine);
  put_trust(out, &s);
  g_string_append_printf(
      out,
      "# HELP weft_peer_info Role and version of this node.\n# TYPE weft_peer_info gauge\n"
      "weft_peer_info{role=\"%s\",version=\"%s\"} 1\n",
      role_name(view), weft_version());
  return g_string_free(out, FALSE);
}

static json_t *stream_json(const weft_stream *s) {
  char id[20], key[65];
  if (!s)
    return json_null();
  static const char *const modes[] = {"bulk", "vod", "live"};
  g_snprintf(id, sizeof id, "%016" G_GINT64_MODIFIER "x", s->id);
  (void)sodium_bin2hex(key, sizeof key, s->source_key, 32);
  return json_pack("{s:s, s:s, s:s, s:i, s:i, s:I}", "id", id, "source_key", key, "mode",
                   modes[s->mode], "segment_blocks", (int)s->blocks, "block_bytes",
                   (int)s->block_bytes, "rate_bits_per_s", (json_int_t)s->rate_bits_per_s);
}

char *peer_status(const peer_view *view) {
  weft_node_statistics s;
  weft_address own = {.port = 0};
  char address[WEFT_ADDRESS_TEXT], outside[WEFT_ADDRESS_TEXT];
  const bool mapped = view->port.way != WEFT_ROUTER_CLOSED;
  weft_node_get_statistics(view->node, &s);
  (void)weft_node_address(view->node, &own);
  const weft_engine_statistics *e = &s.engine;
  json_t *root = json_pack(
      "{s:s, s:s, s:s, s:s?, s:b, s:f, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, "
      "s:I, s:I, s:I, s:f, s:f, s:b}, s:I, s:I, s:I}",
      "role", role_name(view), "version", weft_version(), "address",
      weft_address_text(&own, address), "mapped",
      mapped ? weft_address_text(&view->port.outside, outside) : NULL, "healthy",
      (int)view->healthy, "uptime_s", (double)(g_get_monotonic_time() - view->start_us) / 1e6,
      "neighbours", (json_int_t)weft_node_neighbours(view->node), "sessions", (json_int_t)s.links,
      "stream", stream_json(weft_node_stream(view->node)), "traffic", "sent", (json_int_t)s.sent,
      "sent_bytes", (json_int_t)s.sent_bytes, "received", (json_int_t)s.received, "received_bytes",
      (json_int_t)s.received_bytes, "segments", "complete", (json_int_t)e->segments, "due",
      (json_int_t)e->due, "in_time", (json_int_t)e->in_time, "skipped", (json_int_t)e->skipped,
      "passed_over", (json_int_t)e->passed_over, "hash_failures", (json_int_t)e->hash_failures,
      "continuity", continuity(e), "forgone", (double)e->forgone / WEFT_POLICY_CLASSES,
      "link_narrow", (int)e->narrow, "played_bytes",
      (json_int_t)(view->sink ? weft_sink_bytes(view->sink) : 0), "taken_bytes",
      (json_int_t)(view->feed ? weft_feed_taken(view->feed) : 0), "input_dropped",
      (json_int_t)(view->feed ? weft_feed_dropped(view->feed) : 0));
  char *text = json_dumps(root, JSON_INDENT(2));
  char *out = g_strconcat(text ? text : "{}", "\n", NULL);
  free(text);
  json_decref(root);
  return out;
}

char *peer_page(void *user, const char *path, const char **type, unsigned *status) {
  const peer_view *view = user;
  if (strcmp(path, "/metrics") == 0) {
    *type = "text/plain; version=0.0.4; charset=utf-8";
    return peer_metrics(view);
  }
  if (strcmp(path, "/status") == 0) {
    *type = "application/json";
    return peer_status(view);
  }
  if (strcmp(path, "/healthz") == 0) {
    *status = view->healthy ? 200 : 503;
    return g_strdup(view->healthy        ? "ok\n"
                    : view->stands_still ? "standing still\n"
                                         : "no neighbours\n");
  }
  return NULL;
}

void peer_tell_summary(const peer_view *view, const weft_node_statistics *s) {
  const weft_engine_statistics *e = &s->engine;
  const struct {
    const char *name;
    gint64 value;
  } fields[] = {
      {"due", (gint64)e->due},
      {"in_time", (gint64)e->in_time},
      {"skipped", (gint64)e->skipped},
      {"passed_over", (gint64)e->passed_over},
      {"stalls", (gint64)e->stalls},
      {"startup_ms", e->startup_us / 1000},
      {"join_to_play_ms", view->play_us ? (view->play_us - view->start_us) / 1000 : -1},
      {"had_all", (gint64)s->had_all},
      {"left_early", (gint64)s->left_early},
      {"bytes", view->sink ? (gint64)weft_sink_bytes(view->sink) : 0},
      {"sent", (gint64)s->sent},
      {"sent_bytes", (gint64)s->sent_bytes},
      {"received_bytes", (gint64)s->received_bytes},
      {"innovative", (gint64)e->received_innovative},
      {"dependent", (gint64)e->received_dependent},
      {"late", (gint64)e->received_late},
      {"hash_failures", (gint64)e->hash_failures},
      {"banned", (gint64)e->banned},
      {"verified", (gint64)e->verified},
      {"waited_ms", e->verified ? e->waited_us / (gint64)e->verified / 1000 : 0},
      {"waited_ms_max", e->waited_max_us / 1000},
  };
  g_autoptr(GString) text = g_string_new(NULL);
  for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
    g_string_append_printf(text, "%s%s=%" G_GINT64_FORMAT, i ? " " : "", fields[i].name,
                           fields[i].value);
  peer_log(PEER_INFO, "summary", "%s", text->str);
}
