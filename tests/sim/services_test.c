// SPDX-License-Identifier: Apache-2.0
// The scenarios without a swarm: a streaming server in virtual time, and a store compared with
// probability theory.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/services/services.h"
#include "tests/sim/fixture.h"
#include "tests/support/test_main.h"

static int64_t clock_us(void *user) {
  struct timespec now;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static double figure(const weft_sim_service *s, const char *name) {
  for (size_t i = 0; i < s->own.count; i++)
    if (strcmp(s->own.items[i].name, name) == 0)
      return s->own.items[i].value;
  ck_abort_msg("no figure %s", name);
  return 0;
}

static weft_sim_service serve(const weft_sim_parameters *p, const char *backend) {
  const weft_sim_service_options options = {
      .parameters = p, .backend = backend, .clock_us = clock_us};
  weft_sim_service out;
  EXPECT(weft_sim_serve(&options, &out) == WEFT_OK);
  EXPECT(out.result.totals.wrong_bytes == 0);
  return out;
}

static weft_sim_service keep(const weft_sim_parameters *p, const char *backend) {
  const weft_sim_service_options options = {
      .parameters = p, .backend = backend, .clock_us = clock_us};
  weft_sim_service out;
  EXPECT(weft_sim_keep(&options, &out) == WEFT_OK);
  EXPECT(out.result.totals.wrong_bytes == 0);
  return out;
}

static bool same(const weft_sim_service *a, const weft_sim_service *b) {
  return memcmp(a->result.hash, b->result.hash, sizeof a->result.hash) == 0;
}

// A server with enough capacity serves every client in time, with the same result whichever row
// codes.
START_TEST(a_server_serves_everybody) {
  const char *const settings[] = {
      "peers", "10",          "duration", "12 s", "coding-rate", "20M", "segment-blocks",
      "16",    "block-bytes", "512",      "rate", "64k",         "lag", "3 s",
      "loss",  "0.02",        NULL};
  weft_sim_parameters p = sim_fixture_with("streaming-server", settings);
  weft_sim_service a = serve(&p, NULL), b = serve(&p, "scalar");
  EXPECT(same(&a, &b)); // whichever row codes
  const weft_sim_totals *t = &a.result.totals;
  EXPECT(t->viewers == 10 && t->peers.due > 50 && t->peers.in_time == t->peers.due);
  EXPECT(t->delivered_bytes >= 50 * 16 * 512);
  EXPECT(a.result.memory_bytes > 16 * 512 && a.result.memory_bytes < 64 << 20);
  // The lane was busy with what it coded, at that rate.
  EXPECT(fabs(figure(&a, "coding_load") - (double)t->source.sent_payload_bytes / 20e6 / 12) < 1e-3);
  EXPECT(figure(&a, "requests_again") > 0);
  p.seed++;
  weft_sim_service c = serve(&p, NULL);
  EXPECT(!same(&a, &c));
  weft_sim_service_clear(&a);
  weft_sim_service_clear(&b);
  weft_sim_service_clear(&c);
}
END_TEST

// Runs ten streams of 64 kbit/s, in segments of 16 blocks of 512 bytes.
static weft_sim_service serve_ten(const char *coding_rate, const char *duration, const char *lag) {
  const char *const settings[] = {"peers",       "10",        "duration",       duration,
                                  "coding-rate", coding_rate, "segment-blocks", "16",
                                  "block-bytes", "512",       "rate",           "64k",
                                  "lag",         lag,         "ask-packets",    "4",
                                  NULL};
  const weft_sim_parameters p = sim_fixture_with("streaming-server", settings);
  return serve(&p, NULL);
}

// Clients ask for more than the server can code: some packets are late, and its lane never rests.
START_TEST(a_slow_server_is_late) {
  weft_sim_service s = serve_ten("40k", "16 s", "2 s");
  const weft_sim_totals *t = &s.result.totals;
  EXPECT(t->peers.in_time < t->peers.due);
  EXPECT(figure(&s, "coding_load") > 0.85 && figure(&s, "coding_load") <= 1);
  EXPECT(figure(&s, "packets_per_product") > 4); // requests are gathered
  weft_sim_service_clear(&s);
}
END_TEST

// A server that can code a quarter of what is asked for delivers at most a quarter in time: what is
// given up for the newest segment, or never started, counts as due as well.
START_TEST(an_overloaded_server_owes_what_it_does_not_serve) {
  weft_sim_service s = serve_ten("20k", "60 s", "6 s");
  const weft_sim_totals *t = &s.result.totals;
  const double segment_bytes = 16 * 512, segment_s = segment_bytes * 8 / 64e3;
  // Everything that was available for a lag is due, for each client, plus or minus one at its start
  // and one at the end of the run.
  EXPECT(fabs((double)t->peers.due - 10 * (60 - 6) / segment_s) <= 10 * 2);
  EXPECT((double)t->peers.in_time <= 0.25 * (double)t->peers.due);
  EXPECT((double)t->peers.in_time * segment_bytes <= (double)t->delivered_bytes);
  EXPECT(t->peers.in_time + t->peers.skipped == t->peers.due);
  weft_sim_service_clear(&s);
}
END_TEST

// Products of thousands of packets: their completion time must not depend on how many of them the
// machine has already coded when it is asked.
START_TEST(a_server_with_large_products_repeats) {
  const char *const settings[] = {"peers",       "4000",     "duration",       "4 s",
                                  "coding-rate", "1M",       "segment-blocks", "16",
                                  "block-bytes", "64",       "rate",           "16k",
                                  "lag",         "1 s",      "ask-packets",    "16",
                                  "arrival",     "together", "source-upload",  "10G",
                                  NULL};
  const weft_sim_parameters p = sim_fixture_with("streaming-server", settings);
  weft_sim_service a = serve(&p, NULL), b = serve(&p, "scalar");
  EXPECT(same(&a, &b));
  EXPECT(figure(&a, "packets_per_product") == figure(&b, "packets_per_product"));
  EXPECT(figure(&a, "packets_per_product") > 500);
  weft_sim_service_clear(&a);
  weft_sim_service_clear(&b);
}
END_TEST

// A lane and an uplink that are far behind at the end of the run have worked all the time, no
// longer.
START_TEST(a_run_ends_for_lane_and_uplink) {
  const char *const lanes[] = {"coding-rate", "2k", "source-upload", "1G", NULL};
  const char *const uplinks[] = {"coding-rate", "100M", "source-upload", "64k", NULL};
  const char *const *const settings[] = {lanes, uplinks};
  const char *const figures[] = {"coding_load", "uplink_load"};
  for (size_t i = 0; i < 2; i++) {
    const char *const common[] = {"peers", "20",          "duration",    "16 s", "segment-blocks",
                                  "16",    "block-bytes", "512",         "rate", "64k",
                                  "lag",   "2 s",         "ask-packets", "16",   NULL};
    weft_sim_parameters p = sim_fixture_with("streaming-server", common);
    char why[WEFT_SIM_TEXT];
    for (const char *const *set = settings[i]; *set; set += 2)
      EXPECT(weft_sim_set(&p, set[0], set[1], why));
    weft_sim_service s = serve(&p, NULL);
    EXPECT(figure(&s, figures[i]) > 0.9 && figure(&s, figures[i]) <= 1);
    uint64_t sent = 0;
    double busy_us = 0;
    for (size_t second = 0; second < s.result.second_count; second++) {
      sent += s.seconds[second].source_bytes;
      busy_us += s.served[second].coding_us;
    }
    const weft_engine_statistics *source = &s.result.totals.source;
    EXPECT(sent == source->sent_payload_bytes + source->sent_header_bytes +
                       p.overhead_bytes * source->sent_packets);
    EXPECT(fabs(busy_us - 16e6 * figure(&s, "coding_load")) < 1e3);
    EXPECT(s.result.totals.peers.received_packets <= source->sent_packets);
    weft_sim_service_clear(&s);
  }
}
END_TEST

// An answer counts only if it reaches the client before the run ends, however far behind the uplink
// is.
START_TEST(an_answer_is_there_within_the_run) {
  const char *const settings[] = {
      "peers",         "20",  "duration", "12 s", "coding-rate", "100M", "segment-blocks", "16",
      "block-bytes",   "512", "rate",     "64k",  "lag",         "2 s",  "ask-packets",    "16",
      "source-upload", "64k", "queue",    "60 s", NULL};
  const weft_sim_parameters p = sim_fixture_with("streaming-server", settings);
  weft_sim_service s = serve(&p, NULL);
  EXPECT(s.answers.count > 0 && s.codings.count > s.answers.count);
  EXPECT(s.answers.ms[s.answers.count - 1] <= 12e3 && s.codings.ms[s.codings.count - 1] <= 12e3);
  const double unanswered = figure(&s, "requests_unanswered");
  EXPECT(unanswered > 0 && unanswered <= figure(&s, "requests") - (double)s.answers.count);
  weft_sim_service_clear(&s);
}
END_TEST

// A client that asks for more than the uplink or its own downlink carries waits for `queue`, no
// longer.
START_TEST(a_server_keeps_to_its_queues) {
  const char *const uplinks[] = {"64k", "1G"};
  for (size_t i = 0; i < 2; i++) {
    const char *const settings[] = {
        "peers",     "10",       "duration",       "20 s",     "coding-rate", "100M",
        "queue",     "300 ms",   "rate",           "64k",      "lag",         "4 s",
        "loss",      "0",        "classes",        "plain:1",  "ask-packets", "32",
        "arrival",   "together", "segment-blocks", "32",       "block-bytes", "512",
        "delay-max", "60 ms",    "source-upload",  uplinks[i], NULL};
    weft_sim_parameters p = sim_fixture_with("streaming-server", settings);
    p.classes[0].down_bits_per_s = i ? 100000 : p.classes[0].down_bits_per_s;
    weft_sim_service s = serve(&p, NULL);
    // Two ways, the queue, gathering and coding, and the last packet.
    EXPECT(s.answers.count > 10);
    EXPECT_BELOW(s.answers.ms[s.answers.count - 1], 300 + 2 * 60 + 2 + 100);
    EXPECT(figure(&s, "requests_again") > 0); // for dropped packets
    p.queue_us = 60000000;
    weft_sim_service longer = serve(&p, NULL);
    EXPECT(longer.answers.ms[longer.answers.count - 1] > 600);
    weft_sim_service_clear(&s);
    weft_sim_service_clear(&longer);
  }
}
END_TEST

static double choose(unsigned n, unsigned k) {
  return exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0));
}

// The next read may be further away than times can express.
START_TEST(a_store_that_is_hardly_read_is_hardly_read) {
  const char *const settings[] = {"peers",          "32",    "duration", "30 h",
                                  "reads-per-hour", "1e-12", NULL};
  const weft_sim_parameters p = sim_fixture_with("storage-swarm", settings);
  weft_sim_service s = keep(&p, NULL);
  EXPECT(figure(&s, "reads") == 1); // the first comes half an hour after the start
  weft_sim_service_clear(&s);
}
END_TEST

// If no disks are lost and nothing is repaired, each peer is present with probability a = 3/4.
START_TEST(a_store_reads_as_often_as_chance_allows) {
  const char *const settings[] = {
      "peers",       "400", "duration",     "270 h", "stay-mean",    "3 h", "away-mean",      "1 h",
      "gone-share",  "0",   "repair-after", "270 h", "data-shards",  "4",   "parity-shards",  "4",
      "shard-bytes", "64",  "objects",      "400",   "repair-below", "0",   "reads-per-hour", "400",
      NULL};
  const weft_sim_parameters p = sim_fixture_with("storage-swarm", settings);
  weft_sim_service s = keep(&p, NULL);
  double expected = 0;
  for (unsigned i = 4; i <= 8; i++)
    expected += choose(8, i) * pow(0.75, i) * pow(0.25, 8 - i);
  EXPECT(fabs(figure(&s, "coded_read_availability") - expected) < 0.01);
  EXPECT(fabs(figure(&s, "copied_read_availability") - (1 - 0.25 * 0.25)) < 0.01);
  // A successful read decodes unless all four data shards are there.
  EXPECT(fabs(figure(&s, "coded_reads_decoded") - (1 - pow(0.75, 4) / expected)) < 0.02);
  EXPECT(figure(&s, "coded_lost") == 0 && figure(&s, "coded_repairs") == 0);
  EXPECT(s.result.memory_bytes >= 400 * 2 * 8 * 64 && s.result.memory_bytes < 1 << 20);
  weft_sim_service_clear(&s);
}
END_TEST

START_TEST(a_store_repairs_what_is_gone) {
  const char *const names[] = {"cauchy", "cauchy_good:w=4:packet=8"};
  for (size_t i = 0; i < 2; i++) {
    const char *const settings[] = {
        "peers",      "60",           "duration",    "240 h",   "code",
        names[i],     "shard-bytes",  "320",         "objects", "60",
        "gone-share", "0.2",          "data-shards", "5",       "parity-shards",
        "5",          "repair-below", "0",           NULL};
    weft_sim_parameters p = sim_fixture_with("storage-swarm", settings);
    weft_sim_service a = keep(&p, NULL), b = keep(&p, "scalar");
    EXPECT(same(&a, &b));
    EXPECT(figure(&a, "coded_repaired_parts") > 100 && figure(&a, "copied_repaired_parts") > 20);
    weft_sim_service_clear(&b);
    p.repair_below = 1; // no repairs: shards run out
    b = keep(&p, NULL);
    EXPECT(figure(&b, "coded_lost") > figure(&a, "coded_lost") + 10);
    EXPECT(figure(&b, "copied_lost") > 0 && figure(&b, "coded_repairs") == 0);
    weft_sim_service_clear(&a);
    weft_sim_service_clear(&b);
  }
}
END_TEST

// Nobody announces that a peer is gone: its shards are missed once it has been away for
// `repair-after`, even if a new peer took its place long before.
START_TEST(a_store_learns_by_absence_who_is_gone) {
  const int64_t hour_us = INT64_C(3600) * 1000000;
  const char *const settings[] = {
      "peers",       "60",   "duration",      "90 h",   "stay-mean",    "6 h",
      "away-mean",   "60 s", "code",          "cauchy", "objects",      "60",
      "shard-bytes", "64",   "gone-share",    "0.3",    "repair-after", "100 h",
      "data-shards", "5",    "parity-shards", "5",      "repair-below", "0",
      NULL};
  weft_sim_parameters p = sim_fixture_with("storage-swarm", settings);
  weft_sim_service s = keep(&p, NULL);
  EXPECT(figure(&s, "coded_repairs") == 0 && figure(&s, "copied_repairs") == 0);
  EXPECT(figure(&s, "coded_lost") > 30); // 60 leave every 20 hours
  weft_sim_service_clear(&s);
  p.repair_after_us = 12 * hour_us;
  s = keep(&p, NULL);
  double later = 0; // moved from that hour on; three peers leave in each
  for (size_t h = 0; h < 16; h++)
    if (h < 12)
      EXPECT(s.hours[h].coded_repair_bytes == 0 && s.hours[h].copied_repair_bytes == 0);
    else
      later += (double)s.hours[h].coded_repair_bytes;
  EXPECT(later > 0);
  weft_sim_service_clear(&s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("services");
  TCase *t = tcase_create("services");
  tcase_add_test(t, a_server_serves_everybody);
  tcase_add_test(t, a_slow_server_is_late);
  tcase_add_test(t, an_overloaded_server_owes_what_it_does_not_serve);
  tcase_add_test(t, a_server_with_large_products_repeats);
  tcase_add_test(t, a_run_ends_for_lane_and_uplink);
  tcase_add_test(t, an_answer_is_there_within_the_run);
  tcase_add_test(t, a_server_keeps_to_its_queues);
  tcase_add_test(t, a_store_that_is_hardly_read_is_hardly_read);
  tcase_add_test(t, a_store_reads_as_often_as_chance_allows);
  tcase_add_test(t, a_store_repairs_what_is_gone);
  tcase_add_test(t, a_store_learns_by_absence_who_is_gone);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
