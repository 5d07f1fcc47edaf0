// SPDX-License-Identifier: Apache-2.0
// `weft peer`: handles the events of the node: loads segments for it, and logs what happened.
#include <malloc.h>

#include "cli/peer_run.h"

// Gives large blocks pages of their own. A stream may play for weeks, and its segments leave holes
// in glibc's heap into which later ones do not fit: a source held up to twice its window for
// minutes. Not for a file to fetch, whose rate would drop by an eighth.
void peer_keep_heap_small(weft_engine_mode mode) {
  enum { LARGE = 32768 };
  if (mode != WEFT_MODE_BULK)
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
}

bool peer_is_news(unsigned times) { return (times & (times - 1)) == 0; }

// Gives the engine a segment back that was written to the output, as other peers need it. If the
// output has changed since, they get it from elsewhere.
static void reread(peer_run_state *r, uint64_t segment) {
  const weft_stream *stream = weft_node_stream(r->node);
  const uint64_t each = (uint64_t)stream->blocks * stream->block_bytes, at = segment * each;
  const size_t bytes = (size_t)MIN(each, weft_sink_bytes(r->sink) - at); // all was written before
  weft_status status = weft_sink_reread(r->sink, at, bytes);
  const uint8_t *data = status == WEFT_OK ? weft_sink_room(r->sink) : NULL;
  const weft_status loaded =
      weft_engine_load(weft_node_engine(r->node), segment, data, bytes, g_get_monotonic_time());
  status = status == WEFT_OK ? loaded : status;
  if (status != WEFT_OK && !r->reread_failed) {
    peer_log(PEER_WARNING, "reread", "segment=%" G_GUINT64_FORMAT " status=%s", segment,
             weft_status_name(status));
    r->reread_failed = true;
  }
}

static void load(peer_run_state *r, uint64_t segment) {
  if (r->stopped)
    return; // an earlier event stopped the run
  if (r->s->role == WEFT_NODE_JOINING) {
    reread(r, segment);
    return;
  }
  const weft_status status =
      weft_feed_load(r->feed, weft_node_engine(r->node), segment, g_get_monotonic_time());
  if (status == WEFT_E_IO)
    peer_run_stop(r, cli_error(PEER_NAME, CLI_IO, "%s", weft_feed_error(r->feed)));
  else if (status != WEFT_OK)
    peer_log(PEER_WARNING, "load", "segment=%" G_GUINT64_FORMAT " status=%s", segment,
             weft_status_name(status));
}

static void tell_unreachable(const weft_node_event *event, const char *address,
                             const char *reason) {
  // At the end of a live stream all leave, while viewers still play the rest.
  const bool news = peer_is_news(event->failures) && !event->ended;
  peer_log(news ? PEER_WARNING : PEER_DEBUG, "unreachable", "address=%s reason=%s calls=%u",
           address, reason, event->failures);
}

static void tell_lost(peer_run_state *r, const weft_node_event *event, const char *address,
                      const char *reason) {
  peer_log(PEER_DEBUG, "neighbour-lost", "address=%s reason=%s", address, reason);
  r->no_stream = r->no_stream || (!r->sink && event->reason == WEFT_SESSION_OTHER_IDENTITY);
  if (event->reason != WEFT_SESSION_ELSEWHERE)
    return;
  r->displaced++;
  peer_log(peer_is_news(r->displaced) ? PEER_WARNING : PEER_DEBUG, "identity-used-elsewhere",
           "told_by=%s times=%u advice=give-each-node-a---key-file-of-its-own", address,
           r->displaced);
}

static void tell_another_stream(peer_run_state *r, const char *address) {
  r->other_streams++;
  peer_log(peer_is_news(r->other_streams) ? PEER_WARNING : PEER_DEBUG, "another-stream",
           "address=%s times=%u advice=restart-to-join-that-one", address, r->other_streams);
}

static void tell_successor(peer_run_state *r, const weft_node_event *event, const char *address) {
  peer_log(r->succeeds && r->by_source == event->by_source ? PEER_DEBUG : PEER_WARNING,
           "source-restarted", "address=%s told_by=%s", address,
           event->by_source ? "source" : "peer");
  r->succeeds = true;
  r->by_source = event->by_source;
}

void peer_event(void *user, const weft_node_event *event) {
  static const char *const reasons[] = {"no-answer", "other-identity", "silent",    "closed",
                                        "replaced",  "expired",        "elsewhere", "ended"};
  peer_run_state *r = user;
  char text[WEFT_ADDRESS_TEXT];
  const char *address = weft_address_text(&event->address, text);
  switch (event->kind) {
  case WEFT_NODE_STREAM:
    peer_keep_heap_small(weft_node_stream(r->node)->mode);
    peer_play_open(r);
    break;
  case WEFT_NODE_STREAM_FAILED:
    peer_log(PEER_WARNING, "stream-failed", "address=%s status=%s", address,
             weft_status_name(event->status));
    if (r->failed == WEFT_OK || r->failed == WEFT_E_ARGUMENT)
      r->failed = event->status; // a failure here tells more than an invalid offer
    break;
  case WEFT_NODE_NEIGHBOUR:
    peer_log(PEER_DEBUG, "neighbour", "address=%s", address);
    break;
  case WEFT_NODE_MOVED:
    peer_log(PEER_DEBUG, "neighbour-moved", "address=%s", address);
    break;
  case WEFT_NODE_NEIGHBOUR_LOST:
    tell_lost(r, event, address, reasons[event->reason]);
    break;
  case WEFT_NODE_BANNED:
    peer_log(PEER_WARNING, "banned", "address=%s", address);
    break;
  case WEFT_NODE_UNREACHABLE:
    tell_unreachable(event, address, reasons[event->reason]);
    peer_names_look_up(r, event->host);
    break;
  case WEFT_NODE_SUCCESSOR:
    tell_successor(r, event, address);
    break;
  case WEFT_NODE_ANOTHER_STREAM:
    tell_another_stream(r, address);
    break;
  case WEFT_NODE_ENGINE:
    if (event->engine.kind == WEFT_EVENT_LOAD)
      load(r, event->engine.segment);
    if (event->engine.kind == WEFT_EVENT_PLAY && r->view.play_us == 0)
      r->view.play_us = g_get_monotonic_time();
    peer_log(PEER_DEBUG, "engine", "kind=%d segment=%" G_GUINT64_FORMAT, (int)event->engine.kind,
             event->engine.segment);
    break;
  }
}
