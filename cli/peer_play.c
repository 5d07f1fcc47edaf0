// SPDX-License-Identifier: Apache-2.0
// `weft peer`: plays a stream that was joined: from the engine to the output.
#include <sodium.h>

#include "cli/peer_options.h"
#include "cli/peer_run.h"

// Continues at this byte of the stream. Returns false if that is impossible.
static bool go_on_at(peer_run_state *r, uint64_t at) {
  const weft_stream *stream = weft_node_stream(r->node);
  const uint64_t each = (uint64_t)stream->blocks * stream->block_bytes;
  if (stream->mode != WEFT_MODE_VOD || at >= stream->bytes ||
      weft_engine_seek(weft_node_engine(r->node), at / each, g_get_monotonic_time()) != WEFT_OK)
    return false;
  r->skip_segment = at / each;
  r->skip = (size_t)(at % each);
  r->ended_us = 0;
  weft_sink_move(r->sink, at - r->first);
  peer_log(PEER_INFO, "seek", "position=%" G_GUINT64_FORMAT, at);
  peer_run_wake(r);
  return true;
}

bool peer_play_seek(void *user, uint64_t position) {
  peer_run_state *r = user;
  return position < weft_node_stream(r->node)->bytes - r->first && go_on_at(r, r->first + position);
}

// Returns the byte at which --from says to begin, which may be past the end.
static uint64_t beginning(const peer_settings *settings, const weft_stream *stream) {
  enum { TS_PACKET = 188 }; // players synchronize on whole packets
  if (settings->from_is_bytes)
    return settings->from_bytes;
  const double at = settings->from_s * (double)stream->rate_bits_per_s / 8;
  // A place past the end may exceed what an integer holds.
  return at < (double)stream->bytes ? (uint64_t)at / TS_PACKET * TS_PACKET : stream->bytes;
}

// Returns whether the stream has what --from asks for; else reports that and stops the run. To be
// called before the output is opened, which would empty a file.
static bool can_begin(peer_run_state *r, const weft_stream *stream) {
  const peer_settings *s = r->s;
  if (s->from_is_bytes ? s->from_bytes == 0 : s->from_s == 0)
    return true;
  if (stream->mode != WEFT_MODE_VOD)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_USAGE, "--from: this stream is not on demand"));
  else if (beginning(s, stream) >= stream->bytes)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_USAGE,
                               "--from is past the end of the stream (%" G_GUINT64_FORMAT " bytes)",
                               stream->bytes));
  else
    return true;
  return false;
}

static void tell_stream(const weft_stream *stream) {
  char key[65];
  (void)sodium_bin2hex(key, sizeof key, stream->source_key, 32);
  peer_log(PEER_INFO, "stream",
           "id=%016" G_GINT64_MODIFIER
           "x source_key=%s blocks=%u block_bytes=%u rate=%" G_GUINT64_FORMAT,
           stream->id, key, stream->blocks, stream->block_bytes, stream->rate_bits_per_s);
}

void peer_play_succeeded(peer_run_state *r) {
  const weft_stream *stream = weft_node_stream(r->node);
  weft_sink_resize(r->sink, (size_t)stream->blocks * stream->block_bytes);
  tell_stream(stream);
}

void peer_play_open(peer_run_state *r) {
  const weft_stream *stream = weft_node_stream(r->node);
  char *why = NULL;
  tell_stream(stream);
  if (!can_begin(r, stream))
    return;
  peer_options_tell_unused(r->s->given, PEER_JOIN, stream->mode);
  r->first = beginning(r->s, stream);
  if (weft_sink_open(r->output, (size_t)stream->blocks * stream->block_bytes,
                     stream->mode == WEFT_MODE_VOD ? stream->bytes - r->first : 0,
                     stream->mode == WEFT_MODE_BULK, &why))
    r->sink = r->output;
  r->view.sink = r->sink;
  r->alone_us = r->news_us = g_get_monotonic_time(); // the stream may have come late
  if (!r->sink)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_IO, "%s", why));
  else if (r->first > 0 && !go_on_at(r, r->first))
    peer_run_stop(r, cli_error(PEER_NAME, CLI_USAGE, "--from: the stream has no such position"));
  else if (!weft_sink_has_room(r->sink)) // no client has asked for it yet
    peer_log(PEER_INFO, "waiting", "reader_of=%s", r->s->output);
  g_free(why);
}

static gint64 segment_us(const weft_stream *s) {
  return s->rate_bits_per_s
             ? (gint64)((double)s->blocks * s->block_bytes * 8e6 / (double)s->rate_bits_per_s)
             : 0;
}

// Returns for how long a segment plays: live until the next one does, as the rate is only what the
// source was told; else by the rate.
static gint64 plays_for_us(const weft_engine *engine, const weft_stream *s, uint64_t segment) {
  enum { MOST_US = 5000000 }; // if the input pauses
  gint64 at_us, next_us;
  if (s->mode != WEFT_MODE_LIVE || weft_engine_play_time(engine, segment, &at_us) != WEFT_OK ||
      weft_engine_play_time(engine, segment + 1, &next_us) != WEFT_OK)
    return segment_us(s);
  return CLAMP(next_us - at_us, 0, s->rate_bits_per_s ? segment_us(s) : MOST_US);
}

// Returns whether the segment may be played now; else sets due_us to when it may.
static bool may_play(peer_run_state *r, uint64_t segment, gint64 now_us) {
  const gint64 each_us = segment_us(weft_node_stream(r->node));
  if (weft_node_stream(r->node)->mode != WEFT_MODE_BULK)
    return true; // the engine paces these modes
  if (!r->playing) {
    r->playing = true;
    r->play_us = now_us + (gint64)r->s->startup_ms * 1000 - (gint64)segment * each_us;
  }
  const gint64 at_us = r->play_us + (gint64)segment * each_us;
  if (each_us == 0 || now_us >= at_us)
    return true;
  r->due_us = at_us;
  return false;
}

static weft_status play(peer_run_state *r, gint64 now_us) {
  weft_engine *engine = weft_node_engine(r->node);
  uint64_t segment;
  size_t bytes;
  r->due_us = G_MAXINT64;
  WEFT_TRY(weft_sink_pump(r->sink, now_us));
  while (weft_sink_has_room(r->sink)) {
    const weft_status status = weft_engine_readable(engine, &segment, &bytes);
    if (status == WEFT_PENDING || !may_play(r, segment, now_us))
      break;
    WEFT_TRY(status);
    const size_t skip = segment == r->skip_segment ? MIN(r->skip, bytes) : 0;
    r->skip = 0;
    const weft_stream *stream = weft_node_stream(r->node);
    const uint64_t position = segment * stream->blocks * stream->block_bytes + skip;
    const gint64 over_us = plays_for_us(engine, stream, segment);
    WEFT_TRY(weft_engine_read(engine, skip, bytes - skip, weft_sink_room(r->sink)));
    WEFT_TRY(weft_engine_release(engine));
    WEFT_TRY(weft_sink_wrote(r->sink, position, bytes - skip, over_us, now_us));
  }
  r->due_us = MIN(r->due_us, weft_sink_deadline(r->sink));
  return WEFT_OK;
}

// Logs when gaps begin and end because parts of the stream are forgone, and whether the own link is
// the reason, so that the viewer knows. If the link queues but nothing is forgone, logs that the
// peer asks for what it gets.
static void tell_forgone(peer_run_state *r) {
  weft_engine_statistics s;
  weft_engine_get_statistics(weft_node_engine(r->node), &s);
  if (s.forgone == r->forgone && s.narrow == r->narrow)
    return;
  const bool turned = !s.forgone != !r->forgone || s.narrow != r->narrow;
  if (s.narrow && !s.forgone)
    peer_log(PEER_INFO, "asking", "link=narrow");
  else
    peer_log(!turned     ? PEER_DEBUG
             : s.forgone ? PEER_WARNING
                         : PEER_INFO,
             "forgoing", "sixteenths=%u%s", (unsigned)s.forgone,
             s.narrow    ? " link=narrow"
             : s.forgone ? " uplinks=short"
                         : "");
  r->forgone = s.forgone;
  r->narrow = s.narrow;
}

void peer_play_pump(peer_run_state *r, gint64 now_us) {
  if (!r->sink || r->stopped)
    return;
  const weft_status status = play(r, now_us);
  tell_forgone(r);
  if (status == WEFT_E_IO)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_IO, "%s", weft_sink_error(r->sink)));
  else if (status != WEFT_OK)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_MACHINE, "%s", weft_status_text(status)));
  else if (weft_engine_done(weft_node_engine(r->node)) && r->ended_us == 0) {
    weft_sink_end(r->sink);
    if (weft_sink_empty(r->sink)) {
      r->ended_us = now_us;
      peer_log(PEER_INFO, "ended", "bytes=%" G_GUINT64_FORMAT, weft_sink_bytes(r->sink));
    }
  }
}

// --- What is left when the run was stopped

static gboolean on_over(gpointer user) {
  peer_run_state *r = user;
  r->hurried = true;
  g_main_loop_quit(r->loop);
  return G_SOURCE_REMOVE;
}

// Counts what can be played and was not.
static uint64_t unplayed(weft_engine *engine) {
  uint64_t segment, all = 0;
  size_t bytes;
  while (weft_engine_readable(engine, &segment, &bytes) == WEFT_OK) {
    all += bytes;
    if (weft_engine_release(engine) != WEFT_OK)
      break;
  }
  return all;
}

weft_status peer_play_rest(peer_run_state *r, uint64_t *left) {
  *left = 0;
  if (weft_sink_owed(r->sink) == 0)
    return weft_sink_pump(r->sink, G_MAXINT64 / 2); // udp: at once
  GSource *over = g_timeout_source_new((guint)MIN(r->s->linger_s * 1e3, 1e9));
  g_source_set_callback(over, on_over, r, NULL);
  (void)g_source_attach(over, NULL);
  weft_status status;
  while ((status = play(r, g_get_monotonic_time())) == WEFT_OK && weft_sink_owed(r->sink) > 0 &&
         !r->hurried)
    g_main_loop_run(r->loop); // until there is room (peer_run_wake), a second signal, or on_over
  g_source_destroy(over);
  g_source_unref(over);
  if (status == WEFT_OK && weft_sink_owed(r->sink) > 0)
    *left = weft_sink_owed(r->sink) + unplayed(weft_node_engine(r->node));
  return status;
}
