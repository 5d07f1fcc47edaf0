// SPDX-License-Identifier: Apache-2.0
// The streaming server with lanes on devices and one on the host: all packets decode to the bytes
// pushed, even if a device fails meanwhile.
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/runtime.h"
#include "kernels/device.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"
#include "weft/server.h"

enum { N = 64, K = 1024, SEGMENTS = 12, EXTRA = 8 };
enum { MEMORY_ALLOCATION = 2, ILLEGAL_ADDRESS = 700 }; // the runtime's errors

static int64_t clock_us(void *user) {
  (void)user;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

typedef struct stage {
  weft_ctx *contexts[WEFT_SERVER_MAX_LANES];
  size_t lanes;
  weft_server *server;
  uint8_t *data;
  weft_decoder *decoders[SEGMENTS];
  weft_ctx *reader;
  size_t good, bad;
} stage;

static weft_segment_id id_of(uint64_t segment) {
  return (weft_segment_id){.stream = 9, .segment = segment, .blocks = N, .block_bytes = K};
}

// Sets up lanes: one on every device, and one on the host if `host`.
static void stage_new(stage *s, bool host, bool fall_over) {
  *s = (stage){0};
  if (host)
    s->contexts[s->lanes++] = fixture_ctx(NULL, 2);
  for (size_t i = 0; i < weft_device_count() && s->lanes < WEFT_SERVER_MAX_LANES; i++)
    EXPECT_OK(weft_ctx_new(&s->contexts[s->lanes++],
                           &(weft_ctx_options){.backend = "cuda", .device = i}));
  s->reader = fixture_ctx(NULL, 1);
  const weft_server_options options = {.contexts = s->contexts,
                                       .context_count = s->lanes,
                                       .now_us = clock_us,
                                       .batch_packets = 128,
                                       .fall_over = fall_over};
  EXPECT_OK(weft_server_new(&options, &s->server));
  s->data = fixture_malloc((size_t)SEGMENTS * N * K);
  fixture_fill(s->data, (size_t)SEGMENTS * N * K);
  for (uint64_t i = 0; i < SEGMENTS; i++) {
    const weft_segment_id id = id_of(i);
    EXPECT_OK(weft_server_push(s->server, &id, s->data + i * N * K, N * K, 0, INT64_MAX));
    s->decoders[i] = fixture_decoder(s->reader, &id);
  }
}

static void ask_everything(stage *s) {
  for (uint64_t i = 0; i < SEGMENTS; i++) {
    const weft_server_request want = {9, i, i, N + EXTRA};
    size_t accepted = 0;
    EXPECT_OK(weft_server_request_many(s->server, &want, 1, 0, &accepted));
    EXPECT(accepted == 1);
  }
  EXPECT_OK(weft_server_process(s->server, 0));
}

static void take(stage *s, size_t count) {
  while (count > 0) {
    struct pollfd fd = {.fd = weft_server_fd(s->server), .events = POLLIN};
    EXPECT(poll(&fd, 1, 20000) == 1);
    weft_server_packet packets[64];
    size_t got = 0;
    EXPECT_OK(weft_server_take(s->server, packets, 64, &got));
    for (size_t i = 0; i < got; i++) {
      if (packets[i].status != WEFT_OK) {
        s->bad++;
        continue;
      }
      s->good++;
      const weft_status added = weft_decoder_add_datagram(s->decoders[packets[i].client],
                                                          packets[i].datagram, packets[i].bytes);
      EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
    }
    weft_server_release(s->server, packets, got);
    EXPECT_OK(weft_server_process(s->server, 0));
    EXPECT(got <= count);
    count -= got;
  }
}

static void check_all_decoded(stage *s) {
  uint8_t *out = fixture_malloc(N * K);
  for (size_t i = 0; i < SEGMENTS; i++) {
    EXPECT_OK(weft_decoder_read(s->decoders[i], 0, N * K, out));
    EXPECT(memcmp(out, s->data + i * N * K, N * K) == 0);
  }
  free(out);
}

static void stage_free(stage *s) {
  for (size_t i = 0; i < SEGMENTS; i++)
    weft_decoder_free(s->decoders[i]);
  weft_server_free(s->server);
  for (size_t i = 0; i < s->lanes; i++)
    weft_ctx_free(s->contexts[i]);
  weft_ctx_free(s->reader);
  free(s->data);
}

// All packets decode, with host and device lanes together and with device lanes alone.
START_TEST(lanes_together) {
  if (gpu_skip(_i ? "device_lane_alone" : "host_and_device_lanes"))
    return;
  fixture_start(600);
  stage s;
  stage_new(&s, _i == 0, true);
  ask_everything(&s);
  take(&s, (size_t)SEGMENTS * (N + EXTRA));
  EXPECT(s.bad == 0);
  check_all_decoded(&s);
  weft_server_stats stats;
  weft_server_get_stats(s.server, &stats);
  for (size_t i = 0; i < stats.lanes; i++)
    printf("lane %s: %llu batches, %llu packets\n", stats.lane[i].backend,
           (unsigned long long)stats.lane[i].batches, (unsigned long long)stats.lane[i].packets);
  EXPECT(stats.pending_packets == 0 && stats.ready_bytes == 0);
  if (s.lanes == 1) // every segment has a copy on the device
    EXPECT(stats.segment_bytes == (size_t)2 * SEGMENTS * N * K);
  EXPECT_OK(weft_server_process(s.server, INT64_MAX)); // the segments expire
  weft_server_get_stats(s.server, &stats);
  EXPECT(stats.segments == 0 && stats.segment_bytes == 0);
  stage_free(&s);
}
END_TEST

// The device fails from a certain runtime call on; the host lane codes the rest.
START_TEST(lost_device_falls_over) {
  if (gpu_skip("lost_device_falls_over"))
    return;
  for (size_t skip = 0; skip < 60; skip += 3) {
    fixture_start(610 + skip);
    stage s;
    stage_new(&s, true, true);
    weft_cuda_inject(skip, ILLEGAL_ADDRESS, 1);
    ask_everything(&s);
    take(&s, (size_t)SEGMENTS * (N + EXTRA));
    EXPECT(s.bad == 0);
    check_all_decoded(&s);
    weft_cuda_inject(0, 0, 0);
    stage_free(&s);
  }
}
END_TEST

// Without another lane to take over, each packet carries the status, and none is lost or wrong.
START_TEST(lost_device_reports) {
  if (gpu_skip("lost_device_reports"))
    return;
  for (size_t skip = 0; skip < 60; skip += 5) {
    fixture_start(710 + skip);
    stage s;
    stage_new(&s, false, false);
    weft_cuda_inject(skip, ILLEGAL_ADDRESS, 1);
    ask_everything(&s);
    take(&s, (size_t)SEGMENTS * (N + EXTRA));
    EXPECT(s.bad + s.good == (size_t)SEGMENTS * (N + EXTRA));
    EXPECT(s.bad > 0);
    weft_cuda_inject(0, 0, 0);
    stage_free(&s);
  }
}
END_TEST

// A device that has failed is not used again, as its results could be wrong: after a single error
// all further packets carry a status.
START_TEST(a_failed_device_is_not_asked_again) {
  if (gpu_skip("a_failed_device_is_not_asked_again"))
    return;
  fixture_start(810);
  stage s;
  stage_new(&s, false, false);
  for (size_t lane = 0; lane < s.lanes; lane++) { // one fault for each device
    weft_cuda_inject(0, ILLEGAL_ADDRESS, 0);
    ask_everything(&s);
    take(&s, (size_t)SEGMENTS * (N + EXTRA));
  }
  weft_cuda_inject(0, 0, 0);
  if (s.lanes == 1) // nor for the products that were started together with the failing one
    EXPECT(s.good == 0);
  weft_server_stats stats;
  weft_server_get_stats(s.server, &stats);
  const size_t good = s.good;
  ask_everything(&s);
  take(&s, (size_t)SEGMENTS * (N + EXTRA));
  EXPECT(s.good == good);
  for (size_t lane = 0; lane < stats.lanes; lane++)
    EXPECT(stats.lane[lane].failed);
  stage_free(&s);
}
END_TEST

// Memory that is lacking once, when a flight of several products begins, costs nothing, since the
// products are made one by one; while a product is prepared, it costs that one. Only where the
// error appears when a flight is waited for, all its products are lost. The device is used again.
START_TEST(lack_of_memory_costs_a_product_at_most) {
  enum { ROUNDS = 40, WAITS = 5 };
  if (gpu_skip("lack_of_memory_costs_a_product_at_most"))
    return;
  size_t more = 0;
  for (size_t round = 0; round < ROUNDS; round++) {
    fixture_start(910 + round);
    stage s;
    stage_new(&s, false, false);
    weft_cuda_inject(3 * round, MEMORY_ALLOCATION, 0);
    ask_everything(&s);
    take(&s, (size_t)SEGMENTS * (N + EXTRA));
    more += s.bad > N + EXTRA;
    weft_cuda_inject(0, 0, 0);
    s.bad = 0;
    ask_everything(&s);
    take(&s, (size_t)SEGMENTS * (N + EXTRA));
    EXPECT(s.bad == 0);
    check_all_decoded(&s);
    stage_free(&s);
  }
  EXPECT(more <= WAITS);
}
END_TEST

// A failed test may have left its fault injected.
static void no_faults(void) { weft_cuda_inject(0, 0, 0); }

int main(void) {
  Suite *suite = suite_create("streaming server on devices");
  TCase *cases = tcase_create("lanes");
  tcase_add_checked_fixture(cases, no_faults, no_faults);
  tcase_add_loop_test(cases, lanes_together, 0, 2);
  tcase_add_test(cases, lost_device_falls_over);
  tcase_add_test(cases, lost_device_reports);
  tcase_add_test(cases, lack_of_memory_costs_a_product_at_most);
  tcase_add_test(cases, a_failed_device_is_not_asked_again);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
