// SPDX-License-Identifier: Apache-2.0
// The caller and a lane do not wait for each other while one of them allocates or frees the memory
// of a segment, which may be large.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/lib/server_cases.h"
#include "tests/support/test_allocator.h"

// Memory of a server whose lane produces nothing until the caller has reached a certain point.
// Allocating or freeing a segment waits until the other of the two has made progress.
typedef struct meeting_memory {
  test_allocator memory;
  weft_allocator allocator;
  weft_ctx *ctx;
  weft_server *server;
  pthread_t caller;
  void *segment; // the first one that was pushed
  bool when_freed;
  atomic_bool armed;
  atomic_bool come;             // the caller is at the point where the lane may go on
  atomic_bool freeing, gone_on; // the lane is freeing; the caller has gone on meanwhile
  atomic_bool met;
} meeting_memory;

static void until(atomic_bool *flag) {
  for (int i = 0; i < 10000 && !atomic_load(flag); i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// The caller waits for packets of the lane, the lane for a call by the caller.
static void meet(meeting_memory *self) {
  if (pthread_equal(pthread_self(), self->caller)) {
    atomic_store(&self->come, true);
    struct pollfd fd = {.fd = weft_server_fd(self->server), .events = POLLIN};
    atomic_store(&self->met, poll(&fd, 1, 10000) == 1);
  } else {
    atomic_store(&self->freeing, true);
    until(&self->gone_on);
    atomic_store(&self->met, atomic_load(&self->gone_on));
  }
}

static void *meeting_alloc(void *user, size_t bytes, size_t align) {
  meeting_memory *self = user;
  const bool armed = atomic_load(&self->armed), segment = bytes == SEGMENT_BYTES;
  if (armed && !pthread_equal(pthread_self(), self->caller))
    until(&self->come);
  else if (armed && segment && !self->when_freed)
    meet(self);
  void *block = self->memory.allocator.alloc(self->memory.allocator.user, bytes, align);
  if (segment && !self->segment)
    self->segment = block;
  return block;
}

static void meeting_free(void *user, void *block) {
  meeting_memory *self = user;
  if (block == self->segment && atomic_load(&self->armed) && self->when_freed)
    meet(self);
  self->memory.allocator.free(self->memory.allocator.user, block);
}

// Pushes segments 0 to `wanted`, and requests packets of the last.
static void begin(meeting_memory *self, uint64_t wanted, void (*change)(weft_server_options *)) {
  static const uint8_t data[SEGMENT_BYTES] = {1};
  self->allocator = (weft_allocator){meeting_alloc, meeting_free, self};
  self->caller = pthread_self();
  test_allocator_init(&self->memory, 0);
  self->ctx = server_context(NULL, &self->allocator);
  self->server = server_on(&self->ctx, 1, change);
  self->segment = NULL; // calibration may have allocated as much
  for (uint64_t i = 0; i <= wanted; i++)
    server_push(self->server, i, data, sizeof data);
  server_request(self->server, wanted, 0, 3);
  atomic_store(&self->armed, true);
}

static void count_made(void *user, const weft_server_packet *packet) {
  *(size_t *)user += packet->status == WEFT_OK;
}

static void end(meeting_memory *self) {
  size_t made = 0;
  server_take_all(self->server, 3, count_made, &made);
  ck_assert_uint_eq(made, 3);
  atomic_store(&self->armed, false);
  weft_server_free(self->server);
  weft_ctx_free(self->ctx);
  ck_assert_int_eq(test_allocator_live(&self->memory), 0);
}

enum { EXPIRED_US = 2000 };

START_TEST(lanes_go_on_while_a_segment_is_pushed) {
  static const uint8_t data[SEGMENT_BYTES] = {1};
  meeting_memory meeting = {.when_freed = false};
  begin(&meeting, 0, NULL);
  ck_assert_int_eq(weft_server_process(meeting.server, 0), WEFT_OK);
  server_push(meeting.server, 1, data, sizeof data);
  ck_assert_msg(atomic_load(&meeting.met), "the lane waited for the push");
  end(&meeting);
}
END_TEST

START_TEST(lanes_go_on_while_a_segment_goes) {
  meeting_memory meeting = {.when_freed = true};
  begin(&meeting, 1, NULL);
  ck_assert_int_eq(weft_server_process(meeting.server, EXPIRED_US), WEFT_OK);
  ck_assert_msg(atomic_load(&meeting.met), "the lane waited for what expired to be freed");
  end(&meeting);
}
END_TEST

START_TEST(the_caller_goes_on_while_a_lane_frees_a_segment) {
  meeting_memory meeting = {.when_freed = true};
  begin(&meeting, 0, NULL);
  ck_assert_int_eq(weft_server_process(meeting.server, EXPIRED_US), WEFT_OK);
  atomic_store(&meeting.come, true); // the lane makes the last packets of the segment
  until(&meeting.freeing);
  weft_server_stats stats;
  weft_server_get_stats(meeting.server, &stats);
  atomic_store(&meeting.gone_on, true);
  ck_assert_uint_eq(stats.segment_bytes, 0);
  end(&meeting);
  ck_assert_msg(atomic_load(&meeting.met), "the caller waited for a lane to free a segment");
}
END_TEST

// A segment that packets are being made of is not evicted, though the new one needs the whole
// budget.
START_TEST(what_is_in_the_making_is_not_evicted) {
  static const uint8_t data[1] = {1};
  const weft_segment_id whole_budget = {7, 1, WEFT_MAX_BLOCKS,
                                        (uint32_t)(1u << 30) / WEFT_MAX_BLOCKS};
  meeting_memory meeting = {.when_freed = false};
  begin(&meeting, 0, NULL);
  ck_assert_int_eq(weft_server_process(meeting.server, 0), WEFT_OK);
  ck_assert_int_eq(weft_server_push(meeting.server, &whole_budget, data, 1, 0, 1000), WEFT_E_NOMEM);
  ck_assert(weft_server_has(meeting.server, 7, 0));
  atomic_store(&meeting.come, true);
  end(&meeting);
}
END_TEST

// A clock by which every product takes long.
static int64_t slow_clock(void *user) {
  return 2500 * (int64_t)atomic_fetch_add((atomic_uint *)user, 1);
}

static void slow_lane(weft_server_options *options) {
  static atomic_uint ticks;
  atomic_store(&ticks, 0);
  options->now_us = slow_clock;
  options->user = &ticks;
}

// Requests that arrive while all lanes are busy wait for a lane, not for a time: a deadline would
// make an event loop poll in vain.
START_TEST(busy_lanes_have_no_deadline) {
  meeting_memory meeting = {.when_freed = false};
  begin(&meeting, 1, slow_lane);
  ck_assert_int_eq(weft_server_process(meeting.server, 0), WEFT_OK);
  server_request(meeting.server, 0, 0, 3);
  ck_assert_int_eq(weft_server_deadline(meeting.server), 1000); // when the segments expire
  ck_assert_int_eq(weft_server_process(meeting.server, 0), WEFT_OK);
  weft_server_stats stats;
  weft_server_get_stats(meeting.server, &stats);
  ck_assert_uint_eq(stats.pending_packets, 3);
  atomic_store(&meeting.come, true);
  size_t made = 0;
  server_take_all(meeting.server, 3, count_made, &made);
  ck_assert_uint_eq(made, 3);
  end(&meeting);
}
END_TEST

void server_add_meeting_tests(TCase *cases) {
  tcase_add_test(cases, lanes_go_on_while_a_segment_is_pushed);
  tcase_add_test(cases, lanes_go_on_while_a_segment_goes);
  tcase_add_test(cases, the_caller_goes_on_while_a_lane_frees_a_segment);
  tcase_add_test(cases, what_is_in_the_making_is_not_evicted);
  tcase_add_test(cases, busy_lanes_have_no_deadline);
}
