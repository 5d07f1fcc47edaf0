// SPDX-License-Identifier: Apache-2.0
// Calls on many decoders in host memory: the result has the same bytes as with one thread,
// whichever thread works on which decoder; a call that fails reports which items it did not do.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"

enum { DECODERS = 16, ITEMS = 40, N_MAX = 64, K_MAX = 1400, M_MAX = 64 };

static const uint8_t first_key[32] = {5};

// Decoders of several shapes and ranks, each with its own key.
typedef struct scene {
  weft_ctx *ctx;
  size_t count;
  weft_decoder *decoders[DECODERS];
} scene;

// Fills a decoder up to `rank`. The same in every scene: packets come from one key.
static void fill(weft_decoder *decoder, weft_ctx *ctx, const weft_segment_id *id, size_t rank) {
  const size_t capacity = (size_t)id->blocks * id->block_bytes;
  uint8_t *data = fixture_malloc(capacity), datagram[WEFT_PACKET_ROOM_BYTES(N_MAX, K_MAX)];
  for (size_t i = 0; i < capacity; i++)
    data[i] = (uint8_t)(i * 31 >> 3);
  const weft_segment_options options = {.id = *id, .data = data, .bytes = capacity};
  weft_segment *segment;
  weft_encoder *encoder;
  EXPECT_OK(weft_segment_new(ctx, &options, NULL, &segment));
  EXPECT_OK(weft_encoder_new(segment, NULL, &encoder));
  EXPECT_OK(weft_encoder_fix_random(encoder, first_key));
  while (weft_decoder_rank(decoder) < rank) {
    size_t bytes;
    EXPECT_OK(weft_encoder_next(encoder, datagram, sizeof datagram, &bytes));
    const weft_status added = weft_decoder_add_datagram(decoder, datagram, bytes);
    EXPECT(added == WEFT_OK || added == WEFT_DEPENDENT);
  }
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  free(data);
}

static scene scene_new(const weft_allocator *allocator, size_t threads, size_t count, size_t n,
                       size_t k, bool alike) {
  scene s = {.count = count};
  weft_ctx *plain = fixture_ctx(NULL, 1);
  EXPECT_OK(weft_ctx_new(&s.ctx, &(weft_ctx_options){.threads = threads, .allocator = allocator}));
  for (size_t i = 0; i < count; i++) {
    const size_t less = alike ? 0 : i % 5;
    const weft_segment_id id = fixture_id(n - less, k - less);
    uint8_t key[32] = {7, (uint8_t)i};
    s.decoders[i] = fixture_decoder(s.ctx, &id);
    // One in five is incomplete.
    fill(s.decoders[i], plain, &id, less == 1 ? id.blocks / 2 : id.blocks);
    EXPECT_OK(weft_decoder_fix_random(s.decoders[i], key));
  }
  weft_ctx_free(plain);
  return s;
}

static void scene_free(scene *s) {
  for (size_t i = 0; i < s->count; i++)
    weft_decoder_free(s->decoders[i]);
  weft_ctx_free(s->ctx);
}

// --- the same as with one thread ---

// The items of a call: item i is for decoder which[i].
typedef struct asked {
  size_t count, which[ITEMS], m[ITEMS], first[ITEMS], blocks[ITEMS];
} asked;

static asked any_items(size_t decoders, size_t n_least) {
  asked a = {.count = 1 + fixture_below(ITEMS)};
  for (size_t i = 0; i < a.count; i++) {
    a.which[i] = fixture_below(decoders);
    a.m[i] = fixture_below(4) == 0 ? fixture_below(2) : fixture_below(M_MAX);
    a.first[i] = fixture_below(n_least);
    a.blocks[i] = fixture_below(n_least - a.first[i] + 1);
  }
  return a;
}

typedef struct results {
  uint8_t vectors[ITEMS][M_MAX * N_MAX], payloads[ITEMS][M_MAX * K_MAX];
  uint8_t blocks[ITEMS][N_MAX * K_MAX];
  weft_status read[ITEMS];
} results;

static weft_status recode(const scene *s, const asked *a, results *r) {
  weft_decoder *decoders[ITEMS];
  weft_batch batches[ITEMS];
  for (size_t i = 0; i < a->count; i++) {
    decoders[i] = s->decoders[a->which[i]];
    batches[i] = (weft_batch){.count = a->m[i],
                              .coefficients = r->vectors[i],
                              .coefficients_stride = N_MAX,
                              .payload = r->payloads[i],
                              .payload_stride = K_MAX};
  }
  return weft_decoders_recode(decoders, batches, a->count, NULL);
}

static weft_status read_blocks(const scene *s, const asked *a, results *r) {
  weft_reading readings[ITEMS];
  for (size_t i = 0; i < a->count; i++)
    readings[i] = (weft_reading){.decoder = s->decoders[a->which[i]],
                                 .first = a->first[i],
                                 .count = a->blocks[i],
                                 .out = r->blocks[i],
                                 .out_stride = K_MAX};
  const weft_status status = weft_decoders_read(readings, a->count, NULL);
  for (size_t i = 0; i < a->count; i++)
    r->read[i] = readings[i].status;
  return status;
}

static results *results_new(void) {
  results *r = fixture_malloc(sizeof *r);
  memset(r, 0xEE, sizeof *r);
  return r;
}

// Several threads give the same bytes as one: with very little to do, with much work but no product
// large enough to be shared, and with large products.
START_TEST(as_with_one_thread) {
  static const size_t n_most[] = {10, N_MAX, N_MAX}, k_most[] = {50, 100, K_MAX};
  fixture_start(180 + (uint64_t)_i);
  const size_t count = 1 + fixture_below(DECODERS);
  const size_t n = n_most[_i % 3] - fixture_below(5), k = k_most[_i % 3] - fixture_below(40);
  scene one = scene_new(NULL, 1, count, n, k, false);
  scene several = scene_new(NULL, 2 + (size_t)_i % 4, count, n, k, false);
  for (int round = 0; round < 3; round++) {
    const asked a = any_items(count, n - 4);
    results *wanted = results_new(), *got = results_new();
    EXPECT_OK(recode(&one, &a, wanted));
    EXPECT_OK(recode(&several, &a, got));
    EXPECT_OK(read_blocks(&one, &a, wanted));
    EXPECT_OK(read_blocks(&several, &a, got));
    EXPECT(memcmp(wanted, got, sizeof *wanted) == 0);
    free(wanted);
    free(got);
  }
  scene_free(&one);
  scene_free(&several);
}
END_TEST

// --- which threads work ---

enum { WAIT_S = 30, LARGE = 4096 };

// An allocator in which the first thread that wants a large block waits for another thread to want
// one.
typedef struct meeting {
  weft_allocator allocator;
  pthread_mutex_t lock;
  pthread_cond_t met;
  bool armed, came, both;
  pthread_t first;
} meeting;

static void meet(meeting *m) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += WAIT_S;
  pthread_mutex_lock(&m->lock);
  if (m->armed && !m->came) {
    m->came = true;
    m->first = pthread_self();
    while (!m->both && pthread_cond_timedwait(&m->met, &m->lock, &until) == 0) {
    }
    m->armed = false; // wait only once
  } else if (m->armed && !pthread_equal(m->first, pthread_self())) {
    m->both = true;
    pthread_cond_broadcast(&m->met);
  }
  pthread_mutex_unlock(&m->lock);
}

static void *meeting_alloc(void *user, size_t bytes, size_t align) {
  if (bytes >= LARGE)
    meet(user);
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void meeting_free(void *user, void *block) {
  (void)user;
  free(block);
}

static void arm(meeting *m) {
  m->armed = true;
  m->came = m->both = false;
}

// Of items that no kernel would share among threads, two threads work on different decoders at
// once, each on its own memory.
START_TEST(threads_take_decoders_of_their_own) {
  enum { N = 64, K = 64 };
  fixture_start(189);
  meeting m = {.allocator = {.alloc = meeting_alloc, .free = meeting_free},
               .lock = PTHREAD_MUTEX_INITIALIZER,
               .met = PTHREAD_COND_INITIALIZER};
  m.allocator.user = &m;
  scene s = scene_new(&m.allocator, 2, DECODERS, N, K, true);
  asked a = {.count = DECODERS};
  for (size_t i = 0; i < DECODERS; i++) {
    a.which[i] = i;
    a.m[i] = M_MAX;
    a.blocks[i] = N;
  }
  _Static_assert((int)M_MAX * N >= LARGE && N * N >= LARGE, "weights and matrices are large");
  results *r = results_new();
  arm(&m);
  EXPECT_OK(_i == 0 ? recode(&s, &a, r) : read_blocks(&s, &a, r));
  EXPECT(m.both);
  free(r);
  scene_free(&s);
}
END_TEST

// --- without memory ---

// Each allocation of the two calls fails once: the statuses report it, and blocks that were read
// are correct. Called again, they succeed.
START_TEST(a_call_that_fails_says_of_what) {
  enum { N = 40, K = 1000 };
  fixture_start(190);
  asked a = {.count = ITEMS};
  for (size_t i = 0; i < ITEMS; i++) {
    a.which[i] = i % DECODERS;
    a.m[i] = 3;
    a.blocks[i] = N;
  }
  results *wanted = results_new(), *got = results_new();
  scene one = scene_new(NULL, 1, DECODERS, N, K, true);
  EXPECT_OK(read_blocks(&one, &a, wanted));
  bool reached = true;
  long nth = 1;
  for (; reached; nth++) {
    test_allocator memory;
    test_allocator_init(&memory, 0);
    scene s = scene_new(&memory.allocator, 1 + (size_t)_i, DECODERS, N, K, true);
    memset(got, 0xEE, sizeof *got);
    memory.fail_at = atomic_load(&memory.calls) + nth;
    const weft_status made = recode(&s, &a, got);
    EXPECT(made == WEFT_OK || made == WEFT_E_NOMEM);
    const weft_status status = read_blocks(&s, &a, got);
    EXPECT(status == WEFT_OK || status == WEFT_E_NOMEM);
    reached = test_allocator_failed(&memory);
    memory.fail_at = 0;
    size_t failed = 0;
    for (size_t i = 0; i < ITEMS; i++) {
      failed += got->read[i] != WEFT_OK;
      EXPECT(got->read[i] == WEFT_OK || got->read[i] == status);
      EXPECT(got->read[i] != WEFT_OK ||
             memcmp(got->blocks[i], wanted->blocks[i], sizeof got->blocks[i]) == 0);
    }
    EXPECT((failed > 0) == (status != WEFT_OK));
    EXPECT_OK(recode(&s, &a, got));
    EXPECT_OK(read_blocks(&s, &a, got));
    EXPECT(memcmp(got->blocks, wanted->blocks, sizeof got->blocks) == 0);
    scene_free(&s);
    EXPECT(test_allocator_live(&memory) == 0);
  }
  EXPECT(nth > DECODERS); // or the loop has not covered enough
  scene_free(&one);
  free(wanted);
  free(got);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("many decoders");
  TCase *tcase = tcase_create("in host memory");
  tcase_add_loop_test(tcase, as_with_one_thread, 0, 24);
  tcase_add_loop_test(tcase, threads_take_decoders_of_their_own, 0, 2);
  tcase_add_loop_test(tcase, a_call_that_fails_says_of_what, 0, 3);
  suite_add_tcase(suite, tcase);
  return test_main(suite);
}
