// SPDX-License-Identifier: Apache-2.0
// MPI as a transport: in each window, one exchange of sizes and one of parcels.
#define _POSIX_C_SOURCE 200809L
#include "sim/mpi/transport_mpi.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

typedef struct state {
  int ranks, rank;
  uint64_t *send_bytes, *receive_bytes;
  uint8_t **in; // (ranks) what each sent last
  size_t *capacity;
  MPI_Request *requests; // (2 * ranks)
} state;

enum { PIECE = 1 << 30 }; // MPI's counts are ints

static weft_status receive_room(state *s, int from) {
  const size_t bytes = (size_t)s->receive_bytes[from];
  if (bytes <= s->capacity[from])
    return WEFT_OK;
  free(s->in[from]);
  // malloc aligns it for the 64-bit numbers in a parcel.
  s->in[from] = malloc(bytes + bytes / 2);
  s->capacity[from] = s->in[from] ? bytes + bytes / 2 : 0;
  return s->in[from] ? WEFT_OK : WEFT_E_NOMEM;
}

static weft_status exchange(void *user, const void *const *data, const size_t *bytes,
                            const void **in, size_t *in_bytes) {
  state *s = user;
  int count = 0;
  for (int r = 0; r < s->ranks; r++) {
    s->send_bytes[r] = bytes[r];
    if (bytes[r] > PIECE)
      return WEFT_E_BUFFER;
  }
  MPI_Alltoall(s->send_bytes, 1, MPI_UINT64_T, s->receive_bytes, 1, MPI_UINT64_T, MPI_COMM_WORLD);
  for (int r = 0; r < s->ranks; r++) {
    if (r == s->rank)
      continue;
    WEFT_TRY(receive_room(s, r));
    MPI_Irecv(s->in[r], (int)s->receive_bytes[r], MPI_BYTE, r, 0, MPI_COMM_WORLD,
              &s->requests[count++]);
  }
  for (int r = 0; r < s->ranks; r++)
    if (r != s->rank)
      MPI_Isend(data[r], (int)bytes[r], MPI_BYTE, r, 0, MPI_COMM_WORLD, &s->requests[count++]);
  MPI_Waitall(count, s->requests, MPI_STATUSES_IGNORE);
  for (int r = 0; r < s->ranks; r++) {
    in[r] = r == s->rank ? NULL : s->in[r];
    in_bytes[r] = r == s->rank ? 0 : (size_t)s->receive_bytes[r];
  }
  return WEFT_OK;
}

static weft_status sum(void *user, uint64_t *values, size_t count) {
  (void)user;
  if (count > INT_MAX)
    return WEFT_E_BUFFER;
  MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return WEFT_OK;
}

static weft_status most(void *user, int64_t *values, size_t count) {
  (void)user;
  if (count > INT_MAX)
    return WEFT_E_BUFFER;
  MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return WEFT_OK;
}

static weft_status gather(void *user, const void *own, size_t bytes, void *all) {
  state *s = user;
  // In pieces, each straight to its place: a rank's share may have more bytes than an int can
  // count.
  for (size_t at = 0; at < bytes; at += PIECE) {
    const int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
    if (s->rank != 0) {
      MPI_Send((const uint8_t *)own + at, piece, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
      continue;
    }
    memcpy((uint8_t *)all + at, (const uint8_t *)own + at, (size_t)piece);
    for (int r = 1; r < s->ranks; r++)
      MPI_Recv((uint8_t *)all + (size_t)r * bytes + at, piece, MPI_BYTE, r, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  }
  return WEFT_OK;
}

weft_status weft_sim_mpi_new(weft_sim_transport *out) {
  state *s = calloc(1, sizeof *s);
  if (!s)
    return weft_sim_part(out, WEFT_E_NOMEM);
  MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
  const size_t ranks = (size_t)s->ranks;
  double rank_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) /
                      (double)weft_sim_mpi_local_ranks();
  MPI_Allreduce(MPI_IN_PLACE, &rank_bytes, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  s->send_bytes = calloc(ranks, sizeof *s->send_bytes);
  s->receive_bytes = calloc(ranks, sizeof *s->receive_bytes);
  s->in = calloc(ranks, sizeof *s->in);
  s->capacity = calloc(ranks, sizeof *s->capacity);
  s->requests = calloc(2 * ranks, sizeof(MPI_Request));
  *out = (weft_sim_transport){.rank = (size_t)s->rank,
                              .ranks = ranks,
                              .rank_bytes = rank_bytes,
                              .user = s,
                              .exchange = exchange,
                              .sum = sum,
                              .most = most,
                              .gather = gather};
  if (s->send_bytes && s->receive_bytes && s->in && s->capacity && s->requests)
    return WEFT_OK;
  weft_sim_mpi_free(out);
  return weft_sim_part(out, WEFT_E_NOMEM);
}

void weft_sim_mpi_free(weft_sim_transport *transport) {
  state *s = transport->user;
  if (!s)
    return;
  for (int r = 0; s->in && r < s->ranks; r++)
    free(s->in[r]);
  free(s->send_bytes);
  free(s->receive_bytes);
  free(s->in);
  free(s->capacity);
  free(s->requests);
  free(s);
  transport->user = NULL;
}

size_t weft_sim_mpi_local_ranks(void) {
  MPI_Comm local;
  int ranks;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  MPI_Comm_size(local, &ranks);
  MPI_Comm_free(&local);
  return (size_t)ranks;
}
