// SPDX-License-Identifier: Apache-2.0
// `weft peer`: one node on the main loop, from its input or to its output, until the end.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <glib-unix.h>
#include <sodium.h>

#include "cli/peer_options.h"
#include "cli/peer_run.h"
#include "cli/policy.h"
#include "peer/runtime/notify.h"

void peer_run_stop(peer_run_state *r, int code) {
  if (!r->stopped) {
    r->stopped = true;
    r->code = code;
    g_main_loop_quit(r->loop);
  }
}

void peer_run_wake(void *user) {
  peer_run_state *r = user;
  if (r->source)
    weft_node_source_wake(r->source);
  else
    g_main_loop_quit(r->loop); // of peer_play_rest
}

// A second signal ends the wait for who reads the output.
static void stop_by_signal(peer_run_state *r, int code) {
  if (r->stopped) {
    r->hurried = true;
    g_main_loop_quit(r->loop);
  }
  peer_run_stop(r, code);
}

// At SIGTERM a live source announces where the stream ends, and leaves when all peers know; at a
// second one it leaves at once.
static gboolean on_term(gpointer user) {
  peer_run_state *r = user;
  peer_log(PEER_INFO, "stopping", "signal=TERM");
  if (r->s->role == WEFT_NODE_SOURCE && !weft_feed_ended(r->feed) &&
      weft_node_stream(r->node)->mode == WEFT_MODE_LIVE &&
      weft_feed_end(r->feed, weft_node_engine(r->node), g_get_monotonic_time()) == WEFT_OK) {
    peer_run_wake(r);
    return G_SOURCE_CONTINUE;
  }
  stop_by_signal(r, CLI_OK);
  return G_SOURCE_CONTINUE;
}

static gboolean on_interrupt(gpointer user) {
  stop_by_signal(user, CLI_SIGNAL + SIGINT);
  return G_SOURCE_CONTINUE;
}

// The terminal closed.
static gboolean on_hangup(gpointer user) {
  stop_by_signal(user, CLI_SIGNAL + SIGHUP);
  return G_SOURCE_CONTINUE;
}

static guint watch_signal(int number, GSourceFunc call, peer_run_state *r) {
  return cli_signal_ignored(number) ? 0 : g_unix_signal_add(number, call, r);
}

// --- The source

// Warns if the input is faster than windows can hold: if their part of a live stream does not span
// the lag, viewers play with less, and what comes late is lost.
static void look_at_rate(peer_run_state *r, gint64 now_us) {
  enum { EVERY_US = 5000000 };
  const peer_settings *s = r->s;
  // A quarter of a window is for what has been played.
  const double held_segments = 0.75 * (double)(s->window ? s->window : WEFT_ENGINE_MAX_WINDOW),
               held = held_segments * 8 * s->blocks * s->block_bytes / (s->lag_ms / 1e3),
               meant = s->rate_bits_per_s ? 1.1 * (double)s->rate_bits_per_s
                                          : (double)WEFT_NODE_LIVE_BITS_PER_S,
               most = s->window || held < meant ? held : meant;
  if (now_us - r->rate_us < EVERY_US)
    return;
  const guint64 taken = weft_feed_taken(r->feed);
  const double rate = (double)(taken - r->rate_taken) * 8e6 / (double)(now_us - r->rate_us);
  if (r->rate_us && rate > most && !r->rate_told) {
    r->rate_told = true;
    peer_log(PEER_WARNING, "window-short", "bits_per_s=%.0f held_bits_per_s=%.0f lag_ms=%u", rate,
             most, (unsigned)s->lag_ms);
  }
  r->rate_us = now_us;
  r->rate_taken = taken;
}

// Warns of datagrams that came faster than they were read: at the first, and whenever there are
// twice as many.
static void look_at_dropped(peer_run_state *r) {
  const guint64 dropped = r->feed ? weft_feed_dropped(r->feed) : 0;
  if (dropped == r->dropped_seen)
    return;
  const bool news = r->dropped_told == 0 || dropped >= 2 * r->dropped_told;
  r->dropped_seen = dropped;
  r->dropped_told = news ? dropped : r->dropped_told;
  peer_log(news ? PEER_WARNING : PEER_DEBUG, "input-dropped", "datagrams=%" G_GUINT64_FORMAT,
           dropped);
}

static void pump_live(peer_run_state *r, gint64 now_us) {
  const weft_status status = weft_feed_pump(r->feed, weft_node_engine(r->node), now_us);
  if (status == WEFT_E_IO)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_IO, "%s", weft_feed_error(r->feed)));
  else if (status != WEFT_OK)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_MACHINE, "%s", weft_status_text(status)));
  r->due_us = weft_feed_deadline(r->feed);
}

// Returns whether the source has nothing left to do: live, when the input has ended. A file, whose
// segments are loaded when they are asked for, waits until a peer has fetched it; on demand, for
// ever.
static bool is_over(peer_run_state *r) {
  weft_engine_statistics s;
  switch (weft_node_stream(r->node)->mode) {
  case WEFT_MODE_LIVE:
    return weft_feed_ended(r->feed);
  case WEFT_MODE_BULK:
    weft_engine_get_statistics(weft_node_engine(r->node), &s);
    return s.sent_packets > 0 && weft_engine_finished(weft_node_engine(r->node));
  case WEFT_MODE_VOD:
    break;
  }
  return false;
}

static void pump_source(peer_run_state *r, gint64 now_us) {
  if (weft_node_stream(r->node)->mode == WEFT_MODE_LIVE) {
    pump_live(r, now_us);
    look_at_rate(r, now_us);
  }
  if (!is_over(r))
    r->ended_us = 0; // a peer may have joined since
  else if (r->ended_us == 0)
    r->ended_us = now_us;
}

static void pump(void *user, int64_t now_us) {
  peer_run_state *r = user;
  if (r->s->role == WEFT_NODE_SOURCE)
    pump_source(r, now_us);
  else if (r->s->role == WEFT_NODE_JOINING)
    peer_play_pump(r, now_us);
}

// Reports a failed turn of the node. Such turns follow each other without pause, so few are logged.
static void failed(void *user, weft_status status) {
  peer_run_state *r = user;
  const weft_policy *policy = r->s->policy;
  const bool own = policy && policy != &weft_policy_push && policy != &weft_policy_pull;
  r->failures++;
  if (own && status == WEFT_E_ARGUMENT)
    peer_run_stop(r, cli_policy_wrong(PEER_NAME, policy));
  else
    peer_log(peer_is_news(r->failures) ? PEER_WARNING : PEER_DEBUG, "failed", "status=%s turns=%u",
             weft_status_name(status), r->failures);
}

// --- The loop: ten times a second, and when something is due

static gboolean on_tick(gpointer user) {
  peer_run_state *r = user;
  look_at_dropped(r);
  if (!r->stopped)
    peer_end_look(r, g_get_monotonic_time());
  return G_SOURCE_CONTINUE;
}

// A segment or a part of one may be due before the node's own deadline.
static gboolean on_due_prepare(GSource *source, gint *timeout) {
  peer_run_state *r = *(peer_run_state **)(source + 1);
  const gint64 left = r->due_us == G_MAXINT64 ? G_MAXINT64 : r->due_us - g_get_monotonic_time();
  *timeout = left == G_MAXINT64 ? -1 : left <= 0 ? 0 : (gint)MIN(left / 1000 + 1, 1000);
  return left <= 0;
}

static gboolean on_due_check(GSource *source) {
  const peer_run_state *r = *(peer_run_state **)(source + 1);
  return r->due_us != G_MAXINT64 && r->due_us <= g_get_monotonic_time();
}

static gboolean on_due(GSource *source, GSourceFunc callback, gpointer data) {
  peer_run_state *r = *(peer_run_state **)(source + 1);
  (void)callback, (void)data;
  r->due_us = G_MAXINT64;
  peer_run_wake(r);
  return G_SOURCE_CONTINUE;
}

// --- Opening, running, closing

// Returns the stream's mode: a file with a rate can be watched from any place, a file without one
// is only fetched, and all other input is live.
static weft_engine_mode mode_of(const peer_run_state *r) {
  if (weft_feed_bytes(r->feed) == 0)
    return WEFT_MODE_LIVE;
  return r->s->rate_bits_per_s ? WEFT_MODE_VOD : WEFT_MODE_BULK;
}

// Returns the stream's number. The same file served again with the same key is the same stream, and
// peers that fetch or watch it go on. Another file needs another number, as signatures for the
// first would contradict it.
static uint64_t stream_number(const peer_run_state *r, const uint8_t key[32]) {
  const peer_settings *s = r->s;
  uint64_t about[WEFT_FEED_VERSION + 3], number;
  uint8_t hash[crypto_generichash_BYTES];
  if (s->stream_given || !s->key_file || mode_of(r) == WEFT_MODE_LIVE)
    return s->stream;
  weft_feed_version(r->feed, about);
  about[WEFT_FEED_VERSION] = s->blocks;
  about[WEFT_FEED_VERSION + 1] = s->block_bytes;
  about[WEFT_FEED_VERSION + 2] = s->rate_bits_per_s;
  (void)crypto_generichash(hash, sizeof hash, (const uint8_t *)about, sizeof about, key, 32);
  memcpy(&number, hash, sizeof number);
  return number ? number : s->stream;
}

// Refuses options that the input does not allow. Returns -1 to go on, else the exit code.
static int refuse_source(const peer_run_state *r) {
  const bool live = mode_of(r) == WEFT_MODE_LIVE;
  if (r->s->policy == &weft_policy_pull && !live)
    return cli_error(PEER_NAME, CLI_USAGE,
                     "--scheme pull is for live sources: peers that push would get nothing of a "
                     "file; join --scheme pull works with any source");
  if (r->s->stay_s > 0 && live)
    return cli_error(PEER_NAME, CLI_USAGE,
                     "--stay is for files: a live stream that has ended cannot be served");
  return -1;
}

static int open_node(peer_run_state *r) {
  const peer_settings *s = r->s;
  const bool source = s->role == WEFT_NODE_SOURCE;
  int code = source ? refuse_source(r) : -1;
  if (code >= 0)
    return code;
  if (source)
    peer_keep_heap_small(mode_of(r));
  weft_node_options o = {.ctx = r->ctx,
                         .role = s->role,
                         .listen = s->listen,
                         .cipher = s->cipher,
                         .bootstrap = s->bootstrap,
                         .bootstrap_count = s->bootstrap_count,
                         .bootstrap_host = s->bootstrap_host,
                         .source_key = s->has_source_key ? s->source_key : NULL,
                         .window = s->window,
                         .batch = s->batch,
                         .gather = s->gather,
                         .rereads = r->output && weft_sink_rereadable(r->output),
                         .neighbours_target = s->neighbours,
                         .upload_bits_per_s = s->upload_bits_per_s,
                         .congestion = s->congestion,
                         .policy = s->policy,
                         .startup_us = s->startup_ms ? (int64_t)s->startup_ms * 1000 : 1,
                         .event = peer_event,
                         .user = r};
  char text[WEFT_ADDRESS_TEXT];
  int error;
  code = peer_identity(s, &o.identity);
  if (code >= 0)
    return code;
  if (source)
    o.stream = (weft_stream){.id = stream_number(r, o.identity.public_key),
                             .blocks = (uint16_t)s->blocks,
                             .block_bytes = s->block_bytes,
                             .mode = mode_of(r),
                             .trusted = true,
                             .checksums = s->checksums,
                             .rate_bits_per_s = s->rate_bits_per_s,
                             .bytes = weft_feed_bytes(r->feed),
                             .lag_ms = s->lag_ms};
  const weft_status status = weft_node_new(&o, g_get_monotonic_time(), &r->node, &error);
  sodium_memzero(&o.identity, sizeof o.identity);
  if (status == WEFT_E_IO)
    return cli_error(PEER_NAME, CLI_IO, "--listen %s: %s", weft_address_text(&s->listen, text),
                     g_strerror(error));
  return status == WEFT_OK ? -1 : cli_error(PEER_NAME, CLI_MACHINE, "%s", weft_status_text(status));
}

// Opens the input of a source, or the output of a peer that joins.
static int open_ends(peer_run_state *r) {
  const peer_settings *s = r->s;
  g_autofree char *why = NULL;
  if (s->role == WEFT_NODE_JOINING)
    r->output = weft_sink_new(
        &(weft_sink_options){
            .output = s->output, .wake = peer_run_wake, .seek = peer_play_seek, .user = r},
        &why);
  if (s->role == WEFT_NODE_SOURCE)
    r->feed =
        weft_feed_open(&(weft_feed_options){.input = s->input,
                                            .segment_bytes = (size_t)s->blocks * s->block_bytes,
                                            .rate_bits_per_s = s->rate_bits_per_s,
                                            .lag_us = (int64_t)s->lag_ms * 1000,
                                            .wake = peer_run_wake,
                                            .user = r},
                       &why);
  return why ? cli_error(PEER_NAME, CLI_IO, "%s", why) : -1;
}

static int open_parts(peer_run_state *r) {
  const peer_settings *s = r->s;
  const weft_ctx_options ctx = {.backend = s->backend, .threads = s->threads};
  const weft_status status = weft_ctx_new(&r->ctx, &ctx);
  g_autofree char *why = NULL;
  char text[WEFT_ADDRESS_TEXT];
  if (status != WEFT_OK)
    return cli_error_backend(PEER_NAME, s->backend, status);
  int code = open_ends(r);
  if (code < 0)
    code = open_node(r);
  if (code >= 0)
    return code;
  r->view = (peer_view){
      .settings = s, .node = r->node, .feed = r->feed, .start_us = g_get_monotonic_time()};
  if (!s->has_metrics)
    return peer_port_open(r);
  r->pages = weft_http_new(
      &(weft_http_options){.listen = s->metrics, .page = peer_page, .user = &r->view}, &why);
  return r->pages ? peer_port_open(r)
                  : cli_error(PEER_NAME, CLI_IO, "--metrics %s: %s",
                              weft_address_text(&s->metrics, text), why);
}

// Reports that not everything played reached the output, unless another error was reported before.
static void output_failed(peer_run_state *r, const char *why) {
  if (r->code == CLI_OK || r->code > CLI_SIGNAL)
    r->code = cli_error(PEER_NAME, CLI_IO, "%s", why);
}

static void close_parts(peer_run_state *r) {
  g_autofree char *why = NULL;
  weft_port_map_free(r->port);
  weft_http_free(r->pages);
  weft_feed_close(r->feed);
  if (weft_sink_close(r->output, &why) != WEFT_OK)
    output_failed(r, why);
  weft_node_free(r->node);
  weft_ctx_free(r->ctx);
}

static void tell_start(peer_run_state *r) {
  weft_address address;
  char text[WEFT_ADDRESS_TEXT], key[65] = "";
  static const char *const names[] = {"join", "", "source", "tracker"};
  (void)weft_node_address(r->node, &address);
  if (r->s->role == WEFT_NODE_SOURCE)
    (void)sodium_bin2hex(key, sizeof key, weft_node_stream(r->node)->source_key, 32);
  peer_log(PEER_INFO, names[r->s->role], "listen=%s%s%s metrics=%u",
           weft_address_text(&address, text), *key ? " key=" : "", key,
           r->pages ? weft_http_port(r->pages) : 0);
  if (r->s->role == WEFT_NODE_SOURCE)
    peer_options_tell_unused(r->s->given, PEER_SOURCE, weft_node_stream(r->node)->mode);
}

// Writes out what was played, or reports how much was not.
static void write_rest(peer_run_state *r) {
  g_autofree char *why = NULL;
  uint64_t left;
  if (peer_play_rest(r, &left) != WEFT_OK) {
    output_failed(r, weft_sink_error(r->sink));
  } else if (left > 0) {
    const char *output = strcmp(r->s->output, "-") == 0 ? "standard output" : r->s->output;
    why = g_strdup_printf("%s: its reader did not take everything", output);
    peer_log(PEER_WARNING, "output-cut", "bytes=%" G_GUINT64_FORMAT, left);
    output_failed(r, why);
  }
}

static void leave(peer_run_state *r) {
  weft_node_statistics statistics;
  const gint64 now_us = g_get_monotonic_time();
  weft_notify("STOPPING=1");
  weft_node_get_statistics(r->node, &statistics);
  weft_node_leave(r->node, now_us);
  (void)weft_node_turn(r->node, now_us);
  if (r->sink)
    write_rest(r);
  peer_tell_summary(&r->view, &statistics);
}

static void end_source(GSource *source) {
  g_source_destroy(source);
  g_source_unref(source);
}

static void run_loop(peer_run_state *r) {
  static GSourceFuncs due_functions = {on_due_prepare, on_due_check, on_due, NULL, NULL, NULL};
  const weft_node_loop calls = {.pump = pump, .failed = failed, .user = r};
  const guint watches[] = {g_timeout_add(100, on_tick, r), watch_signal(SIGTERM, on_term, r),
                           watch_signal(SIGINT, on_interrupt, r),
                           watch_signal(SIGHUP, on_hangup, r)};
  GSource *due = g_source_new(&due_functions, sizeof(GSource) + sizeof(peer_run_state *));
  *(peer_run_state **)(due + 1) = r;
  (void)g_source_attach(due, NULL);
  r->source = weft_node_source_new(r->node, &calls);
  (void)g_source_attach(r->source, NULL);
  tell_start(r);
  if (!r->stopped)
    g_main_loop_run(r->loop);
  end_source(due);
  end_source(r->source);
  r->source = NULL;
  leave(r);
  for (size_t i = 0; i < G_N_ELEMENTS(watches); i++)
    if (watches[i] > 0)
      g_source_remove(watches[i]);
}

// Checks that enough descriptors are left for a node without neighbours, and a few more. If GLib
// cannot get one to wake its loops with, it ends the program (g_error).
static int descriptors_left(void) {
  enum { WANTED = 16 };
  int fd[WANTED], count = 0, code = -1;
  while (count < WANTED && (fd[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
    count++;
  if (count < WANTED)
    code = cli_error(PEER_NAME, CLI_MACHINE,
                     "needs %d file descriptors, but only %d are left (ulimit -n): %s", WANTED,
                     count, g_strerror(errno));
  while (count > 0)
    close(fd[--count]);
  return code;
}

int peer_run(const peer_settings *settings) {
  peer_log_set(settings->log_level, settings->log_json);
  const int refused = descriptors_left();
  if (refused >= 0)
    return refused;
  peer_run_state r = {.s = settings,
                      .loop = g_main_loop_new(NULL, FALSE),
                      .due_us = G_MAXINT64,
                      .looked_us = g_get_monotonic_time()};
  r.alone_us = r.looked_us;
  signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of the output
  r.code = open_parts(&r);
  if (r.code < 0)
    run_loop(&r);
  close_parts(&r);
  g_main_loop_unref(r.loop);
  return r.code;
}
