// SPDX-License-Identifier: Apache-2.0
// Plans of CRS codes that become machine code: when that happens, that the bytes stay those of the
// definition, and what happens in a process that may not make memory executable.
#define _DEFAULT_SOURCE // syscall numbers
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "lib/ctx.h"
#include "lib/storage/code.h"
#include "tests/storage/stripes.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rows.h"

static const code_case cases[] = {
    {"cauchy_good", 10, 4, 4, 64},   {"cauchy_good", 10, 4, 8, 512}, {"cauchy_orig", 5, 3, 3, 1088},
    {"cauchy_good", 32, 8, 8, 128},  {"cauchy_orig", 1, 1, 2, 64},   {"cauchy_good", 3, 13, 7, 192},
    {"cauchy_good", 20, 1, 5, 4096}, {"perasure", 6, 2, 8, 64},
};

static weft_ctx *compiling(const char *row, size_t threads, size_t compile_after) {
  weft_ctx *ctx = NULL;
  EXPECT_OK(weft_ctx_new(
      &ctx,
      &(weft_ctx_options){.backend = row, .threads = threads, .compile_after = compile_after}));
  return ctx;
}

static bool is_compiled(const weft_plan *plan) { return atomic_load(&plan->compiled) != NULL; }

static size_t below(test_rng *rng, size_t n) { return (size_t)test_rng_below(rng, n); }

static void lose_and_recover(stripe *s, const stripe *whole, weft_code *code, const uint8_t *lost,
                             size_t count) {
  for (size_t i = 0; i < count; i++)
    stripe_spoil(s, code, lost[i]);
  const weft_erasures e = {.lost = lost, .lost_count = count};
  EXPECT_OK(weft_code_recover(code, &e, &s->view, 1, NULL));
  EXPECT(stripe_same(s, whole, code));
}

// Encodes and recovers with machine code from the start: stripes of groups and a tail, at guard
// pages.
static void every_byte(const weft_backend *row, const code_case *c, size_t threads, test_rng *rng) {
  weft_ctx *ctx = compiling(row->name, threads, 1);
  weft_code *code = code_on(ctx, c);
  const size_t group = c->w * c->packet_bytes, count = 1 + below(rng, c->m);
  const size_t bytes = (1 + below(rng, 5)) * group + below(rng, 2) * below(rng, group);
  stripe whole, s;
  trying(row->name, c);
  stripe_encode(&whole, code, bytes, rng, 1);
  EXPECT(is_compiled(code->encode) || !row->host->compile ||
         (code->encode->blocks && row->host->compile_most)); // blocks may be faster
  stripe_init(&s, code, bytes, rng, 1);
  stripe_copy(&s, &whole, code);
  uint8_t lost[WEFT_MAX_SHARDS];
  choose_ids(rng, lost, count, c->k + c->m);
  lose_and_recover(&s, &whole, code, lost, count);
  stripe_clear(&s);
  stripe_clear(&whole);
  weft_code_free(code);
  weft_ctx_free(ctx);
}

START_TEST(every_row_has_the_bytes_of_the_definition) {
  const weft_backend *row = test_looped_row((size_t)_i);
  test_rng rng = test_rng_new(test_seed(), 3100 + (uint64_t)_i);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    every_byte(row, &cases[i], 1 + i % 3, &rng);
}
END_TEST

// Every loss of small codes is recovered correctly by machine code from the start.
START_TEST(every_loss_has_the_bytes_of_the_definition) {
  const weft_backend *row = test_looped_row((size_t)_i);
  static const code_case small[] = {{"cauchy_good", 5, 4, 8, 64}, {"cauchy_good", 5, 4, 4, 128}};
  test_rng rng = test_rng_new(test_seed(), 3500 + (uint64_t)_i);
  for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
    const size_t n = small[i].k + small[i].m, bytes = 3 * small[i].w * small[i].packet_bytes;
    weft_ctx *ctx = compiling(row->name, 1, 1);
    weft_code *code = code_on(ctx, &small[i]);
    stripe whole, s;
    trying(row->name, &small[i]);
    stripe_encode(&whole, code, bytes, &rng, 0);
    stripe_init(&s, code, bytes, &rng, 0);
    stripe_copy(&s, &whole, code);
    for (unsigned set = 1; set < 1u << n; set++) {
      uint8_t lost[WEFT_MAX_SHARDS];
      size_t count = 0;
      for (size_t id = 0; id < n; id++)
        if (set >> id & 1u)
          lost[count++] = (uint8_t)id;
      if (count > small[i].m)
        continue;
      lose_and_recover(&s, &whole, code, lost, count);
    }
    stripe_clear(&s);
    stripe_clear(&whole);
    weft_code_free(code);
    weft_ctx_free(ctx);
  }
}
END_TEST

// Returns what it takes to rebuild four data shards: the bytes of scratch of the machine code, more
// by one shard's packets if the lost shards are folded; or the number of packets that a program
// reads; or 0 with blocks of bits.
static size_t taken_by(const weft_backend *row, const char *name, const uint8_t *lost) {
  const uint8_t there[] = {0, 2, 3, 5, 7, 8, 10, 11, 12, 13};
  weft_ctx *ctx = compiling(row->name, 1, 1);
  weft_code *code = code_on(ctx, &(code_case){name, 10, 4, 8, 64});
  weft_plan *plan = NULL;
  EXPECT_OK(weft_plan_new(code, there, lost, 4, &plan));
  const weft_xor_code *const compiled = atomic_load(&plan->compiled);
  const weft_xor_program *const program = atomic_load(&plan->reduced);
  EXPECT(row->host->compile ? compiled != NULL : plan->blocks || program);
  const size_t taken = compiled ? compiled->scratch_bytes : program ? program->source_count : 0;
  weft_plan_free(plan);
  weft_code_free(code);
  weft_ctx_free(ctx);
  return taken;
}

// The last of the lost data shards is computed as the first parity shard minus all other data
// ("folded") if that parity shard is their sum, in whatever order the lost shards are given.
START_TEST(lost_data_is_folded_where_parity_is_its_sum) {
  const weft_backend *row = test_looped_row((size_t)_i);
  const size_t dense = taken_by(row, "cauchy_orig", (const uint8_t[]){1, 4, 6, 9});
  const size_t folded = taken_by(row, "cauchy_good", (const uint8_t[]){1, 4, 6, 9});
  const size_t turned = taken_by(row, "cauchy_good", (const uint8_t[]){9, 1, 6, 4});
  if (row->host->compile)
    EXPECT(folded == dense + 8 * 64 && turned == folded);
  else if (dense)
    EXPECT(20 * folded < 19 * dense && 20 * turned < 19 * dense);
}
END_TEST

static const weft_backend *row_that_compiles(void) {
  size_t i = 0;
  while (i < test_host_row_count() && !test_host_row(i)->host->compile)
    i++;
  return i < test_host_row_count() ? test_host_row(i) : NULL;
}

// Shards larger than the caches, for which data are prefetched, get the same bytes as without
// machine code.
START_TEST(large_shards) {
  const weft_backend *row = row_that_compiles();
  static const code_case large[] = {{"cauchy_good", 10, 4, 4, 64}, {"cauchy_good", 4, 2, 8, 4096}};
  test_rng rng = test_rng_new(test_seed(), 3200);
  for (size_t i = 0; row && i < 2; i++) {
    const size_t bytes = large[i].w * large[i].packet_bytes * (i ? 24 : 2048);
    weft_ctx *with = compiling(row->name, 1 + i, 1), *without = compiling(row->name, 1, SIZE_MAX);
    weft_code *quick = code_on(with, &large[i]), *plain = code_on(without, &large[i]);
    stripe a, b;
    trying(row->name, &large[i]);
    stripe_init(&a, quick, bytes, &rng, 1);
    stripe_init(&b, quick, bytes, &rng, 1);
    stripe_copy(&b, &a, quick);
    EXPECT_OK(weft_code_encode(quick, &a.view, 1, NULL));
    EXPECT_OK(weft_code_encode(plain, &b.view, 1, NULL));
    EXPECT(is_compiled(quick->encode) && !is_compiled(plain->encode));
    EXPECT(stripe_same(&a, &b, quick));
    stripe_clear(&a);
    stripe_clear(&b);
    weft_code_free(quick);
    weft_code_free(plain);
    weft_ctx_free(with);
    weft_ctx_free(without);
  }
}
END_TEST

// Returns how many bytes are encoded before machine code is made, or at least `most` if it is not.
static size_t until_compiled(size_t compile_after, const code_case *c, size_t most, test_rng *rng) {
  const weft_backend *row = row_that_compiles();
  weft_ctx *ctx = compiling(row->name, 1, compile_after);
  weft_code *code = code_on(ctx, c);
  const size_t bytes = c->w * c->packet_bytes;
  size_t read = 0;
  stripe s;
  trying(row->name, c);
  stripe_init(&s, code, bytes, rng, 0);
  for (; read < most && !(code->encode && is_compiled(code->encode)); read += c->k * bytes)
    EXPECT_OK(weft_code_encode(code, &s.view, 1, NULL));
  stripe_clear(&s);
  weft_code_free(code);
  weft_ctx_free(ctx);
  return read;
}

// A plan is compiled once that is worthwhile, or after as many bytes as the context says.
START_TEST(once_it_is_repaid_or_when_the_context_says) {
  const code_case c = {"cauchy_good", 10, 4, 4, 512};
  const size_t call = c.k * c.w * c.packet_bytes, most = 200 * call;
  test_rng rng = test_rng_new(test_seed(), 3300);
  if (!row_that_compiles()) {
    printf("skipped: no row of this machine compiles (AVX2 does)\n");
    return;
  }
  EXPECT(until_compiled(1, &c, most, &rng) == call);
  EXPECT(until_compiled(5 * call, &c, most, &rng) == 5 * call);
  EXPECT(until_compiled(SIZE_MAX, &c, most, &rng) == most);
  const size_t repaid = until_compiled(0, &c, most, &rng);
  EXPECT(repaid > call && repaid < most);
  const code_case odd = {"cauchy_good", 10, 4, 4, 520}; // not whole lines
  EXPECT(until_compiled(1, &odd, most, &rng) >= most);
}
END_TEST

// From now on, this process gets EACCES when it makes memory executable, as under SELinux or
// systemd's MemoryDenyWriteExecute.
static bool forbid_executable_memory(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { RETURNS = 0xc3, PAGE = 4096 };

// Reads how the page is mapped from /proc/self/maps; "" if it is not.
static void mapped(const uint8_t *page, char perms[8]) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long long begin, end;
  perms[0] = '\0';
  EXPECT(maps != NULL);
  while (fgets(line, sizeof line, maps)) {
    char found[8];
    if (sscanf(line, "%llx-%llx %7s", &begin, &end, found) == 3 && (uintptr_t)page >= begin &&
        (uintptr_t)page < end)
      strcpy(perms, found);
  }
  fclose(maps);
}

static size_t mapped_pages(void) {
  FILE *pages = fopen("/proc/self/statm", "r");
  size_t count;
  EXPECT(pages && fscanf(pages, "%zu", &count) == 1);
  fclose(pages);
  return count;
}

// Machine code occupies whole pages that are readable and executable, never writable, and all of it
// is freed.
START_TEST(code_is_never_writable_and_goes) {
  static uint8_t machine_code[3 * PAGE + 1];
  test_allocator memory;
  weft_xor_code *code = NULL;
  char perms[8];
  memset(machine_code, RETURNS, sizeof machine_code);
  test_allocator_init(&memory, 0);
  EXPECT_OK(weft_xor_code_new(&code, machine_code, sizeof machine_code, 0, &memory.allocator));
  const uint8_t *pages = code->pages;
  EXPECT(memcmp(pages, machine_code, sizeof machine_code) == 0);
  for (size_t i = 0; i < 4; i++) {
    mapped(pages + i * PAGE, perms);
    EXPECT(strcmp(perms, "r-xp") == 0);
  }
  weft_xor_code_free(code);
  for (size_t i = 0; i < 4; i++) {
    mapped(pages + i * PAGE, perms);
    EXPECT(strcmp(perms, "r-xp") != 0);
  }
  weft_xor_code_free(NULL);
  EXPECT(test_allocator_live(&memory) == 0);
}
END_TEST

// Machine code that may not be made executable leaves no memory mapped.
START_TEST(code_that_may_not_be_leaves_nothing) {
  enum { TRIES = 100, PAGES = 64 };
  static uint8_t machine_code[PAGES * PAGE];
  test_allocator memory;
  if (!forbid_executable_memory()) {
    printf("skipped: needs seccomp filters\n");
    return;
  }
  test_allocator_init(&memory, 0);
  const size_t before = mapped_pages();
  for (int i = 0; i < TRIES; i++) {
    weft_xor_code *code = NULL;
    EXPECT_STATUS(weft_xor_code_new(&code, machine_code, sizeof machine_code, 0, &memory.allocator),
                  WEFT_E_UNSUPPORTED);
    EXPECT(!code && test_allocator_live(&memory) == 0);
  }
  EXPECT(mapped_pages() < before + TRIES * PAGES / 2);
}
END_TEST

// A process that may not make memory executable codes without machine code.
START_TEST(a_process_that_may_not_works_without) {
  const weft_backend *row = row_that_compiles();
  test_rng rng = test_rng_new(test_seed(), 3400);
  if (!row || !forbid_executable_memory()) {
    printf("skipped: needs AVX2 and seccomp filters\n");
    return;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_ctx *ctx = compiling(row->name, 1, 1);
    weft_code *code = code_on(ctx, &cases[i]);
    stripe s;
    trying(row->name, &cases[i]);
    for (size_t round = 0; round < 2; round++) {
      stripe_encode(&s, code, 2 * cases[i].w * cases[i].packet_bytes, &rng, 1);
      stripe_clear(&s);
    }
    EXPECT(!is_compiled(code->encode));
    EXPECT(code->encode->blocks || atomic_load(&code->encode->reduced));
    weft_code_free(code);
    weft_ctx_free(ctx);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compiled plans");
  TCase *alone = tcase_create("alone"), *threads = tcase_create("threads");
  tcase_set_tags(alone, "one-thread");
  tcase_add_loop_test(threads, every_row_has_the_bytes_of_the_definition, 0,
                      (int)test_looped_row_count());
  tcase_add_loop_test(threads, every_loss_has_the_bytes_of_the_definition, 0,
                      (int)test_looped_row_count());
  tcase_add_loop_test(threads, lost_data_is_folded_where_parity_is_its_sum, 0,
                      (int)test_looped_row_count());
  tcase_add_test(threads, large_shards);
  tcase_add_test(alone, once_it_is_repaid_or_when_the_context_says);
  tcase_add_test(alone, code_is_never_writable_and_goes);
  tcase_add_test(alone, code_that_may_not_be_leaves_nothing);
  tcase_add_test(alone, a_process_that_may_not_works_without);
  suite_add_tcase(suite, alone);
  suite_add_tcase(suite, threads);
  return test_main(suite);
}
