// SPDX-License-Identifier: Apache-2.0
// Power fails at any call of encode, scrub, repair and update, on sets in order and on sets that
// are barely readable; and fails again while the next writer recovers, or after a writer that
// continued where another was killed. The old state or the new one is found afterwards, and always
// the new one once a call has reported success.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/store/files.h"
#include "tests/store/power.h"
#include "tests/support/test_main.h"

enum { K = 3, M = 2, LENGTH = 1501, STRIPE = 600, AT = 400, PATCH = 700 };

typedef enum { ENCODE, SCRUB, REPAIR, UPDATE } call;

// Sets before the call.
typedef enum { EMPTY, WHOLE, ROTTEN, LESS, SWAPPED, EDGE, TURNED, CUT, MADE } make;

static const struct {
  call which;
  make from;
} scenes[] = {{ENCODE, EMPTY},  {SCRUB, ROTTEN},  {REPAIR, LESS},  {REPAIR, SWAPPED},
              {REPAIR, EDGE},   {REPAIR, TURNED}, {REPAIR, CUT},   {UPDATE, WHOLE},
              {UPDATE, LESS},   {UPDATE, EDGE},   {UPDATE, CUT},   {SCRUB, EDGE},
              {UPDATE, ROTTEN}, {REPAIR, ROTTEN}, {UPDATE, TURNED}};
enum { SCENES = sizeof scenes / sizeof *scenes };

typedef struct world {
  files f;
  test_rng rng;
  uint8_t patch[PATCH], other[PATCH]; // written by the call; by the one that recovers
  const char *when;                   // for messages
  size_t calls, again;
  size_t failed; // number of failed syncs
} world;

#define CHECK(w, condition, ...)                                                                   \
  do {                                                                                             \
    char text_[256];                                                                               \
    snprintf(text_, sizeof text_, __VA_ARGS__);                                                    \
    ck_assert_msg(condition, "%s; scene %d, power went at call %zu%s %zu: %s", text_, scene,       \
                  (w)->calls, (w)->when, (w)->again, (w)->f.report.error);                         \
  } while (0)
static int scene; // for messages

static void move_shard(const files *f, size_t from, size_t to) {
  char path[400];
  snprintf(path, sizeof path, "%s", files_shard(f, from));
  ck_assert_int_eq(rename(path, files_shard(f, to)), 0);
}

static void prepare(world *w, make from) {
  files *f = &w->f;
  files_wipe(f);
  if (from == EMPTY) {
    ck_assert_int_eq(mkdir(f->folder, 0777), 0);
    return;
  }
  ck_assert_int_eq(files_encode(f, "cauchy", K, M, STRIPE), WEFT_OK);
  if (from == ROTTEN || from == CUT)
    files_flip(files_shard(f, 0), 300, 1);
  if (from == ROTTEN)
    files_flip(files_shard(f, 4), 300 + 232, 1);
  if (from == LESS || from == EDGE || from == TURNED)
    unlink(files_shard(f, 3));
  if (from == EDGE || from == TURNED)
    unlink(files_shard(f, 4));
  if (from == CUT)
    ck_assert_int_eq(truncate(files_shard(f, 2), 600), 0);
  if (from == SWAPPED || from == EDGE) {
    move_shard(f, 0, 9);
    move_shard(f, 1, 0);
    move_shard(f, 9, 1);
  }
  if (from == TURNED) { // 0 is named 1, 1 is named 2, 2 is named 0
    move_shard(f, 2, 9);
    move_shard(f, 1, 2);
    move_shard(f, 0, 1);
    move_shard(f, 9, 0);
  }
}

static weft_status do_call(files *f, call which, const uint8_t *patch) {
  switch (which) {
  case ENCODE:
    return files_encode(f, "cauchy", K, M, STRIPE);
  case SCRUB:
    return files_mend(f, WEFT_STORE_SCRUB);
  case REPAIR:
    return files_mend(f, WEFT_STORE_REPAIR);
  case UPDATE:
    return files_update(f, AT, patch, PATCH);
  }
  abort();
}

// Returns the data that can be read, malloc'd; NULL if there is no set, which the error must say.
static uint8_t *held(world *w) {
  uint8_t *out;
  size_t count = 0;
  const weft_status status = files_read(&w->f, 0, UINT64_MAX, &out, &count);
  if (status != WEFT_OK && strstr(w->f.report.error, "there are no shards"))
    return NULL;
  CHECK(w, status == WEFT_OK && count == LENGTH, "nothing to be read");
  return out;
}

static bool holds(const uint8_t *bytes, const uint8_t *data, const uint8_t *patch) {
  return memcmp(bytes, data, AT) == 0 &&
         memcmp(bytes + AT, patch ? patch : data + AT, PATCH) == 0 &&
         memcmp(bytes + AT + PATCH, data + AT + PATCH, LENGTH - AT - PATCH) == 0;
}

// Whether the new state is found. Fails if it is neither the old nor the new one.
static bool settled(world *w, call which, const uint8_t *before, const uint8_t *patch) {
  uint8_t *out = held(w);
  if (!before && !out)
    return false;
  CHECK(w, out, "the set is gone");
  const uint8_t *data = before ? before : w->f.data;
  const bool new = which != UPDATE || holds(out, data, patch);
  CHECK(w, which == UPDATE ? new || holds(out, data, NULL) : holds(out, data, NULL), "a mixture");
  free(out);
  return new;
}

// Checks that everything is sound after the next writer.
static void recovers(world *w) {
  uint8_t *before = held(w);
  CHECK(w, before || files_encode(&w->f, "cauchy", K, M, STRIPE) == WEFT_OK, "no second encode");
  CHECK(w, files_mend(&w->f, WEFT_STORE_REPAIR) == WEFT_OK, "no repair");
  CHECK(w, files_mend(&w->f, WEFT_STORE_VERIFY) == WEFT_OK, "not whole after repair");
  uint8_t *after = held(w);
  CHECK(w, memcmp(after, before ? before : w->f.data, LENGTH) == 0, "repair changed bytes");
  free(after);
  free(before);
  char command[400];
  snprintf(command, sizeof command, "test $(ls '%s' | wc -l) = %d", w->f.folder, K + M);
  CHECK(w, test_rng_below(&w->rng, 16) || system(command) == 0, "leftovers in the folder");
}

static const char *named(call which) {
  return which == SCRUB ? ", scrub" : which == REPAIR ? ", repair" : ", update";
}

// Power fails while another writer works on what the first failure left.
static void again(world *w) {
  static const call next[] = {SCRUB, REPAIR, UPDATE};
  const call which = next[test_rng_below(&w->rng, 3)];
  uint8_t *before = held(w);
  if (!before)
    return;
  w->when = named(which);
  power_start(w->f.folder);
  const weft_status status = do_call(&w->f, which, w->other);
  const size_t all = power_count();
  w->again = all;
  CHECK(w, status == WEFT_OK || (which == SCRUB && status == WEFT_E_DAMAGED), "no recovery");
  CHECK(w, settled(w, which, before, w->other), "a call that was done is undone");
  for (int i = 0; i < 5; i++) {
    w->again = i ? test_rng_below(&w->rng, all + 1) : all;
    power_cut(w->again, i % 3 ? POWER_SOME : POWER_NONE, 0, &w->rng);
    const bool new = settled(w, which, before, w->other);
    CHECK(w, new || w->again < all, "a call that was done is undone by power that goes");
    recovers(w);
  }
  free(before);
  w->when = "";
  w->again = 0;
}

// Checks one state that a power failure may leave: it is read and mended.
static void look(world *w, call which, const uint8_t *before, bool done) {
  const bool new = settled(w, which, before, w->patch);
  CHECK(w, new || !done, "a call that was done is undone");
  recovers(w);
}

// Sets up a world of one scene; `data_salt` is for the data, `salt` and the scene for patches and
// chance.
static void start(world *w, int index, uint64_t data_salt, uint64_t salt) {
  scene = index;
  *w = (world){.when = ""};
  files_start(&w->f, data_salt, LENGTH);
  w->f.options.threads = 1;
  w->f.options.io = &power_io;
  w->rng = test_rng_new(test_seed(), salt + (uint64_t)index);
  test_rng_fill(&w->rng, w->patch, sizeof w->patch);
  test_rng_fill(&w->rng, w->other, sizeof w->other);
}

START_TEST(power_goes_at_every_call) {
  world w;
  const call which = scenes[_i].which;
  start(&w, _i, 20, 21);
  prepare(&w, scenes[_i].from);
  uint8_t *before = held(&w);
  power_start(w.f.folder);
  const weft_status status = do_call(&w.f, which, w.patch);
  const size_t all = power_count();
  ck_assert_msg(status == WEFT_OK || which == SCRUB, "%s", w.f.report.error);
  ck_assert(all > 5 || which == SCRUB);
  for (w.calls = 0; w.calls <= all; w.calls++) {
    const size_t loose = power_loose(w.calls);
    for (power_luck luck = POWER_NONE; luck <= POWER_SOME; luck++) {
      const bool one = luck == POWER_ONE || luck == POWER_ALL_BUT_ONE;
      const size_t tries = one ? (loose < 3 ? loose : 3) : luck == POWER_SOME ? 4 : 1;
      for (size_t i = 0; i < tries; i++) {
        const size_t which_one = one && loose > 3 ? test_rng_below(&w.rng, loose) : i;
        power_cut(w.calls, luck, which_one, &w.rng);
        look(&w, which, before, w.calls == all);
      }
    }
  }
  free(before);
  power_end();
  files_end(&w.f);
}
END_TEST

// As the record holds one call, the first failure is drawn again for each try.
START_TEST(power_goes_twice) {
  world w;
  const call which = scenes[_i].which;
  start(&w, _i, 22, 50);
  for (int i = 0; i < 25; i++) {
    prepare(&w, scenes[_i].from);
    power_start(w.f.folder);
    (void)do_call(&w.f, which, w.patch);
    w.calls = test_rng_below(&w.rng, power_count() + 1);
    power_cut(w.calls, (power_luck)test_rng_below(&w.rng, POWER_SOME + 1),
              test_rng_below(&w.rng, power_loose(w.calls) + 1), &w.rng);
    again(&w);
  }
  power_end();
  files_end(&w.f);
}
END_TEST

// Checks what the second writer left when power failed after `w->again` calls: after all calls its
// own state, otherwise that or an older one.
static void outlives(world *w, call second, const uint8_t *before, const uint8_t *seen, bool done) {
  uint8_t *out = held(w);
  const uint8_t *other = second == UPDATE ? w->other : NULL;
  if (out) {
    const bool new = holds(out, seen, other);
    CHECK(w, new || !done, "a call that was done is undone");
    CHECK(w, new || holds(out, seen, NULL) || (before && holds(out, before, NULL)), "a mixture");
  } else {
    CHECK(w, !before && !done, "the set is gone");
  }
  free(out);
}

// A process is killed, another one continues with what the system shows of its work, and power
// fails: results that depend on calls that were never synced must not outlive those.
static void kill_and_cut(world *w, call second, const uint8_t *before) {
  uint8_t *seen = held(w);
  if (!seen)
    return;
  w->when = named(second);
  const weft_status status = do_call(&w->f, second, w->other);
  const size_t all = power_count();
  w->again = all;
  CHECK(w, status == WEFT_OK || (second == SCRUB && status == WEFT_E_DAMAGED), "no recovery");
  for (int i = 0; i < 4; i++) {
    w->again = i < 2 ? all : w->calls + test_rng_below(&w->rng, all - w->calls + 1);
    power_cut(w->again, i % 2 ? POWER_SOME : POWER_NONE, 0, &w->rng);
    outlives(w, second, before, seen, w->again == all);
    if (w->again == all && status == WEFT_OK && second != UPDATE)
      CHECK(w, files_mend(&w->f, WEFT_STORE_VERIFY) == WEFT_OK, "what was mended is not");
    recovers(w);
  }
  free(seen);
  w->when = "";
  w->again = 0;
}

// The result of a scene's call that was disturbed at its system call w->calls.
typedef struct disturbed {
  const uint8_t *before;
  weft_status status;
  bool past; // it had ended before that call
} disturbed;

// Disturbs the scene's call at its first system call, at the second, and so on, to the end.
static void disturb_each(world *w, void (*disturb)(size_t at),
                         void (*then)(world *w, const disturbed *d)) {
  bool past = false;
  for (w->calls = 1; !past; w->calls++) {
    prepare(w, scenes[scene].from);
    uint8_t *before = held(w);
    power_start(w->f.folder);
    disturb(w->calls);
    const weft_status status = do_call(&w->f, scenes[scene].which, w->patch);
    past = power_count() < w->calls;
    then(w, &(disturbed){.before = before, .status = status, .past = past});
    free(before);
  }
  power_end();
}

static void after_kill(world *w, const disturbed *d) {
  static const call next[] = {SCRUB, REPAIR, UPDATE};
  power_kill(0);
  if (!d->past)
    kill_and_cut(w, next[w->calls % 3], d->before);
}

START_TEST(power_goes_after_a_kill) {
  world w;
  start(&w, _i, 23, 80);
  disturb_each(&w, power_kill, after_kill);
  files_end(&w.f);
}
END_TEST

static void expect_rotten(world *w, uint64_t chunks) {
  (void)files_mend(&w->f, WEFT_STORE_VERIFY);
  CHECK(w, w->f.report.corrupt_chunks == chunks, "%d corrupt chunks instead of %d",
        (int)w->f.report.corrupt_chunks, (int)chunks);
}

static void after_failed_sync(world *w, const disturbed *d) {
  const call which = scenes[scene].which;
  w->failed += power_sync_failed();
  CHECK(w, power_sync_failed() ? d->status == WEFT_E_IO : d->status == WEFT_OK || which == SCRUB,
        "a sync that failed");
  if (power_sync_failed() && which != UPDATE)
    expect_rotten(w, w->f.report.corrupt_chunks - w->f.report.mended_chunks);
  uint8_t *seen = held(w);
  const call second = w->calls % 2 ? SCRUB : REPAIR;
  const weft_status mended = do_call(&w->f, second, NULL);
  w->again = power_count();
  power_cut(w->again, POWER_NONE, 0, &w->rng);
  outlives(w, second, NULL, seen, true);
  CHECK(w, mended != WEFT_OK || files_mend(&w->f, WEFT_STORE_VERIFY) == WEFT_OK,
        "what was mended is not");
  recovers(w);
  free(seen);
}

// A bad disk loses what a call has written, and the sync fails; the next writer must not trust what
// it reads.
START_TEST(a_sync_fails) {
  const call which = scenes[_i].which;
  if (which == ENCODE)
    return;
  world w;
  start(&w, _i, 24, 110);
  disturb_each(&w, power_fail_sync, after_failed_sync);
  ck_assert_uint_gt(w.failed, which == UPDATE ? 2 * K : K - 1);
  files_end(&w.f);
}
END_TEST

static bool stop(void *user, uint64_t done, uint64_t total) {
  (void)user, (void)done, (void)total;
  return false;
}

// Chunks that a stopped scrub counts as mended are on the disk.
START_TEST(a_scrub_is_stopped) {
  world w;
  start(&w, 1, 25, 140);
  prepare(&w, ROTTEN);
  power_start(w.f.folder);
  w.f.options.keep_on = stop;
  ck_assert_int_eq(files_mend(&w.f, WEFT_STORE_SCRUB), WEFT_E_STOPPED);
  w.f.options.keep_on = NULL;
  ck_assert_uint_eq(w.f.report.mended_chunks, 1); // of two, the one in the first stripe
  power_cut(power_count(), POWER_NONE, 0, &w.rng);
  expect_rotten(&w, 1);
  power_end();
  files_end(&w.f);
}
END_TEST

// A scrub is killed after `calls` calls. In the next scrub, which cannot know what the first wrote,
// the first sync from call `fails` on fails. Returns false if none did.
static bool scrub_after_a_kill(world *w, size_t fails) {
  prepare(w, ROTTEN);
  power_start(w->f.folder);
  power_can_forget();
  power_kill(w->calls);
  (void)files_mend(&w->f, WEFT_STORE_SCRUB);
  power_kill(0);
  power_fail_sync(power_count() + fails);
  const weft_status second = files_mend(&w->f, WEFT_STORE_SCRUB);
  const bool failed = power_sync_failed();
  CHECK(w, !failed || second == WEFT_E_IO, "a sync that failed");
  const weft_status third = files_mend(&w->f, WEFT_STORE_SCRUB);
  w->again = power_count();
  CHECK(w, third == WEFT_OK, "no scrub");
  power_cut(w->again, POWER_NONE, 0, &w->rng);
  CHECK(w, files_mend(&w->f, WEFT_STORE_VERIFY) == WEFT_OK, "what was said to be sound is not");
  return failed;
}

START_TEST(a_sync_fails_after_a_kill) {
  enum { WRITES = 2 }; // by the scrub
  world w;
  size_t failed = 0;
  start(&w, 1, 26, 170);
  for (w.calls = 1; w.calls <= WRITES; w.calls++)
    for (size_t fails = 1; fails <= K + M + WRITES; fails++)
      failed += scrub_after_a_kill(&w, fails);
  ck_assert_uint_ge(failed, WRITES * (K + M - 1));
  power_end();
  files_end(&w.f);
}
END_TEST

int main(void) {
  if (access("/dev/shm", W_OK) == 0) // thousands of small folders
    setenv("TEST_TMPDIR", "/dev/shm", 1);
  Suite *suite = suite_create("power");
  TCase *tests = tcase_create("power");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, power_goes_at_every_call, 0, SCENES);
  tcase_add_loop_test(tests, power_goes_twice, 0, SCENES);
  tcase_add_loop_test(tests, power_goes_after_a_kill, 0, SCENES);
  tcase_add_loop_test(tests, a_sync_fails, 0, SCENES);
  tcase_add_test(tests, a_scrub_is_stopped);
  tcase_add_test(tests, a_sync_fails_after_a_kill);
  suite_add_tcase(suite, tests);
  return test_main(suite);
}
