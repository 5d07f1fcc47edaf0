// SPDX-License-Identifier: Apache-2.0
// Misbehaving peers do so in every fidelity and scheme; a viewer that seeks has what is available,
// and the first viewer what the source has.
#include <string.h>

#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

static const char *const fidelities[] = {"bytes", "coefficients", "rank"};

// Polluters are banned, with and without checksums, and no viewer plays what they made.
START_TEST(polluters_pollute_and_are_banned) {
  static const char *const checksums[] = {"250 ms", "0"};
  const char *const settings[] = {
      "peers", "24",       "duration",         "15 s",           "polluters",
      "0.3",   "fidelity", fidelities[_i % 3], "checksum-every", checksums[_i / 3],
      NULL};
  const weft_sim_parameters p = sim_fixture_with("polluted", settings);
  const weft_sim_options options = {.parameters = &p, .threads = 2};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  const weft_engine_statistics *s = &r.totals.peers;
  const uint64_t found = p.checksum_us ? s->received_polluted : s->hash_failures;
  if (found == 0 || s->banned == 0 || r.totals.wrong_bytes > 0)
    ck_abort_msg("%s, checksums every %s: %llu packets or segments found out, %llu banned, %llu "
                 "bytes wrong (WEFT_TEST_SEED=%#llx)",
                 settings[7], settings[9], (unsigned long long)found, (unsigned long long)s->banned,
                 (unsigned long long)r.totals.wrong_bytes, (unsigned long long)test_seed());
  weft_sim_swarm_free(swarm);
}
END_TEST

enum { VIEWERS = 24 };

static void note_sent(void *user, uint32_t peer, size_t degree, int64_t done_us,
                      const weft_engine_statistics *statistics) {
  uint64_t *sent = user;
  (void)degree, (void)done_us;
  sent[peer] = statistics->sent_packets;
}

// Free riders send no coded packets, pushed or requested. The uplinks of the others still suffice:
// of 60 runs the worst had 0.974 in time with push, 0.971 with pull, 0.910 with rarest.
START_TEST(free_riders_send_nothing) {
  static const char *const schemes[] = {"push", "pull", "rarest"};
  const char *const fidelity = fidelities[_i % 3], *const scheme = schemes[_i / 3];
  const char *const settings[] = {
      "peers",   "24",      "duration", "15 s",      "arrival", "together", "free-riders",
      "0.4",     "scheme",  scheme,     "departure", "stay",    "fidelity", fidelity,
      "classes", "cable:1", "isps",     "1",         "sampled", "0",        NULL};
  const weft_sim_parameters p = sim_fixture_with("flash-crowd", settings);
  uint64_t by_peer[1 + VIEWERS] = {0}, riders = 0, sent[2] = {0};
  const weft_sim_options options = {
      .parameters = &p, .threads = 2, .hooks = {.user = by_peer, .ended = note_sent}};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  for (size_t i = 0; i < r.viewer_count; i++) {
    riders += r.viewers[i].free_rider;
    sent[r.viewers[i].free_rider] += by_peer[r.viewers[i].peer];
  }
  const double in_time = (double)r.totals.peers.in_time / (double)r.totals.peers.due;
  if (riders == 0 || sent[1] > riders || sent[0] == 0 || in_time < 0.75)
    ck_abort_msg("%s, %s: %llu riders sent %llu packets, the others %llu; %g in time "
                 "(WEFT_TEST_SEED=%#llx)",
                 scheme, fidelity, (unsigned long long)riders, (unsigned long long)sent[1],
                 (unsigned long long)sent[0], in_time, (unsigned long long)test_seed());
  weft_sim_swarm_free(swarm);
}
END_TEST

// A seek abandons the buffer, so no viewer ever has more to play than the window holds.
START_TEST(seeks_leave_the_buffer_behind) {
  enum { WINDOW = 16 };
  const char *const settings[] = {"peers",    "24",     "duration", "60 s",    "seeks-per-hour",
                                  "600",      "window", "16",       "arrival", "together",
                                  "fidelity", "rank",   "sampled",  "25",      NULL};
  const weft_sim_parameters p = sim_fixture_with("vod", settings);
  const weft_sim_options options = {.parameters = &p, .threads = 2};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  size_t some = 0;
  for (size_t i = 0; i < r.sample_count; i++) {
    const weft_sim_sample *s = &r.samples[i];
    some += s->peer && s->ahead > 0;
    if (s->peer && s->ahead > WINDOW)
      ck_abort_msg("peer %u has %llu segments ahead (WEFT_TEST_SEED=%#llx)", s->peer,
                   (unsigned long long)s->ahead, (unsigned long long)test_seed());
  }
  EXPECT(r.totals.peers.segments > (uint64_t)3 * WINDOW * p.peers);
  EXPECT(some > r.sample_count / 4);
  weft_sim_swarm_free(swarm);
}
END_TEST

// Feeds the bytes that are left of a program's input.
static weft_status feed(void *user, uint8_t *out, size_t room, size_t *bytes) {
  uint64_t *left = user;
  *bytes = *left < room ? (size_t)*left : room;
  *left -= *bytes;
  memset(out, 7, *bytes);
  return WEFT_OK;
}

// A bulk source that has read everything before the first viewer comes keeps what it has, whether
// or not the last segment is complete, and whether it loads segments on request or is fed in order.
START_TEST(sources_wait_for_the_first_to_come) {
  static const char *const lengths[] = {"40000", "40960", "4096"};
  const char *const settings[] = {
      "mode",           "bulk",     "peers",       "1",    "bulk-bytes", lengths[_i / 2],
      "segment-blocks", "4",        "block-bytes", "1024", "classes",    "plain:1",
      "arrival",        "together", "sampled",     "0",    NULL};
  const weft_sim_parameters p = sim_fixture_with(NULL, settings);
  uint64_t left = p.bulk_bytes;
  weft_sim_options options = {.parameters = &p, .threads = 1};
  if (_i % 2)
    options.hooks = (weft_sim_hooks){.user = &left, .feed = feed};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  EXPECT(r.viewer_count == 1 && r.viewers[0].done);
  EXPECT(r.totals.delivered_bytes == p.bulk_bytes && r.totals.wrong_bytes == 0);
  weft_sim_swarm_free(swarm);
}
END_TEST

// A failing viewer sends no goodbye, however polite others are: its neighbours notice only when
// their patience ends.
START_TEST(who_fails_says_no_goodbye) {
  static const char *const departures[] = {"stay", "exponential"};
  for (int leaving = 0; leaving < 2; leaving++) {
    const char *const settings[] = {
        "peers",      "40",        "arrival",           "together",  "duration",
        "15 s",       "departure", departures[leaving], "stay-mean", "10 s",
        "failure-at", "5 s",       "failure-share",     "0.5",       "fidelity",
        "rank",       NULL};
    weft_sim_parameters p = sim_fixture_with(NULL, settings);
    uint8_t hashes[2][WEFT_SIM_HASH_BYTES];
    for (int polite = 0; polite < 2; polite++) {
      p.polite = polite;
      const weft_sim_options options = {.parameters = &p, .threads = 2};
      weft_sim_result r;
      weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
      memcpy(hashes[polite], r.hash, sizeof r.hash);
      size_t left = 0;
      for (size_t i = 0; i < r.viewer_count; i++)
        left += r.viewers[i].left;
      EXPECT(left >= 5);
      weft_sim_swarm_free(swarm);
    }
    EXPECT((memcmp(hashes[0], hashes[1], sizeof *hashes) == 0) == !leaving);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("conduct");
  TCase *t = tcase_create("conduct");
  tcase_add_loop_test(t, polluters_pollute_and_are_banned, 0, 6);
  tcase_add_loop_test(t, free_riders_send_nothing, 0, 7); // blocks are always bytes
  tcase_add_loop_test(t, sources_wait_for_the_first_to_come, 0, 6);
  tcase_add_test(t, seeks_leave_the_buffer_behind);
  tcase_add_test(t, who_fails_says_no_goodbye);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
