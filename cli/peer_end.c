// SPDX-License-Identifier: Apache-2.0
// `weft peer`: decides when a run is over.
#include "cli/peer_run.h"
#include "peer/runtime/notify.h"

enum { FAREWELLS = 2 }; // after the first, one in each look

// Ends a source whose file was fetched, and reports how many peers are known to have all of it. A
// peer's last map and its farewell may both be lost, so it is an error only if there is none.
static void end_of_fetching(peer_run_state *r) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  if (s.had_all == 0)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_DIFFERS,
                               "no peer is known to have the whole file (%" G_GUINT64_FORMAT
                               " left early)",
                               s.left_early));
  else if (s.left_early > 0)
    peer_log(PEER_WARNING, "unfinished",
             "left_early=%" G_GUINT64_FORMAT " had_all=%" G_GUINT64_FORMAT, s.left_early,
             s.had_all);
  peer_run_stop(r, CLI_OK);
}

// Returns whether everything was played or written, and no HTTP client that has asked for it since
// is still waiting.
static bool has_ended(const peer_run_state *r) {
  return r->ended_us && (!r->sink || weft_sink_empty(r->sink));
}

// Returns whether peers that are not here may return for a file to fetch: to its source, while none
// is known to have all of it; and one that fell silent lately, as a process does that is paused.
static bool some_may_return(const peer_run_state *r, gint64 now_us) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  if (weft_node_stream(r->node)->mode != WEFT_MODE_BULK)
    return false;
  return (r->s->role == WEFT_NODE_SOURCE && s.had_all == 0) ||
         (s.silent_us && (double)(now_us - s.silent_us) < r->s->linger_s * 1e6);
}

static void look_for_the_end(peer_run_state *r, gint64 now_us) {
  if (!has_ended(r))
    return;
  const bool live = weft_node_stream(r->node)->mode == WEFT_MODE_LIVE;
  const double ended_s = (double)(now_us - r->ended_us) / 1e6,
               stay_s = live ? 0 : r->s->stay_s, // latecomers get nothing of a live stream
      linger_s = r->s->linger_s + (live ? weft_node_stream(r->node)->lag_ms / 1e3 : 0);
  if (ended_s < stay_s)
    return;
  // An HTTP client may still seek back.
  const bool needed =
      (r->sink && weft_sink_seekable(r->sink)) || some_may_return(r, now_us) ||
      !(weft_engine_finished(weft_node_engine(r->node)) || weft_node_links(r->node) == 0);
  if (needed && ended_s < stay_s + linger_s)
    return;
  // The source learns from farewells which peers have everything, and cannot ask one that has left.
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

// Returns whether it is the output that waits: for a reader to take what it is owed, or for the
// first reader, while all of the stream can still be had.
static bool output_waits(const peer_run_state *r, const weft_engine_statistics *s) {
  if (weft_sink_has_room(r->sink))
    return false;
  const weft_stream *stream = weft_node_stream(r->node);
  const uint64_t each = (uint64_t)stream->blocks * stream->block_bytes;
  return weft_sink_asked(r->sink) || weft_node_neighbours(r->node) > 0 ||
         s->segments >= stream->bytes / each + (stream->bytes % each != 0);
}

// Notices that the source goes on and nothing of that is played here, though the output takes more,
// for as long as makes a stream without a source count as lost: monitoring would not see that while
// there are neighbours.
static void look_for_progress(peer_run_state *r, const weft_engine_statistics *s, gint64 now_us) {
  if (weft_node_stream(r->node)->mode != WEFT_MODE_LIVE)
    return;
  const guint64 got = s->segments + weft_sink_bytes(r->sink) + weft_sink_taken(r->sink);
  const guint64 made = MAX(r->source_made, weft_node_source_segments(r->node));
  r->source_made = made; // it may be away for a moment
  if (got != r->got)
    r->source_seen = made;
  r->got = got;
  if (made <= r->source_seen || !weft_sink_has_room(r->sink))
    r->behind_us = 0;
  else if (!r->behind_us)
    r->behind_us = now_us;
  const bool still =
      r->behind_us && now_us - r->behind_us >= (gint64)(r->s->timeout_s * 1e6) && !has_ended(r);
  if (still && !r->view.stands_still)
    peer_log(PEER_WARNING, "standing-still",
             "source_segments=%" G_GUINT64_FORMAT " complete=%" G_GUINT64_FORMAT
             " due=%" G_GUINT64_FORMAT,
             made, s->segments, s->due);
  r->view.stands_still = still;
}

// Returns whether the stream goes on: something arrived, was played or was taken by a viewer, or it
// is the output that waits, or the source is a neighbour.
static bool goes_on(peer_run_state *r, gint64 now_us) {
  weft_engine_statistics s;
  if (!r->sink)
    return false; // there is no stream yet
  weft_engine_get_statistics(weft_node_engine(r->node), &s);
  const guint64 seen = s.segments + s.due + weft_sink_bytes(r->sink) + weft_sink_taken(r->sink);
  const bool more = seen != r->seen;
  r->seen = seen;
  if (more)
    r->news_us = now_us;
  look_for_progress(r, &s, now_us);
  if (more || output_waits(r, &s))
    return true;
  if (weft_engine_done(weft_node_engine(r->node)) || weft_node_neighbours(r->node) == 0)
    return false;
  // Before a live stream's first manifest it is unknown whether the source is still there.
  const bool begun = weft_node_stream(r->node)->mode != WEFT_MODE_LIVE || s.lag_us >= 0;
  return !begun || weft_node_has_source(r->node);
}

// Reports that no address answered. Perhaps nothing could be sent to them: the network is down, or
// not reachable from the address of --listen.
static int no_answer(const peer_run_state *r) {
  weft_node_statistics s;
  weft_node_get_statistics(r->node, &s);
  if (s.sent == 0 && s.send_errors > 0)
    return cli_error(PEER_NAME, CLI_IO, "cannot send to %s: %s", r->s->bootstrap_text,
                     g_strerror(s.send_error));
  return cli_error(PEER_NAME, CLI_IO, "no answer from %s within %g s", r->s->bootstrap_text,
                   r->s->timeout_s);
}

// Reports why there is no stream: nodes had none, none answered, or it could not begin here.
static int no_stream(const peer_run_state *r) {
  if (r->failed == WEFT_E_ARGUMENT)
    return cli_error(PEER_NAME, CLI_IO, "the stream offered at %s has impossible parameters",
                     r->s->bootstrap_text);
  if (r->failed != WEFT_OK)
    return cli_error(PEER_NAME, CLI_MACHINE, "the stream at %s could not be started: %s",
                     r->s->bootstrap_text, weft_status_text(r->failed));
  if (r->no_stream && r->s->has_source_key)
    return cli_error(PEER_NAME, CLI_KEY,
                     "no node that answered has a stream with that --source-key");
  if (r->no_stream || weft_node_links(r->node) > 0)
    return cli_error(PEER_NAME, CLI_IO, "%s answered, but had no stream within %g s",
                     r->s->bootstrap_text, r->s->timeout_s);
  return no_answer(r);
}

static void look_for_company(peer_run_state *r, gint64 now_us) {
  if (goes_on(r, now_us) || has_ended(r))
    r->alone_us = now_us;
  r->view.healthy = r->s->role != WEFT_NODE_JOINING ||
                    (weft_node_neighbours(r->node) > 0 && !r->view.stands_still) || has_ended(r);
  if (!r->ready && r->view.healthy) {
    weft_notify("READY=1");
    r->ready = true;
  }
  if (r->s->role != WEFT_NODE_JOINING || has_ended(r) ||
      now_us - r->alone_us < (gint64)(r->s->timeout_s * 1e6))
    return;
  if (r->sink && weft_engine_done(weft_node_engine(r->node))) // the viewer takes nothing any more
    peer_run_stop(r, CLI_OK);
  else if (r->sink)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_DIFFERS,
                               "the stream was lost after %" G_GUINT64_FORMAT " bytes",
                               weft_sink_bytes(r->sink)));
  else
    peer_run_stop(r, no_stream(r));
}

// Goes over to the new stream of a live source that was restarted, once what there is of the old
// one has been played. Peers may lie: if only they report it, this waits longer and postpones no
// timeout.
static void look_for_successor(peer_run_state *r, gint64 now_us) {
  enum { PLAYED_US = 1000000, SAID_US = 10000000 };
  const gint64 said_us = MIN(SAID_US, (gint64)(r->s->timeout_s * 2e6 / 3));
  if (!r->succeeds || !r->sink || r->stopped || has_ended(r) || weft_node_has_source(r->node) ||
      !weft_sink_has_room(r->sink) || now_us - r->news_us < (r->by_source ? PLAYED_US : said_us))
    return;
  const weft_status status = weft_node_succeed(r->node, now_us);
  r->succeeds = false;
  if (status == WEFT_E_STATE) // peers said so too long ago
    return;
  if (status != WEFT_OK) {
    peer_run_stop(r, cli_error(PEER_NAME, CLI_MACHINE, "%s", weft_status_text(status)));
    return;
  }
  peer_play_succeeded(r);
  r->news_us = now_us;
  r->alone_us = r->by_source ? now_us : r->alone_us;
  r->seen = weft_sink_bytes(r->sink) + weft_sink_taken(r->sink);
  r->source_made = r->source_seen = 0;
  peer_run_wake(r);
}

// Leaves the time for which this process was suspended out of all timeouts, as it could receive
// nothing: a process paused for longer than --timeout would end before it has looked around.
static void leave_out_absence(peer_run_state *r, gint64 now_us) {
  enum { ABSENT_US = 1000000 };
  const gint64 away_us = now_us - r->looked_us;
  r->looked_us = now_us;
  if (away_us < ABSENT_US)
    return;
  r->alone_us += away_us;
  r->news_us += away_us;
  r->behind_us += r->behind_us ? away_us : 0;
  r->ended_us += r->ended_us ? away_us : 0;
}

void peer_end_look(peer_run_state *r, gint64 now_us) {
  leave_out_absence(r, now_us);
  look_for_the_end(r, now_us);
  look_for_successor(r, now_us);
  if (!r->stopped) // otherwise there may be no engine any more
    look_for_company(r, now_us);
}
