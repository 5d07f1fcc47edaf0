// SPDX-License-Identifier: Apache-2.0
// The source text of made kernels (storage_source.h), executed line by line on the CPU: shards come
// from the requested places, and the result is the product; and its compiler. Needs no GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/nvrtc.h"
#include "kernels/cuda/storage_source.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "tests/support/test_steps.h"

enum { NAMES = 1 << 14, NAME = 32, PLACES = 64, SHARDS = 64, W = 8 };

// A thread of the kernel: its variables by name, and its shards, a word for each bit or packet.
typedef struct machine {
  const weft_program_shape *shape;
  struct {
    char name[NAME];
    uint32_t value;
  } variable[NAMES];
  struct {
    size_t shard, group; // the shard requested; group: copies that are waited for together
    bool turned, taken;  // turned into bits; taken by the thread, so the place is free
    uint32_t kept[W];    // an output
  } place[PLACES];
  size_t later, sent, arrived; // groups: allowed to be pending after a wait; sent; arrived
  uint32_t in[SHARDS][W], out[SHARDS][W];
  bool written[SHARDS][W];
  const char *line; // being executed
} machine;

static void stop(const machine *m, const char *why) {
  ck_abort_msg("%s: %.*s (seed %llu)", why, (int)strcspn(m->line, "\n"), m->line,
               (unsigned long long)test_seed());
}

static uint32_t *variable(machine *m, const char *name, bool make) {
  size_t at = 5381;
  for (const char *c = name; *c; c++)
    at = at * 33 + (unsigned char)*c;
  for (at %= NAMES; m->variable[at].name[0]; at = (at + 1) % NAMES)
    if (strcmp(m->variable[at].name, name) == 0)
      return &m->variable[at].value;
  if (!make)
    stop(m, name);
  snprintf(m->variable[at].name, NAME, "%s", name);
  return &m->variable[at].value;
}

static const char *read_name(machine *m, const char *at, char name[NAME]) {
  const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_[]");
  if (!length || length >= NAME)
    stop(m, "no name");
  memcpy(name, at, length);
  name[length] = '\0';
  return at + length;
}

// Returns the shard in a place. Shards of bytes are taken as bits.
static size_t shard_at(machine *m, size_t place) {
  if (place >= PLACES || m->place[place].shard >= m->shape->k)
    stop(m, "nobody asked for what is taken");
  if (m->place[place].group >= m->arrived)
    stop(m, "nobody waited for what is taken");
  return m->place[place].shard;
}

// Evaluates a name, a number, a packet of the ring, or a sum of two or three of these.
static const char *evaluate(machine *m, const char *at, uint32_t *value) {
  char name[NAME];
  size_t place, packet;
  int length = 0;
  if (sscanf(at, "take(%zu, %zu)%n", &place, &packet, &length) == 2 && length) {
    *value = m->in[shard_at(m, place)][packet];
    return at + length;
  }
  if (at[0] != 'X') {
    at = read_name(m, at, name);
    *value = strcmp(name, "0") ? *variable(m, name, false) : 0;
    return at;
  }
  const size_t terms = (size_t)(at[1] - '0');
  *value = 0;
  at += 3;
  for (size_t i = 0; i < terms; i++) {
    uint32_t term;
    at = evaluate(m, at, &term);
    *value ^= term;
    at += i + 1 < terms ? strlen(", ") : strlen(")");
  }
  return at;
}

static void assign(machine *m, const char *at) {
  char name[NAME];
  uint32_t value;
  at = read_name(m, at, name);
  if (strncmp(at, " = ", 3) != 0)
    stop(m, "no assignment");
  at = evaluate(m, at + 3, &value);
  if (*at != ';')
    stop(m, "no end");
  *variable(m, name, true) = value;
}

static void leave(machine *m, size_t row, size_t packet, uint32_t value) {
  if (row < m->shape->k || row >= m->shape->k + m->shape->m || packet >= W ||
      m->written[row - m->shape->k][packet])
    stop(m, "no such row, or written already");
  m->out[row - m->shape->k][packet] = value;
  m->written[row - m->shape->k][packet] = true;
}

// Takes all bits of a shard of bytes.
static void take_shard(machine *m, size_t place, const char *array) {
  char name[NAME];
  const size_t shard = shard_at(m, place);
  if (!m->place[place].turned)
    stop(m, "these are not bits");
  for (size_t l = 0; l < W; l++) {
    snprintf(name, sizeof name, "%.16s[%zu]", array, l);
    *variable(m, name, true) = m->in[shard][l];
  }
  m->place[place].taken = true;
}

static void ask(machine *m, size_t place, size_t row) {
  if (place >= PLACES || row >= m->shape->k)
    stop(m, "no such place or shard");
  m->place[place].shard = row;
  m->place[place].group = m->sent;
  m->place[place].turned = m->place[place].taken = false;
}

static void turn(machine *m, size_t first, size_t count) {
  for (size_t place = first; place < first + count; place++) {
    shard_at(m, place);
    if (m->place[place].turned)
      stop(m, "these are bits already");
    m->place[place].turned = true;
  }
}

static void keep(machine *m, size_t place, const char *array) {
  char name[NAME];
  if (place >= PLACES || (m->place[place].shard < m->shape->k && !m->place[place].taken))
    stop(m, "no such place, or a shard is still there");
  for (size_t l = 0; l < W; l++) {
    snprintf(name, sizeof name, "%.16s[%zu]", array, l);
    m->place[place].kept[l] = *variable(m, name, false);
  }
}

static void leave_kept(machine *m, size_t place, size_t row, size_t count) {
  if (place + count > PLACES)
    stop(m, "no such places");
  for (size_t i = 0; i < count; i++)
    for (size_t l = 0; l < W; l++)
      leave(m, row + i, l, m->place[place + i].kept[l]);
}

// Waits until at most `later` groups are pending.
static void arrive(machine *m) { m->arrived = m->sent > m->later ? m->sent - m->later : 0; }

static void execute(machine *m, const char *line) {
  static const char *const idle[] = {"__syncthreads();", "if (is_own)", "if (args.overlaps)", "}"};
  char name[NAME], terms[W][NAME];
  size_t place, row, offset, count;
  int length = 0;
  line += strspn(line, " ");
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
    if (strncmp(line, idle[i], strlen(idle[i])) == 0)
      return;
  if (strncmp(line, "sent();", 7) == 0) {
    m->sent++;
  } else if (strncmp(line, "arrived();", 10) == 0) {
    arrive(m);
  } else if (sscanf(line, "ask(%zu, rows[%zu]);", &place, &row) == 2) {
    ask(m, place, row);
  } else if (sscanf(line, "turn(%zu, %zu);", &place, &count) == 2) {
    turn(m, place, count);
  } else if (sscanf(line, "take(%zu, %16[a-z0-9]);", &place, name) == 2 ||
             sscanf(line, "u32 %*[a-z0-9][8]; take(%zu, %16[a-z0-9]);", &place, name) == 2) {
    take_shard(m, place, name);
  } else if (sscanf(line,
                    "{ u32 v[8] = {%31[a-z0-9_], %31[a-z0-9_], %31[a-z0-9_], %31[a-z0-9_], "
                    "%31[a-z0-9_], %31[a-z0-9_], %31[a-z0-9_], %31[a-z0-9_]};",
                    terms[0], terms[1], terms[2], terms[3], terms[4], terms[5], terms[6],
                    terms[7]) == W) {
    for (size_t l = 0; l < W; l++) {
      snprintf(name, sizeof name, "v[%zu]", l);
      *variable(m, name, true) = *variable(m, terms[l], false);
    }
  } else if (sscanf(line, "keep(%zu, %16[a-z0-9]);", &place, name) == 2) {
    keep(m, place, name);
  } else if (sscanf(line, "leave(%zu, %zu, %zu);", &place, &row, &count) == 3) {
    leave_kept(m, place, row, count);
  } else if (sscanf(line, "put(rows[%zu] + at + %zu, %n", &row, &offset, &length) == 2 && length) {
    read_name(m, line + length, name);
    leave(m, row, offset / m->shape->packet_bytes, *variable(m, name, false));
  } else if (strncmp(line, "const u32 ", 10) == 0) {
    assign(m, line + 10);
  } else if (strncmp(line, "u32 ", 4) == 0 && strstr(line, " = ") &&
             strstr(line, " = ") < line + strcspn(line, "\n")) {
    assign(m, line + 4);
  } else if (strncmp(line, "u32 ", 4) != 0) {
    assign(m, line);
  }
}

// Runs the kernel of a shape and compares it with its bit matrix, (m * w, k * w).
static void check_kernel(const weft_program_shape *shape, const uint8_t *bits, test_rng *rng) {
  static machine m;
  test_allocator memory;
  weft_program_plan plan;
  char *text;
  test_allocator_init(&memory, 0);
  if (weft_program_plan_for(shape, &plan) != WEFT_OK)
    return;
  ck_assert_int_eq(weft_program_source(shape, &plan, &memory.allocator, &text), WEFT_OK);
  memset(&m, 0, sizeof m);
  m.shape = shape;
  for (size_t p = 0; p < PLACES; p++)
    m.place[p].shard = SIZE_MAX;
  for (size_t j = 0; j < shape->k; j++)
    for (size_t l = 0; l < shape->w; l++)
      m.in[j][l] = (uint32_t)test_rng_next(rng);
  const char *later = strstr(text, "#define LATER "), *line = strstr(text, "\n  ask(0, rows[0]);");
  ck_assert_ptr_nonnull(later);
  ck_assert_int_eq(sscanf(later, "#define LATER %zu", &m.later), 1);
  ck_assert_ptr_nonnull(line);
  for (line++; *line; line += strcspn(line, "\n") + 1) {
    m.line = line;
    execute(&m, line);
  }
  m.line = "end";
  const size_t w = shape->w, columns = shape->k * w;
  for (size_t r = 0; r < shape->m * w; r++) {
    uint32_t sum = 0;
    for (size_t c = 0; c < columns; c++)
      sum ^= bits[r * columns + c] ? m.in[c / w][c % w] : 0;
    if (!m.written[r / w][r % w] || m.out[r / w][r % w] != sum)
      ck_abort_msg("k %zu m %zu w %zu packet %zu%s: row %zu bit %zu is wrong (seed %llu)", shape->k,
                   shape->m, w, shape->packet_bytes, shape->factors ? ", steps" : "", r / w, r % w,
                   (unsigned long long)test_seed());
  }
  memory.allocator.free(memory.allocator.user, text);
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}

// Kernels made from factors compute the product.
START_TEST(steps) {
  static test_steps t;
  static uint8_t bits[W * SHARDS * W * SHARDS];
  test_allocator memory;
  test_rng rng = test_rng_new(test_seed(), 1700 + (uint64_t)_i);
  test_allocator_init(&memory, 0);
  for (size_t round = 0; round < 25; round++) {
    const size_t k = 1 + test_rng_below(&rng, 40), m = 1 + test_rng_below(&rng, 24);
    weft_factors *factors;
    test_steps_random(&rng, k, m, 4 + test_rng_below(&rng, WEFT_PROGRAM_SLOTS - 3),
                      test_rng_below(&rng, 80), &t);
    ck_assert_int_eq(weft_factors_new(t.step, t.count, t.slots, &memory.allocator, &factors),
                     WEFT_OK);
    test_steps_bits(t.a, m, k, bits);
    const weft_program_shape shape = {
        .k = k, .m = m, .w = W, .packet_bytes = _i ? 128 << round % 3 : 0, .factors = factors};
    check_kernel(&shape, bits, &rng);
    weft_factors_free(factors, &memory.allocator);
  }
  ck_assert_int_eq(test_allocator_live(&memory), 0);
}
END_TEST

// Kernels made from bit matrices compute the product.
START_TEST(entries) {
  static uint8_t bits[WEFT_PROGRAM_SUMS * W * SHARDS];
  test_rng rng = test_rng_new(test_seed(), 1800 + (uint64_t)_i);
  for (size_t round = 0; round < 25; round++) {
    const size_t w = _i ? 2 + test_rng_below(&rng, W - 1) : W, k = 1 + test_rng_below(&rng, 40);
    const size_t m = 1 + test_rng_below(&rng, WEFT_PROGRAM_SUMS / w);
    for (size_t i = 0; i < m * w * k * w; i++)
      bits[i] = (uint8_t)test_rng_below(&rng, 2);
    for (size_t i = 0; round % 5 == 0 && i < k * w; i++)
      bits[i] = 0; // an empty row
    const weft_program_shape shape = {.k = k,
                                      .m = m,
                                      .w = w,
                                      .packet_bytes = _i ? 128 << round % 3 : 0,
                                      .bits = bits,
                                      .bits_stride = k * w};
    check_kernel(&shape, bits, &rng);
  }
}
END_TEST

// A store tells builds of the compiler apart, as its version alone does not.
START_TEST(builds_have_names) {
  const char *version = weft_nvrtc_version(), *build = weft_nvrtc_build();
  if (!version[0]) {
    printf("SKIPPED builds_have_names: it needs NVRTC (libnvrtc.so)\n");
    ck_assert_str_eq(build, "");
    return;
  }
  ck_assert_int_eq(strncmp(build, version, strlen(version)), 0);
  ck_assert_int_eq(strncmp(build + strlen(version), " build ", 7), 0);
  ck_assert_uint_eq(strlen(build), strlen(version) + 7 + 16);
  ck_assert_ptr_eq(weft_nvrtc_build(), build);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("text of made kernels");
  TCase *cases = tcase_create("bytes and packets");
  tcase_set_timeout(cases, 120);
  tcase_add_loop_test(cases, steps, 0, 2);
  tcase_add_loop_test(cases, entries, 0, 2);
  tcase_add_test(cases, builds_have_names);
  suite_add_tcase(suite, cases);
  return test_main(suite);
}
