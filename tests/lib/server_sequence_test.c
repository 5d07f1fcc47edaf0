// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls on a streaming server, checked against counts: every packet that was
// requested and not cancelled arrives, once, and matches the segment that was pushed, whatever
// lanes there are, in whatever order they work, and though memory fails now and then. Use
// --runs_per_test for new sequences.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/fixture.h"
#include "tests/lib/sequence_model.h"
#include "tests/support/test_main.h"
#include "weft/server.h"

enum {
  SEGMENTS = 6,
  CLIENTS = 4,
  HELD = 40, // packets taken and not yet released
  STEPS = 150,
  LANES_MOST = 3,
  MOST_BLOCKS = 12,
  LONGEST_BLOCK = 300,
  MEASURED_US = 2000, // one product of this duration suffices to measure a lane
  WAIT_MS = 10000
};

// --- memory that fails now and then ---

typedef struct flaky {
  weft_allocator allocator;
  atomic_long live;
  atomic_ulong calls;
  atomic_uint one_of; // one of so many allocations fails; 0: none
} flaky;

static void *flaky_alloc(void *user, size_t bytes, size_t align) {
  flaky *memory = user;
  const unsigned long call = atomic_fetch_add(&memory->calls, 1) + 1;
  const unsigned one_of = atomic_load(&memory->one_of);
  if (one_of && (call * 2654435761u >> 7) % one_of == 0)
    return NULL;
  void *made = NULL;
  if (posix_memalign(&made, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0)
    return NULL;
  atomic_fetch_add(&memory->live, 1);
  return made;
}

static void flaky_free(void *user, void *memory) {
  flaky *from = user;
  atomic_fetch_sub(&from->live, 1);
  free(memory);
}

// --- the server, and the model of it ---

typedef struct served {
  weft_segment_id id;
  uint8_t *data; // (n, k), zeros after the true length
  bool there;    // pushed, and not known to have been removed
  int64_t expires_us;
  uint64_t owed[CLIENTS]; // packets requested that have not arrived, including cancelled ones
} served;

typedef struct scene {
  flaky memory;
  weft_ctx *lanes[LANES_MOST];
  weft_server *server;
  weft_server_options options;
  int64_t now_us;
  atomic_int_fast64_t clock_us, tick_us;
  served segment[SEGMENTS];
  uint64_t asked, withdrawn, came;
  weft_server_packet held[HELD];
  size_t held_count;
} scene;

// A product takes one tick of this clock. The tick decides whether lanes are busy, and makes
// calibration short.
static int64_t clock_us(void *user) {
  scene *s = user;
  return (int64_t)atomic_fetch_add(&s->clock_us, atomic_load(&s->tick_us));
}

static weft_server_stats stats_of(const scene *s) {
  weft_server_stats stats;
  weft_server_get_stats(s->server, &stats);
  return stats;
}

static void scene_new(scene *s, unsigned one_of) {
  static const char *const rows[] = {NULL, "scalar", "logdomain", "loop-word64"};
  static const uint16_t densities[] = {0, 0, 9000, 40000, 65535};
  *s = (scene){.now_us = (int64_t)fixture_below(1000) - 500};
  s->memory.allocator = (weft_allocator){flaky_alloc, flaky_free, &s->memory};
  atomic_store(&s->tick_us, MEASURED_US);
  const size_t lanes = 1 + fixture_below(LANES_MOST);
  for (size_t i = 0; i < lanes; i++) {
    const weft_ctx_options how = {.backend = rows[fixture_below(4)],
                                  .threads = 1 + fixture_below(2),
                                  .allocator = &s->memory.allocator};
    EXPECT_OK(weft_ctx_new(&s->lanes[i], &how));
  }
  s->options = (weft_server_options){.contexts = s->lanes,
                                     .context_count = lanes,
                                     .now_us = clock_us,
                                     .user = s,
                                     .memory_bytes = fixture_below(3) ? 0 : 12000,
                                     .ready_bytes = fixture_below(2) ? 0 : 1 + fixture_below(6000),
                                     .gather_us = (int64_t)fixture_below(3) * 50,
                                     .batch_packets = fixture_below(2) ? 0 : 1 + fixture_below(9),
                                     .pending_packets = fixture_below(2) ? 0 : 60,
                                     .density_q16 = densities[fixture_below(5)],
                                     .fall_over = fixture_below(2) != 0,
                                     .repeatable = lanes == 1 && fixture_below(2)};
  EXPECT_OK(weft_server_new(&s->options, &s->server));
  atomic_store(&s->tick_us, 1 + (int64_t)fixture_below(MEASURED_US));
  s->memory.one_of = one_of;
  for (size_t i = 0; i < SEGMENTS; i++) {
    served *of = &s->segment[i];
    of->id = fixture_id(1 + fixture_below(MOST_BLOCKS), 1 + fixture_below(LONGEST_BLOCK));
    of->id.segment += i;
    of->data = calloc(of->id.blocks, of->id.block_bytes);
    ck_assert_ptr_nonnull(of->data);
  }
}

// Whether the status is explained by failing memory.
static bool for_want_of_memory(const scene *s, weft_status status) {
  return s->memory.one_of > 0 && status == WEFT_E_NOMEM;
}

static bool is_waited_for(const served *of) {
  for (size_t c = 0; c < CLIENTS; c++)
    if (of->owed[c] > 0)
      return true;
  return false;
}

// --- calls ---

// Pushes new bytes under an existing id only if no packets of the old ones are owed.
static void push(scene *s) {
  served *of = &s->segment[fixture_below(SEGMENTS)];
  const size_t capacity = (size_t)of->id.blocks * of->id.block_bytes;
  const size_t bytes = 1 + fixture_below(capacity);
  const bool had = weft_server_has(s->server, of->id.stream, of->id.segment);
  if ((!had || of->expires_us <= s->now_us) && is_waited_for(of))
    return;
  uint8_t *data = fixture_malloc(bytes); // of exactly the true length, for sanitizers
  fixture_fill(data, bytes);
  const int64_t expires_us = s->now_us + 1 + (int64_t)fixture_below(600);
  const weft_status status =
      weft_server_push(s->server, &of->id, data, bytes, s->now_us, expires_us);
  if (status == WEFT_OK) {
    memcpy(of->data, data, bytes);
    memset(of->data + bytes, 0, capacity - bytes);
    of->there = true;
    of->expires_us = expires_us;
  } else {
    EXPECT((status == WEFT_E_STATE && had) || status == WEFT_E_NOMEM);
    EXPECT(status == WEFT_E_STATE || s->memory.one_of > 0 || s->options.memory_bytes > 0);
  }
  free(data);
}

static void request(scene *s) {
  weft_server_request wants[CLIENTS];
  const size_t count = fixture_below(CLIENTS + 1);
  size_t of[CLIENTS], accepted = SIZE_MAX;
  for (size_t i = 0; i < count; i++) {
    of[i] = fixture_below(SEGMENTS);
    const weft_segment_id *id = &s->segment[of[i]].id;
    wants[i] = (weft_server_request){id->stream, id->segment, fixture_below(CLIENTS),
                                     (uint32_t)fixture_below(30)};
  }
  const weft_status status =
      weft_server_request_many(s->server, wants, count, s->now_us, &accepted);
  EXPECT(accepted <= count && (status == WEFT_OK) == (accepted == count));
  for (size_t i = 0; i < accepted; i++) {
    served *segment = &s->segment[of[i]];
    EXPECT(wants[i].packets > 0 && segment->there && segment->expires_us > s->now_us);
    segment->owed[wants[i].client] += wants[i].packets;
    s->asked += wants[i].packets;
  }
  if (status == WEFT_OK)
    return;
  const weft_server_request *refused = &wants[accepted];
  const bool there = weft_server_has(s->server, refused->stream, refused->segment);
  EXPECT((status == WEFT_E_ARGUMENT) == (refused->packets == 0));
  if (status == WEFT_E_FOREIGN)
    EXPECT(!there || s->segment[of[accepted]].expires_us <= s->now_us);
  else if (status == WEFT_E_BUFFER)
    EXPECT(stats_of(s).pending_packets + refused->packets > s->options.pending_packets);
  else
    EXPECT(status == WEFT_E_ARGUMENT || for_want_of_memory(s, status));
}

static void cancel(scene *s) {
  const uint64_t client = fixture_below(CLIENTS + 1); // including one that never requests
  const size_t before = stats_of(s).pending_packets;
  EXPECT_OK(weft_server_cancel(s->server, client));
  const size_t after = stats_of(s).pending_packets;
  EXPECT(after <= before && (client < CLIENTS || after == before));
  s->withdrawn += before - after;
}

static void cancel_segment(scene *s) {
  const uint64_t client = fixture_below(CLIENTS + 1);
  const weft_segment_id *id = &s->segment[fixture_below(SEGMENTS)].id;
  const size_t before = stats_of(s).pending_packets;
  EXPECT_OK(weft_server_cancel_segment(s->server, client, id->stream, id->segment));
  const size_t after = stats_of(s).pending_packets;
  EXPECT(after <= before && (client < CLIENTS || after == before));
  s->withdrawn += before - after;
}

static void drop(scene *s) {
  served *of = &s->segment[fixture_below(SEGMENTS)];
  const bool had = weft_server_has(s->server, of->id.stream, of->id.segment);
  EXPECT_STATUS(weft_server_drop(s->server, of->id.stream, of->id.segment),
                had ? WEFT_OK : WEFT_E_FOREIGN);
  of->expires_us = INT64_MIN;
}

static void let_time_pass(scene *s) {
  const int64_t deadline_us = weft_server_deadline(s->server);
  if (fixture_below(2) && deadline_us != INT64_MAX && deadline_us > s->now_us)
    s->now_us = deadline_us;
  else
    s->now_us += (int64_t)fixture_below(60);
}

static void process(scene *s) {
  const weft_status status = weft_server_process(s->server, s->now_us);
  EXPECT(status == WEFT_OK || for_want_of_memory(s, status));
}

// Checks that a packet is the product of its coefficients and the bytes that were pushed.
static void see(scene *s, const weft_server_packet *got) {
  served *of = NULL;
  for (size_t i = 0; i < SEGMENTS; i++)
    if (s->segment[i].id.segment == got->segment)
      of = &s->segment[i];
  EXPECT(of && got->stream == of->id.stream && got->client < CLIENTS);
  EXPECT(of->owed[got->client] > 0);
  of->owed[got->client]--;
  s->came++;
  if (got->status != WEFT_OK) {
    EXPECT(for_want_of_memory(s, got->status) && !got->datagram && got->bytes == 0);
    return;
  }
  weft_packet packet;
  uint8_t coefficients[MODEL_BLOCKS], payload[LONGEST_BLOCK];
  EXPECT_OK(weft_packet_parse(got->datagram, got->bytes, &packet));
  EXPECT(memcmp(&packet.id, &of->id, sizeof of->id) == 0);
  EXPECT(packet.mode == (s->options.density_q16 ? WEFT_PACKET_SPARSE : WEFT_PACKET_DENSE));
  EXPECT_OK(weft_packet_coefficients(&packet, coefficients));
  model_combine(coefficients, of->data, of->id.blocks, of->id.block_bytes, payload);
  EXPECT(memcmp(packet.payload, payload, of->id.block_bytes) == 0);
}

static void take(scene *s) {
  size_t got = 0;
  weft_server_packet *const to = s->held + s->held_count;
  EXPECT_OK(weft_server_take(s->server, to, fixture_below(HELD - s->held_count + 1), &got));
  for (size_t i = 0; i < got; i++)
    see(s, &to[i]);
  s->held_count += got;
}

// Releases some of the held packets, in any order.
static void release(scene *s) {
  for (size_t left = fixture_below(s->held_count + 1); left > 0; left--) {
    const size_t which = fixture_below(s->held_count);
    const weft_server_packet gone = s->held[which];
    s->held[which] = s->held[--s->held_count];
    weft_server_release(s->server, &gone, 1);
  }
}

static void check_bounds(const scene *s) {
  const weft_server_stats stats = stats_of(s);
  size_t largest = 0;
  for (size_t i = 0; i < SEGMENTS; i++) {
    const size_t bytes = weft_packet_bytes(&s->segment[i].id, WEFT_PACKET_SPARSE);
    largest = bytes > largest ? bytes : largest;
  }
  const size_t ready = s->options.ready_bytes ? s->options.ready_bytes : (size_t)256 << 20;
  const size_t least = 4 * (largest + 31);
  EXPECT(stats.ready_bytes <= (ready > least ? ready : least));
  EXPECT(stats.pending_packets <= s->asked - s->withdrawn - s->came);
  EXPECT(!s->options.pending_packets || stats.pending_packets <= s->options.pending_packets);
  EXPECT(!s->options.memory_bytes || stats.segment_bytes <= s->options.memory_bytes);
}

// Acts as an event loop does: all owed packets arrive without any further request.
static void take_what_is_owed(scene *s) {
  while (s->came < s->asked - s->withdrawn) {
    weft_server_release(s->server, s->held, s->held_count); // held packets can delay others
    s->held_count = 0;
    process(s);
    const int64_t deadline_us = weft_server_deadline(s->server);
    if (deadline_us != INT64_MAX && deadline_us > s->now_us)
      s->now_us = deadline_us;
    struct pollfd fd = {.fd = weft_server_fd(s->server), .events = POLLIN};
    const bool due = deadline_us <= s->now_us;
    EXPECT(poll(&fd, 1, due ? 0 : WAIT_MS) == 1 || due);
    take(s);
  }
  EXPECT(s->came == s->asked - s->withdrawn);
  EXPECT(stats_of(s).pending_packets == 0);
}

static void scene_free(scene *s) {
  weft_server_free(s->server); // while packets are unreleased
  for (size_t i = 0; i < s->options.context_count; i++)
    weft_ctx_free(s->lanes[i]);
  for (size_t i = 0; i < SEGMENTS; i++)
    free(s->segment[i].data);
  EXPECT(atomic_load(&s->memory.live) == 0);
}

static void run(unsigned one_of) {
  static void (*const calls[])(scene *) = {push,    push,           request,       request, request,
                                           cancel,  cancel_segment, let_time_pass, drop,    process,
                                           process, take,           release};
  scene s;
  scene_new(&s, one_of);
  for (size_t step = 0; step < STEPS; step++) {
    calls[fixture_below(sizeof calls / sizeof calls[0])](&s);
    check_bounds(&s);
  }
  if (fixture_below(4)) // otherwise it is freed midway
    take_what_is_owed(&s);
  scene_free(&s);
}

START_TEST(any_sequence) {
  fixture_start(1000 + (uint64_t)_i);
  for (int round = 0; round < 10; round++)
    run(0);
}
END_TEST

START_TEST(any_sequence_while_memory_fails) {
  fixture_start(1050 + (uint64_t)_i);
  for (int round = 0; round < 10; round++)
    run((unsigned)(3 + fixture_below(20)));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("server sequences");
  TCase *tcase = tcase_create("calls");
  tcase_add_loop_test(tcase, any_sequence, 0, 6);
  tcase_add_loop_test(tcase, any_sequence_while_memory_fails, 0, 6);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
