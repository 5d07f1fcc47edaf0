// SPDX-License-Identifier: Apache-2.0
// A swarm of engines for tests: a scripted network, a source that is fed as its mode requires,
// peers that come and go, polluters. Every byte that a peer gives out is compared with the input.
#ifndef WEFT_TESTS_PEER_SWARM_H
#define WEFT_TESTS_PEER_SWARM_H

#include "tests/peer/fixture.h"

enum { SWARM_NODES = 48, SWARM_LINKS = 48 };
enum { SWARM_SEGMENT_US = 100000 }; // live: the time between segments

typedef struct swarm_link { // by the engine's neighbour number
  bool used;
  size_t node, neighbour; // at the other end
  uint64_t bad_segment;   // of its first spoilt packet that was kept, if `bad`
  bool bad;
  int64_t bad_us; // when that segment was complete or given up; -1: not yet
  uint64_t held;  // segments, modulo 64, of which spoilt packets were kept
  bool due;       // one of them is complete
} swarm_link;

// What a node's maps claim to have, whatever it has.
typedef enum swarm_claim { SWARM_CLAIMS_TRUTH, SWARM_CLAIMS_NOTHING } swarm_claim;

// What a node gives when it is asked for a segment that it had: the segment; nothing; or other
// bytes.
typedef enum swarm_reread { SWARM_READS_BACK, SWARM_CANNOT_READ, SWARM_READS_OTHER } swarm_reread;

typedef struct swarm_node {
  weft_engine *engine; // NULL: gone
  weft_rng_chacha chacha;
  weft_origin origin; // to be set before it is connected
  swarm_link links[SWARM_LINKS];
  bool polluter;   // spoils every coded packet that it sends
  bool free_rider; // sends no coded packet
  bool greedy;     // requests everything from all, all the time, and claims to lack it
  swarm_claim claim;
  uint8_t suppliers; // the number that its maps state; 0: the true one
  swarm_reread reread;
  size_t loads;  // LOAD events
  bool wrong;    // gave out a wrong byte
  uint64_t read; // segments given out
  uint64_t next; // segment expected next: reading an earlier one is an error
  size_t plays, skips, stalls, resumes, decoded, lost[5];
  int64_t first_play_us;
  size_t banned, banned_wrongly;
  int64_t ban_delay_us; // from a neighbour's first spoilt packet to its ban, at most
  size_t spared;        // polluters still here when their first spoilt segment was complete
  uint64_t data_sent;   // bytes of coded packets
  uint64_t data_greedy; // of these, to greedy nodes
  int64_t deadline_us, asks_us;
  int64_t asleep_us;              // until then it does nothing, and what arrives waits
  int64_t stood_us;               // for how long its clock stood still
  int64_t unread_us;              // until then nothing that it plays is read
  bool nat;                       // lets in only nodes that it is calling
  int64_t called_us[SWARM_NODES]; // since when; -1: not calling
  size_t calls, calls_back;
} swarm_node;

typedef struct swarm_event swarm_event;

typedef struct swarm {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec_blocks blocks;
  weft_codec codec;
  weft_trust_ed25519 keys, public_keys;
  weft_trust trust, public_trust;
  weft_engine_options options, source_options;
  const uint8_t *input;
  size_t input_bytes, fed;
  int64_t feed_every_us, feed_us; // live; 0: as fast as the source takes it
  size_t feed_burst;              // if not 0: so many segments come at once, in as many times that
  uint64_t salt;                  // of its random numbers, beside the run's seed
  weft_rng_chacha network;
  fixture_fate (*fate)(struct swarm *s, size_t from, size_t to);
  unsigned loss_percent; // for swarm_lossy
  uint8_t kind;          // of the datagram whose fate is asked for
  swarm_node node[SWARM_NODES];
  size_t nodes; // node 0 is the source
  int64_t now_us;
  swarm_event **heap;
  size_t heap_count, heap_room;
  uint64_t sequence, damaged;
  const weft_allocator *allocator; // NULL: the C library's
  bool tolerate_nomem;             // one allocation fails: what it was for is lost or done again
  size_t nomem;
  bool damage; // the network flips bits in one datagram of 16
} swarm;

// Makes a swarm whose options may be changed before swarm_start: n = 16, k = 64, window 16, batch
// 4, trust. The network takes 10 ms and loses nothing.
swarm *swarm_new(const uint8_t *input, size_t bytes, uint64_t salt);
// The same, live: window 48, played 3 s after the source, begun after 1 s.
swarm *swarm_new_live(const uint8_t *input, size_t bytes, uint64_t salt);
void swarm_start(swarm *s, const weft_engine_self *source); // makes the context and node 0
size_t swarm_add(swarm *s, const weft_engine_self *self);   // self may be NULL
void swarm_connect(swarm *s, size_t a, size_t b);
weft_peer_address swarm_address(size_t node); // the address by which engines know it
void swarm_kill(swarm *s, size_t node, bool polite);
void swarm_run(swarm *s, int64_t until_us);
// Runs until the node has given out that many segments, which must happen within the first minute.
void swarm_run_until_read(swarm *s, size_t node, uint64_t segments);
void swarm_free(swarm *s);

// A fate: 15 to 25 ms, loss_percent of the datagrams lost.
fixture_fate swarm_lossy(swarm *s, size_t from, size_t to);

weft_engine_statistics swarm_statistics(const swarm *s, size_t node);
uint64_t swarm_draw(swarm *s, uint64_t bound);

#endif
