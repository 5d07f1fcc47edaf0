// SPDX-License-Identifier: Apache-2.0
// What the files of the store share: which peer holds which part (here), peers that come and go,
// and reads (keep.c), repair (keep_repair.c). A part is a shard or a copy of an object.
#ifndef WEFT_SIM_SERVICES_KEEPING_H
#define WEFT_SIM_SERVICES_KEEPING_H

#include <sodium.h>

#include "sim/rng.h"
#include "sim/services/agenda.h"
#include "sim/services/services.h"
#include "weft/storage.h"
#include "weft/weft.h"

#define WEFT_SIM_NO_HOLDER UINT32_MAX

enum { WEFT_SIM_SHARDS = 256 };
// Kinds of agenda entries.
enum {
  WEFT_SIM_GO,
  WEFT_SIM_RETURN,
  WEFT_SIM_LOOK,
  WEFT_SIM_REPAIRED,
  WEFT_SIM_READ,
  WEFT_SIM_HOUR
};
enum { WEFT_SIM_CODED, WEFT_SIM_COPIED, WEFT_SIM_WAYS }; // ways of keeping an object

typedef struct weft_sim_holder {
  bool online;
  uint32_t turns; // sessions so far; they number its draws
  int64_t since_us;
} weft_sim_holder;

// A way of keeping all objects: `parts` pieces of `part_bytes` each, any `needed` of which suffice.
typedef struct weft_sim_way {
  uint32_t parts, needed;
  size_t part_bytes;
  uint32_t *holder; // (objects, parts) or WEFT_SIM_NO_HOLDER
  bool *intact; // (objects, parts) false: the holder lost it, unnoticed until its successor comes
  // (objects, parts) For a part that nobody holds: until when the other peers count it
  // nevertheless, because they believe that its last holder is only away.
  int64_t *counted_until_us;
  uint8_t *bytes;     // (objects, parts, part_bytes)
  bool *under_repair; // (objects)
  bool *lost;         // (objects)
  uint64_t lost_count, repairs, repaired_parts, repair_bytes;
  uint64_t reads, reads_good, reads_decoded, wrong_bytes;
  uint64_t hour_bytes;
} weft_sim_way;

typedef struct weft_sim_keeping {
  const weft_sim_service_options *options;
  const weft_sim_parameters *p;
  weft_ctx *ctx;
  weft_code *code;
  weft_sim_agenda agenda;
  weft_sim_service *out;
  weft_sim_holder *peers; // (p->peers)
  weft_sim_way ways[WEFT_SIM_WAYS];
  size_t object_bytes;
  uint8_t *object, *scratch; // one object; the shards recovered for a read
  weft_sim_rng rng;          // for placing and reading; peers' fates are drawn separately
  uint64_t online;
  crypto_generichash_state *hash; // libsodium requires alignment to 64 bytes
} weft_sim_keeping;

static inline uint32_t *weft_sim_holder_of(const weft_sim_way *w, uint32_t object, uint32_t part) {
  return &w->holder[(size_t)object * w->parts + part];
}

static inline bool *weft_sim_intact_of(const weft_sim_way *w, uint32_t object, uint32_t part) {
  return &w->intact[(size_t)object * w->parts + part];
}

static inline int64_t *weft_sim_counted_until_of(const weft_sim_way *w, uint32_t object,
                                                 uint32_t part) {
  return &w->counted_until_us[(size_t)object * w->parts + part];
}

static inline uint8_t *weft_sim_bytes_of(const weft_sim_way *w, uint32_t object, uint32_t part) {
  return w->bytes + ((size_t)object * w->parts + part) * w->part_bytes;
}

static inline bool weft_sim_is_online(const weft_sim_keeping *s, uint32_t holder) {
  return holder != WEFT_SIM_NO_HOLDER && s->peers[holder].online;
}

static inline uint32_t weft_sim_online_parts(const weft_sim_keeping *s, const weft_sim_way *w,
                                             uint32_t object) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->parts; i++)
    count += weft_sim_is_online(s, *weft_sim_holder_of(w, object, i));
  return count;
}

static inline bool weft_sim_holds_one(const weft_sim_way *w, uint32_t object, uint32_t who) {
  for (uint32_t i = 0; i < w->parts; i++)
    if (*weft_sim_holder_of(w, object, i) == who)
      return true;
  return false;
}

// Returns an online peer without a part of the object; WEFT_SIM_NO_HOLDER: none was found.
uint32_t weft_sim_place(weft_sim_keeping *s, const weft_sim_way *w, uint32_t object);

// keep_repair.c
// Begin repairs where too few parts are left: for all objects, or those that one peer's long
// absence concerns.
weft_status weft_sim_look_at_all(weft_sim_keeping *s, int64_t now_us);
weft_status weft_sim_look_after(weft_sim_keeping *s, uint32_t who, int64_t now_us);
weft_status weft_sim_end_repair(weft_sim_keeping *s, size_t kind, uint32_t object, int64_t now_us);

#endif
