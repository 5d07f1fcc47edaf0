// SPDX-License-Identifier: Apache-2.0
#include "tests/peer/swarm.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "peer/engine/messages.h"
#include "tests/peer/swarm_mail.h"
#include "tests/support/test_rng.h"

enum { N = 16, K = SWARM_K, SEGMENT = N * K, ASK_EVERY_US = 5000 };

uint64_t swarm_draw(swarm *s, uint64_t bound) {
  const weft_rng rng = weft_rng_chacha_table(&s->network);
  return weft_rng_below(&rng, bound);
}

// The time by a node's own clock.
static int64_t clock_of(const swarm *s, size_t node) { return s->now_us - s->node[node].stood_us; }

static fixture_fate perfect(swarm *s, size_t from, size_t to) {
  (void)s, (void)from, (void)to;
  return (fixture_fate){.copies = 1, .delay_us = 10000};
}

fixture_fate swarm_lossy(swarm *s, size_t from, size_t to) {
  (void)from, (void)to;
  return (fixture_fate){.copies = swarm_draw(s, 100) >= s->loss_percent,
                        .delay_us = 15000 + (int64_t)swarm_draw(s, 10000)};
}

swarm *swarm_new(const uint8_t *input, size_t bytes, uint64_t salt) {
  swarm *s = calloc(1, sizeof *s);
  s->input = input;
  s->input_bytes = bytes;
  s->fate = perfect;
  s->salt = salt;
  weft_rng_chacha_seed(&s->network, test_seed(), salt);
  uint8_t seed[crypto_sign_SEEDBYTES];
  const weft_rng rng = weft_rng_chacha_table(&s->network);
  rng.fill(rng.user, seed, sizeof seed);
  (void)crypto_sign_seed_keypair(s->keys.public_key, s->keys.secret_key, seed);
  s->keys.is_source = true;
  memcpy(s->public_keys.public_key, s->keys.public_key, sizeof s->keys.public_key);
  s->trust = weft_trust_ed25519_table(&s->keys);
  s->public_trust = weft_trust_ed25519_table(&s->public_keys);
  s->options = (weft_engine_options){.stream = 9,
                                     .blocks = N,
                                     .block_bytes = K,
                                     .window = 16,
                                     .batch = 4,
                                     .neighbours_max = 8,
                                     .codec = &s->codec,
                                     .policy = &weft_policy_push,
                                     .trust = &s->public_trust};
  return s;
}

swarm *swarm_new_live(const uint8_t *input, size_t bytes, uint64_t salt) {
  swarm *s = swarm_new(input, bytes, salt);
  s->options.mode = WEFT_MODE_LIVE;
  s->options.window = 48;
  s->options.lag_us = 3000000;
  s->options.startup_us = 1000000;
  s->feed_every_us = SWARM_SEGMENT_US;
  return s;
}

void swarm_start(swarm *s, const weft_engine_self *source) {
  const weft_ctx_options options = {.allocator = s->allocator, .threads = 1};
  EXPECT_OK(weft_ctx_new(&s->ctx, &options));
  s->rlnc.ctx = s->blocks.ctx = s->ctx;
  if (!s->codec.add)
    s->codec = weft_codec_rlnc_table(&s->rlnc);
  s->source_options = s->options;
  if (s->options.trust)
    s->source_options.trust = &s->trust;
  weft_engine_self self = source ? *source : (weft_engine_self){0};
  self.source = true;
  EXPECT(swarm_add(s, &self) == 0);
}

weft_peer_address swarm_address(size_t node) {
  return (weft_peer_address){.length = 2, .bytes = {(uint8_t)(node >> 8), (uint8_t)node}};
}

size_t swarm_add(swarm *s, const weft_engine_self *given) {
  const size_t index = s->nodes++;
  EXPECT(index < SWARM_NODES);
  swarm_node *n = &s->node[index];
  *n = (swarm_node){.first_play_us = -1};
  for (size_t i = 0; i < SWARM_NODES; i++)
    n->called_us[i] = -1;
  weft_rng_chacha_seed(&n->chacha, test_seed(), (s->salt << 32) + 1000 + index);
  weft_engine_self self = given ? *given : (weft_engine_self){0};
  self.rng = weft_rng_chacha_table(&n->chacha);
  self.address = swarm_address(index);
  if (self.upload_bits_per_s == 0)
    self.upload_bits_per_s = 20000000;
  n->next = self.start == WEFT_START_OLDEST ? 0 : self.start;
  EXPECT_OK(
      weft_engine_new(s->ctx, index == 0 ? &s->source_options : &s->options, &self, &n->engine));
  return index;
}

static void part(swarm *s, size_t index, size_t at) {
  const swarm_link link = s->node[index].links[at];
  s->node[index].links[at].used = false;
  s->node[link.node].links[link.neighbour].used = false;
  (void)weft_engine_remove_neighbour(s->node[index].engine, at);
  (void)weft_engine_remove_neighbour(s->node[link.node].engine, link.neighbour);
  s->node[index].deadline_us = s->node[link.node].deadline_us = 0;
}

static size_t places_of(const swarm *s, size_t index, weft_origin of, bool network) {
  size_t count = 0;
  for (size_t i = 0; i < SWARM_LINKS; i++) {
    const swarm_link *l = &s->node[index].links[i];
    const weft_origin own = l->used ? s->node[l->node].origin : (weft_origin){0};
    count += l->used && (network ? own.network == of.network : own.address == of.address);
  }
  return count;
}

// Makes room as a node does (peer/runtime/node_room.c): a neighbour of an address that has two
// places more than the newcomer's loses its place, or one of such a network whose address has more
// than the newcomer's.
static bool make_room(swarm *s, size_t index, size_t newcomer) {
  const weft_origin own = s->node[newcomer].origin;
  const size_t address = places_of(s, index, own, false), network = places_of(s, index, own, true);
  for (size_t i = SWARM_LINKS; own.address && i-- > 0;) {
    const swarm_link *l = &s->node[index].links[i];
    if (!l->used)
      continue;
    const weft_origin of = s->node[l->node].origin;
    const size_t places = places_of(s, index, of, false);
    if (places >= address + 2 ||
        (places > address && places_of(s, index, of, true) >= network + 2)) {
      part(s, index, i);
      return true;
    }
  }
  return false;
}

static weft_status add_to(swarm *s, size_t index, size_t other,
                          const weft_neighbour_options *options, size_t *at) {
  weft_engine *e = s->node[index].engine;
  const weft_status status = weft_engine_add_neighbour(e, options, clock_of(s, index), at);
  return status == WEFT_E_STATE && make_room(s, index, other)
             ? weft_engine_add_neighbour(e, options, clock_of(s, index), at)
             : status;
}

void swarm_connect(swarm *s, size_t a, size_t b) {
  size_t at_a, at_b;
  const weft_neighbour_options to_b = {.address = swarm_address(b),
                                       .origin = s->node[b].origin,
                                       .is_source = b == 0,
                                       .dialled = true};
  const weft_neighbour_options to_a = {
      .address = swarm_address(a), .origin = s->node[a].origin, .is_source = a == 0};
  if (add_to(s, a, b, &to_b, &at_a) != WEFT_OK)
    return;
  if (add_to(s, b, a, &to_a, &at_b) != WEFT_OK) {
    uint8_t refusal[WEFT_DATAGRAM_MAX]; // it names others
    const size_t bytes = weft_engine_refusal(s->node[b].engine, &s->node[a].origin, refusal);
    s->node[a].links[at_a] = (swarm_link){0};
    EXPECT_OK(weft_engine_input(s->node[a].engine, at_a, refusal, bytes, clock_of(s, a)));
    s->node[a].deadline_us = 0;
    return;
  }
  s->node[a].links[at_a] = (swarm_link){.used = true, .node = b, .neighbour = at_b, .bad_us = -1};
  s->node[b].links[at_b] = (swarm_link){.used = true, .node = a, .neighbour = at_a, .bad_us = -1};
  s->node[a].deadline_us = s->node[b].deadline_us = 0;
}

// --- One node's turn

// Whether the call succeeded; a failure for lack of memory is noted.
static bool done(swarm *s, weft_status status) {
  if (status == WEFT_E_NOMEM && s->tolerate_nomem) {
    s->nomem++;
    return false;
  }
  EXPECT_OK(status);
  return true;
}

// When the segment that is fed now came to the source: segments of a burst come shortly after each
// other.
static int64_t fed_at(const swarm *s) {
  enum { APART_US = 20 };
  return s->feed_us - s->node[0].stood_us +
         (s->feed_burst ? (int64_t)(s->fed / SEGMENT % s->feed_burst) * APART_US : 0);
}

static void feed(swarm *s) {
  weft_engine *source = s->node[0].engine;
  while (s->fed <= s->input_bytes && s->feed_us <= s->now_us && weft_engine_source_ready(source)) {
    const size_t left = s->input_bytes - s->fed, bytes = left < SEGMENT ? left : SEGMENT;
    if (!done(s, bytes ? weft_engine_source_put(source, s->input + s->fed, bytes, fed_at(s),
                                                clock_of(s, 0))
                       : weft_engine_source_end(source, clock_of(s, 0))))
      return;
    s->fed += bytes < SEGMENT ? s->input_bytes + 1 : bytes;
    const bool more = s->feed_burst && s->fed / SEGMENT % s->feed_burst;
    s->feed_us += more ? 0 : s->feed_every_us * (int64_t)(s->feed_burst ? s->feed_burst : 1);
  }
}

static void read_all(swarm *s, swarm_node *n) {
  uint64_t segment;
  size_t bytes;
  while (weft_engine_readable(n->engine, &segment, &bytes) == WEFT_OK) {
    uint8_t piece[SEGMENT];
    const size_t at = (size_t)segment * SEGMENT;
    EXPECT(bytes <= SEGMENT && at + bytes <= s->input_bytes && segment >= n->next);
    if (!done(s, weft_engine_read(n->engine, 0, bytes, piece)))
      return;
    n->wrong = n->wrong || memcmp(piece, s->input + at, bytes) != 0;
    EXPECT_OK(weft_engine_release(n->engine));
    n->read++;
    n->next = segment + 1;
  }
}

static bool linked(const swarm *s, size_t a, size_t b) {
  for (size_t i = 0; i < SWARM_LINKS; i++)
    if (s->node[a].links[i].used && s->node[a].links[i].node == b)
      return true;
  return false;
}

// A node that calls goes on for five seconds, so one that calls back gets through to it.
enum { CALL_US = 5000000 };

static void dial(swarm *s, size_t index, const weft_event *event) {
  const size_t to = (size_t)event->address.bytes[0] << 8 | event->address.bytes[1];
  swarm_node *n = &s->node[index];
  n->calls++;
  n->calls_back += event->calls_back;
  if (to >= s->nodes || !s->node[to].engine || to == index || linked(s, index, to)) {
    weft_engine_dial_failed(n->engine, &event->address);
    return;
  }
  n->called_us[to] = s->now_us;
  if (!s->node[to].nat || s->node[to].called_us[index] >= 0)
    swarm_connect(s, index, to);
}

static void end_calls(swarm *s, size_t index) {
  swarm_node *n = &s->node[index];
  for (size_t to = 0; to < s->nodes; to++) {
    if (n->called_us[to] < 0 || s->now_us - n->called_us[to] < CALL_US)
      continue;
    const weft_peer_address address = swarm_address(to);
    n->called_us[to] = -1;
    if (!linked(s, index, to))
      weft_engine_dial_failed(n->engine, &address);
  }
}

// From now on, a polluter whose first spoilt packet was of this segment should be banned soon.
static void segment_ended(const swarm *s, swarm_node *n, uint64_t segment) {
  for (size_t i = 0; i < SWARM_LINKS; i++)
    if (n->links[i].used && n->links[i].bad && n->links[i].bad_us < 0 &&
        n->links[i].bad_segment == segment)
      n->links[i].bad_us = s->now_us;
}

static void segment_complete(swarm_node *n, uint64_t segment) {
  for (size_t i = 0; i < SWARM_LINKS; i++)
    n->links[i].due = n->links[i].due || n->links[i].held >> segment % 64 & 1;
}

// Counts spared polluters, once all reports that came with a complete segment are in.
static void count_spared(swarm_node *n) {
  for (size_t i = 0; i < SWARM_LINKS; i++) {
    n->spared += n->links[i].used && n->links[i].due;
    n->links[i].due = false;
  }
}

static void load(swarm *s, swarm_node *n, uint64_t segment) {
  const size_t at = (size_t)segment * SEGMENT, left = s->input_bytes - at;
  const size_t bytes = left < SEGMENT ? left : SEGMENT;
  uint8_t other[SEGMENT];
  EXPECT(at < s->input_bytes);
  n->loads++;
  if (n->reread == SWARM_READS_BACK) {
    (void)done(s, weft_engine_load(n->engine, segment, s->input + at, bytes, s->now_us));
  } else if (n->reread == SWARM_CANNOT_READ) {
    EXPECT_OK(weft_engine_load(n->engine, segment, NULL, 0, s->now_us));
  } else {
    memcpy(other, s->input + at, bytes);
    other[bytes - 1] ^= 1;
    const weft_status status = weft_engine_load(n->engine, segment, other, bytes, s->now_us);
    EXPECT(status == WEFT_E_FOREIGN || status == WEFT_OK); // it had been requested with the first
  }
}

static void take_events(swarm *s, size_t index) {
  swarm_node *n = &s->node[index];
  weft_event event;
  while (weft_engine_event(n->engine, &event)) {
    n->plays += event.kind == WEFT_EVENT_PLAY;
    n->skips += event.kind == WEFT_EVENT_SKIP;
    n->stalls += event.kind == WEFT_EVENT_STALL;
    n->resumes += event.kind == WEFT_EVENT_RESUME;
    n->decoded += event.kind == WEFT_EVENT_DECODED;
    if (event.kind == WEFT_EVENT_DECODED || event.kind == WEFT_EVENT_SKIP)
      segment_ended(s, n, event.segment);
    if (event.kind == WEFT_EVENT_DECODED)
      segment_complete(n, event.segment);
    if (event.kind == WEFT_EVENT_PLAY && n->first_play_us < 0)
      n->first_play_us = s->now_us;
    if (event.kind == WEFT_EVENT_DIAL)
      dial(s, index, &event);
    for (int i = 0; i < 3 && event.kind == WEFT_EVENT_LONELY; i++) { // a tracker's answer
      const weft_peer_address address = swarm_address(swarm_draw(s, s->nodes));
      weft_engine_add_address(n->engine, &address);
    }
    if (event.kind == WEFT_EVENT_LOAD)
      load(s, n, event.segment);
    if (event.kind == WEFT_EVENT_NEIGHBOUR_LOST) {
      n->lost[event.reason]++;
      const swarm_link link = n->links[event.neighbour];
      n->links[event.neighbour].used = false;
      if (event.reason == WEFT_LOST_BANNED) {
        const int64_t delay_us = link.bad_us < 0 ? 0 : s->now_us - link.bad_us;
        n->banned++;
        n->banned_wrongly += !s->node[link.node].polluter;
        n->ban_delay_us = delay_us > n->ban_delay_us ? delay_us : n->ban_delay_us;
      }
      swarm_node *other = &s->node[link.node]; // the session is gone at both ends
      if (link.used && other->engine && other->links[link.neighbour].used &&
          other->links[link.neighbour].node == index) {
        other->links[link.neighbour].used = false;
        (void)weft_engine_remove_neighbour(other->engine, link.neighbour);
        other->deadline_us = 0;
      }
    }
  }
  count_spared(n);
}

static void ask_for_everything(swarm *s, size_t index) {
  swarm_node *n = &s->node[index];
  const bool live = s->options.mode == WEFT_MODE_LIVE;
  const uint64_t made = (live ? s->fed : s->input_bytes) / SEGMENT;
  const uint64_t first = !live ? n->next : made > 16 ? made - 16 : 0;
  uint8_t out[WEFT_DATAGRAM_MAX];
  weft_request asks[16];
  size_t count = 0;
  if (!n->greedy || s->now_us < n->asks_us)
    return;
  n->asks_us = s->now_us + ASK_EVERY_US;
  for (uint64_t k = first; k < made && count < 16; k++)
    asks[count++] = (weft_request){.segment = k, .kind = WEFT_REQUEST_PACKETS, .count = 1024};
  for (size_t i = 0; i < SWARM_LINKS && count; i++)
    if (n->links[i].used)
      swarm_mail_send(s, index, i,
                      &(weft_datagram){.data = out, .bytes = weft_request_write(asks, count, out)});
}

static void turn(swarm *s, size_t index) {
  swarm_node *n = &s->node[index];
  if (n->asleep_us > s->now_us) {
    n->deadline_us = n->asleep_us;
    return;
  }
  end_calls(s, index);
  weft_engine_tick(n->engine, clock_of(s, index));
  if (index == 0)
    feed(s);
  else if (s->now_us >= n->unread_us)
    read_all(s, n);
  take_events(s, index);
  weft_burst burst;
  weft_status status;
  while ((status = weft_engine_output(n->engine, clock_of(s, index), &burst)) == WEFT_OK)
    for (size_t i = 0; i < burst.count; i++)
      swarm_mail_send(s, index, burst.neighbour, &burst.datagrams[i]);
  if (status != WEFT_PENDING)
    (void)done(s, status);
  ask_for_everything(s, index);
  n->deadline_us = weft_engine_deadline(n->engine);
  if (n->deadline_us != WEFT_ENGINE_NEVER)
    n->deadline_us += n->stood_us;
  if (n->greedy && n->asks_us < n->deadline_us)
    n->deadline_us = n->asks_us;
}

void swarm_kill(swarm *s, size_t node, bool polite) {
  swarm_node *n = &s->node[node];
  if (polite) {
    weft_engine_leave(n->engine);
    turn(s, node);
  }
  weft_engine_free(n->engine);
  n->engine = NULL;
}

static int64_t next_time(const swarm *s) {
  int64_t next = s->heap_count ? s->heap[0]->due_us : WEFT_ENGINE_NEVER;
  for (size_t i = 0; i < s->nodes; i++)
    if (s->node[i].engine && s->node[i].deadline_us < next)
      next = s->node[i].deadline_us;
  if (s->node[0].engine && s->feed_every_us && s->fed <= s->input_bytes && s->feed_us < next)
    next = s->feed_us;
  return next <= s->now_us ? s->now_us + 1 : next;
}

// Returns the segment of a coded packet within a session (docs/wire.md).
static uint64_t segment_of(const uint8_t *packet) {
  uint64_t segment = 0;
  for (size_t i = 0; i < 8; i++)
    segment = segment << 8 | packet[4 + i];
  return segment;
}

static void arrive(swarm *s, swarm_event *event) {
  swarm_node *to = &s->node[event->to];
  if (to->asleep_us > s->now_us) {
    event->due_us = to->asleep_us;
    swarm_mail_push(s, event);
    return;
  }
  const swarm_link *link = to->engine ? &to->links[event->neighbour] : NULL;
  if (link && link->used && link->node == event->from) {
    const bool data = event->data[1] <= WEFT_PACKET_SPARSE;
    const bool spoilt = s->node[event->from].polluter && data;
    weft_engine_statistics before = {0}, after = {0};
    if (spoilt)
      before = swarm_statistics(s, event->to);
    const weft_status status = weft_engine_input(to->engine, event->neighbour, event->data,
                                                 event->bytes, clock_of(s, event->to));
    s->nomem += status == WEFT_E_NOMEM && s->tolerate_nomem;
    EXPECT((status < WEFT_E_NOMEM && status != WEFT_E_BUFFER && status != WEFT_E_ARGUMENT) ||
           (status == WEFT_E_NOMEM && s->tolerate_nomem));
    if (spoilt)
      after = swarm_statistics(s, event->to);
    // What was thrown away meanwhile hides whether this packet was dependent.
    const bool kept = spoilt && status == WEFT_OK &&
                      after.received_dependent == before.received_dependent &&
                      after.received_polluted == before.received_polluted;
    if (kept)
      to->links[event->neighbour].held |= UINT64_C(1) << segment_of(event->data) % 64;
    if (kept && !to->links[event->neighbour].bad) { // polluters do not find out each other
      to->links[event->neighbour].bad = true;
      to->links[event->neighbour].bad_segment = segment_of(event->data);
    }
    to->deadline_us = s->now_us;
  }
  free(event);
}

void swarm_run(swarm *s, int64_t until_us) {
  for (size_t i = 0; i < s->nodes; i++)
    if (s->node[i].engine)
      turn(s, i);
  for (int64_t next; (next = next_time(s)) <= until_us;) {
    s->now_us = next;
    while (s->heap_count && s->heap[0]->due_us <= s->now_us)
      arrive(s, swarm_mail_pop(s));
    for (size_t i = 0; i < s->nodes; i++)
      if (s->node[i].engine && (s->node[i].deadline_us <= s->now_us || i == 0))
        turn(s, i);
  }
  s->now_us = until_us;
}

void swarm_run_until_read(swarm *s, size_t node, uint64_t segments) {
  while (s->node[node].read < segments && s->now_us < 60000000)
    swarm_run(s, s->now_us + 5000);
  EXPECT(s->node[node].read >= segments);
}

void swarm_free(swarm *s) {
  while (s->heap_count)
    free(swarm_mail_pop(s));
  free(s->heap);
  for (size_t i = 0; i < s->nodes; i++)
    weft_engine_free(s->node[i].engine);
  weft_ctx_free(s->ctx);
  free(s);
}

weft_engine_statistics swarm_statistics(const swarm *s, size_t node) {
  weft_engine_statistics statistics;
  weft_engine_get_statistics(s->node[node].engine, &statistics);
  return statistics;
}
