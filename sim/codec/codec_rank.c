// SPDX-License-Identifier: Apache-2.0
// The statistical codec. Let A send to B, with ranks a and b. A packet from A is a random vector of
// A's subspace. m = a - dim(A intersect B) of its directions are new to B, and it is dependent with
// probability 256^-m. The dimension that A and B share is at least
//   - the number of innovative packets that went from A to B and from B to A, and
//   - a + b - u, where u packets of the source span everything that A or B can hold.
// The larger of these gives an upper bound of the news m. The lower bound is the news without
// coding: each innovative packet brings the name of one block that the sender has and the receiver
// lacks; the sender hands its names out in turn. The codec takes a value between the two bounds,
// nearer to the upper one the more neighbours there are, because then less of what two of them hold
// came through the same third peers.
#include <string.h>

#include "sim/codec/codecs.h"
#include "sim/rng.h"

enum { WORDS = 4, BITS = 64 * WORDS };
// The position between the bounds, in parts of WHOLE: 0.94 - 2.2 / neighbours. It was fitted to the
// whole swarms that docs/sim/rank.md names, and tested on others.
enum { WHOLE = 64, UPWARD_MOST = 60, UPWARD_LEAST = 16, MISSED = 141 };

typedef struct token {
  uint16_t count, rank;
  uint16_t shared; // packets from this receiver that were innovative at the sender
  bool source, polluted;
  uint32_t first; // source: number of the burst's first packet
  uint64_t left;  // bit i: packet i of the burst has not been lost
  uint64_t support[WORDS];
  uint64_t names[WORDS]; // block names; unused in tokens of the source
  uint32_t turn;         // the name to begin with
  uint32_t from; // the receiver's number for the sender; in the token, as engines may keep it
} token;

typedef struct segment {
  weft_sim_held held; // first
  uint32_t made;      // packets, at the source
  const weft_rng *rng;
  uint64_t support[WORDS]; // the source's packets that this segment is made of
  uint64_t names[WORDS];   // (rank) names of blocks; only for n <= BITS
  uint32_t turn;
  uint8_t from[]; // (neighbours, given_bytes) innovative packets from each
} segment;

// Bytes of a count of innovative packets from one neighbour. One byte suffices for n = 256: the
// count saturates only with the segment's last packet, when it no longer matters.
static size_t given_bytes(const weft_sim_codec *c) { return c->blocks > UINT8_MAX + 1u ? 2 : 1; }

static size_t segment_bytes(const weft_sim_codec *c) {
  return sizeof(segment) + c->neighbours * given_bytes(c);
}

static uint16_t given_by(const weft_sim_codec *c, const segment *s, size_t neighbour) {
  uint16_t wide;
  if (given_bytes(c) == 1)
    return s->from[neighbour];
  memcpy(&wide, &s->from[neighbour * sizeof wide], sizeof wide);
  return wide;
}

static void set_given(const weft_sim_codec *c, segment *s, size_t neighbour, uint16_t count) {
  if (given_bytes(c) == 1)
    s->from[neighbour] = (uint8_t)(count < UINT8_MAX ? count : UINT8_MAX);
  else
    memcpy(&s->from[neighbour * sizeof count], &count, sizeof count);
}

static weft_status open_segment(weft_sim_codec *c, const weft_segment_id *id, const weft_rng *rng,
                                bool source, void **out) {
  segment *s = weft_sim_arena_take(c->arena, segment_bytes(c), sizeof(void *));
  if (!s)
    return WEFT_E_NOMEM;
  memset(s, 0, segment_bytes(c));
  s->held.blocks = (uint16_t)id->blocks;
  s->held.source = source;
  s->held.rank = source ? s->held.blocks : 0;
  s->made = source ? weft_sim_first_packet(c, id) : 0;
  s->rng = rng;
  *out = s;
  return WEFT_OK;
}

static weft_status open_source(void *user, const weft_segment_id *id, const uint8_t *data,
                               size_t bytes, const weft_rng *rng, void **out) {
  (void)data;
  (void)bytes;
  return open_segment(user, id, rng, true, out);
}

static weft_status open_sink(void *user, const weft_segment_id *id, const weft_rng *rng,
                             void **out) {
  return open_segment(user, id, rng, false, out);
}

static void close_segment(void *user, void *opened) {
  weft_sim_codec *c = user;
  if (opened)
    weft_sim_arena_give(c->arena, opened);
}

// How many of the source's packets one bit stands for.
static size_t packets_per_bit(size_t blocks) { return (blocks + BITS - 1) / BITS; }

static void support_of_source(token *t, size_t blocks) {
  const size_t per_bit = packets_per_bit(blocks);
  memset(t->support, 0, sizeof t->support);
  for (uint64_t left = t->left; left; left &= left - 1) {
    const size_t bit = (t->first + (size_t)__builtin_ctzll(left)) / per_bit % BITS;
    t->support[bit / 64] |= UINT64_C(1) << bit % 64;
  }
}

static weft_status make_token(void *user, void *opened, size_t count, void *out, size_t *bytes) {
  weft_sim_codec *c = user;
  segment *s = opened;
  if (s->held.rank == 0)
    return WEFT_PENDING;
  token t = {.count = (uint16_t)count,
             .rank = s->held.rank,
             .source = s->held.source,
             .polluted = s->held.polluted || c->pollutes,
             .first = s->made,
             .left = count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1};
  if (s->held.source) {
    s->made += (uint32_t)count;
    support_of_source(&t, s->held.blocks);
  } else {
    memcpy(t.support, s->support, sizeof t.support);
    memcpy(t.names, s->names, sizeof t.names);
    t.turn = s->turn;
    s->turn = (uint32_t)((s->turn + count) % s->held.blocks);
  }
  memcpy(out, &t, sizeof t);
  *bytes = sizeof t;
  c->made = s;
  return WEFT_OK;
}

// Returns the upper bound of the news: directions of the sender's that the receiver may lack.
static size_t news_at_most(const segment *s, const token *t, size_t given) {
  const size_t lacks = (size_t)(s->held.blocks - s->held.rank);
  if (t->source || t->rank >= s->held.blocks)
    return lacks;
  size_t span = 0;
  for (size_t i = 0; i < WORDS; i++)
    span += (size_t)__builtin_popcountll(s->support[i] | t->support[i]);
  span *= packets_per_bit(s->held.blocks);
  span = span < s->held.blocks ? span : s->held.blocks;
  const size_t sum = (size_t)s->held.rank + t->rank;
  const size_t known = sum > span ? sum - span : 0;
  const size_t exchanged = (size_t)t->shared + given;
  const size_t common = known > exchanged ? known : exchanged;
  const size_t fresh = t->rank > common ? t->rank - common : 0;
  return fresh < lacks ? fresh : lacks;
}

static size_t upward(size_t neighbours) {
  const size_t missed = MISSED / (neighbours ? neighbours : 1);
  return missed + UPWARD_LEAST < UPWARD_MOST ? UPWARD_MOST - missed : UPWARD_LEAST;
}

// Interpolates between the upper bound and the news without coding.
static size_t news(const weft_sim_codec *c, const segment *s, const token *t, size_t given) {
  const size_t most = news_at_most(s, t, given);
  if (t->source || t->rank >= s->held.blocks || s->held.blocks > BITS)
    return most;
  size_t least = 0;
  for (size_t i = 0; i < WORDS; i++)
    least += (size_t)__builtin_popcountll(t->names[i] & ~s->names[i]);
  if (least >= most)
    return most;
  const size_t parts = (most - least) * upward(c->neighbours);
  const bool up = weft_rng_u64(s->rng) >> 58 < parts % WHOLE; // right on average
  return least + parts / WHOLE + up;
}

// Takes the first of the sender's names, from its turn on, that the receiver lacks; failing that,
// one of those that either may have, or of all.
static void take_name(segment *s, token *t) {
  for (unsigned choice = 0; choice < 3; choice++)
    for (size_t i = 0; i <= WORDS; i++) {
      const size_t word = (t->turn / 64 + i) % WORDS;
      uint64_t from = choice == 0   ? t->names[word]
                      : choice == 1 ? t->support[word] | s->support[word]
                                    : UINT64_MAX;
      from &= ~s->names[word];
      if (i == 0)
        from &= UINT64_MAX << t->turn % 64;
      if (from) {
        s->names[word] |= from & -from;
        t->turn = (uint32_t)(64 * word + (size_t)__builtin_ctzll(from) + 1) % BITS;
        return;
      }
    }
}

// Whether a random vector lies in the part that is known already: with probability 256^-fresh.
static bool adds_nothing(const segment *s, size_t fresh) {
  if (fresh == 0)
    return true;
  if (fresh > 6)
    return false; // 2^-56 and less
  return weft_rng_u64(s->rng) >> (64 - 8 * fresh) == 0;
}

static weft_status add_token(void *user, void *opened, size_t count, const void *bytes,
                             size_t length, size_t *innovative) {
  weft_sim_codec *c = user;
  segment *s = opened;
  token t;
  *innovative = 0;
  if (length != sizeof t || s->held.source)
    return WEFT_E_MALFORMED;
  memcpy(&t, bytes, sizeof t);
  uint16_t given = given_by(c, s, t.from);
  size_t fresh = news(c, s, &t, given);
  // Uncoded blocks are never in the span of other blocks.
  if (t.source)
    memcpy(t.names, t.support, sizeof t.names);
  const bool blocks_only = t.source && s->held.rank == given;
  for (size_t i = 0; i < count; i++) {
    const size_t number = t.first + (size_t)__builtin_ctzll(t.left | UINT64_C(1) << 63);
    t.left &= t.left - 1;
    if (!(blocks_only && number < s->held.blocks && fresh) && adds_nothing(s, fresh))
      continue;
    fresh--;
    s->held.rank++;
    given++;
    (*innovative)++;
    if (s->held.blocks <= BITS)
      take_name(s, &t);
    if (s->held.rank == s->held.blocks)
      c->surplus = count - 1 - i;
  }
  set_given(c, s, t.from, given);
  for (size_t i = 0; i < WORDS; i++)
    s->support[i] |= t.support[i];
  s->held.polluted = s->held.polluted || (t.polluted && *innovative > 0);
  return *innovative ? WEFT_OK : WEFT_DEPENDENT;
}

static bool verify_token(void *user, const void *bytes, size_t length) {
  token t;
  (void)user;
  if (length != sizeof t)
    return false;
  memcpy(&t, bytes, sizeof t);
  return !t.polluted;
}

static size_t memory_bytes(void *user, const weft_segment_id *id) {
  (void)id;
  return segment_bytes(user);
}

void weft_sim_rank_address(const weft_sim_codec *codec, void *bytes, size_t to) {
  const segment *s = codec->made;
  token t;
  memcpy(&t, bytes, sizeof t);
  t.shared = given_by(codec, s, to);
  memcpy(bytes, &t, sizeof t);
}

void weft_sim_rank_arrive(void *bytes, size_t from) {
  token t;
  memcpy(&t, bytes, sizeof t);
  t.from = (uint32_t)from;
  memcpy(bytes, &t, sizeof t);
}

void weft_sim_rank_lose(const weft_sim_codec *codec, void *bytes, size_t count, uint64_t lost) {
  token t;
  memcpy(&t, bytes, sizeof t);
  uint64_t left = t.left; // `lost` refers to these in order: some packets may have been lost before
  for (size_t i = 0; i < count; i++, left &= left - 1)
    if (lost >> i & 1)
      t.left &= ~(left & -left);
  t.count = (uint16_t)(count - (size_t)__builtin_popcountll(lost));
  if (t.source)
    support_of_source(&t, codec->blocks);
  memcpy(bytes, &t, sizeof t);
}

weft_codec weft_sim_codec_rank_table(weft_sim_codec *codec) {
  weft_codec table = weft_sim_held_table(codec);
  table.name = "rank";
  table.open_source = open_source;
  table.open_sink = open_sink;
  table.close = close_segment;
  table.memory_bytes = memory_bytes;
  table.token_bytes_max = sizeof(token);
  table.make_token = make_token;
  table.add_token = add_token;
  table.verify_token = verify_token;
  return table;
}
