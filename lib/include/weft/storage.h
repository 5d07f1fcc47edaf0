// SPDX-License-Identifier: Apache-2.0
// Erasure codes for storage: k data shards and m parity shards; any k of them rebuild the rest.
//
// A code is a matrix and a layout. Its name and sizes fix both, and so fix every byte of every
// shard. Reed-Solomon (RS) codes treat each byte of a shard as a symbol of GF(2^8). Cauchy
// Reed-Solomon (CRS) codes work on GF(2^w) with exclusive-or alone: a shard is a sequence of groups
// of w packets, and packet x of a group holds bit x of its symbols.
//
// clang-format off
//   name          matrix and layout
//   vandermonde   RS, Vandermonde r^c, systematised: klauspost's and Backblaze's default, Gibraltar
//   cauchy        RS, 1 / ((k + i) ^ j): ISA-L gf_gen_cauchy1_matrix, klauspost WithCauchyMatrix
//   reed_sol_van  RS, Jerasure reed_sol_van at w = 8, klauspost WithJerasureMatrix
//   isal_rs       RS, ISA-L gf_gen_rs_matrix, (2^i)^j; refused where it is not MDS
//   par1          RS, (j + 1)^i, as PAR 1.0 and GPU-RSCode have it; refused where it is not MDS
//   raid6         RS, P and Q as in Linux (md): m = 2, k <= 254
//   cauchy_orig   CRS, Jerasure cauchy_orig; w and packet size are parameters
//   cauchy_good   CRS, Jerasure cauchy_good; likewise
//   gcrs          CRS, cauchy_orig in the layout of G-CRS: packets of 8 bytes
//   perasure      CRS, cauchy_orig in the layout of PErasure: packets of a number of 8-byte longs
//   matrix        layout as RS, coefficients of your own (locally repairable codes and others)
// clang-format on
//
// docs/format.md defines all their coefficients and bits.
//
// MDS (any k shards suffice) is proved for all names but isal_rs and par1. For those two it holds
// up to m = 3, and for isal_rs up to k = 3; beyond that, every square submatrix is checked when the
// code is made (isal_rs: with m = 4 up to k = 21, m = 5 up to 5, m = 6 up to 4; par1: with m = 4 up
// to k = 2). A code named `matrix` has the properties of the matrix that you give: a lost shard is
// rebuilt if it is a combination of the remaining ones, and only the shards in that combination are
// read. Parity with few coefficients is preferred.
//
// Threads: unlike other handles, a code and its plans may be used by several threads at once.
//
// Errors of every call with stripes, besides those named at each call: WEFT_E_ARGUMENT (a required
// shard is NULL or longer than PTRDIFF_MAX, the stride makes shards overlap, an id is out of range
// or named twice, the stripe's memory is of an unknown kind), WEFT_E_NOMEM, WEFT_E_UNSUPPORTED
// (DEVICE memory without storage kernels) and, where a stripe lies in DEVICE memory, WEFT_E_DEVICE,
// _DEVICE_NOMEM and _DEVICE_LOST. If a device fails before the call returns, stripes that all lie
// in HOST or PINNED memory are computed on the CPU, with one exception: when the device cannot
// provide a stream for a call without a queue that encodes, recovers or runs a plan, the call
// returns the device's error. After an error the shards to be written hold undefined bytes, unless
// stated otherwise.
#ifndef WEFT_STORAGE_H
#define WEFT_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/context.h"
#include "weft/memory.h"
#include "weft/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MAX_SHARDS 256u // k + m; a shard's id (data 0..k-1, parity k..k+m-1) fits a byte
#define WEFT_CODE_NAME_BYTES 64u
#define WEFT_NO_PLANS SIZE_MAX

// ---------------------------------------------------------------------------------------------
// Code

typedef struct weft_code weft_code;

// Zero in all fields but name, k and m selects the defaults.
typedef struct weft_code_options {
  // A name from the table above; or one returned by weft_code_name ("cauchy_good:w=4:packet=512"),
  // which also sets w and packet_bytes.
  const char *name;
  size_t k; // >= 1
  size_t m; // k + m <= 256, CRS: 2^w; 0 makes a code without parity
  size_t w; // CRS: 2..8, 0: the smallest for k + m. RS: 0 or 8
  // CRS: 0: 512 (gcrs: 8, its only size; perasure: a multiple of 8). RS: 0.
  size_t packet_bytes;
  // How many recovery plans the code keeps: one for each combination of lost and wanted shards; the
  // least recently used is dropped first. 0: 128; WEFT_NO_PLANS: none; else fewer than UINT32_MAX.
  // A plan for r shards takes about r * k bytes, for CRS r * k * w * w; with machine code 5 to 13
  // times that, in pages of its own.
  size_t cached_plans;
  // For `matrix`: (m, k), row stride k: parity shard i = sum of parity[i * k + j] * data shard j
  // over GF(2^8), polynomial 0x11d. Copied. For other names: NULL.
  const uint8_t *parity;
  // Where recovery matrices are computed. false: on the CPU, in closed form where the code has one.
  // true: the device inverts the k x k matrix of the remaining shards; for w = 8 on a context with
  // a device, not for `matrix`. The resulting bytes are the same.
  bool device_inverse;
  // For encoding and recovery of PINNED stripes on a device context. true: the device reads and
  // writes them in place, even small ones; false: they are copied through its memory. Ignored
  // otherwise.
  bool zero_copy;
} weft_code_options;

// Errors: WEFT_E_ARGUMENT (an unknown name, sizes that the code does not support); WEFT_E_SINGULAR:
// the code would not be MDS at these sizes; WEFT_E_UNSUPPORTED: that cannot be checked in
// reasonable time, or device_inverse without such a device, for w < 8 or for `matrix`;
// WEFT_E_NOMEM, WEFT_E_THREAD.
weft_status weft_code_new(weft_ctx *ctx, const weft_code_options *options, weft_code **out);
void weft_code_free(weft_code *code); // free its plans and progresses first; accepts NULL

// Name and layout. Together with k and m (and, for `matrix`, its coefficients) they determine every
// byte of a shard. The string belongs to the code and is shorter than WEFT_CODE_NAME_BYTES.
const char *weft_code_name(const weft_code *code);
size_t weft_code_data_shards(const weft_code *code);   // k
size_t weft_code_parity_shards(const weft_code *code); // m
size_t weft_code_word_bits(const weft_code *code);     // w; 8 for RS
// Bytes of a group; parity is made in whole groups. RS: 1, CRS: w * packet_bytes.
size_t weft_code_unit_bytes(const weft_code *code);
// Bytes of each parity shard for data shards of `bytes` bytes: rounded up to whole groups; SIZE_MAX
// if a size_t cannot hold it.
size_t weft_code_parity_bytes(const weft_code *code, size_t bytes);
// A stride for a stripe of such shards, at least weft_code_parity_bytes. Shards that are a multiple
// of 4 KiB apart share few sets of a CPU's caches; with this stride most are encoded and recovered
// faster, by up to 1.7 times (docs/performance/storage-layout.md). On a device, shards then begin
// at multiples of 256 bytes. SIZE_MAX if a size_t cannot hold it.
size_t weft_code_stride(const weft_code *code, size_t bytes);
// parity(m, k), row stride k: receives the coefficients, elements of GF(2^w).
void weft_code_parity_matrix(const weft_code *code, uint8_t *parity);

// The known names except `matrix`, static; NULL for an index past the end.
const char *weft_code_known_name(size_t index);

// ---------------------------------------------------------------------------------------------
// Stripes

// The k + m shards of one stripe. Shard i starts at shards[i], or at base + i * stride where shards
// is NULL. Entries that a call neither reads nor writes may be NULL. Shards must not overlap. Any
// address and stride work; weft_code_stride gives a fast one.
//
// Data shards hold `bytes` bytes, which need not be whole groups: the last group counts as padded
// with zeros, and no byte past the end of a data shard is read or written. Parity shards hold
// weft_code_parity_bytes().
typedef struct weft_stripe {
  uint8_t *const *shards;
  uint8_t *base;
  size_t stride; // bytes, >= weft_code_parity_bytes(code, bytes); ignored with `shards`
  size_t bytes;  // true length of a data shard; 0: no memory is touched, any address may be NULL
  weft_mem mem;  // HOST or PINNED; DEVICE is WEFT_E_UNSUPPORTED on rows without storage kernels
} weft_stripe;

// Calls below with a `count` work on that many stripes together: pass many small stripes at a time.
//
// With a queue, the work is ordered after what the queue holds. The call has finished with HOST
// memory when it returns. It has not with DEVICE memory, nor with PINNED memory of calls that
// encode, recover or run a plan: this memory must stay, and what is read must stay unchanged, until
// weft_queue_wait or weft_queue_poll has found the queue idle. These two calls, or a later call
// that has to wait for the queue, return the error if the device fails in the meantime, and nothing
// is then done on the CPU. With queue NULL the call has finished with all memory when it returns.

// Makes all parity shards.
weft_status weft_code_encode(weft_code *code, const weft_stripe *stripes, size_t count,
                             weft_queue *queue);

// The lost shards, and which of them are wanted. Lost shards are not read.
typedef struct weft_erasures {
  const uint8_t *lost; // distinct ids, data and parity in any order
  size_t lost_count;
  const uint8_t *wanted; // ids among the lost; NULL: all of them
  size_t wanted_count;
} weft_erasures;

// Rebuilds the wanted shards, data and parity in one pass, in every stripe. WEFT_E_SINGULAR when
// more than m are lost (`matrix`: when a wanted shard is not a combination of the remaining ones):
// nothing is written then. Shards that are not read may be NULL: the plan from weft_plan_for lists
// those that are read.
weft_status weft_code_recover(weft_code *code, const weft_erasures *erasures,
                              const weft_stripe *stripes, size_t count, weft_queue *queue);

// Compares parity with data. wrong(m): wrong[i] becomes 1 where parity shard k + i does not match,
// else 0; `wrong` may be NULL. *wrong_count receives how many do not match. A corrupt data shard
// shows in every parity shard that depends on it.
weft_status weft_code_verify(weft_code *code, const weft_stripe *stripe, uint8_t *wrong,
                             size_t *wrong_count, weft_queue *queue);

// ---------------------------------------------------------------------------------------------
// Plans: recovery matrices made ahead of time, for known losses or in an order of your own.

typedef struct weft_plan weft_plan;

// The plan that weft_code_recover would use. Its outputs are the wanted shards in the order of
// their ids, however `wanted` has them. CRS plans made by this call are reduced at once; those in
// the cache are reduced when they have been used often enough to repay it. Errors: WEFT_E_ARGUMENT,
// WEFT_E_SINGULAR (as weft_code_recover), WEFT_E_NOMEM.
weft_status weft_plan_for(weft_code *code, const weft_erasures *erasures, weft_plan **out);

// Rebuilds shards `outputs` from the k shards `inputs`, in the orders given (Gibraltar's B *
// A'^-1). Errors: WEFT_E_ARGUMENT (NULL, ids out of range, an id named twice, an output that is an
// input), WEFT_E_SINGULAR (`matrix`: an output is not a combination of the inputs), WEFT_E_NOMEM.
weft_status weft_plan_new(weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                          size_t output_count, weft_plan **out);
void weft_plan_free(weft_plan *plan); // accepts NULL

// Shards are at their ids, as in weft_code_recover.
weft_status weft_plan_run(weft_plan *plan, const weft_stripe *stripes, size_t count,
                          weft_queue *queue);
// Shards are in the plan's own order: input i at place i, followed by output i at place
// weft_plan_input_count() + i. This is k + i, except for a plan of `matrix` that reads fewer
// shards.
weft_status weft_plan_run_in_order(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                   weft_queue *queue);

// Properties of a plan; pointers belong to the plan.
size_t weft_plan_outputs(const weft_plan *plan);
// How many shards it reads: k, or fewer for a loss of `matrix` that needs fewer.
size_t weft_plan_input_count(const weft_plan *plan);
const uint8_t *weft_plan_inputs(const weft_plan *plan); // (input_count) ids
// matrix(outputs, input_count), row stride input_count, elements of GF(2^w): output i in the plan's
// order is row i times the inputs.
const uint8_t *weft_plan_matrix(const weft_plan *plan);
// CRS: bits(outputs * w, k * w), row stride k * w. RS: WEFT_E_UNSUPPORTED.
weft_status weft_plan_bits(const weft_plan *plan, uint8_t *bits);

// Puts the plans of every recoverable loss of 1..losses shards into the cache. Errors:
// WEFT_E_ARGUMENT (NULL, losses > m), WEFT_E_BUFFER (the cache does not hold that many),
// WEFT_E_NOMEM.
weft_status weft_code_precompute(weft_code *code, size_t losses);

typedef struct weft_plan_stats {
  size_t plans;    // in the cache now
  size_t capacity; // of the cache
  uint64_t hits;   // of weft_code_recover, weft_code_precompute and groups that recover
  uint64_t misses; // of the same calls: plans that had to be made
} weft_plan_stats;

void weft_code_plan_stats(weft_code *code, weft_plan_stats *out);

// ---------------------------------------------------------------------------------------------
// Groups: one code on several contexts at once, that is, on several GPUs.

typedef struct weft_code_group weft_code_group;

#define WEFT_MAX_GROUP 16u

// `codes`: 1..WEFT_MAX_GROUP codes with the same name, k and m, preferably each of its own context;
// they must outlive the group. The group has a thread for each code. One thread at a time may use a
// group. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_THREAD.
weft_status weft_code_group_new(weft_code *const *codes, size_t count, weft_code_group **out);
void weft_code_group_free(weft_code_group *group); // accepts NULL

typedef enum weft_code_split {
  WEFT_CODE_SPLIT_STRIPES, // each member has its own stripes; its own columns, if stripes are few
  WEFT_CODE_SPLIT_ROWS     // each member makes some of the shards, from all the data (Gibraltar)
} weft_code_split;

// As weft_code_encode and weft_code_recover, in HOST or PINNED memory (DEVICE memory belongs to one
// context: WEFT_E_UNSUPPORTED). They return when all members are done. A member whose device fails
// computes its part on the CPU, with the exception stated at the top. WEFT_E_ARGUMENT also for an
// unknown split. With WEFT_CODE_SPLIT_ROWS, a member that makes part of the parity uses a plan for
// the loss of those shards.
weft_status weft_code_group_encode(weft_code_group *group, weft_code_split split,
                                   const weft_stripe *stripes, size_t count);
weft_status weft_code_group_recover(weft_code_group *group, weft_code_split split,
                                    const weft_erasures *erasures, const weft_stripe *stripes,
                                    size_t count);

// ---------------------------------------------------------------------------------------------
// Parity in parts. Only the parity shards of the stripe are used; those that are NULL are left out,
// so that parity stored elsewhere can be updated there. The bytes of a data shard (old, new, delta,
// data) are stripe->bytes bytes in memory of kind stripe->mem; they may be the stripe's own shard.
// WEFT_E_ARGUMENT also for index >= k and for NULL in their place.

// Updates parity for a change of data shard `index` from old_bytes to new_bytes. The shard itself
// is not written.
weft_status weft_code_update(weft_code *code, size_t index, const uint8_t *old_bytes,
                             const uint8_t *new_bytes, const weft_stripe *stripe,
                             weft_queue *queue);
// The same, given old ^ new.
weft_status weft_code_add_delta(weft_code *code, size_t index, const uint8_t *delta,
                                const weft_stripe *stripe, weft_queue *queue);
// Writes the parity deltas themselves into the parity shards, for the caller to add (exclusive-or)
// to parity elsewhere.
weft_status weft_code_parity_delta(weft_code *code, size_t index, const uint8_t *delta,
                                   const weft_stripe *stripe, weft_queue *queue);

// Progressive encoding: data shards are added in any order as they arrive and need not be kept.
typedef struct weft_progress weft_progress;

// The parity shards need not be cleared. They hold the code's parity once every data shard has been
// added or the progress is finished. Their addresses are copied: the stripe and its array of
// pointers may go after the call. One thread at a time may use a progress.
weft_status weft_progress_new(weft_code *code, const weft_stripe *stripe, weft_progress **out);
void weft_progress_free(weft_progress *progress); // accepts NULL
// WEFT_E_STATE: that shard was added before, or the progress is finished. Nothing is written then,
// nor with WEFT_E_ARGUMENT; after any other error the progress can only be freed.
weft_status weft_progress_add(weft_progress *progress, size_t index, const uint8_t *data,
                              weft_queue *queue);
size_t weft_progress_missing(const weft_progress *progress); // data shards not added yet
// Ends it: shards that were not added count as zeros. Nothing can be added afterwards. Errors:
// WEFT_E_STATE (ended before), WEFT_E_UNSUPPORTED (DEVICE memory, when no shard was added at all).
weft_status weft_progress_finish(weft_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
