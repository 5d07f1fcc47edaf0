// SPDX-License-Identifier: Apache-2.0
// `weft peer`: when a run is over.
#include "cli/peer_run.h"
#include "peer/runtime/notify.h"

enum { FAREWELLS = 2 }; // beside the first, a look apart

// A source whose file was fetched: by whom, as far as these told. Both the last map and the
// farewell of one that has all may be lost, so a few who got it are enough.
static void end_of_fetching(peer_run_state *r) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  if (s.had_all == 0)
    peer_run_stop(r,
                  cli_error(PEER_NAME, CLI_DIFFERS,
                            "nobody is known to have all of it (%" G_GUINT64_FORMAT " left before)",
                            s.left_early));
  else if (s.left_early > 0)
    peer_log(PEER_WARNING, "unfinished",
             "left_early=%" G_GUINT64_FORMAT " had_all=%" G_GUINT64_FORMAT, s.left_early,
             s.had_all);
  peer_run_stop(r, CLI_OK);
}

// All is played or written, and nobody who asked for it over HTTP since is still to get it.
static bool has_ended(const peer_run_state *r) {
  return r->ended_us && (!r->sink || weft_sink_empty(r->sink));
}

// A source whose file was fetched by nobody who told that he has all of it.
static bool nobody_has_all(const peer_run_state *r) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  return r->s->role == WEFT_NODE_SOURCE && weft_node_stream(r->node)->mode == WEFT_MODE_BULK &&
         s.had_all == 0;
}

static void look_for_the_end(peer_run_state *r, gint64 now_us) {
  if (!has_ended(r))
    return;
  const bool live = weft_node_stream(r->node)->mode == WEFT_MODE_LIVE;
  const double ended_s = (double)(now_us - r->ended_us) / 1e6,
               stay_s = live ? 0 : r->s->stay_s, // who comes after the end of it has nothing of it
      linger_s = r->s->linger_s + (live ? weft_node_stream(r->node)->lag_ms / 1e3 : 0);
  if (ended_s < stay_s)
    return;
  // Whoever watches over HTTP may go back yet, and whoever came for a file and went without it may
  // come again.
  const bool needed =
      (r->sink && weft_sink_seekable(r->sink)) || nobody_has_all(r) ||
      !(weft_engine_finished(weft_node_engine(r->node)) || weft_node_links(r->node) == 0);
  if (needed && ended_s < stay_s + linger_s)
    return;
  // The source tells who has all by that word; who goes cannot be asked again.
  if (!needed && r->sink && r->farewells++ < FAREWELLS &&
      weft_engine_farewell_again(weft_node_engine(r->node))) {
    peer_run_wake(r);
    return;
  }
  if (r->s->role == WEFT_NODE_SOURCE && weft_node_stream(r->node)->mode == WEFT_MODE_BULK)
    end_of_fetching(r);
  else
    peer_run_stop(r, CLI_OK);
}

// Whether it is the output that waits: for a reader to take what he is owed, or for the first one,
// who can have all of it yet.
static bool output_waits(const peer_run_state *r, const weft_engine_statistics *s) {
  if (weft_sink_has_room(r->sink))
    return false;
  const weft_stream *stream = weft_node_stream(r->node);
  const uint64_t each = (uint64_t)stream->blocks * stream->block_bytes;
  return weft_sink_asked(r->sink) || weft_node_neighbours(r->node) > 0 ||
         s->segments >= stream->bytes / each + (stream->bytes % each != 0);
}

// Whether the stream goes on: something came, was played or was taken by somebody who watches, or
// it is the output that waits, or the source is there.
static bool goes_on(peer_run_state *r, gint64 now_us) {
  weft_engine_statistics s;
  if (!r->sink)
    return false; // a tracker has none
  weft_engine_get_statistics(weft_node_engine(r->node), &s);
  const guint64 seen = s.segments + s.due + weft_sink_bytes(r->sink) + weft_sink_taken(r->sink);
  const bool more = seen != r->seen;
  r->seen = seen;
  if (more)
    r->news_us = now_us;
  if (more || output_waits(r, &s))
    return true;
  if (weft_engine_done(weft_node_engine(r->node)) || weft_node_neighbours(r->node) == 0)
    return false;
  // Live, before the first manifest, nobody knows whether there is a source yet.
  const bool begun = weft_node_stream(r->node)->mode != WEFT_MODE_LIVE || s.lag_us >= 0;
  return !begun || weft_node_has_source(r->node);
}

// Nobody answered, as nobody may have been asked: the network is down, or not to be reached from
// where --listen is.
static int no_answer(const peer_run_state *r) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  if (s.sent == 0 && s.send_errors > 0)
    return cli_error(PEER_NAME, CLI_IO, "nothing could be sent to %s: %s", r->s->bootstrap_text,
                     g_strerror(s.send_error));
  return cli_error(PEER_NAME, CLI_IO, "nobody answered at %s within %g s", r->s->bootstrap_text,
                   r->s->timeout_s);
}

// Nobody had the stream, or there was nobody; or it was there, and could not begin here.
static int no_stream(const peer_run_state *r) {
  if (r->failed == WEFT_E_ARGUMENT)
    return cli_error(PEER_NAME, CLI_IO, "there can be no such stream as was offered at %s",
                     r->s->bootstrap_text);
  if (r->failed != WEFT_OK)
    return cli_error(PEER_NAME, CLI_MACHINE, "the stream at %s could not begin here: %s",
                     r->s->bootstrap_text, weft_status_text(r->failed));
  if (r->no_stream && r->s->has_source_key)
    return cli_error(PEER_NAME, CLI_KEY, "whoever answered has no stream with that --source-key");
  if (r->no_stream || weft_node_links(r->node) > 0)
    return cli_error(PEER_NAME, CLI_IO, "whoever answered at %s had no stream within %g s",
                     r->s->bootstrap_text, r->s->timeout_s);
  return no_answer(r);
}

static void look_for_company(peer_run_state *r, gint64 now_us) {
  if (goes_on(r, now_us) || has_ended(r))
    r->alone_us = now_us;
  r->view.healthy =
      r->s->role != WEFT_NODE_JOINING || weft_node_neighbours(r->node) > 0 || has_ended(r);
  if (!r->ready && r->view.healthy) {
    weft_notify("READY=1");
    r->ready = true;
  }
  if (r->s->role != WEFT_NODE_JOINING || has_ended(r) ||
      now_us - r->alone_us < (gint64)(r->s->timeout_s * 1e6))
    return;
  if (r->sink && weft_engine_done(weft_node_engine(r->node))) // somebody watches, and takes nothing
    peer_run_stop(r, CLI_OK);
  else if (r->sink)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_DIFFERS,
                               "the stream was lost after %" G_GUINT64_FORMAT " bytes",
                               weft_sink_bytes(r->sink)));
  else
    peer_run_stop(r, no_stream(r));
}

// A live source that began again: first what there is of the stream before is played. What peers
// say, who may lie, counts late, and puts no end off.
static void look_for_successor(peer_run_state *r, gint64 now_us) {
  enum { PLAYED_US = 1000000, SAID_US = 10000000 };
  const gint64 said_us = MIN(SAID_US, (gint64)(r->s->timeout_s * 2e6 / 3));
  if (!r->succeeds || !r->sink || r->stopped || has_ended(r) || weft_node_has_source(r->node) ||
      !weft_sink_has_room(r->sink) || now_us - r->news_us < (r->by_source ? PLAYED_US : said_us))
    return;
  const weft_status status = weft_node_succeed(r->node, now_us);
  r->succeeds = false;
  if (status != WEFT_OK) {
    peer_run_stop(r, cli_error(PEER_NAME, CLI_MACHINE, "%s", weft_status_text(status)));
    return;
  }
  peer_play_succeeded(r);
  r->news_us = now_us;
  r->alone_us = r->by_source ? now_us : r->alone_us;
  r->seen = weft_sink_bytes(r->sink) + weft_sink_taken(r->sink);
  peer_run_wake(r);
}

// While this process was stopped nobody could be heard: that counts for none of the times that end
// something, or who was paused for longer than --timeout would end before he has looked around.
static void leave_out_absence(peer_run_state *r, gint64 now_us) {
  enum { ABSENT_US = 1000000 };
  const gint64 away_us = now_us - r->looked_us;
  r->looked_us = now_us;
  if (away_us < ABSENT_US)
    return;
  r->alone_us += away_us;
  r->news_us += away_us;
  r->ended_us += r->ended_us ? away_us : 0;
}

void peer_end_look(peer_run_state *r, gint64 now_us) {
  leave_out_absence(r, now_us);
  look_for_the_end(r, now_us);
  look_for_successor(r, now_us);
  look_for_company(r, now_us);
}
