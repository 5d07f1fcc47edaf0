// SPDX-License-Identifier: Apache-2.0
// The stack that calls need, as docs/embedding.md says: on a thread whose stack is painted, with
// each host row of this machine.
#define _XOPEN_SOURCE 700 // pthread_attr_setstack
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_rows.h"
#include "weft/weft.h"

// What the document recommends, and what it says is needed.
enum { STACK = 128 << 10, NEEDED = 96 << 10, PAINT = 0xA5 };
enum { FAST = 6 }; // rows; the others take too long for large segments
enum { SHARDS = 32, PARITY = 8, SHARD_BYTES = 1 << 14 };

typedef struct work {
  const char *backend;
  uint32_t n, k;
  weft_status status;
  bool same;
} work;

static weft_status code_segment(weft_ctx *ctx, work *w, const uint8_t *data, uint8_t *out) {
  const weft_segment_id id = {.stream = 1, .segment = 2, .blocks = w->n, .block_bytes = w->k};
  const size_t bytes = (size_t)w->n * w->k, room = WEFT_PACKET_ROOM_BYTES(w->n, w->k);
  weft_segment *segment;
  weft_encoder *encoder;
  weft_decoder *first, *second;
  uint8_t *datagram = malloc(room);
  size_t written;
  WEFT_TRY(weft_segment_new(ctx, &(weft_segment_options){.id = id, .data = data, .bytes = bytes},
                            NULL, &segment));
  WEFT_TRY(weft_encoder_new(segment, NULL, &encoder));
  WEFT_TRY(weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &first));
  WEFT_TRY(weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &second));
  for (unsigned i = 0; !weft_decoder_complete(second); i++) {
    WEFT_TRY(weft_encoder_next(encoder, datagram, room, &written));
    (void)weft_decoder_add_datagram(first, datagram, written);
    if (i % 64 == 0)
      WEFT_TRY(weft_decoder_recode(first, datagram, room, &written));
    (void)weft_decoder_add_datagram(second, datagram, written);
  }
  WEFT_TRY(weft_decoder_read(second, 0, bytes, out));
  w->same = w->same && memcmp(out, data, bytes) == 0;
  weft_decoder_free(second);
  weft_decoder_free(first);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  free(datagram);
  return WEFT_OK;
}

// Encodes, decodes and recodes many packets in one call each.
static weft_status code_batches(weft_ctx *ctx, work *w, const uint8_t *data, uint8_t *out) {
  enum { PACKETS = 40 };
  const weft_segment_id id = {.stream = 1, .segment = 2, .blocks = w->n, .block_bytes = w->k};
  const size_t bytes = (size_t)w->n * w->k;
  uint8_t *coefficients = malloc((size_t)w->n * w->n), *payloads = malloc(bytes);
  weft_segment *segment;
  weft_encoder *encoder;
  weft_decoder *decoder;
  WEFT_TRY(weft_segment_new(ctx, &(weft_segment_options){.id = id, .data = data, .bytes = bytes},
                            NULL, &segment));
  WEFT_TRY(weft_encoder_new(segment, NULL, &encoder));
  weft_packet *packets = malloc(w->n * sizeof *packets);
  weft_batch all = {.count = w->n,
                    .packets = packets,
                    .coefficients = coefficients,
                    .coefficients_stride = w->n,
                    .payload = payloads,
                    .payload_stride = w->k};
  weft_decode_job job = {.blocks = w->n,
                         .block_bytes = w->k,
                         .coefficients = coefficients,
                         .coefficients_stride = w->n,
                         .payload = payloads,
                         .payload_stride = w->k,
                         .out = out,
                         .out_stride = w->k};
  do {
    WEFT_TRY(weft_encoder_batch(encoder, &all, NULL));
    WEFT_TRY(weft_decode_batch(ctx, &job, 1, NULL));
  } while (job.status == WEFT_E_SINGULAR);
  w->same = w->same && memcmp(out, data, bytes) == 0;
  WEFT_TRY(weft_decoder_new(ctx, &(weft_decoder_options){.id = id}, &decoder));
  for (size_t i = 0; i < w->n; i++)
    (void)weft_decoder_add(decoder, &packets[i]);
  all.count = PACKETS < w->n ? PACKETS : w->n;
  WEFT_TRY(weft_decoder_recode_batch(decoder, &all));
  weft_decoder_free(decoder);
  weft_encoder_free(encoder);
  weft_segment_free(segment);
  free(packets);
  free(payloads);
  free(coefficients);
  return WEFT_OK;
}

static weft_status code_shards(weft_ctx *ctx, work *w, const char *name, uint8_t *shards) {
  static const uint8_t lost[] = {0, 5, 9, 30, SHARDS, SHARDS + 3};
  const weft_stripe stripe = {.base = shards, .stride = SHARD_BYTES, .bytes = SHARD_BYTES};
  weft_code *code;
  size_t wrong;
  WEFT_TRY(weft_code_new(ctx, &(weft_code_options){.name = name, .k = SHARDS, .m = PARITY}, &code));
  WEFT_TRY(weft_code_encode(code, &stripe, 1, NULL));
  WEFT_TRY(weft_code_recover(code, &(weft_erasures){.lost = lost, .lost_count = sizeof lost},
                             &stripe, 1, NULL));
  WEFT_TRY(
      weft_code_update(code, 1, shards + SHARD_BYTES, shards + 2 * SHARD_BYTES, &stripe, NULL));
  memcpy(shards + SHARD_BYTES, shards + 2 * SHARD_BYTES, SHARD_BYTES);
  WEFT_TRY(weft_code_verify(code, &stripe, (uint8_t[PARITY]){0}, &wrong, NULL));
  w->same = w->same && wrong == 0;
  weft_code_free(code);
  return WEFT_OK;
}

static weft_status run(work *w) {
  const size_t bytes = (size_t)(SHARDS + PARITY) * SHARD_BYTES;
  uint8_t *data = malloc(bytes), *out = malloc(bytes);
  test_rng rng = test_rng_new(test_seed(), 83);
  weft_ctx *ctx;
  test_rng_fill(&rng, data, bytes);
  WEFT_TRY(weft_ctx_new(&ctx, &(weft_ctx_options){.backend = w->backend}));
  WEFT_TRY(code_segment(ctx, w, data, out));
  WEFT_TRY(code_batches(ctx, w, data, out));
  WEFT_TRY(code_shards(ctx, w, "vandermonde", data));
  WEFT_TRY(code_shards(ctx, w, "cauchy", data));
  WEFT_TRY(code_shards(ctx, w, "cauchy_good:w=8:packet=512", data));
  weft_ctx_free(ctx);
  free(out);
  free(data);
  return WEFT_OK;
}

static void *on_thread(void *user) {
  work *w = user;
  w->status = run(w);
  return NULL;
}

static size_t used(const uint8_t *stack) {
  size_t untouched = 0;
  while (untouched < STACK && stack[untouched] == PAINT)
    untouched++;
  return STACK - untouched;
}

// Sanitizers surround each variable on the stack with bytes of their own.
static bool is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

START_TEST(calls_need_as_much_stack_as_is_documented) {
  if (is_sanitized()) {
    printf("SKIPPED: it needs a build without a sanitizer\n");
    return;
  }
  static const uint32_t shapes[][2] = {
      {16, 100}, {64, 1024}, {128, 4096}, {256, 2048}, {1024, 512}};
  for (size_t row = 0; row < test_host_row_count(); row++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      if (row >= FAST && shapes[s][0] > 256)
        continue;
      work w = {
          .backend = test_host_row(row)->name, .n = shapes[s][0], .k = shapes[s][1], .same = true};
      uint8_t *stack = aligned_alloc(4096, STACK);
      pthread_attr_t attributes;
      pthread_t thread;
      memset(stack, PAINT, STACK);
      ck_assert_int_eq(pthread_attr_init(&attributes), 0);
      ck_assert_int_eq(pthread_attr_setstack(&attributes, stack, STACK), 0);
      ck_assert_int_eq(pthread_create(&thread, &attributes, on_thread, &w), 0);
      ck_assert_int_eq(pthread_join(thread, NULL), 0);
      ck_assert_msg(w.status == WEFT_OK && w.same, "%s, n %u: %s", w.backend, w.n,
                    weft_status_name(w.status));
      ck_assert_msg(used(stack) <= NEEDED, "%s, n %u, k %u: %zu bytes", w.backend, w.n, w.k,
                    used(stack));
      pthread_attr_destroy(&attributes);
      free(stack);
    }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("stack");
  TCase *t = tcase_create("stack");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, calls_need_as_much_stack_as_is_documented);
  suite_add_tcase(suite, t);
  return test_main(suite);
}
