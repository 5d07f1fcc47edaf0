// SPDX-License-Identifier: Apache-2.0
// Regions of 2 MiB, cut into pages of 128 KiB; each page holds pieces of one size class. A piece's
// class follows from its address, so that pieces need no header and lie close together.
#define _DEFAULT_SOURCE
#include "sim/core/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  REGION_BYTES = 1 << 21,
  PAGE_BYTES = 1 << 17,
  PAGES = REGION_BYTES / PAGE_BYTES,
  HEAD_BYTES = 4096, // of a region, at its start
  STEP = 64,         // sizes and alignments are multiples of this
  CLASSES = 128,
  PIECE_MAX = 1 << 16
};

// A region is found from any address in its first 2 MiB by rounding down. A piece too large for a
// page has its own mapping, which starts with the same head.
typedef struct region {
  struct region *next, *prior;
  size_t bytes; // of the mapping
  bool single;  // holds one large piece
  uint8_t page_class[PAGES];
} region;

typedef struct piece {
  struct piece *next;
} piece;

typedef struct size_class {
  size_t bytes;
  piece *spare;
  uint8_t *fresh, *end; // the unused rest of the current page
} size_class;

struct weft_sim_arena {
  region *regions;
  size_class classes[CLASSES];
  size_t class_count;
  region *cut; // the region that new pages come from
  size_t next_page;
  uint64_t bytes;
};

weft_sim_arena *weft_sim_arena_new(void) {
  weft_sim_arena *a = calloc(1, sizeof *a);
  if (!a)
    return NULL;
  // Steps of 64 up to 1,024 bytes, then sixteen classes per doubling: at most 1/16 is wasted.
  for (size_t bytes = STEP; bytes <= PIECE_MAX && a->class_count < CLASSES;) {
    a->classes[a->class_count++].bytes = bytes;
    size_t step = STEP;
    while (step * 32 <= bytes)
      step *= 2;
    bytes += step;
  }
  return a;
}

void weft_sim_arena_free(weft_sim_arena *arena) {
  if (!arena)
    return;
  for (region *r = arena->regions; r;) {
    region *next = r->next;
    munmap(r, r->bytes);
    r = next;
  }
  free(arena);
}

static region *map_region(weft_sim_arena *a, size_t bytes) {
  // Map REGION_BYTES more, then trim: the address must be a multiple of REGION_BYTES.
  const size_t asked = bytes + REGION_BYTES;
  uint8_t *raw =
      mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return NULL;
  const size_t skip = (REGION_BYTES - (uintptr_t)raw % REGION_BYTES) % REGION_BYTES;
  if (skip)
    munmap(raw, skip);
  if (asked - skip > bytes)
    munmap(raw + skip + bytes, asked - skip - bytes);
#ifdef MADV_HUGEPAGE
  (void)madvise(raw + skip, bytes, MADV_HUGEPAGE); // for speed only
#endif
  region *r = (region *)(void *)(raw + skip);
  r->bytes = bytes;
  r->next = a->regions;
  if (a->regions)
    a->regions->prior = r;
  a->regions = r;
  a->bytes += bytes;
  return r;
}

static void *take_single(weft_sim_arena *a, size_t bytes) {
  if (bytes > SIZE_MAX / 2)
    return NULL;
  region *r = map_region(a, (bytes + 2 * HEAD_BYTES - 1) / HEAD_BYTES * HEAD_BYTES);
  if (!r)
    return NULL;
  r->single = true;
  return (uint8_t *)r + HEAD_BYTES;
}

static bool new_page(weft_sim_arena *a, size_t index) {
  if (!a->cut || a->next_page == PAGES) {
    a->cut = map_region(a, REGION_BYTES);
    a->next_page = 0;
    if (!a->cut)
      return false;
  }
  const size_t page = a->next_page++;
  a->cut->page_class[page] = (uint8_t)index;
  size_class *c = &a->classes[index];
  c->fresh = (uint8_t *)a->cut + page * PAGE_BYTES + (page == 0 ? HEAD_BYTES : 0);
  c->end = (uint8_t *)a->cut + (page + 1) * PAGE_BYTES;
  return true;
}

static size_t class_of(const weft_sim_arena *a, size_t bytes) {
  size_t low = 0, high = a->class_count - 1;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (a->classes[middle].bytes < bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void *weft_sim_arena_take(weft_sim_arena *arena, size_t bytes, size_t align) {
  if (align > STEP || bytes > arena->classes[arena->class_count - 1].bytes)
    return align > HEAD_BYTES ? NULL : take_single(arena, bytes);
  const size_t index = class_of(arena, bytes);
  size_class *c = &arena->classes[index];
  if (c->spare) {
    piece *p = c->spare;
    c->spare = p->next;
    return p;
  }
  if ((size_t)(c->end - c->fresh) < c->bytes && !new_page(arena, index))
    return NULL;
  void *out = c->fresh;
  c->fresh += c->bytes;
  return out;
}

void weft_sim_arena_give(weft_sim_arena *arena, void *memory) {
  region *r = (region *)(void *)((uint8_t *)memory - (uintptr_t)memory % REGION_BYTES);
  if (r->single) {
    if (r->next)
      r->next->prior = r->prior;
    if (r->prior)
      r->prior->next = r->next;
    else
      arena->regions = r->next;
    arena->bytes -= r->bytes;
    munmap(r, r->bytes);
    return;
  }
  const size_t page = (uintptr_t)memory % REGION_BYTES / PAGE_BYTES;
  size_class *c = &arena->classes[r->page_class[page]];
  piece *p = memory;
  p->next = c->spare;
  c->spare = p;
}

uint64_t weft_sim_arena_bytes(const weft_sim_arena *arena) { return arena->bytes; }

static void *allocator_take(void *user, size_t bytes, size_t align) {
  return weft_sim_arena_take(user, bytes, align);
}

static void allocator_give(void *user, void *memory) { weft_sim_arena_give(user, memory); }

weft_allocator weft_sim_arena_allocator(weft_sim_arena *arena) {
  return (weft_allocator){.alloc = allocator_take, .free = allocator_give, .user = arena};
}
