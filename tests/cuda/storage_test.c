// SPDX-License-Identifier: Apache-2.0
// Storage codes on a device: every call with every memory, with a queue and without, against the
// same code on the row `scalar`, byte for byte.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "lib/ctx.h"
#include "tests/cuda/gpu.h"
#include "tests/support/test_main.h"
#include "weft/storage.h"

static bool reduced(void) { return getenv("WEFT_GPU_REDUCED") != NULL; }

// One stripe: what it must be (host), and the same in some memory of the device context.
typedef struct pair {
  weft_code *code, *device_code;
  size_t k, m, bytes, whole; // whole: of a parity shard
  uint8_t *expect;           // (k + m, whole)
  gpu_buffer buffer;         // likewise
  uint8_t *shards[2][WEFT_MAX_SHARDS];
  weft_stripe host, stripe;
} pair;

static void pair_new(pair *p, weft_ctx *scalar, weft_ctx *ctx, const weft_code_options *options,
                     size_t bytes, weft_mem mem) {
  *p = (pair){.k = options->k, .m = options->m, .bytes = bytes};
  EXPECT_OK(weft_code_new(scalar, options, &p->code));
  EXPECT_OK(weft_code_new(ctx, options, &p->device_code));
  p->whole = weft_code_parity_bytes(p->code, bytes);
  const size_t all = (p->k + p->m) * p->whole;
  p->expect = fixture_malloc(all);
  fixture_fill(p->expect, all);
  p->buffer = gpu_input(ctx, mem, p->expect, all);
  for (size_t i = 0; i < p->k + p->m; i++) {
    p->shards[0][i] = p->expect + i * p->whole;
    p->shards[1][i] = p->buffer.at + i * p->whole;
  }
  p->host = (weft_stripe){.shards = p->shards[0], .bytes = bytes};
  p->stripe = (weft_stripe){.shards = p->shards[1], .bytes = bytes, .mem = mem};
}

static void pair_compare(const pair *p, const char *what) {
  uint8_t *got = gpu_read(&p->buffer);
  for (size_t i = 0; i < p->k + p->m; i++)
    if (memcmp(got + i * p->whole, p->shards[0][i], p->whole) != 0)
      ck_abort_msg("%s: %s, k %zu m %zu, %zu bytes, memory %d: shard %zu differs (row %s)", what,
                   weft_code_name(p->code), p->k, p->m, p->bytes, (int)p->stripe.mem, i,
                   weft_ctx_backend(p->buffer.ctx));
  free(got);
}

static void pair_free(pair *p) {
  gpu_buffer_free(&p->buffer);
  free(p->expect);
  weft_code_free(p->device_code);
  weft_code_free(p->code);
}

// Encodes, loses up to m shards and recovers them, updates one, verifies before and after damage.
static void exercise(pair *p, weft_ctx *ctx, weft_queue *queue) {
  EXPECT_OK(weft_code_encode(p->code, &p->host, 1, NULL));
  EXPECT_OK(weft_code_encode(p->device_code, &p->stripe, 1, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  pair_compare(p, "encode");

  uint8_t lost[WEFT_MAX_SHARDS];
  const size_t count = 1 + fixture_below(p->m);
  for (size_t i = 0; i < count; i++) {
    bool again = true;
    while (again) {
      lost[i] = (uint8_t)fixture_below(p->k + p->m);
      again = false;
      for (size_t j = 0; j < i; j++)
        again = again || lost[j] == lost[i];
    }
  }
  const weft_erasures erasures = {.lost = lost, .lost_count = count};
  void *stream;
  uint8_t *bad = fixture_malloc(p->whole);
  memset(bad, 0x3c, p->whole);
  EXPECT_OK(weft_device_stream_new(ctx->device, &stream));
  for (size_t i = 0; i < count; i++)
    EXPECT_OK(weft_device_copy(ctx->device, p->shards[1][lost[i]], p->stripe.mem, bad,
                               WEFT_MEM_HOST, lost[i] < p->k ? p->bytes : p->whole, stream));
  EXPECT_OK(weft_device_stream_wait(ctx->device, stream));
  weft_device_stream_free(ctx->device, stream);
  free(bad);
  EXPECT_OK(weft_code_recover(p->device_code, &erasures, &p->stripe, 1, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  pair_compare(p, "recover");

  uint8_t wrong[WEFT_MAX_SHARDS];
  size_t wrong_count = 99;
  EXPECT_OK(weft_code_verify(p->device_code, &p->stripe, wrong, &wrong_count, queue));
  EXPECT(wrong_count == 0);

  const size_t index = fixture_below(p->k);
  uint8_t *fresh = fixture_malloc(p->bytes);
  fixture_fill(fresh, p->bytes);
  gpu_buffer there = gpu_input(ctx, p->stripe.mem, fresh, p->bytes);
  EXPECT_OK(weft_code_update(p->code, index, p->shards[0][index], fresh, &p->host, NULL));
  EXPECT_OK(
      weft_code_update(p->device_code, index, p->shards[1][index], there.at, &p->stripe, queue));
  if (queue)
    EXPECT_OK(weft_queue_wait(queue));
  pair_compare(p, "update");
  gpu_buffer_free(&there);
  // The data shard itself was not written, so every parity shard that it is in is wrong now.
  bool same = memcmp(fresh, p->shards[0][index], p->bytes) == 0;
  free(fresh);
  EXPECT_OK(weft_code_verify(p->device_code, &p->stripe, wrong, &wrong_count, queue));
  EXPECT(same ? wrong_count == 0 : wrong_count == p->m);
}

static const weft_code_options shapes[] = {
    {.name = "vandermonde", .k = 10, .m = 4},   {.name = "cauchy", .k = 5, .m = 2},
    {.name = "reed_sol_van", .k = 33, .m = 16}, {.name = "raid6", .k = 8, .m = 2},
    {.name = "cauchy_good", .k = 6, .m = 3},    {.name = "cauchy_orig", .k = 10, .m = 4, .w = 8},
    {.name = "gcrs", .k = 4, .m = 2},           {.name = "perasure", .k = 7, .m = 2, .w = 5},
    {.name = "cauchy", .k = 3, .m = 40},
};

START_TEST(every_memory) {
  if (gpu_skip("every_memory"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  const size_t sizes[] = {1, 1000, 4096, 65536, 100003};
  for (size_t i = 0; i < (reduced() ? 2 : sizeof shapes / sizeof *shapes); i++)
    for (int mem = 0; mem < 3; mem++) {
      pair p;
      const size_t bytes = reduced() ? 1000 : sizes[fixture_below(5)];
      pair_new(&p, scalar, ctx, &shapes[i], bytes, (weft_mem)mem);
      exercise(&p, ctx, fixture_below(2) ? queue : NULL);
      pair_free(&p);
    }
  weft_queue_free(queue);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// More than one piece of a pipeline, from and to host memory.
START_TEST(in_pieces) {
  if (gpu_skip("in_pieces") || reduced())
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *fast = fixture_ctx(NULL, 2);
  for (size_t i = 0; i < 6; i += 4)
    for (int mem = 0; mem < 2; mem++) {
      pair p;
      pair_new(&p, fast, ctx, &shapes[i], ((size_t)9 << 20) + 77, (weft_mem)mem);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
      pair_compare(&p, "encode in pieces");
      pair_free(&p);
    }
  weft_ctx_free(fast);
  weft_ctx_free(ctx);
}
END_TEST

static void same_bytes(const uint8_t *got, const uint8_t *wanted, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    if (got[i] != wanted[i])
      ck_abort_msg("byte %zu of %zu is %d, not %d", i, bytes, got[i], wanted[i]);
}

// Small stripes side by side in device memory, many in a call: with shards of a stride they go to
// the device together, given as pointers one by one. Some are empty.
START_TEST(many_stripes) {
  if (gpu_skip("many_stripes"))
    return;
  enum { STRIPES = 70, K = 6, M = 3, ROOM = 1200 };
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  const weft_code_options options = {.name = "cauchy", .k = K, .m = M};
  weft_code *code, *expected;
  EXPECT_OK(weft_code_new(ctx, &options, &code));
  EXPECT_OK(weft_code_new(scalar, &options, &expected));
  const size_t each = (K + M) * ROOM, all = STRIPES * each;
  uint8_t *host = fixture_malloc(all);
  fixture_fill(host, all);
  gpu_buffer buffer = gpu_input(ctx, WEFT_MEM_DEVICE, host, all);
  weft_stripe here[STRIPES], there[STRIPES];
  uint8_t *pointers[STRIPES][K + M];
  for (size_t s = 0; s < STRIPES; s++) {
    here[s] = (weft_stripe){.base = host + s * each,
                            .stride = ROOM,
                            .bytes = fixture_below(9) ? 1 + fixture_below(ROOM) : 0};
    there[s] = here[s];
    there[s].mem = WEFT_MEM_DEVICE;
    there[s].base = buffer.at + s * each;
    for (size_t i = 0; i < K + M; i++)
      pointers[s][i] = there[s].base + i * ROOM;
    if (s % 37 == 20)
      there[s].shards = pointers[s];
  }
  EXPECT_OK(weft_code_encode(expected, here, STRIPES, NULL));
  EXPECT_OK(weft_code_encode(code, there, STRIPES, NULL));
  uint8_t *got = gpu_read(&buffer);
  same_bytes(got, host, all);
  free(got);
  gpu_buffer_free(&buffer);
  const uint8_t lost[] = {4, 5}, edge[] = {0, 7};
  for (size_t i = 0; i < 2; i++) { // of one the plan's shards follow each other, of the other not
    buffer = gpu_input(ctx, WEFT_MEM_DEVICE, host, all);
    for (size_t s = 0; s < STRIPES; s++) {
      there[s].base = buffer.at + s * each;
      for (size_t j = 0; j < K + M; j++)
        pointers[s][j] = there[s].base + j * ROOM;
    }
    const weft_erasures erasures = {.lost = i ? edge : lost, .lost_count = 2};
    EXPECT_OK(weft_code_recover(code, &erasures, there, STRIPES, NULL));
    got = gpu_read(&buffer);
    same_bytes(got, host, all);
    free(got);
    gpu_buffer_free(&buffer);
  }
  free(host);
  weft_code_free(expected);
  weft_code_free(code);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Inverting on the device gives the matrices that the CPU's closed form gives, and where the device
// fails at it the CPU's are there.
START_TEST(inverse_by_choice) {
  if (gpu_skip("inverse_by_choice"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    weft_code_options options = shapes[i];
    options.device_inverse = true;
    weft_code *code, *expected;
    const weft_status status = weft_code_new(ctx, &options, &code);
    EXPECT_STATUS(weft_code_new(scalar, &options, &expected), WEFT_E_UNSUPPORTED);
    EXPECT_OK(weft_code_new(scalar, &shapes[i], &expected));
    if (weft_code_word_bits(expected) != 8) {
      EXPECT(status == WEFT_E_UNSUPPORTED);
      weft_code_free(expected);
      continue;
    }
    EXPECT_OK(status);
    const size_t k = options.k, m = options.m;
    for (size_t round = 0; round < (reduced() ? 4 : 20); round++) {
      uint8_t ids[WEFT_MAX_SHARDS];
      for (size_t s = 0; s < k + m; s++) { // a permutation: inputs, then outputs
        const size_t at = fixture_below(s + 1);
        ids[s] = ids[at];
        ids[at] = (uint8_t)s;
      }
      weft_plan *plan, *wanted;
      if (round % 2)
        weft_cuda_inject(fixture_below(8), 2, 0);
      EXPECT_OK(weft_plan_new(code, ids, ids + k, m, &plan));
      weft_cuda_inject(0, 0, 0);
      EXPECT_OK(weft_plan_new(expected, ids, ids + k, m, &wanted));
      same_bytes(weft_plan_matrix(plan), weft_plan_matrix(wanted), m * k);
      weft_plan_free(wanted);
      weft_plan_free(plan);
    }
    weft_code_free(expected);
    weft_code_free(code);
  }
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// Pinned shards in place: whole groups and tails, then with failing calls.
START_TEST(zero_copy) {
  if (gpu_skip("zero_copy"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 1), *scalar = fixture_ctx("scalar", 1);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    weft_code_options options = shapes[i];
    options.zero_copy = true;
    pair p;
    pair_new(&p, scalar, ctx, &options, reduced() ? 3001 : 70001, WEFT_MEM_PINNED);
    exercise(&p, ctx, NULL);
    for (size_t skip = 0; skip < 8; skip++) {
      weft_cuda_inject(skip, 2, 0);
      const weft_status status = weft_code_encode(p.device_code, &p.stripe, 1, NULL);
      weft_cuda_inject(0, 0, 0);
      EXPECT(status == WEFT_OK || status == WEFT_E_DEVICE_NOMEM);
      EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
      if (status == WEFT_OK)
        pair_compare(&p, "in place, after a fault");
    }
    pair_free(&p);
  }
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// One, two and four contexts share stripes, the columns of one, and the rows of the matrix.
START_TEST(groups) {
  if (gpu_skip("groups"))
    return;
  enum { STRIPES = 5, K = 10, M = 4 };
  const char *const names[] = {"cauchy", "cauchy_good:w=4:packet=512"};
  weft_ctx *scalar = fixture_ctx("scalar", 1), *ctx[4];
  for (size_t i = 0; i < 4; i++)
    ctx[i] = fixture_ctx(i == 3 ? NULL : "cuda", 1); // a CPU among them
  const size_t bytes = reduced() ? 120001 : 300001;
  for (size_t n = 0; n < 2; n++) {
    const weft_code_options options = {.name = names[n], .k = K, .m = M};
    weft_code *codes[4], *code;
    EXPECT_OK(weft_code_new(scalar, &options, &code));
    for (size_t i = 0; i < 4; i++)
      EXPECT_OK(weft_code_new(ctx[i], &options, &codes[i]));
    const size_t room = weft_code_parity_bytes(code, bytes), all = STRIPES * (K + M) * room;
    uint8_t *host = fixture_malloc(all), *copy = fixture_malloc(all);
    fixture_fill(host, all);
    weft_stripe expected[STRIPES], stripes[STRIPES];
    for (size_t s = 0; s < STRIPES; s++) {
      expected[s] =
          (weft_stripe){.base = host + s * (K + M) * room, .stride = room, .bytes = bytes - s};
      stripes[s] = expected[s];
      stripes[s].base = copy + s * (K + M) * room;
    }
    memcpy(copy, host, all);
    EXPECT_OK(weft_code_encode(code, expected, STRIPES, NULL));
    for (size_t members = 1; members <= 4; members *= 2) {
      weft_code_group *group;
      EXPECT_OK(weft_code_group_new(codes + (members < 4), members, &group));
      for (size_t count = 1; count <= STRIPES; count += 4)
        for (int rows = 0; rows < 2; rows++) {
          const weft_code_split split = rows ? WEFT_CODE_SPLIT_ROWS : WEFT_CODE_SPLIT_STRIPES;
          const size_t used = count * (K + M) * room;
          for (size_t s = 0; s < count; s++)
            memset(stripes[s].base + K * room, 0xaa, M * room);
          EXPECT_OK(weft_code_group_encode(group, split, stripes, count));
          for (size_t s = 0; s < count; s++) {
            const size_t whole = weft_code_parity_bytes(code, stripes[s].bytes);
            for (size_t i = K; i < K + M; i++)
              same_bytes(stripes[s].base + i * room, expected[s].base + i * room, whole);
          }
          const uint8_t lost[] = {12, 0, 9, 5}, wanted[] = {9, 12, 0};
          for (size_t s = 0; s < count; s++)
            for (size_t i = 0; i < 4; i++)
              memset(stripes[s].base + lost[i] * room, 0x55, room);
          const weft_erasures erasures = {
              .lost = lost, .lost_count = 4, .wanted = wanted, .wanted_count = 3};
          EXPECT_OK(weft_code_group_recover(group, split, &erasures, stripes, count));
          for (size_t s = 0; s < count; s++)
            for (size_t i = 0; i < 3; i++)
              same_bytes(stripes[s].base + wanted[i] * room, expected[s].base + wanted[i] * room,
                         wanted[i] < K ? stripes[s].bytes
                                       : weft_code_parity_bytes(code, stripes[s].bytes));
          memcpy(copy, host, used);
        }
      weft_code_group_free(group);
    }
    for (size_t i = 0; i < 4; i++)
      weft_code_free(codes[i]);
    weft_code_free(code);
    free(copy);
    free(host);
  }
  for (size_t i = 0; i < 4; i++)
    weft_ctx_free(ctx[i]);
  weft_ctx_free(scalar);
}
END_TEST

// Any call of the runtime fails: what lies in host memory is computed by the CPU.
START_TEST(fails_over) {
  if (gpu_skip("fails_over"))
    return;
  weft_ctx *ctx = fixture_ctx("cuda", 2), *scalar = fixture_ctx("scalar", 1);
  pair p;
  pair_new(&p, scalar, ctx, &shapes[0], 200000, WEFT_MEM_HOST);
  EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
  for (size_t skip = 0; skip < 40; skip += 1 + fixture_below(3)) {
    for (size_t i = 0; i < p.m; i++)
      memset(p.shards[1][p.k + i], 0, p.whole);
    weft_cuda_inject(skip, 2, 0);
    const weft_status status = weft_code_encode(p.device_code, &p.stripe, 1, NULL);
    weft_cuda_inject(0, 0, 0);
    // Where not even a stream could be had, the call says so.
    EXPECT(status == WEFT_OK || status == WEFT_E_DEVICE_NOMEM);
    if (status == WEFT_OK)
      pair_compare(&p, "after a fault");
  }
  pair_free(&p);
  weft_ctx_free(scalar);
  weft_ctx_free(ctx);
}
END_TEST

// The device's rows and the CPU's give the same shards.
START_TEST(rows_agree) {
  weft_ctx *scalar = fixture_ctx("scalar", 1);
  if (gpu_skip_row("rows_agree", _i)) {
    weft_ctx_free(scalar);
    return;
  }
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  const weft_code_options some[] = {{.name = "cauchy", .k = 6, .m = 3},
                                    {.name = "gcrs", .k = 5, .m = 3}};
  for (size_t i = 0; i < 2; i++) {
    pair p;
    pair_new(&p, scalar, ctx, &some[i], 8192, WEFT_MEM_DEVICE);
    EXPECT_OK(weft_code_encode(p.code, &p.host, 1, NULL));
    EXPECT_OK(weft_code_encode(p.device_code, &p.stripe, 1, NULL));
    pair_compare(&p, gpu_row_name(_i));
    pair_free(&p);
  }
  weft_ctx_free(ctx);
  weft_ctx_free(scalar);
}
END_TEST

// Calls that follow each other on a queue, some of which read or write what one before them does:
// kernels that may begin before the last one ends must not where it matters.
START_TEST(calls_follow) {
  if (gpu_skip("calls_follow"))
    return;
  enum { POOL = 26, KINDS = 4, CALLS = 60, LONG = 10 << 20, SHORT = 96 << 10, TURNS = 3 };
  weft_ctx *host_ctx = fixture_ctx(NULL, 1);
  static const weft_code_options some[] = {{.name = "cauchy", .k = 2, .m = 2},
                                           {.name = "gcrs", .k = 2, .m = 2, .w = 8},
                                           {.name = "cauchy", .k = 3, .m = 1},
                                           {.name = "cauchy", .k = 16, .m = 8}}; // by factors
  for (size_t turn = 0; turn < TURNS; turn++) {
    const size_t bytes = reduced() || turn == TURNS - 1 ? SHORT : LONG;
    // Kernels made at once, and then none, so that bytes are for the tensor kernel.
    const size_t compile_after = turn == 1 ? SIZE_MAX : 1;
    weft_ctx *ctx;
    EXPECT_OK(
        weft_ctx_new(&ctx, &(weft_ctx_options){.backend = "cuda", .compile_after = compile_after}));
    weft_code *codes[2][KINDS];
    for (size_t c = 0; c < KINDS; c++) {
      EXPECT_OK(weft_code_new(host_ctx, &some[c], &codes[0][c]));
      EXPECT_OK(weft_code_new(ctx, &some[c], &codes[1][c]));
    }
    uint8_t *expect = fixture_malloc(POOL * bytes);
    fixture_fill(expect, POOL * bytes);
    gpu_buffer buffer = gpu_input(ctx, WEFT_MEM_DEVICE, expect, POOL * bytes);
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    for (size_t i = 0; i < CALLS; i++) {
      // stripes side by side or across each other
      const size_t c = fixture_below(KINDS);
      const size_t first = fixture_below(POOL + 1 - some[c].k - some[c].m);
      const weft_stripe host = {
          .base = expect + first * bytes, .stride = bytes, .bytes = bytes, .mem = WEFT_MEM_HOST};
      weft_stripe there = host;
      there.base = buffer.at + first * bytes;
      there.mem = WEFT_MEM_DEVICE;
      EXPECT_OK(weft_code_encode(codes[1][c], &there, 1, queue));
      EXPECT_OK(weft_code_encode(codes[0][c], &host, 1, NULL));
    }
    EXPECT_OK(weft_queue_wait(queue));
    uint8_t *got = gpu_read(&buffer);
    for (size_t i = 0; i < POOL; i++)
      if (memcmp(got + i * bytes, expect + i * bytes, bytes) != 0)
        ck_abort_msg("calls that follow each other, shards of %zu bytes: shard %zu differs", bytes,
                     i);
    free(got);
    weft_queue_free(queue);
    gpu_buffer_free(&buffer);
    free(expect);
    for (size_t c = 0; c < KINDS; c++) {
      weft_code_free(codes[1][c]);
      weft_code_free(codes[0][c]);
    }
    weft_ctx_free(ctx);
  }
  weft_ctx_free(host_ctx);
}
END_TEST

// A thread with a context and a stripe of its own.
typedef struct neighbour {
  pair p;
  size_t calls;
  weft_status status;
} neighbour;

static void *encode_often(void *user) {
  neighbour *n = user;
  for (size_t i = 0; i < n->calls && n->status == WEFT_OK; i++)
    n->status = weft_code_encode(n->p.device_code, &n->p.stripe, 1, NULL);
  return NULL;
}

// Threads that launch the same kernel for different shapes take no shared memory from each other.
START_TEST(contexts_side_by_side) {
  enum { NEIGHBOURS = 4, BYTES = 96 << 10 };
  static const size_t k[NEIGHBOURS] = {33, 45, 41, 37}; // all of one variant of the tensor kernel
  if (gpu_skip("contexts_side_by_side"))
    return;
  weft_ctx *scalar = fixture_ctx(NULL, 1), *ctx[NEIGHBOURS];
  static neighbour all[NEIGHBOURS];
  pthread_t thread[NEIGHBOURS];
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    EXPECT_OK(
        weft_ctx_new(&ctx[i], &(weft_ctx_options){.backend = "cuda", .compile_after = SIZE_MAX}));
    all[i] = (neighbour){.calls = reduced() ? 4 : 300, .status = WEFT_OK};
    pair_new(&all[i].p, scalar, ctx[i], &(weft_code_options){.name = "cauchy", .k = k[i], .m = 16},
             BYTES, WEFT_MEM_DEVICE);
    EXPECT_OK(weft_code_encode(all[i].p.code, &all[i].p.host, 1, NULL));
  }
  for (size_t i = 0; i < NEIGHBOURS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, encode_often, &all[i]), 0);
  for (size_t i = 0; i < NEIGHBOURS; i++)
    pthread_join(thread[i], NULL);
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    EXPECT_OK(all[i].status);
    pair_compare(&all[i].p, "side by side");
    pair_free(&all[i].p);
    weft_ctx_free(ctx[i]);
  }
  weft_ctx_free(scalar);
}
END_TEST

// A test that failed may have left its fault behind.
static void no_faults(void) { weft_cuda_inject(0, 0, 0); }

// A case of its own for each, so that slow checkers can take one each (CK_RUN_CASE).
static TCase *add_case(Suite *suite, const char *name) {
  TCase *tests = tcase_create(name);
  tcase_set_timeout(tests, 300);
  tcase_add_checked_fixture(tests, no_faults, no_faults);
  suite_add_tcase(suite, tests);
  return tests;
}

int main(void) {
  Suite *suite = suite_create("storage on a device");
  tcase_add_test(add_case(suite, "memory"), every_memory);
  tcase_add_test(add_case(suite, "pieces"), in_pieces);
  tcase_add_test(add_case(suite, "stripes"), many_stripes);
  tcase_add_test(add_case(suite, "follow"), calls_follow);
  tcase_add_test(add_case(suite, "contexts"), contexts_side_by_side);
  tcase_add_test(add_case(suite, "groups"), groups);
  tcase_add_test(add_case(suite, "inverse"), inverse_by_choice);
  tcase_add_test(add_case(suite, "zero_copy"), zero_copy);
  tcase_add_test(add_case(suite, "fails_over"), fails_over);
  tcase_add_loop_test(add_case(suite, "rows"), rows_agree, 0, gpu_row_count());
  return test_main(suite);
}
