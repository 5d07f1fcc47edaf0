// SPDX-License-Identifier: Apache-2.0
// An allocator for millions of small objects of few sizes: size classes in big blocks that the
// system may back with huge pages, without a header per piece. Only one thread may use an arena at
// a time.
#ifndef WEFT_SIM_CORE_ARENA_H
#define WEFT_SIM_CORE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "weft/memory.h"

typedef struct weft_sim_arena weft_sim_arena;

weft_sim_arena *weft_sim_arena_new(void);        // NULL: no memory
void weft_sim_arena_free(weft_sim_arena *arena); // frees all pieces as well; accepts NULL
void *weft_sim_arena_take(weft_sim_arena *arena, size_t bytes, size_t align); // NULL: no memory
void weft_sim_arena_give(weft_sim_arena *arena, void *memory);
uint64_t weft_sim_arena_bytes(const weft_sim_arena *arena); // obtained from the system
weft_allocator weft_sim_arena_allocator(weft_sim_arena *arena);

#endif
