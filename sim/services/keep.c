// SPDX-License-Identifier: Apache-2.0
// A store in virtual time: objects as shards of a storage code, each on a different peer, and the
// same objects as whole copies of about the same total size, on the same peers with the same fates.
// Peers leave and return, or leave for good. Bytes are real: the shards of a peer that is gone are
// destroyed, repairs are the library's recoveries, and reads are compared with what was put in.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"
#include "sim/services/keeping.h"

static const int64_t HOUR_US = INT64_C(3600) * 1000000;

static void fill(const weft_sim_keeping *s, uint32_t object) {
  weft_sim_rng rng = {.state = weft_sim_draw(s->p->seed, 300, object, 0)};
  for (size_t i = 0; i < s->object_bytes; i += sizeof(uint64_t)) {
    const uint64_t word = weft_sim_rng_next(&rng);
    memcpy(s->object + i, &word,
           s->object_bytes - i < sizeof word ? s->object_bytes - i : sizeof word);
  }
}

uint32_t weft_sim_place(weft_sim_keeping *s, const weft_sim_way *w, uint32_t object) {
  for (int tries = 0; tries < 64; tries++) {
    const uint32_t who = (uint32_t)weft_sim_rng_below(&s->rng, s->p->peers);
    if (s->peers[who].online && !weft_sim_holds_one(w, object, who))
      return who;
  }
  return WEFT_SIM_NO_HOLDER;
}

// --- Peers

// Draws depend on the peer and its session alone, so that both ways of keeping see the same fates.
static double drawn(const weft_sim_keeping *s, uint32_t who, uint64_t purpose) {
  return weft_sim_unit(weft_sim_draw(s->p->seed, 400 + purpose, who, s->peers[who].turns));
}

// Destroys the parts of a peer that is gone with its disk. The other peers see only that it is
// away.
static void destroy(weft_sim_keeping *s, uint32_t who) {
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++) {
    weft_sim_way *w = &s->ways[k];
    for (uint32_t o = 0; o < s->p->objects; o++) {
      uint32_t left = 0;
      for (uint32_t i = 0; i < w->parts; i++) {
        if (*weft_sim_holder_of(w, o, i) == who) {
          *weft_sim_intact_of(w, o, i) = false;
          memset(weft_sim_bytes_of(w, o, i), 0xA5, w->part_bytes);
        }
        left += *weft_sim_holder_of(w, o, i) != WEFT_SIM_NO_HOLDER && *weft_sim_intact_of(w, o, i);
      }
      if (left < w->needed && !w->lost[o]) {
        w->lost[o] = true;
        w->lost_count++;
      }
    }
  }
}

// Lets go of a gone peer's parts when a new one takes its place, with none of them. The other peers
// do not know which peer it replaces: they count the old one's parts until repair_after has passed,
// as for any absent peer.
static void disclaim(weft_sim_keeping *s, uint32_t who) {
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++) {
    weft_sim_way *w = &s->ways[k];
    for (uint32_t o = 0; o < s->p->objects; o++)
      for (uint32_t i = 0; i < w->parts; i++)
        if (*weft_sim_holder_of(w, o, i) == who && !*weft_sim_intact_of(w, o, i)) {
          *weft_sim_holder_of(w, o, i) = WEFT_SIM_NO_HOLDER;
          *weft_sim_counted_until_of(w, o, i) = s->peers[who].since_us + s->p->repair_after_us;
        }
  }
}

static weft_status come(weft_sim_keeping *s, uint32_t who, int64_t now_us) {
  weft_sim_holder *p = &s->peers[who];
  disclaim(s, who);
  p->online = true;
  p->since_us = now_us;
  p->turns++;
  s->online++;
  const double stay_s = -s->p->stay_mean_s * log1p(-drawn(s, who, 0));
  return weft_sim_agenda_put(&s->agenda, now_us + (int64_t)(stay_s * 1e6), WEFT_SIM_GO, who, 0);
}

static weft_status go(weft_sim_keeping *s, uint32_t who, int64_t now_us) {
  weft_sim_holder *p = &s->peers[who];
  p->online = false;
  p->since_us = now_us;
  s->online--;
  if (drawn(s, who, 1) < s->p->gone_share)
    destroy(s, who); // another peer comes in its place, with nothing
  const double away_s = -s->p->away_mean_s * log1p(-drawn(s, who, 2));
  WEFT_TRY(
      weft_sim_agenda_put(&s->agenda, now_us + (int64_t)(away_s * 1e6), WEFT_SIM_RETURN, who, 0));
  return weft_sim_agenda_put(&s->agenda, now_us + s->p->repair_after_us, WEFT_SIM_LOOK, who, 0);
}

// --- Reading

static void compare(weft_sim_way *w, const uint8_t *got, const uint8_t *put, size_t bytes) {
  if (memcmp(got, put, bytes) == 0)
    return;
  for (size_t i = 0; i < bytes; i++)
    w->wrong_bytes += got[i] != put[i];
}

static weft_status read_coded(weft_sim_keeping *s, uint32_t object) {
  weft_sim_way *w = &s->ways[WEFT_SIM_CODED];
  uint8_t absent[WEFT_SIM_SHARDS], wanted[WEFT_SIM_SHARDS];
  uint8_t *shards[WEFT_SIM_SHARDS];
  size_t absent_count = 0, wanted_count = 0;
  for (uint32_t i = 0; i < w->parts; i++) {
    shards[i] = weft_sim_bytes_of(w, object, i);
    if (weft_sim_is_online(s, *weft_sim_holder_of(w, object, i)))
      continue;
    absent[absent_count++] = (uint8_t)i;
    if (i < w->needed) { // into the reader's memory, not the absent peer's
      wanted[wanted_count++] = (uint8_t)i;
      shards[i] = s->scratch + i * w->part_bytes;
    }
  }
  if (wanted_count > 0) {
    const weft_stripe stripe = {.shards = shards, .bytes = w->part_bytes, .mem = WEFT_MEM_HOST};
    const weft_erasures erasures = {
        .lost = absent, .lost_count = absent_count, .wanted = wanted, .wanted_count = wanted_count};
    WEFT_TRY(weft_code_recover(s->code, &erasures, &stripe, 1, NULL));
    w->reads_decoded++;
  }
  for (uint32_t i = 0; i < w->needed; i++)
    compare(w, shards[i], s->object + i * w->part_bytes, w->part_bytes);
  return WEFT_OK;
}

static weft_status read_one(weft_sim_keeping *s, int64_t now_us) {
  const uint32_t object = (uint32_t)weft_sim_rng_below(&s->rng, s->p->objects);
  fill(s, object);
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++) {
    weft_sim_way *w = &s->ways[k];
    w->reads++;
    if (w->lost[object] || weft_sim_online_parts(s, w, object) < w->needed)
      continue;
    w->reads_good++;
    if (k == WEFT_SIM_CODED)
      WEFT_TRY(read_coded(s, object));
    for (uint32_t i = 0; k == WEFT_SIM_COPIED && i < w->parts; i++)
      if (weft_sim_is_online(s, *weft_sim_holder_of(w, object, i))) {
        compare(w, weft_sim_bytes_of(w, object, i), s->object, w->part_bytes);
        break;
      }
  }
  const double wait_h = -log1p(-weft_sim_unit(weft_sim_rng_next(&s->rng))) / s->p->reads_per_hour;
  return weft_sim_agenda_put(&s->agenda, weft_sim_after(now_us, wait_h * (double)HOUR_US),
                             WEFT_SIM_READ, 0, 0);
}

// --- The run

static weft_status end_hour(weft_sim_keeping *s, int64_t now_us) {
  weft_sim_hour *h = &s->out->hours[s->out->hour_count++];
  uint64_t readable[WEFT_SIM_WAYS] = {0};
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      readable[k] +=
          !s->ways[k].lost[o] && weft_sim_online_parts(s, &s->ways[k], o) >= s->ways[k].needed;
  *h = (weft_sim_hour){.online = s->online,
                       .coded_readable = readable[WEFT_SIM_CODED],
                       .copied_readable = readable[WEFT_SIM_COPIED],
                       .coded_lost = s->ways[WEFT_SIM_CODED].lost_count,
                       .copied_lost = s->ways[WEFT_SIM_COPIED].lost_count,
                       .coded_repair_bytes = s->ways[WEFT_SIM_CODED].hour_bytes,
                       .copied_repair_bytes = s->ways[WEFT_SIM_COPIED].hour_bytes};
  s->ways[WEFT_SIM_CODED].hour_bytes = s->ways[WEFT_SIM_COPIED].hour_bytes = 0;
  crypto_generichash_update(s->hash, (const uint8_t *)h, sizeof *h);
  WEFT_TRY(weft_sim_look_at_all(s, now_us));
  if (now_us + HOUR_US > s->p->duration_us)
    return WEFT_OK;
  return weft_sim_agenda_put(&s->agenda, now_us + HOUR_US, WEFT_SIM_HOUR, 0, 0);
}

static weft_status happen(weft_sim_keeping *s, const weft_sim_entry *e) {
  switch (e->kind) {
  case WEFT_SIM_GO:
    return go(s, e->who, e->time_us);
  case WEFT_SIM_RETURN:
    return come(s, e->who, e->time_us);
  case WEFT_SIM_LOOK:
    return weft_sim_look_after(s, e->who, e->time_us);
  case WEFT_SIM_REPAIRED:
    return weft_sim_end_repair(s, e->what, e->who, e->time_us);
  case WEFT_SIM_READ:
    return read_one(s, e->time_us);
  default:
    return end_hour(s, e->time_us);
  }
}

static weft_status way_new(const weft_sim_keeping *s, weft_sim_way *w, uint32_t parts,
                           uint32_t needed, size_t part_bytes) {
  const size_t all = (size_t)s->p->objects * parts;
  *w = (weft_sim_way){.parts = parts, .needed = needed, .part_bytes = part_bytes};
  w->holder = calloc(all, sizeof *w->holder);
  w->intact = calloc(all, sizeof *w->intact);
  w->counted_until_us = calloc(all, sizeof *w->counted_until_us);
  w->bytes = calloc(all, part_bytes);
  w->under_repair = calloc(s->p->objects, sizeof *w->under_repair);
  w->lost = calloc(s->p->objects, sizeof *w->lost);
  return w->holder && w->intact && w->counted_until_us && w->bytes && w->under_repair && w->lost
             ? WEFT_OK
             : WEFT_E_NOMEM;
}

// Puts every object on peers that are online.
static weft_status put_all(weft_sim_keeping *s) {
  for (uint32_t o = 0; o < s->p->objects; o++) {
    fill(s, o);
    uint8_t *shards[WEFT_SIM_SHARDS];
    for (size_t k = 0; k < WEFT_SIM_WAYS; k++) {
      weft_sim_way *w = &s->ways[k];
      for (uint32_t i = 0; i < w->parts; i++)
        *weft_sim_holder_of(w, o, i) = WEFT_SIM_NO_HOLDER;
      for (uint32_t i = 0; i < w->parts; i++) {
        *weft_sim_holder_of(w, o, i) = weft_sim_place(s, w, o);
        if (*weft_sim_holder_of(w, o, i) == WEFT_SIM_NO_HOLDER)
          return WEFT_E_ARGUMENT; // check.c requires more peers than parts
        *weft_sim_intact_of(w, o, i) = true;
      }
    }
    for (uint32_t i = 0; i < s->ways[WEFT_SIM_CODED].parts; i++)
      shards[i] = weft_sim_bytes_of(&s->ways[WEFT_SIM_CODED], o, i);
    for (uint32_t i = 0; i < s->ways[WEFT_SIM_CODED].needed; i++)
      memcpy(shards[i], s->object + i * s->p->shard_bytes, s->p->shard_bytes);
    const weft_stripe stripe = {.shards = shards, .bytes = s->p->shard_bytes, .mem = WEFT_MEM_HOST};
    WEFT_TRY(weft_code_encode(s->code, &stripe, 1, NULL));
    for (uint32_t i = 0; i < s->ways[WEFT_SIM_COPIED].parts; i++)
      memcpy(weft_sim_bytes_of(&s->ways[WEFT_SIM_COPIED], o, i), s->object, s->object_bytes);
  }
  return WEFT_OK;
}

static weft_status start(weft_sim_keeping *s) {
  const weft_sim_parameters *p = s->p;
  const uint32_t k = p->data_shards, m = p->parity_shards;
  s->object_bytes = (size_t)k * p->shard_bytes;
  s->rng.state = weft_sim_draw(p->seed, 500, 0, 0);
  s->peers = calloc(p->peers, sizeof *s->peers);
  s->object = malloc(s->object_bytes);
  s->scratch = malloc(s->object_bytes);
  s->out->hours = calloc((size_t)(p->duration_us / HOUR_US) + 1, sizeof *s->out->hours);
  if (!s->peers || !s->object || !s->scratch || !s->out->hours)
    return WEFT_E_NOMEM;
  const weft_ctx_options how = {.backend = s->options->backend};
  WEFT_TRY(weft_ctx_new(&s->ctx, &how));
  snprintf(s->out->backend, sizeof s->out->backend, "%s", weft_ctx_backend(s->ctx));
  const weft_code_options code = {.name = p->code, .k = k, .m = m};
  WEFT_TRY(weft_code_new(s->ctx, &code, &s->code));
  if (weft_code_parity_bytes(s->code, p->shard_bytes) != p->shard_bytes)
    return WEFT_E_ARGUMENT; // shards must be whole units of the code
  WEFT_TRY(way_new(s, &s->ways[WEFT_SIM_CODED], k + m, k, p->shard_bytes));
  WEFT_TRY(way_new(s, &s->ways[WEFT_SIM_COPIED], (k + m + k / 2) / k, 1, s->object_bytes));
  s->hash = aligned_alloc(64, (sizeof *s->hash + 63) / 64 * 64);
  if (!s->hash)
    return WEFT_E_NOMEM;
  crypto_generichash_init(s->hash, NULL, 0, WEFT_SIM_HASH_BYTES);
  // All peers are online when the objects are put in.
  for (uint32_t i = 0; i < p->peers; i++)
    WEFT_TRY(come(s, i, 0));
  WEFT_TRY(put_all(s));
  if (p->reads_per_hour > 0)
    WEFT_TRY(weft_sim_agenda_put(&s->agenda, HOUR_US / 2, WEFT_SIM_READ, 0, 0));
  return weft_sim_agenda_put(&s->agenda, HOUR_US, WEFT_SIM_HOUR, 0, 0);
}

static weft_status run(weft_sim_keeping *s) {
  weft_sim_result *r = &s->out->result;
  weft_sim_entry e;
  while (weft_sim_agenda_take(&s->agenda, &e) && e.time_us <= s->p->duration_us) {
    WEFT_TRY(happen(s, &e));
    r->totals.events++;
    if (r->totals.events % 256 == 0 && s->options->keep_on &&
        !s->options->keep_on(s->options->user, e.time_us))
      return WEFT_PENDING;
  }
  r->end_us = s->p->duration_us;
  return WEFT_OK;
}

static uint64_t way_bytes(const weft_sim_keeping *s, const weft_sim_way *w) {
  const size_t part =
      sizeof *w->holder + sizeof *w->intact + sizeof *w->counted_until_us + w->part_bytes;
  return (uint64_t)s->p->objects * (w->parts * part + sizeof *w->under_repair + sizeof *w->lost);
}

static void sum_up_way(const weft_sim_keeping *s, const weft_sim_way *w,
                       const char *const names[9]) {
  weft_sim_metrics *m = &s->out->own;
  const double objects = s->p->objects, days = (double)s->p->duration_us / 86400e6;
  const double kept = objects * (double)w->parts * (double)w->part_bytes;
  const double values[9] = {(double)w->parts * (double)w->part_bytes / (double)s->object_bytes,
                            (double)w->lost_count,
                            1 - (double)w->lost_count / objects,
                            w->reads ? (double)w->reads_good / (double)w->reads : (double)NAN,
                            w->reads_good ? (double)w->reads_decoded / (double)w->reads_good
                                          : (double)NAN,
                            (double)w->repairs,
                            (double)w->repaired_parts,
                            (double)w->repair_bytes,
                            (double)w->repair_bytes / kept / days};
  for (size_t i = 0; i < 9; i++)
    weft_sim_add_metric(m, names[i], values[i]);
}

static void sum_up(weft_sim_keeping *s) {
  static const char *const coded[] = {
      "coded_overhead",          "coded_lost",          "coded_durability",
      "coded_read_availability", "coded_reads_decoded", "coded_repairs",
      "coded_repaired_parts",    "coded_repair_bytes",  "coded_repair_share_per_day"};
  static const char *const copied[] = {
      "copied_overhead",          "copied_lost",          "copied_durability",
      "copied_read_availability", "copied_reads_decoded", "copied_repairs",
      "copied_repaired_parts",    "copied_repair_bytes",  "copied_repair_share_per_day"};
  weft_sim_result *r = &s->out->result;
  double online = 0;
  for (size_t h = 0; h < s->out->hour_count; h++)
    online += (double)s->out->hours[h].online;
  weft_sim_add_metric(&s->out->own, "peers", s->p->peers);
  weft_sim_add_metric(&s->out->own, "online_mean",
                      s->out->hour_count ? online / (double)s->out->hour_count : (double)NAN);
  weft_sim_add_metric(&s->out->own, "reads", (double)s->ways[WEFT_SIM_CODED].reads);
  r->memory_bytes =
      way_bytes(s, &s->ways[WEFT_SIM_CODED]) + way_bytes(s, &s->ways[WEFT_SIM_COPIED]);
  sum_up_way(s, &s->ways[WEFT_SIM_CODED], coded);
  sum_up_way(s, &s->ways[WEFT_SIM_COPIED], copied);
  r->totals.wrong_bytes =
      s->ways[WEFT_SIM_CODED].wrong_bytes + s->ways[WEFT_SIM_COPIED].wrong_bytes;
  weft_sim_add_metric(&s->out->own, "wrong_bytes", (double)r->totals.wrong_bytes);
  weft_sim_add_metric(&s->out->own, "events", (double)r->totals.events);
  crypto_generichash_final(s->hash, r->hash, sizeof r->hash);
}

weft_status weft_sim_keep(const weft_sim_service_options *options, weft_sim_service *out) {
  *out = (weft_sim_service){0};
  weft_sim_keeping s = {.options = options, .p = options->parameters, .out = out};
  weft_status status = start(&s);
  if (status == WEFT_OK)
    status = run(&s);
  if (status == WEFT_OK)
    sum_up(&s);
  for (size_t k = 0; k < WEFT_SIM_WAYS; k++) {
    free(s.ways[k].holder);
    free(s.ways[k].intact);
    free(s.ways[k].counted_until_us);
    free(s.ways[k].bytes);
    free(s.ways[k].under_repair);
    free(s.ways[k].lost);
  }
  weft_code_free(s.code);
  weft_ctx_free(s.ctx);
  weft_sim_agenda_clear(&s.agenda);
  free(s.peers);
  free(s.object);
  free(s.scratch);
  free(s.hash);
  return status;
}
