// SPDX-License-Identifier: Apache-2.0
// A program as Gibraltar's users write it, in C++ and with nothing of weft but the include: encode,
// fail buffers, bring the intact ones to the front, recover the rest, compare.
#include "integrations/gibraltar/weft_gibraltar.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static int failures = 0;

static void expect(bool held, const char *what, gib_context gc) {
  if (held)
    return;
  std::fprintf(stderr, "%s: k = %d, m = %d\n", what, gc ? gc->k : 0, gc ? gc->m : 0);
  failures++;
}

// Loses `lost` of all buffers, chosen by `seed`, and recovers them behind k intact ones.
static void lose_and_recover(gib_context gc, unsigned char *data, int size, int lost,
                             unsigned seed) {
  const int total = gc->k + gc->m;
  std::vector<char> failed(static_cast<size_t>(total), 0);
  std::srand(seed);
  for (int i = 0; i < lost;) {
    const int probe = std::rand() % total;
    if (!failed[static_cast<size_t>(probe)]) {
      failed[static_cast<size_t>(probe)] = 1;
      i++;
    }
  }
  int buf_ids[256];
  int good = 0, bad = gc->k;
  for (int i = 0; i < total; i++)
    if (failed[static_cast<size_t>(i)])
      buf_ids[bad++] = i;
    else if (good < gc->k)
      buf_ids[good++] = i;

  void *dense = nullptr;
  int ld = 0;
  expect(gib_alloc(&dense, size, &ld, gc) == GIB_SUC, "gib_alloc", gc);
  unsigned char *buffers = static_cast<unsigned char *>(dense);
  for (int i = 0; i < gc->k; i++)
    std::memcpy(buffers + static_cast<size_t>(i) * static_cast<size_t>(ld),
                data + static_cast<size_t>(buf_ids[i]) * static_cast<size_t>(size),
                static_cast<size_t>(size));
  expect(gib_recover(dense, ld, buf_ids, lost, gc) == GIB_SUC, "gib_recover", gc);
  for (int i = 0; i < gc->k + lost; i++)
    expect(std::memcmp(buffers + static_cast<size_t>(i) * static_cast<size_t>(ld),
                       data + static_cast<size_t>(buf_ids[i]) * static_cast<size_t>(size),
                       static_cast<size_t>(size)) == 0,
           "recovered bytes", gc);
  expect(gib_free(dense, gc) == GIB_SUC, "gib_free", gc);
}

// The same loss twice, then another one, then more of it: each is made good by its own plan.
static void lose_in_turn(gib_context gc) {
  enum { SIZE = 64 };
  for (int round = 0; round < 8; round++) {
    const int lost = round / 2 % 2, count = 1 + round / 4;
    std::vector<unsigned char> all(static_cast<size_t>((gc->k + gc->m) * SIZE)), rows(all.size());
    for (int i = 0; i < gc->k * SIZE; i++)
      all[static_cast<size_t>(i)] = static_cast<unsigned char>(std::rand() % 256);
    expect(gib_generate(all.data(), SIZE, gc) == GIB_SUC, "gib_generate", gc);
    int ids[256], at = 0;
    for (int i = 0; at < gc->k; i++)
      if (i != lost)
        ids[at++] = i;
    ids[gc->k] = lost;
    ids[gc->k + 1] = gc->k + 1;
    for (int i = 0; i < gc->k; i++)
      std::memcpy(&rows[static_cast<size_t>(i * SIZE)], &all[static_cast<size_t>(ids[i] * SIZE)],
                  SIZE);
    expect(gib_recover(rows.data(), SIZE, ids, count, gc) == GIB_SUC, "gib_recover", gc);
    for (int i = gc->k; i < gc->k + count; i++)
      expect(std::memcmp(&rows[static_cast<size_t>(i * SIZE)],
                         &all[static_cast<size_t>(ids[i] * SIZE)], SIZE) == 0,
             "recovered in turn", gc);
    if (round == 3) { // a call that fails leaves nothing behind that the next one would take
      int twice[256] = {0};
      expect(gib_recover(rows.data(), SIZE, twice, 0, gc) == (gc->k > 1 ? GIB_ERR : GIB_SUC),
             "named twice", gc);
    }
  }
}

int main() {
  std::vector<gib_context> contexts; // several at once
  for (int m = 1; m <= 6; m++)
    for (int n = 1; n <= 9; n += 2) {
      gib_context gc = nullptr;
      const int rc = gib_init(n, m, &gc);
      expect(rc == GIB_SUC && gc && gc->k == n && gc->n == n && gc->m == m && gc->F, "gib_init",
             gc);
      if (rc != GIB_SUC)
        return EXIT_FAILURE;
      contexts.push_back(gc);
    }
  for (gib_context gc : contexts) {
    int size = 4096;
    void *data = nullptr;
    expect(gib_alloc(&data, size, &size, gc) == GIB_SUC && size >= 4096, "gib_alloc", gc);
    unsigned char *bytes = static_cast<unsigned char *>(data);
    for (int i = 0; i < size * gc->n; i++)
      bytes[i] = static_cast<unsigned char>(std::rand() % 256);
    expect(gib_generate(data, size, gc) == GIB_SUC, "gib_generate", gc);
    for (int lost = 0; lost <= gc->m; lost++)
      for (unsigned seed = 0; seed < 10; seed++)
        lose_and_recover(gc, bytes, size, lost, seed);

    if (gc->k > 1 && gc->m > 1)
      lose_in_turn(gc);

    // Part of the buffers alone, and what cannot be done.
    std::vector<unsigned char> before(bytes + gc->k * size, bytes + (gc->k + 1) * size);
    bytes[0] = static_cast<unsigned char>(bytes[0] ^ 1);
    bytes[size - 1] = static_cast<unsigned char>(bytes[size - 1] ^ 1);
    expect(gib_generate_nc(data, size, 100, gc) == GIB_SUC, "gib_generate_nc", gc);
    expect(bytes[gc->k * size] != before[0], "the part is generated", gc);
    expect(std::memcmp(bytes + gc->k * size + 100, before.data() + 100,
                       static_cast<size_t>(size - 100)) == 0,
           "the rest is as it was", gc);
    int ids[256] = {0};
    expect(gib_recover(data, size, ids, gc->m + 1, gc) == GIB_ERR, "too many", gc);
    ids[0] = 256;
    expect(gib_recover(data, size, ids, 0, gc) == GIB_ERR, "no such buffer", gc);
    expect(gib_generate_nc(data, 10, 11, gc) == GIB_ERR, "more than there is", gc);
    expect(gib_free(data, gc) == GIB_SUC, "gib_free", gc);
  }
  for (gib_context gc : contexts)
    expect(gib_destroy(gc) == GIB_SUC, "gib_destroy", gc);
  gib_context none = nullptr;
  expect(gib_init(0, 2, &none) == GIB_ERR && gib_init(200, 57, &none) == GIB_ERR, "sizes", none);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
