// SPDX-License-Identifier: Apache-2.0
// A running `weft peer`: its state, and what its files call in each other.
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
  weft_sink *sink;   // the same, once the stream is known
  weft_http *pages;
  weft_port_map *port; // NULL: not asked for
  peer_view view;
  int code;
  bool stopped;
  bool hurried;                  // stopped, and what is left is not to be waited for
  bool no_stream;                // a node answered that has none we may take
  weft_status failed;            // a node answered with one that could not begin here
  bool ready;                    // systemd was notified
  unsigned farewells;            // repeats so far
  unsigned failures;             // turns of the node that failed
  bool reread_failed;            // what was written can no longer be given to others
  gint64 look_up_us[PEER_WORDS]; // not before that; G_MAXINT64: being looked up
  unsigned displaced;            // sessions ended since another node has our identity
  unsigned other_streams;        // times seen at addresses that the user named
  bool succeeds, by_source;      // the source has another stream now; it says so itself
  gint64 looked_us;              // last call of peer_end_look
  gint64 alone_us;               // since when there has been no peer, or nothing new
  gint64 news_us;                // when there was last something new of the stream
  guint64 seen;                  // the count of what was new, by then
  guint64 source_made;           // live: segments, as far as it said
  guint64 got, source_seen;      // what was complete or written; what the source had made then
  gint64 behind_us;              // since when it has made more that could be written; 0: it has not
  gint64 rate_us;                // live source: when rate_taken bytes had been taken
  guint64 rate_taken;
  guint64 dropped_seen, dropped_told; // datagrams of the input: as of the last look, last warning
  bool rate_told;                     // the user knows that windows are too short for the rate
  gint64 ended_us;                    // when everything was played, or given; 0: not yet
  // Playback in a mode that the engine does not pace: segment i at play_us + i * segment_us.
  bool playing;
  gint64 play_us, due_us;
  uint32_t forgone; // as last logged: sixteenths of the stream; narrow: for want of own link
  bool narrow;
  uint64_t first;        // the byte of the stream at which the output begins (--from)
  uint64_t skip_segment; // after a seek: the first `skip` bytes of this one are not wanted
  size_t skip;
} peer_run_state;

// peer_run.c. Ends the run; the exit code of the first call counts.
void peer_run_stop(peer_run_state *r, int code);
// Has the node take a turn, and with it what may be played now (user: the run).
void peer_run_wake(void *user);

// peer_event.c. For weft_node_options.event (user: the run).
void peer_event(void *user, const weft_node_event *event);
// Returns whether to log the `times`-th occurrence of what may go on for weeks: the first, second,
// fourth, eighth...
bool peer_is_news(unsigned times);
// Prepares the heap for a stream of that mode; to be called before any of it is held.
void peer_keep_heap_small(weft_engine_mode mode);

// peer_play.c, for a peer that joined. Opens the output when the stream is known.
void peer_play_open(peer_run_state *r);
// Prepares the output for the stream that succeeds the one before.
void peer_play_succeeded(peer_run_state *r);
// Continues at this byte of the output (user: the run), whose first one is the stream's `first`.
// Returns false if that is impossible.
bool peer_play_seek(void *user, uint64_t position);
// Writes what may be played now.
void peer_play_pump(peer_run_state *r, gint64 now_us);
// To be called once the run has stopped and its loop has ended: writes what was played, or could be
// by then. Waits for the reader of a pipe, for --linger at most; returns how many bytes it did not
// take. WEFT_E_IO: weft_sink_error says why.
weft_status peer_play_rest(peer_run_state *r, uint64_t *left);

// peer_names.c. Called when an address of that word (weft_node_event.host) does not answer: if the
// word is a name, looks it up again on a thread.
void peer_names_look_up(peer_run_state *r, size_t word);

// peer_port.c. Starts --map-port if it is on. Returns -1 to go on, else the exit code.
int peer_port_open(peer_run_state *r);

// peer_end.c. Stops the run when everything is done, or all peers are gone. To be called several
// times a second.
void peer_end_look(peer_run_state *r, gint64 now_us);

#endif
