// SPDX-License-Identifier: Apache-2.0
// A store in virtual time: objects as shards of a storage code, each on another peer, and the same
// objects as whole copies of about the same size together, on the same peers with the same fate.
// Peers go and come back, or go for good; who is away too long counts as gone, and what it held is
// made anew elsewhere from what is there. Bytes are real: shards of the gone are destroyed, repairs
// are the library's recoveries, reads are compared with what was put in.
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rng.h"
#include "sim/services/agenda.h"
#include "sim/services/services.h"
#include "weft/storage.h"
#include "weft/weft.h"

#define NOBODY UINT32_MAX
static const int64_t HOUR_US = INT64_C(3600) * 1000000;

enum { SHARDS = 256 };
enum { GO, RETURN, LOOK, REPAIRED, READ, HOUR }; // kinds of entries
enum { CODED, COPIED, WAYS };                    // of keeping an object

typedef struct peer {
  bool online;
  uint32_t turns; // sessions so far, to draw by
  int64_t since_us;
} peer;

// A way of keeping all objects: `parts` pieces of `part_bytes` each, any `needed` of which suffice.
typedef struct way {
  uint32_t parts, needed;
  size_t part_bytes;
  uint32_t *holder;   // (objects, parts) NOBODY: nowhere
  bool *intact;       // (objects, parts) or its holder lost it, which shows when one comes back
  uint8_t *bytes;     // (objects, parts, part_bytes)
  bool *under_repair; // (objects)
  bool *lost;         // (objects)
  uint64_t lost_count, repairs, repaired_parts, repair_bytes;
  uint64_t reads, reads_good, reads_decoded, wrong_bytes;
  uint64_t hour_bytes;
} way;

typedef struct keeping {
  const weft_sim_service_options *options;
  const weft_sim_parameters *p;
  weft_ctx *ctx;
  weft_code *code;
  weft_sim_agenda agenda;
  weft_sim_service *out;
  peer *peers; // (p->peers)
  way ways[WAYS];
  size_t object_bytes;
  uint8_t *object, *scratch; // an object; and its shards in a read
  weft_sim_rng rng;          // of placing and reading; not of peers' fates
  uint64_t online;
  crypto_generichash_state *hash; // libsodium wants it aligned to 64 bytes
} keeping;

static void fill(const keeping *s, uint32_t object) {
  weft_sim_rng rng = {.state = weft_sim_draw(s->p->seed, 300, object, 0)};
  for (size_t i = 0; i < s->object_bytes; i += sizeof(uint64_t)) {
    const uint64_t word = weft_sim_rng_next(&rng);
    memcpy(s->object + i, &word,
           s->object_bytes - i < sizeof word ? s->object_bytes - i : sizeof word);
  }
}

static uint32_t *holder_of(const way *w, uint32_t object, uint32_t part) {
  return &w->holder[(size_t)object * w->parts + part];
}

static bool *intact_of(const way *w, uint32_t object, uint32_t part) {
  return &w->intact[(size_t)object * w->parts + part];
}

static uint8_t *bytes_of(const way *w, uint32_t object, uint32_t part) {
  return w->bytes + ((size_t)object * w->parts + part) * w->part_bytes;
}

static bool is_online(const keeping *s, uint32_t holder) {
  return holder != NOBODY && s->peers[holder].online;
}

// Whether the others believe that a holder still has its part.
static bool counts(const keeping *s, uint32_t holder, int64_t now_us) {
  return holder != NOBODY &&
         (s->peers[holder].online || now_us - s->peers[holder].since_us < s->p->repair_after_us);
}

static bool holds_one(const way *w, uint32_t object, uint32_t who) {
  for (uint32_t i = 0; i < w->parts; i++)
    if (*holder_of(w, object, i) == who)
      return true;
  return false;
}

// A peer that is there and has no part of the object yet; NOBODY: none was found.
static uint32_t place(keeping *s, const way *w, uint32_t object) {
  for (int tries = 0; tries < 64; tries++) {
    const uint32_t who = (uint32_t)weft_sim_rng_below(&s->rng, s->p->peers);
    if (s->peers[who].online && !holds_one(w, object, who))
      return who;
  }
  return NOBODY;
}

static uint32_t online_parts(const keeping *s, const way *w, uint32_t object) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->parts; i++)
    count += is_online(s, *holder_of(w, object, i));
  return count;
}

// --- Peers

// Draws belong to the peer and its turn, so that both ways see the same fates.
static double drawn(const keeping *s, uint32_t who, uint64_t purpose) {
  return weft_sim_unit(weft_sim_draw(s->p->seed, 400 + purpose, who, s->peers[who].turns));
}

// With disk and all; the others see somebody who is away.
static void destroy(keeping *s, uint32_t who) {
  for (size_t k = 0; k < WAYS; k++) {
    way *w = &s->ways[k];
    for (uint32_t o = 0; o < s->p->objects; o++) {
      uint32_t left = 0;
      for (uint32_t i = 0; i < w->parts; i++) {
        if (*holder_of(w, o, i) == who) {
          *intact_of(w, o, i) = false;
          memset(bytes_of(w, o, i), 0xA5, w->part_bytes);
        }
        left += *holder_of(w, o, i) != NOBODY && *intact_of(w, o, i);
      }
      if (left < w->needed && !w->lost[o]) {
        w->lost[o] = true;
        w->lost_count++;
      }
    }
  }
}

// Somebody new in the place of a peer that is gone has none of its parts.
static void disclaim(keeping *s, uint32_t who) {
  for (size_t k = 0; k < WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      for (uint32_t i = 0; i < s->ways[k].parts; i++)
        if (*holder_of(&s->ways[k], o, i) == who && !*intact_of(&s->ways[k], o, i))
          *holder_of(&s->ways[k], o, i) = NOBODY;
}

static weft_status come(keeping *s, uint32_t who, int64_t now_us) {
  peer *p = &s->peers[who];
  disclaim(s, who);
  p->online = true;
  p->since_us = now_us;
  p->turns++;
  s->online++;
  const double stay_s = -s->p->stay_mean_s * log1p(-drawn(s, who, 0));
  return weft_sim_agenda_put(&s->agenda, now_us + (int64_t)(stay_s * 1e6), GO, who, 0);
}

static weft_status go(keeping *s, uint32_t who, int64_t now_us) {
  peer *p = &s->peers[who];
  p->online = false;
  p->since_us = now_us;
  s->online--;
  if (drawn(s, who, 1) < s->p->gone_share)
    destroy(s, who); // somebody else comes in its place, with nothing
  const double away_s = -s->p->away_mean_s * log1p(-drawn(s, who, 2));
  WEFT_TRY(weft_sim_agenda_put(&s->agenda, now_us + (int64_t)(away_s * 1e6), RETURN, who, 0));
  return weft_sim_agenda_put(&s->agenda, now_us + s->p->repair_after_us, LOOK, who, 0);
}

// --- Repair

// Begins where too few parts are counted. What it moves: the parts needed to one peer, which makes
// the missing ones and keeps one of them; a whole copy goes from one peer to another.
static weft_status look_at(keeping *s, size_t kind, uint32_t object, int64_t now_us) {
  way *w = &s->ways[kind];
  if (w->lost[object] || w->under_repair[object])
    return WEFT_OK;
  uint32_t counted = 0;
  for (uint32_t i = 0; i < w->parts; i++)
    counted += counts(s, *holder_of(w, object, i), now_us);
  const uint32_t below = kind == CODED && s->p->repair_below ? s->p->repair_below : w->parts;
  if (counted >= below || online_parts(s, w, object) < w->needed)
    return WEFT_OK; // enough, or too few to begin now; the next hour looks again
  const uint32_t missing = w->parts - counted;
  const uint64_t moved =
      kind == CODED ? (w->needed + missing - 1) * w->part_bytes : missing * w->part_bytes;
  w->under_repair[object] = true;
  w->repairs++;
  w->repair_bytes += moved;
  w->hour_bytes += moved;
  const double us = (double)moved * 8e6 / (double)s->p->repair_bits_per_s;
  return weft_sim_agenda_put(&s->agenda, now_us + (int64_t)us, REPAIRED, object, (uint32_t)kind);
}

// What can be made now: missing parts, from those that are online.
static weft_status make_parts(keeping *s, way *w, size_t kind, uint32_t object,
                              const uint8_t *missing, size_t count) {
  if (kind == COPIED) {
    for (uint32_t i = 0; i < w->parts; i++)
      if (is_online(s, *holder_of(w, object, i))) {
        for (size_t m = 0; m < count; m++)
          memcpy(bytes_of(w, object, missing[m]), bytes_of(w, object, i), w->part_bytes);
        return WEFT_OK;
      }
    return WEFT_OK;
  }
  uint8_t absent[SHARDS]; // not to be read: the missing, and those whose peers are away
  uint8_t *shards[SHARDS];
  size_t absent_count = 0;
  for (uint32_t i = 0; i < w->parts; i++) {
    shards[i] = bytes_of(w, object, i);
    if (!is_online(s, *holder_of(w, object, i)))
      absent[absent_count++] = (uint8_t)i;
  }
  const weft_stripe stripe = {.shards = shards, .bytes = w->part_bytes, .mem = WEFT_MEM_HOST};
  const weft_erasures erasures = {
      .lost = absent, .lost_count = absent_count, .wanted = missing, .wanted_count = count};
  return weft_code_recover(s->code, &erasures, &stripe, 1, NULL);
}

static weft_status repaired(keeping *s, size_t kind, uint32_t object, int64_t now_us) {
  way *w = &s->ways[kind];
  uint8_t missing[SHARDS];
  size_t count = 0;
  w->under_repair[object] = false;
  if (w->lost[object] || online_parts(s, w, object) < w->needed)
    return WEFT_OK; // in vain: somebody left meanwhile; it is looked at again
  for (uint32_t i = 0; i < w->parts; i++)
    if (!counts(s, *holder_of(w, object, i), now_us))
      missing[count++] = (uint8_t)i;
  // Where nobody is left to hold a part, it stays missing. A peer that comes back with a part that
  // was made anew has come too late.
  size_t placed = 0;
  uint32_t to[SHARDS];
  for (; placed < count && (to[placed] = place(s, w, object)) != NOBODY; placed++)
    *holder_of(w, object, missing[placed]) = to[placed]; // nobody gets two
  for (size_t m = 0; m < placed; m++)
    *holder_of(w, object, missing[m]) = NOBODY; // not to be read from
  if (placed > 0)
    WEFT_TRY(make_parts(s, w, kind, object, missing, placed));
  for (size_t m = 0; m < placed; m++) {
    *holder_of(w, object, missing[m]) = to[m];
    *intact_of(w, object, missing[m]) = true;
  }
  w->repaired_parts += placed;
  return WEFT_OK;
}

static weft_status look(keeping *s, int64_t now_us) {
  for (size_t k = 0; k < WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      WEFT_TRY(look_at(s, k, o, now_us));
  return WEFT_OK;
}

// A peer has been away for long: whatever it held is looked at.
static weft_status look_after(keeping *s, uint32_t who, int64_t now_us) {
  if (s->peers[who].online || now_us - s->peers[who].since_us < s->p->repair_after_us)
    return WEFT_OK; // it came back
  for (size_t k = 0; k < WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      if (holds_one(&s->ways[k], o, who))
        WEFT_TRY(look_at(s, k, o, now_us));
  return WEFT_OK;
}

// --- Reading

static void compare(way *w, const uint8_t *got, const uint8_t *put, size_t bytes) {
  if (memcmp(got, put, bytes) == 0)
    return;
  for (size_t i = 0; i < bytes; i++)
    w->wrong_bytes += got[i] != put[i];
}

static weft_status read_coded(keeping *s, uint32_t object) {
  way *w = &s->ways[CODED];
  uint8_t absent[SHARDS], wanted[SHARDS];
  uint8_t *shards[SHARDS];
  size_t absent_count = 0, wanted_count = 0;
  for (uint32_t i = 0; i < w->parts; i++) {
    shards[i] = bytes_of(w, object, i);
    if (is_online(s, *holder_of(w, object, i)))
      continue;
    absent[absent_count++] = (uint8_t)i;
    if (i < w->needed) { // into the reader's memory, not into the absent peer's
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

static weft_status read_one(keeping *s, int64_t now_us) {
  const uint32_t object = (uint32_t)weft_sim_rng_below(&s->rng, s->p->objects);
  fill(s, object);
  for (size_t k = 0; k < WAYS; k++) {
    way *w = &s->ways[k];
    w->reads++;
    if (w->lost[object] || online_parts(s, w, object) < w->needed)
      continue;
    w->reads_good++;
    if (k == CODED)
      WEFT_TRY(read_coded(s, object));
    for (uint32_t i = 0; k == COPIED && i < w->parts; i++)
      if (is_online(s, *holder_of(w, object, i))) {
        compare(w, bytes_of(w, object, i), s->object, w->part_bytes);
        break;
      }
  }
  const double wait_h = -log1p(-weft_sim_unit(weft_sim_rng_next(&s->rng))) / s->p->reads_per_hour;
  return weft_sim_agenda_put(&s->agenda, now_us + (int64_t)(wait_h * (double)HOUR_US), READ, 0, 0);
}

// --- The run

static weft_status end_hour(keeping *s, int64_t now_us) {
  weft_sim_hour *h = &s->out->hours[s->out->hour_count++];
  uint64_t readable[WAYS] = {0};
  for (size_t k = 0; k < WAYS; k++)
    for (uint32_t o = 0; o < s->p->objects; o++)
      readable[k] += !s->ways[k].lost[o] && online_parts(s, &s->ways[k], o) >= s->ways[k].needed;
  *h = (weft_sim_hour){.online = s->online,
                       .coded_readable = readable[CODED],
                       .copied_readable = readable[COPIED],
                       .coded_lost = s->ways[CODED].lost_count,
                       .copied_lost = s->ways[COPIED].lost_count,
                       .coded_repair_bytes = s->ways[CODED].hour_bytes,
                       .copied_repair_bytes = s->ways[COPIED].hour_bytes};
  s->ways[CODED].hour_bytes = s->ways[COPIED].hour_bytes = 0;
  crypto_generichash_update(s->hash, (const uint8_t *)h, sizeof *h);
  WEFT_TRY(look(s, now_us));
  if (now_us + HOUR_US > s->p->duration_us)
    return WEFT_OK;
  return weft_sim_agenda_put(&s->agenda, now_us + HOUR_US, HOUR, 0, 0);
}

static weft_status happen(keeping *s, const weft_sim_entry *e) {
  switch (e->kind) {
  case GO:
    return go(s, e->who, e->time_us);
  case RETURN:
    return come(s, e->who, e->time_us);
  case LOOK:
    return look_after(s, e->who, e->time_us);
  case REPAIRED:
    return repaired(s, e->what, e->who, e->time_us);
  case READ:
    return read_one(s, e->time_us);
  default:
    return end_hour(s, e->time_us);
  }
}

static weft_status way_new(const keeping *s, way *w, uint32_t parts, uint32_t needed,
                           size_t part_bytes) {
  const size_t all = (size_t)s->p->objects * parts;
  *w = (way){.parts = parts, .needed = needed, .part_bytes = part_bytes};
  w->holder = calloc(all, sizeof *w->holder);
  w->intact = calloc(all, sizeof *w->intact);
  w->bytes = calloc(all, part_bytes);
  w->under_repair = calloc(s->p->objects, sizeof *w->under_repair);
  w->lost = calloc(s->p->objects, sizeof *w->lost);
  return w->holder && w->intact && w->bytes && w->under_repair && w->lost ? WEFT_OK : WEFT_E_NOMEM;
}

// Every object as it was put in, on peers that are there.
static weft_status put_all(keeping *s) {
  for (uint32_t o = 0; o < s->p->objects; o++) {
    fill(s, o);
    uint8_t *shards[SHARDS];
    for (size_t k = 0; k < WAYS; k++) {
      way *w = &s->ways[k];
      for (uint32_t i = 0; i < w->parts; i++)
        *holder_of(w, o, i) = NOBODY;
      for (uint32_t i = 0; i < w->parts; i++) {
        *holder_of(w, o, i) = place(s, w, o);
        if (*holder_of(w, o, i) == NOBODY)
          return WEFT_E_ARGUMENT; // check.c asks for more peers than parts
        *intact_of(w, o, i) = true;
      }
    }
    for (uint32_t i = 0; i < s->ways[CODED].parts; i++)
      shards[i] = bytes_of(&s->ways[CODED], o, i);
    for (uint32_t i = 0; i < s->ways[CODED].needed; i++)
      memcpy(shards[i], s->object + i * s->p->shard_bytes, s->p->shard_bytes);
    const weft_stripe stripe = {.shards = shards, .bytes = s->p->shard_bytes, .mem = WEFT_MEM_HOST};
    WEFT_TRY(weft_code_encode(s->code, &stripe, 1, NULL));
    for (uint32_t i = 0; i < s->ways[COPIED].parts; i++)
      memcpy(bytes_of(&s->ways[COPIED], o, i), s->object, s->object_bytes);
  }
  return WEFT_OK;
}

static weft_status start(keeping *s) {
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
    return WEFT_E_ARGUMENT; // of whole units only
  WEFT_TRY(way_new(s, &s->ways[CODED], k + m, k, p->shard_bytes));
  WEFT_TRY(way_new(s, &s->ways[COPIED], (k + m + k / 2) / k, 1, s->object_bytes));
  s->hash = aligned_alloc(64, (sizeof *s->hash + 63) / 64 * 64);
  if (!s->hash)
    return WEFT_E_NOMEM;
  crypto_generichash_init(s->hash, NULL, 0, WEFT_SIM_HASH_BYTES);
  // Everybody is there when the objects are put in.
  for (uint32_t i = 0; i < p->peers; i++)
    WEFT_TRY(come(s, i, 0));
  WEFT_TRY(put_all(s));
  if (p->reads_per_hour > 0)
    WEFT_TRY(weft_sim_agenda_put(&s->agenda, HOUR_US / 2, READ, 0, 0));
  return weft_sim_agenda_put(&s->agenda, HOUR_US, HOUR, 0, 0);
}

static weft_status run(keeping *s) {
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

static void sum_up_way(const keeping *s, const way *w, const char *const names[9]) {
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

static void sum_up(keeping *s) {
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
  weft_sim_add_metric(&s->out->own, "reads", (double)s->ways[CODED].reads);
  sum_up_way(s, &s->ways[CODED], coded);
  sum_up_way(s, &s->ways[COPIED], copied);
  r->totals.wrong_bytes = s->ways[CODED].wrong_bytes + s->ways[COPIED].wrong_bytes;
  weft_sim_add_metric(&s->out->own, "wrong_bytes", (double)r->totals.wrong_bytes);
  weft_sim_add_metric(&s->out->own, "events", (double)r->totals.events);
  crypto_generichash_final(s->hash, r->hash, sizeof r->hash);
}

weft_status weft_sim_keep(const weft_sim_service_options *options, weft_sim_service *out) {
  *out = (weft_sim_service){0};
  keeping s = {.options = options, .p = options->parameters, .out = out};
  weft_status status = start(&s);
  if (status == WEFT_OK)
    status = run(&s);
  if (status == WEFT_OK)
    sum_up(&s);
  for (size_t k = 0; k < WAYS; k++) {
    free(s.ways[k].holder);
    free(s.ways[k].intact);
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
