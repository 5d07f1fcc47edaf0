// SPDX-License-Identifier: Apache-2.0
// Results over MPI ranks, with a test double of a transport: this is the first of two ranks, and
// the other sends no messages and reports the same at the end. tests/cli/sim_mpi_test.sh has ranks
// that talk to each other.
#include <string.h>

#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

enum { RANKS = 2 };

static weft_status exchange(void *user, const void *const *data, const size_t *bytes,
                            const void **in, size_t *in_bytes) {
  static const uint64_t parcel[16]; // zeros: success, and no letters
  (void)user, (void)data, (void)bytes;
  in[1] = parcel;
  in_bytes[1] = sizeof parcel;
  return WEFT_OK;
}

// user: NULL, or how many sums succeed before all fail.
static weft_status sum(void *user, uint64_t *values, size_t count) {
  size_t *left = user;
  if (left && *left == 0)
    return WEFT_E_IO;
  if (left)
    --*left;
  for (size_t i = 0; i < count; i++)
    values[i] *= RANKS;
  return WEFT_OK;
}

static weft_status most(void *user, int64_t *values, size_t count) {
  (void)user, (void)values, (void)count;
  return WEFT_OK;
}

static weft_status gather(void *user, const void *own, size_t bytes, void *all) {
  (void)user;
  for (size_t r = 0; r < RANKS; r++)
    memcpy((uint8_t *)all + r * bytes, own, bytes);
  return WEFT_OK;
}

typedef struct told {
  int64_t waited_us, waited_max_us;
} told;

static void note(void *user, uint32_t peer, size_t degree, int64_t done_us,
                 const weft_engine_statistics *s) {
  told *t = user;
  (void)degree, (void)done_us;
  if (peer == 0)
    return;
  t->waited_us += s->waited_us;
  t->waited_max_us = s->waited_max_us > t->waited_max_us ? s->waited_max_us : t->waited_max_us;
}

static weft_sim_transport two_ranks(size_t *sums) {
  return (weft_sim_transport){.rank = 0,
                              .ranks = RANKS,
                              .rank_bytes = 1e10,
                              .user = sums,
                              .exchange = exchange,
                              .sum = sum,
                              .most = most,
                              .gather = gather};
}

// Of the ranks' longest waits the longest counts, not the sum.
START_TEST(longest_waits_are_not_added_up) {
  const char *const settings[] = {"source-upload",  "3M",       "peers",     "60",
                                  "duration",       "10 s",     "fidelity",  "rank",
                                  "arrival",        "together", "polluters", "0",
                                  "checksum-every", "250 ms",   NULL};
  const weft_sim_parameters p = sim_fixture_with("polluted", settings);
  weft_sim_transport transport = two_ranks(NULL);
  told t = {0};
  const weft_sim_options options = {.parameters = &p,
                                    .threads = 1,
                                    .transport = &transport,
                                    .hooks = {.user = &t, .ended = note}};
  weft_sim_result r;
  weft_sim_swarm *swarm = sim_fixture_run(&options, &r);
  EXPECT(t.waited_max_us > 0);
  EXPECT(r.totals.peers.waited_us == RANKS * t.waited_us);
  EXPECT(r.totals.peers.waited_max_us == t.waited_max_us);
  EXPECT(!transport.parted);
  weft_sim_swarm_free(swarm);
}
END_TEST

// A sum over the ranks that fails fails the result, and leaks nothing (which a build with
// sanitizers notices).
START_TEST(any_sum_may_fail) {
  const char *const settings[] = {"peers",     "6",        "duration", "5 s",     "lag",
                                  "2 s",       "fidelity", "rank",     "arrival", "together",
                                  "polluters", "0",        NULL};
  const weft_sim_parameters p = sim_fixture_with("polluted", settings);
  bool failed = true;
  size_t tries = 0;
  for (; failed; tries++) {
    size_t sums = SIZE_MAX;
    weft_sim_transport transport = two_ranks(&sums);
    const weft_sim_options options = {.parameters = &p, .threads = 1, .transport = &transport};
    weft_sim_swarm *swarm;
    weft_sim_result r;
    EXPECT(weft_sim_swarm_new(&options, &swarm) == WEFT_OK);
    EXPECT(weft_sim_swarm_run(swarm) == WEFT_OK);
    sums = tries;
    const weft_status status = weft_sim_swarm_result(swarm, &r);
    failed = status != WEFT_OK;
    EXPECT(!failed || (status == WEFT_E_IO && transport.parted));
    weft_sim_swarm_free(swarm);
  }
  EXPECT(tries > 3); // those of the gathered items are among them
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ranks");
  TCase *t = tcase_create("ranks");
  tcase_add_test(t, longest_waits_are_not_added_up);
  tcase_add_test(t, any_sum_may_fail);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
