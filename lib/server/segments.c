// SPDX-License-Identifier: Apache-2.0
// The server's segments: found by id, ordered by last use, evicted by age and by budget.
#include <string.h>

#include "lib/server/internal.h"

static size_t slot_of(const weft_server *server, uint64_t stream, uint64_t segment) {
  // Ids count up; the odd multipliers spread them over the high bits.
  uint64_t mix = stream * 0x9E3779B97F4A7C15u ^ segment * 0xC2B2AE3D27D4EB4Fu;
  mix ^= mix >> 32;
  return (size_t)mix & (server->table_size - 1);
}

weft_server_segment *weft_server_find(const weft_server *server, uint64_t stream,
                                      uint64_t segment) {
  weft_server_segment *entry = server->table[slot_of(server, stream, segment)];
  while (entry && (entry->id.stream != stream || entry->id.segment != segment))
    entry = entry->hash_next;
  return entry;
}

static void use_list_remove(weft_server *server, weft_server_segment *entry) {
  *(entry->older ? &entry->older->newer : &server->oldest) = entry->newer;
  *(entry->newer ? &entry->newer->older : &server->newest) = entry->older;
  entry->older = entry->newer = NULL;
}

static void use_list_append(weft_server *server, weft_server_segment *entry) {
  entry->older = server->newest;
  entry->newer = NULL;
  *(server->newest ? &server->newest->newer : &server->oldest) = entry;
  server->newest = entry;
}

// Doubles the table, to keep chains short. Without memory they just get longer.
static void grow(weft_server *server) {
  const size_t size = server->table_size * 2;
  weft_server_segment **table = weft_server_take_memory(server, size * sizeof *table);
  if (!table)
    return;
  memset(table, 0, size * sizeof *table);
  weft_server_give_memory(server, server->table);
  server->table = table;
  server->table_size = size;
  for (weft_server_segment *entry = server->oldest; entry; entry = entry->newer) {
    weft_server_segment **slot = &table[slot_of(server, entry->id.stream, entry->id.segment)];
    entry->hash_next = *slot;
    *slot = entry;
  }
}

void weft_server_insert(weft_server *server, weft_server_segment *entry) {
  if (server->stats.segments >= server->table_size)
    grow(server);
  weft_server_segment **slot = &server->table[slot_of(server, entry->id.stream, entry->id.segment)];
  entry->hash_next = *slot;
  *slot = entry;
  use_list_append(server, entry);
  server->stats.segments++;
  server->stats.segment_bytes += entry->bytes;
  if (entry->expires_us < server->next_expiry_us)
    server->next_expiry_us = entry->expires_us;
}

void weft_server_touch(weft_server *server, weft_server_segment *entry) {
  use_list_remove(server, entry);
  use_list_append(server, entry);
}

// Queues an unreferenced segment for freeing. Its memory is large and may be on a device that
// another call has locked, so it is freed after the server's lock is released.
static void bury(weft_server *server, weft_server_segment *entry) {
  server->stats.segment_bytes -= entry->bytes;
  entry->hash_next = server->buried;
  server->buried = entry;
}

static void destroy(weft_server *server, weft_server_segment *entry) {
  for (size_t i = 0; i < server->lanes; i++)
    weft_segment_free(entry->resident[i]);
  weft_server_give_memory(server, entry->data);
  weft_server_give_memory(server, entry->wants);
  weft_server_give_memory(server, entry);
}

void weft_server_unlock(weft_server *server) {
  weft_server_segment *entry = server->buried, *next = NULL;
  server->buried = NULL;
  pthread_mutex_unlock(&server->lock);
  for (; entry; entry = next) {
    next = entry->hash_next;
    destroy(server, entry);
  }
}

void weft_server_remove(weft_server *server, weft_server_segment *entry) {
  weft_server_segment **link = &server->table[slot_of(server, entry->id.stream, entry->id.segment)];
  while (*link != entry)
    link = &(*link)->hash_next;
  *link = entry->hash_next;
  use_list_remove(server, entry);
  weft_wants_drop(server, entry);
  server->stats.segments--;
  entry->dead = true;
  if (entry->refs == 0)
    bury(server, entry);
}

void weft_server_unref(weft_server *server, weft_server_segment *entry) {
  if (--entry->refs == 0 && entry->dead)
    bury(server, entry);
}

void weft_server_expire(weft_server *server, int64_t now_us) {
  if (now_us < server->next_expiry_us)
    return;
  server->next_expiry_us = INT64_MAX;
  weft_server_segment *next = NULL;
  for (weft_server_segment *entry = server->oldest; entry; entry = next) {
    next = entry->newer;
    // Packets already promised are still made; the last of them sets next_expiry_us again.
    if (entry->want_count > 0)
      continue;
    if (entry->expires_us <= now_us) {
      server->stats.expired++;
      weft_server_remove(server, entry);
    } else if (entry->expires_us < server->next_expiry_us) {
      server->next_expiry_us = entry->expires_us;
    }
  }
}

static bool may_go(const weft_server_segment *entry) {
  return entry->refs == 0 && entry->want_count == 0;
}

bool weft_server_make_room(weft_server *server, size_t bytes) {
  const size_t budget = server->options.memory_bytes;
  if (bytes > budget)
    return false;
  // Check that eviction will make enough room before evicting anything.
  size_t held = server->stats.segment_bytes;
  weft_server_segment *entry = server->oldest, *next = NULL;
  for (; entry && held > budget - bytes; entry = entry->newer)
    held -= may_go(entry) ? entry->bytes : 0;
  if (held > budget - bytes)
    return false;
  for (entry = server->oldest; server->stats.segment_bytes > budget - bytes; entry = next) {
    next = entry->newer;
    if (!may_go(entry))
      continue;
    server->stats.evicted++;
    weft_server_remove(server, entry);
  }
  return true;
}
