// SPDX-License-Identifier: Apache-2.0
// Answers to requests of others: packets and blocks are owed until their turn comes, manifests and
// checksums are due at once.
#include "peer/engine/internal.h"

static void pay(weft_engine *e, weft_neighbour *n, size_t at) {
  for (size_t i = at + 1; i < n->owed_count; i++)
    n->owed[i - 1] = n->owed[i];
  n->owed_count--;
  e->owed_count--;
}

// Whether a request has waited for longer than its sender waits, while nothing else was sent to it
// either: the sender has asked elsewhere for that, or again.
static bool given_up(const weft_engine *e, const weft_neighbour *n, const weft_owed *r,
                     int64_t now_us) {
  const uint16_t now_ms = (uint16_t)(now_us / 1000);
  const int64_t most_ms = weft_ask_patience(e) / 1000;
  return (uint16_t)(now_ms - r->since_ms) > most_ms && (uint16_t)(now_ms - n->served_ms) > most_ms;
}

// Adds a request to one that is owed already: packets of one segment add up, as more of them are
// requested before the first have come. False: they are for different things.
static bool owe_more(const weft_engine *e, weft_owed *old, const weft_request *r) {
  if (old->segment != r->segment || old->kind != r->kind)
    return false;
  if (r->kind == WEFT_REQUEST_PACKETS) {
    const uint32_t sum = (uint32_t)old->count + r->count, most = weft_window_blocks(e, r->segment);
    if (old->count < most)
      old->count = (uint16_t)(sum < most ? sum : most);
    return true;
  }
  if (old->count != r->count)
    return false;
  old->mask |= r->mask;
  return true;
}

static void owe(weft_engine *e, size_t index, const weft_request *r, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  for (size_t i = n->owed_count; i-- > 0;)
    if (given_up(e, n, &n->owed[i], now_us))
      pay(e, n, i);
  for (size_t i = 0; i < n->owed_count; i++)
    if (owe_more(e, &n->owed[i], r)) {
      n->owed[i].since_ms = (uint16_t)(now_us / 1000);
      return;
    }
  if (n->owed_count >= weft_requests_room(e->options))
    return; // it will ask again
  n->owed[n->owed_count++] = (weft_owed){.segment = r->segment,
                                         .mask = r->mask,
                                         .count = r->count,
                                         .since_ms = (uint16_t)(now_us / 1000),
                                         .kind = (uint8_t)r->kind};
  e->owed_count++;
  e->idle = false;
}

// Manifests, checksums, addresses and HELLOs are sent at once, outside the pace of the uplink, and
// are longer than what asks for them. So a neighbour gets no more of them at a time than an honest
// one asks for, or it alone could keep the uplink busy.
bool weft_answer_allowed(weft_engine *e, size_t index, int64_t now_us) {
  enum { MORE = 4 };          // HELLOs and addresses
  weft_share_look(e, now_us); // which may reset the counts
  weft_neighbour *n = &e->neighbours[index];
  if (n->answers >= weft_requests_room(e->options) + MORE)
    return false; // it will ask again
  n->answers++;
  return true;
}

// Live: whether it was due here so long ago that no peer plays it any more, though clocks differ a
// little.
static bool stale(const weft_engine *e, uint64_t segment, int64_t now_us) {
  int64_t due_us;
  return weft_is_live(e) && weft_engine_play_time(e, segment, &due_us) == WEFT_OK &&
         due_us + weft_ask_ahead(e) / 4 <= now_us;
}

// Sends the newest manifest, which gives the time, to a neighbour that requests what is stale: it
// heard of the stream's time too late, and would go on requesting that.
static void tell_time(weft_engine *e, size_t index, int64_t now_us) {
  if (weft_window_has(e, e->timed_segment) && weft_window_slot(e, e->timed_segment)->manifest &&
      weft_answer_allowed(e, index, now_us))
    weft_neighbour_mark(e, index, e->timed_segment, WEFT_MARK_MANIFEST, WEFT_DUE_MANIFESTS);
}

void weft_requests_take(weft_engine *e, size_t index, const weft_requests *requests,
                        int64_t now_us) {
  if (e->neighbours[index].state != WEFT_NEIGHBOUR_OPEN)
    return;
  for (size_t i = 0; i < requests->count; i++) {
    const weft_request r = weft_requests_get(requests, i);
    const bool at_once = r.kind == WEFT_REQUEST_MANIFEST || r.kind == WEFT_REQUEST_CHECKSUM;
    e->statistics.received_requests++;
    if (at_once && !weft_answer_allowed(e, index, now_us))
      continue;
    if (r.kind == WEFT_REQUEST_MANIFEST && weft_window_has(e, r.segment)) {
      weft_neighbour_mark(e, index, r.segment, WEFT_MARK_MANIFEST, WEFT_DUE_MANIFESTS);
    } else if (r.kind == WEFT_REQUEST_MANIFEST) {
      e->neighbours[index].end_due = true; // all that can be given beyond the window
      weft_neighbour_due(e, index, WEFT_DUE_MANIFESTS);
    } else if (r.kind <= WEFT_REQUEST_BLOCKS && stale(e, r.segment, now_us)) {
      tell_time(e, index, now_us);
    } else if (r.kind == WEFT_REQUEST_CHECKSUM) {
      if (weft_window_has(e, r.segment))
        weft_neighbour_mark(e, index, r.segment, WEFT_MARK_CHECKSUM, WEFT_DUE_CHECKSUMS);
    } else if ((r.kind == WEFT_REQUEST_BLOCKS) == (e->codec->has != NULL) &&
               weft_loads_request(e, index, r.segment, now_us)) {
      owe(e, index, &r, now_us);
    }
  }
}

static bool serve_blocks(const weft_engine *e, weft_owed *r, size_t *count, uint64_t *mask) {
  uint8_t have[WEFT_MAX_BLOCKS / 8] = {0};
  e->codec->has(e->codec->user, weft_window_slot(e, r->segment)->segment, have);
  *count = 0;
  *mask = 0;
  for (size_t b = 0; b < 64 && *count < e->options->batch; b++) {
    const size_t block = r->count + b;
    if (!(r->mask >> b & 1) || block >= e->options->blocks || !(have[block / 8] >> block % 8 & 1))
      continue;
    *mask |= UINT64_C(1) << b;
    ++*count;
  }
  r->mask = *mask ? r->mask & ~*mask : 0;
  return *count > 0;
}

// Whether a request to a live source has been answered well enough. All peers ask the source for
// what a swarm lost of a segment: one answer will do, since they pass it on to each other, and a
// small one. A peer that lacks more, because no other gives to it, has to live on what the source
// pushes to all, or it would take everyone's uplink.
static bool mended(weft_engine *e, weft_owed *r, int64_t now_us) {
  weft_slot *slot = weft_window_slot(e, r->segment);
  if (!e->self.source || !weft_is_live(e) || e->options->policy->ask)
    return false;
  const uint32_t most = 1 + weft_window_blocks(e, r->segment) / 16;
  r->count = r->count < most ? r->count : (uint16_t)most;
  if (slot->solo_us && now_us - slot->solo_us < weft_ask_every(e))
    return true;
  slot->solo_us = now_us;
  return false;
}

static bool serve(weft_engine *e, size_t index, weft_policy_choice *out, int64_t now_us) {
  weft_neighbour *n = &e->neighbours[index];
  while (n->owed_count) {
    weft_owed *r = &n->owed[0];
    if (weft_loads_waits(e, r->segment) && !given_up(e, n, r, now_us))
      return false; // once it is loaded
    const bool here = weft_window_has(e, r->segment) && weft_window_held(e, r->segment)->rank > 0 &&
                      weft_window_slot(e, r->segment)->segment && !stale(e, r->segment, now_us) &&
                      !given_up(e, n, r, now_us);
    if (here && weft_manifest_offer(e, index, r->segment))
      return false; // the manifest goes first; this is still owed
    *out = (weft_policy_choice){.neighbour = index, .segment = r->segment};
    if (here && r->kind == WEFT_REQUEST_BLOCKS) {
      out->base = r->count;
      const bool some = serve_blocks(e, r, &out->count, &out->mask);
      if (r->mask == 0)
        pay(e, n, 0);
      if (some)
        return true;
    } else if (here && !mended(e, r, now_us)) {
      const size_t most = weft_ledbat_burst(e, n);
      out->count = r->count < most ? r->count : most;
      r->count = (uint16_t)(r->count - out->count);
      if (r->count == 0)
        pay(e, n, 0);
      return true;
    } else {
      pay(e, n, 0);
    }
  }
  return false;
}

bool weft_owed_next(weft_engine *e, bool in_turn, weft_policy_choice *out, int64_t now_us) {
  for (size_t i = 0; i < e->used && e->owed_count; i++) {
    const size_t index = (e->next_owed + i) % e->used;
    weft_neighbour *n = &e->neighbours[index];
    if (n->owed_count == 0 || !e->policy_view[index].open || (in_turn && !weft_share_in_turn(e, n)))
      continue;
    if (serve(e, index, out, now_us)) {
      weft_share_answer(e, n, out->count);
      n->served_ms = (uint16_t)(now_us / 1000);
      e->next_owed = (uint32_t)((index + 1) % e->used);
      return true;
    }
    if (e->due_count)
      return false; // a manifest goes first
  }
  return false;
}
