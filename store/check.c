// SPDX-License-Identifier: Apache-2.0
// Reads and checks whole stripes: tags of all chunks, and whether parity belongs to the data.
#include "store/set.h"

static weft_status agrees(const weft_store *store, const weft_store_lane *lane, bool *out) {
  const weft_stripe where = weft_store_lane_stripe(lane);
  size_t wrong = 0;
  const weft_status status = weft_code_verify(store->code, &where, NULL, &wrong, NULL);
  *out = wrong == 0;
  return status;
}

static weft_status rebuild_all(weft_store *store, weft_store_lane *lane, uint64_t stripe) {
  uint8_t every[WEFT_STORE_MAX_SHARDS] = {0};
  const size_t all = store->geometry.k + store->geometry.m;
  for (size_t i = 0; i < all; i++)
    every[i] = (uint8_t)i;
  return weft_store_rebuild(store, lane, stripe, every, all);
}

// Whether all other good parity is newer than the shard's chunk: the update that this disk lost
// wrote all parity, too. The age of data proves nothing, as each update leaves some data alone, and
// scrub rewrites it.
static bool parity_is_newer(const weft_store *store, const weft_store_lane *lane, size_t shard) {
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  for (size_t i = k; i < all; i++)
    if (i != shard && lane->state[i] == WEFT_CHUNK_GOOD && lane->written[i] <= lane->written[shard])
      return false;
  return true;
}

// Finds a chunk that a disk has kept from before an update. Among at least k + 2 sound chunks it is
// the one without which the others agree; any k chunks agree. All other parity must be newer than
// it, or old chunks could outvote the update.
static weft_status find_old(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                            bool *found_it) {
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  size_t good = 0, found = 0, old = 0;
  for (size_t i = 0; i < all; i++)
    good += lane->state[i] == WEFT_CHUNK_GOOD;
  for (size_t i = 0; i < all && good >= k + 2; i++) {
    bool without = false;
    if (lane->state[i] != WEFT_CHUNK_GOOD || !parity_is_newer(store, lane, i))
      continue;
    lane->state[i] = WEFT_CHUNK_BAD;
    WEFT_TRY(rebuild_all(store, lane, stripe));
    WEFT_TRY(agrees(store, lane, &without));
    found += without;
    old = without ? i : old;
    lane->state[i] = WEFT_CHUNK_UNREAD; // restore it
    WEFT_TRY(weft_store_load(store, lane, i, stripe));
    if (lane->state[i] != WEFT_CHUNK_GOOD)
      return WEFT_OK;
  }
  if (found != 1)
    return WEFT_OK;
  lane->state[old] = WEFT_CHUNK_BAD;
  weft_store_note_corrupt(store, old, stripe, false);
  *found_it = true;
  return rebuild_all(store, lane, stripe);
}

// Returns the generation, according to its trailer, in which a chunk that was not read was written.
static uint64_t told_written(weft_store *store, size_t shard, uint64_t stripe) {
  const weft_store_geometry *g = &store->geometry;
  const uint64_t at = weft_store_chunk_offset(g, stripe) + weft_store_chunk(g, stripe);
  uint8_t trailer[WEFT_STORE_TRAILER_BYTES];
  if (store->files[shard].fd < 0)
    return 0;
  weft_store_count(store, &store->report->shard_bytes_read, sizeof trailer);
  return weft_store_read_at(store->io, store->files[shard].fd, at, trailer, sizeof trailer, NULL, 0,
                            NULL) == 0
             ? weft_store_chunk_generation(trailer)
             : UINT64_MAX;
}

bool weft_store_parity_newest(weft_store *store, const weft_store_lane *lane, uint64_t stripe) {
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  uint64_t newest = 0, oldest = UINT64_MAX;
  for (size_t i = 0; i < all && store->header.generation > 1; i++) {
    if (lane->state[i] == WEFT_CHUNK_BAD)
      continue;
    const bool read = lane->state[i] == WEFT_CHUNK_GOOD;
    const uint64_t written = read ? lane->written[i] : told_written(store, i, stripe);
    newest = written > newest ? written : newest;
    oldest = read && i >= k && written < oldest ? written : oldest;
  }
  return oldest >= newest;
}

weft_status weft_store_check_stripe(weft_store *store, weft_store_lane *lane, uint64_t stripe,
                                    bool *well) {
  const size_t k = store->geometry.k, all = k + store->geometry.m;
  size_t good = 0;
  *well = true;
  for (size_t i = 0; i < all; i++) {
    WEFT_TRY(weft_store_load(store, lane, i, stripe));
    good += lane->state[i] == WEFT_CHUNK_GOOD;
  }
  WEFT_TRY(rebuild_all(store, lane, stripe));
  if (good <= k) // k chunks are always consistent
    return WEFT_OK;
  WEFT_TRY(agrees(store, lane, well));
  if (!*well)
    WEFT_TRY(find_old(store, lane, stripe, well));
  if (!*well) {
    pthread_mutex_lock(&store->lock);
    if (store->report->inconsistent_stripes++ == 0 || stripe < store->report->first_inconsistent)
      store->report->first_inconsistent = stripe;
    pthread_mutex_unlock(&store->lock);
  }
  return WEFT_OK;
}
