// SPDX-License-Identifier: Apache-2.0
// A want is a client's outstanding request for packets of a segment. Each segment keeps its wants
// by age, and the segments that have wants take turns: after a product a segment goes to the end of
// the list, so that one with many requests does not starve those with few.
#include <string.h>

#include "lib/server/internal.h"

enum {
  FIRST_WANTS = 8,
  KEPT_WANTS = 1024, // memory for so many, 24 KiB, is never given back
  FEW_PART = 8       // of the memory; when no more is used, most of the rest is given back
};

// --- turns ---

static void list_append(weft_server *server, weft_server_segment *entry) {
  entry->due_prev = server->due_tail;
  entry->due_next = NULL;
  *(server->due_tail ? &server->due_tail->due_next : &server->due_head) = entry;
  server->due_tail = entry;
}

static void list_remove(weft_server *server, weft_server_segment *entry) {
  *(entry->due_prev ? &entry->due_prev->due_next : &server->due_head) = entry->due_next;
  *(entry->due_next ? &entry->due_next->due_prev : &server->due_tail) = entry->due_prev;
  entry->due_prev = entry->due_next = NULL;
}

// Removes a segment without wants from the list; it may expire now.
static void leave(weft_server *server, weft_server_segment *entry) {
  list_remove(server, entry);
  if (entry->expires_us < server->next_expiry_us)
    server->next_expiry_us = entry->expires_us;
}

void weft_wants_pass_turn(weft_server *server, weft_server_segment *entry) {
  if (entry->want_count == 0) {
    leave(server, entry);
    return;
  }
  list_remove(server, entry);
  list_append(server, entry);
}

// --- wants ---

static void set_packets(weft_server *server, weft_server_segment *entry, size_t packets) {
  server->full -= weft_wants_full(entry);
  server->stats.pending_packets -= entry->want_packets;
  entry->want_packets = packets;
  server->stats.pending_packets += packets;
  server->full += weft_wants_full(entry);
}

static weft_status resize(weft_server *server, weft_server_segment *entry, size_t capacity) {
  if (entry->want_count == 0) { // nothing to copy
    weft_server_give_memory(server, entry->wants);
    entry->wants = NULL;
    entry->want_capacity = 0;
  }
  weft_server_want *wants = weft_server_take_memory(server, capacity * sizeof *wants);
  if (!wants)
    return WEFT_E_NOMEM;
  if (entry->want_count > 0)
    memcpy(wants, entry->wants, entry->want_count * sizeof *wants);
  weft_server_give_memory(server, entry->wants);
  entry->wants = wants;
  entry->want_capacity = capacity;
  return WEFT_OK;
}

// Gives memory back when few wants are left. From there it takes twice as many to grow again, and
// half as many to shrink again, so that allocations are few against wants.
static void shrink(weft_server *server, weft_server_segment *entry) {
  size_t capacity = entry->want_capacity;
  if (capacity <= KEPT_WANTS || entry->want_count > capacity / FEW_PART)
    return;
  while (capacity > KEPT_WANTS && entry->want_count <= capacity / 4)
    capacity /= 2;
  (void)resize(server, entry, capacity); // only saves memory
}

weft_status weft_wants_add(weft_server *server, weft_server_segment *entry,
                           const weft_server_want *want) {
  if (entry->want_count == entry->want_capacity)
    WEFT_TRY(resize(server, entry, entry->want_capacity ? entry->want_capacity * 2 : FIRST_WANTS));
  if (entry->want_count == 0)
    list_append(server, entry);
  entry->wants[entry->want_count++] = *want;
  set_packets(server, entry, entry->want_packets + want->packets);
  weft_server_touch(server, entry);
  return WEFT_OK;
}

// A want that does not fit is split; the rest of it stays.
void weft_wants_move(weft_server *server, weft_server_segment *entry, size_t packets,
                     weft_server_batch *batch) {
  size_t taken = 0, room = packets;
  while (taken < entry->want_count && room > 0) {
    weft_server_want *want = &entry->wants[taken];
    weft_server_want *moved = &batch->wants[batch->want_count++];
    *moved = *want;
    if (want->packets > room)
      moved->packets = (uint32_t)room;
    batch->packets += moved->packets;
    room -= moved->packets;
    want->packets -= moved->packets;
    if (want->packets > 0)
      break;
    taken++;
  }
  entry->want_count -= taken;
  memmove(entry->wants, entry->wants + taken, entry->want_count * sizeof *entry->wants);
  set_packets(server, entry, entry->want_packets - batch->packets);
  shrink(server, entry);
}

void weft_wants_cancel(weft_server *server, weft_server_segment *entry, uint64_t client) {
  size_t kept = 0, packets = 0;
  for (size_t i = 0; i < entry->want_count; i++) {
    if (entry->wants[i].client == client)
      continue;
    packets += entry->wants[i].packets;
    entry->wants[kept++] = entry->wants[i];
  }
  entry->want_count = kept;
  set_packets(server, entry, packets);
  shrink(server, entry);
  if (kept == 0)
    leave(server, entry);
}

void weft_wants_drop(weft_server *server, weft_server_segment *entry) {
  if (entry->want_count == 0)
    return;
  entry->want_count = 0;
  set_packets(server, entry, 0);
  list_remove(server, entry);
}
