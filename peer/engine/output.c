// SPDX-License-Identifier: Apache-2.0
// What the engine sends besides data. Nothing is queued: a message is made when it is asked for.
#include <string.h>

#include "peer/engine/internal.h"

// The end of the range that this peer accepts. Every map lists that range, so segments that are
// merely held for others, as in bulk, would cost much, and so would segments that do not exist yet,
// for which a wide live window has room.
static uint64_t taken_to(const weft_engine *e) {
  enum { ALWAYS = 64, TO_COME = 48 };
  uint64_t end = e->tail + e->window;
  const uint64_t ahead = e->options->ahead;
  if (weft_is_live(e) && e->window > ALWAYS) {
    const uint64_t known = e->rumour > e->horizon ? e->rumour : e->horizon;
    const uint64_t least = e->tail + ALWAYS,
                   soon = known + TO_COME > least ? known + TO_COME : least;
    end = soon < end ? soon : end;
  }
  return ahead && !weft_is_paced(e) && end > e->missing + ahead ? e->missing + ahead : end;
}

static size_t put_hello(weft_engine *e, size_t index, bool wanted, int64_t now_us, uint8_t *out) {
  weft_neighbour *n = &e->neighbours[index];
  const uint64_t first = weft_is_paced(e) ? e->tail : e->missing; // bulk: tail may be complete
  const bool from_zero = e->started && first == 0 && !e->self.source;
  const weft_hello hello = {.answer_wanted = wanted,
                            .stream = e->options->stream,
                            .blocks = (uint16_t)e->options->blocks,
                            .window = from_zero ? (uint16_t)(taken_to(e) - first) : 0,
                            .block_bytes = e->options->block_bytes,
                            .stamps = weft_neighbour_stamps(n, now_us)};
  if (wanted)
    n->hello_us = now_us;
  return weft_hello_write(&hello, out);
}

static uint16_t back_of(const weft_engine *e) {
  if (weft_loads(e) || e->rereads)
    return WEFT_MAP_BACK_ALL;
  const uint64_t back = e->missing - e->tail;
  return (uint16_t)(back < WEFT_MESSAGE_MAX_WINDOW ? back : WEFT_MESSAGE_MAX_WINDOW);
}

// Counts neighbours that have more of a segment. A live source is not counted: it sends to all.
static uint8_t helpers(const weft_engine *e, uint64_t segment) {
  const uint16_t received = weft_window_held(e, segment)->received;
  unsigned count = 0;
  for (size_t i = 0; i < e->used && count < WEFT_MAP_HELPERS_MAX; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    if (!e->policy_view[i].known || (n->is_source && weft_is_live(e)))
      continue;
    const weft_policy_want *want = weft_neighbour_want(e, n, segment);
    count += want ? want->rank > received : segment < n->first && segment >= n->oldest;
  }
  return (uint8_t)count;
}

// Counts suppliers, by which others divide what they send us: the mean of the neighbours that sent
// packets in the last second and of all open ones, since more will send whenever something new
// comes. Also counts, for each segment, the neighbours that have more of it. Done at intervals, for
// all maps.
static void count_suppliers(weft_engine *e, int64_t now_us) {
  enum { RECENT_US = 1000000, APART_US = 50000 };
  if (e->suppliers && now_us - e->suppliers_us < APART_US)
    return;
  size_t giving = 0, open = 0;
  for (size_t i = 0; i < e->used; i++) {
    const weft_neighbour *n = &e->neighbours[i];
    open += n->state == WEFT_NEIGHBOUR_OPEN && !n->doubtful;
    giving += n->state == WEFT_NEIGHBOUR_OPEN && now_us - n->gave_us < RECENT_US;
  }
  const size_t count = (giving + open + 1) / 2;
  e->suppliers_us = now_us;
  e->suppliers = (uint16_t)(count ? count : e->degree);
  for (uint64_t s = e->missing; !e->self.source && !e->blocks && s < weft_window_edge(e); s++)
    weft_window_slot(e, s)->helpers = weft_window_slot(e, s)->complete ? 0 : helpers(e, s);
}

static size_t put_map(weft_engine *e, size_t index, int64_t now_us, uint8_t *out) {
  weft_neighbour *n = &e->neighbours[index];
  count_suppliers(e, now_us);
  const size_t entry = e->blocks_stride ? e->blocks_stride : 2;
  uint64_t end = taken_to(e);
  if (e->end_known && end > weft_window_total(e))
    end = weft_window_total(e);
  size_t count = e->started && !e->self.source && e->missing < end ? (size_t)(end - e->missing) : 0;
  const size_t most = (WEFT_DATAGRAM_MAX - WEFT_MAP_BYTES) / entry;
  count = count < most ? count : most;
  const weft_map map = {.end_known = e->end_known,
                        .bitmaps = e->blocks_stride != 0,
                        .full = weft_shortage_full(e),
                        .forgone = e->shortage.asks ? WEFT_POLICY_ASKS : e->shortage.forgone,
                        .narrow = e->shortage.narrow || e->shortage.asks,
                        .first = e->missing,
                        .horizon = e->horizon,
                        .end_bytes = e->end_bytes,
                        .stamps = weft_neighbour_stamps(n, now_us),
                        .suppliers = e->suppliers,
                        .count = (uint16_t)count,
                        .epoch = e->epoch,
                        .back = back_of(e),
                        .entry_bytes = entry};
  for (size_t i = 0; i < count; i++) {
    const size_t at = weft_place(e, e->missing + i);
    uint8_t *bitmap = out + WEFT_MAP_BYTES + i * entry;
    // A segment counts as complete only once it is verified.
    const uint16_t rank = e->held[at].received, blocks = e->held[at].blocks;
    const bool claims = rank >= blocks && blocks > 0 && !e->slots[at].complete;
    if (!e->blocks_stride) {
      const bool spent = n->marks[at] & WEFT_MARK_SPENT;
      n->marks[at] = (uint8_t)(n->marks[at] & ~WEFT_MARK_SPENT);
      weft_map_put_rank(out, i, (uint16_t)(claims ? blocks - 1 : rank), e->slots[at].helpers,
                        spent);
      continue;
    }
    memset(bitmap, 0, entry);
    if (e->slots[at].segment)
      e->codec->has(e->codec->user, e->slots[at].segment, bitmap);
    if (claims)
      bitmap[(blocks - 1u) / 8] &= (uint8_t) ~(1u << (blocks - 1u) % 8);
  }
  weft_clock *clock = &e->clocks[index];
  clock->map_us = now_us;
  clock->told = e->version;
  clock->told_progress = e->progress;
  return weft_map_write(&map, out);
}

// Takes the mark off the next segment that has it; false: none has.
static bool take_mark(weft_engine *e, size_t index, unsigned mark, uint64_t *segment) {
  weft_neighbour *n = &e->neighbours[index];
  for (size_t at = 0; at < e->window; at++) {
    const size_t place = weft_place(e, e->tail + at);
    if (!(n->marks[place] & mark))
      continue;
    n->marks[place] = (uint8_t)(n->marks[place] & ~mark);
    *segment = e->number[place];
    return true;
  }
  return false;
}

static void done_with(weft_engine *e, size_t index, unsigned what) {
  e->due[index] = (uint16_t)(e->due[index] & ~what);
  e->due_count -= e->due[index] == 0;
}

static size_t put_manifest(weft_engine *e, size_t index, uint8_t *out) {
  weft_neighbour *n = &e->neighbours[index];
  uint64_t segment;
  while (take_mark(e, index, WEFT_MARK_MANIFEST, &segment)) {
    const size_t bytes = weft_manifest_put(e, segment, out);
    if (bytes)
      return bytes;
  }
  done_with(e, index, WEFT_DUE_MANIFESTS);
  const bool end = n->end_due && e->end_known;
  n->end_due = false;
  return end ? weft_manifest_put(e, WEFT_MESSAGE_MAX_SEGMENT, out) : 0;
}

static size_t put_checksum(weft_engine *e, size_t index, uint8_t *out) {
  uint64_t segment;
  while (take_mark(e, index, WEFT_MARK_REVEALED, &segment)) {
    const weft_slot *slot = weft_window_slot(e, segment);
    if (slot->reveal)
      return weft_revealed_write(
          &(weft_revealed){.segment = segment, .made_us = slot->reveal->made_us}, out);
  }
  while (take_mark(e, index, WEFT_MARK_CHECKSUM, &segment)) {
    const size_t bytes = weft_checksum_put(e, segment, out);
    if (bytes)
      return bytes;
  }
  done_with(e, index, WEFT_DUE_CHECKSUMS);
  return 0;
}

static size_t put_brake(weft_engine *e, size_t index, uint8_t *out) {
  uint64_t segment;
  if (take_mark(e, index, WEFT_MARK_BRAKE, &segment))
    return weft_brake_write(segment, out);
  done_with(e, index, WEFT_DUE_BRAKES);
  return 0;
}

static size_t put_ack(const weft_engine *e, size_t index, int64_t now_us, uint8_t *out) {
  const weft_neighbour *n = &e->neighbours[index];
  const weft_ack ack = {.sent = n->pace_sent,
                        .received = (uint32_t)n->received_packets,
                        .delay = n->pace_us - n->pace_stamp,
                        .stamp = n->pace_stamp,
                        .held = (uint32_t)now_us - n->pace_us};
  return weft_ack_write(&ack, out);
}

static size_t put_request(weft_engine *e, size_t index, uint8_t *out) {
  weft_neighbour *n = &e->neighbours[index];
  weft_request requests[WEFT_REQUEST_MAX_ENTRIES];
  size_t count = 0;
  for (size_t i = 0; i < n->ask_count && count < WEFT_REQUEST_MAX_ENTRIES; i++) {
    if (n->asks[i].sent)
      continue;
    n->asks[i].sent = true;
    requests[count++] = n->asks[i].request;
  }
  e->statistics.sent_requests += count;
  return count ? weft_request_write(requests, count, out) : 0;
}

static size_t put_one(weft_engine *e, size_t index, unsigned what, int64_t now_us, uint8_t *out) {
  weft_neighbour *n = &e->neighbours[index];
  switch (what) {
  case WEFT_DUE_HELLO:
  case WEFT_DUE_ANSWER:
    return put_hello(e, index, what == WEFT_DUE_HELLO, now_us, out);
  case WEFT_DUE_BYE:
    return weft_bye_write((weft_bye_reason)n->bye, out);
  case WEFT_DUE_ACK:
    n->ack_due_us = WEFT_ENGINE_NEVER;
    return n->pace_stamp ? put_ack(e, index, now_us, out) : 0;
  case WEFT_DUE_REQUEST:
    return put_request(e, index, out);
  case WEFT_DUE_MAP:
    return put_map(e, index, now_us, out);
  case WEFT_DUE_REFER:
    return weft_refer_put(e, index, 0, out);
  case WEFT_DUE_REFER_ASK:
    n->refer_asked = true;
    return weft_refer_put(e, index, WEFT_REFER_WANTED, out);
  case WEFT_DUE_MEET:
    return weft_meet_put(e, index, out);
  case WEFT_DUE_CALL:
    return weft_call_put(e, index, out);
  case WEFT_DUE_PACE:
    return weft_pace_put(n, now_us, out);
  default:
    return 0;
  }
}

// Whether the message may be sent in the neighbour's state.
static bool sayable(const weft_engine *e, size_t index, unsigned what) {
  const weft_neighbour *n = &e->neighbours[index];
  if (n->leaving)
    return what == WEFT_DUE_BYE;
  if (what == WEFT_DUE_HELLO || what == WEFT_DUE_ANSWER)
    return n->state == WEFT_NEIGHBOUR_GREETING || n->state == WEFT_NEIGHBOUR_OPEN;
  return n->state == WEFT_NEIGHBOUR_OPEN;
}

// Writes the most urgent message that is due to the neighbour; returns 0 if none is left.
size_t weft_control_put(weft_engine *e, size_t index, int64_t now_us, uint8_t *out) {
  while (e->due[index]) {
    const unsigned what = e->due[index] & (0u - e->due[index]); // the lowest bit
    if (!sayable(e, index, what)) {
      done_with(e, index, what);
      continue;
    }
    size_t bytes;
    if (what == WEFT_DUE_BRAKES) {
      bytes = put_brake(e, index, out);
    } else if (what == WEFT_DUE_MANIFESTS) {
      bytes = put_manifest(e, index, out);
    } else if (what == WEFT_DUE_CHECKSUMS) {
      bytes = put_checksum(e, index, out);
    } else {
      done_with(e, index, what);
      bytes = put_one(e, index, what, now_us, out);
    }
    if (bytes == 0)
      continue;
    e->neighbours[index].spoke_us = now_us;
    if (e->neighbours[index].leaving) {
      e->neighbours[index].leaving = false;
      if (e->leaving)
        e->neighbours[index].state = WEFT_NEIGHBOUR_FINISHED;
      else
        weft_neighbour_drop(e, index, WEFT_LOST_REPLACED);
    }
    return bytes;
  }
  return 0;
}

static void control_burst(weft_engine *e, size_t index, int64_t now_us, weft_burst *out) {
  *out = (weft_burst){.neighbour = index, .datagrams = e->scratch->datagrams};
  while (out->count < WEFT_CONTROL_ROOM) {
    uint8_t *at = e->scratch->control + out->count * WEFT_DATAGRAM_MAX;
    const size_t bytes = weft_control_put(e, index, now_us, at);
    if (bytes == 0)
      break;
    e->scratch->datagrams[out->count++] = (weft_datagram){.data = at, .bytes = bytes};
    out->wire_bytes += bytes;
    e->statistics.sent_control++;
    e->statistics.sent_control_bytes += bytes;
    weft_pace_spend(e, bytes, now_us);
  }
  weft_neighbour_timer(e, index);
}

weft_status weft_engine_output(weft_engine *e, int64_t now_us, weft_burst *out) {
  weft_requests_ask(e, now_us);
  for (;;) {
    for (size_t i = 0; i < e->used && e->due_count; i++) {
      if (!e->due[i])
        continue;
      control_burst(e, i, now_us, out);
      if (out->count)
        return WEFT_OK;
    }
    if (e->farewell)
      return WEFT_PENDING;
    const weft_status status = weft_burst_next(e, now_us, out);
    if (status != WEFT_PENDING || e->due_count == 0)
      return status;
  }
}
