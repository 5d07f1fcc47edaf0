// SPDX-License-Identifier: Apache-2.0
// A running `weft peer`: its parts, and what its files call of each other.
#ifndef WEFT_CLI_PEER_RUN_H
#define WEFT_CLI_PEER_RUN_H

#include "cli/peer.h"

typedef struct peer_run_state {
  const peer_settings *s;
  GMainLoop *loop;
  weft_ctx *ctx;
  weft_node *node;
  GSource *source;
  weft_feed *feed;
  weft_sink *output; // of a peer that joins
  weft_sink *sink;   // the same, from when the stream is there
  weft_http *pages;
  weft_port_map *port; // NULL: not asked for
  peer_view view;
  int code;
  bool stopped;
  bool no_stream;                // somebody answered who has none that may be taken
  weft_status failed;            // somebody answered who has one, which could not begin here
  bool ready;                    // systemd was told
  unsigned farewells;            // said again
  unsigned failures;             // turns of the node that failed
  bool reread_failed;            // what was written is not given to others any more
  gint64 look_up_us[PEER_WORDS]; // not before; G_MAXINT64: being looked up
  unsigned displaced;            // sessions that ended for others of the same identity
  unsigned other_streams;        // told of at addresses that the user named
  bool succeeds, by_source;      // the source has another stream now, as it says itself
  gint64 looked_us;              // for the end, last
  gint64 alone_us;               // since when there has been nobody, or nothing new
  gint64 news_us;                // when something of the stream was new last
  guint64 seen;                  // of what there was new, by then
  gint64 rate_us;                // live source: since when rate_taken bytes had come
  guint64 rate_taken;
  bool rate_told;  // that windows are too short for it
  gint64 ended_us; // everything is played, or given; 0: not yet
  // Playing at the stream's pace, where the engine does not: segment i at play_us + i * segment_us.
  bool playing;
  gint64 play_us, due_us;
  uint32_t forgone; // as was told: sixteenths of the stream, and whether for want of own link
  bool narrow;
  uint64_t skip_segment; // after a seek: of this segment, its first `skip` bytes are not wanted
  size_t skip;
} peer_run_state;

// peer_run.c: ends the run, the first time with this exit code; looks soon at what may be played
// (user: the run).
void peer_run_stop(peer_run_state *r, int code);
void peer_run_wake(void *user);

// peer_event.c: for weft_node_options.event (user: the run).
void peer_event(void *user, const weft_node_event *event);
// What may go on for weeks is told the first, second, fourth, eighth... time.
bool peer_is_news(unsigned times);
// Before a stream of that kind is held.
void peer_keep_heap_small(weft_engine_mode mode);

// peer_play.c, for a peer that joined: opens the output when the stream is known, and writes what
// may be played now.
void peer_play_open(peer_run_state *r);
// What comes next is of the stream that succeeded the one before.
void peer_play_succeeded(peer_run_state *r);
// Goes on at this byte of the stream (user: the run). False: that cannot be.
bool peer_play_seek(void *user, uint64_t position);
void peer_play_pump(peer_run_state *r, gint64 now_us);

// peer_names.c: nobody answers at one of the addresses of that word (weft_node_event.host), which,
// if it is a name, is looked up again beside the loop.
void peer_names_look_up(peer_run_state *r, size_t word);

// peer_port.c: asks for --map-port, if it is on. -1 to go on, else the exit code.
int peer_port_open(peer_run_state *r);

// peer_end.c: whether everything is over, or everybody is gone. Some times a second.
void peer_end_look(peer_run_state *r, gint64 now_us);

#endif
