// SPDX-License-Identifier: Apache-2.0
// Erasure codes for storage: k data shards, m parity shards, any k of which give back the rest.
//
// A code is a matrix and a layout, both fixed by its name and its sizes, so that the bytes of every
// shard are fixed too. Reed-Solomon (RS) codes take each byte of a shard as a symbol of GF(2^8).
// Cauchy Reed-Solomon (CRS) codes work on GF(2^w) by exclusive-or alone: a shard is a run of groups
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
//   matrix        bytes as RS, coefficients of your own (locally repairable codes and others)
// clang-format on
//
// docs/format.md defines every coefficient and bit of them.
//
// MDS (any k shards suffice) is proved for all names but isal_rs and par1. For those it holds up to
// m = 3, and for isal_rs up to k = 3; elsewhere every square submatrix is tried when the code is
// made (isal_rs: m = 4 ends at k = 21, m = 5 at 5, m = 6 at 4; par1: m = 4 ends at k = 2). A code
// called `matrix` is what you make it: a loss is made good if it follows from what is left, and
// only shards that it is made of are read. Parity with few coefficients is used before other
// parity.
//
// Threads: unlike other handles, a code and its plans may be used by several threads at once.
//
// Errors of every call with stripes, beside those named there: WEFT_E_ARGUMENT (a shard that is
// needed is NULL, a stride with which shards overlap, an id out of range or named twice, a stripe's
// memory of no known kind), WEFT_E_NOMEM, WEFT_E_UNSUPPORTED (DEVICE memory without storage
// kernels) and, where a stripe lies in DEVICE memory, WEFT_E_DEVICE, _DEVICE_NOMEM and
// _DEVICE_LOST. Stripes that all lie in HOST or PINNED memory are done on the CPU when a device
// fails before the call returns, with an exception: where the device has no stream for a call
// without a queue that encodes, recovers or runs a plan, its error is the call's. After an error
// the shards to be written hold undefined bytes, unless said otherwise.
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

// All zero but name, k and m means the defaults.
typedef struct weft_code_options {
  // A name from the table above; or what weft_code_name gave ("cauchy_good:w=4:packet=512"), which
  // then sets w and packet_bytes.
  const char *name;
  size_t k; // >= 1
  size_t m; // k + m <= 256, CRS: 2^w; 0 makes a code without parity
  size_t w; // CRS: 2..8, 0: the smallest for k + m. RS: 0 or 8
  // CRS: 0: 512 (gcrs: 8, its only size; perasure: a multiple of 8). RS: 0.
  size_t packet_bytes;
  // How many recovery plans the code keeps, one for each pair of what is lost and what of it is
  // wanted, the least recently used going first; 0: 128, WEFT_NO_PLANS: none, else fewer than
  // UINT32_MAX. A plan takes about r * k bytes for r shards, CRS: r * k * w * w, with
  // machine code 5 to 13 times that, in pages of its own.
  size_t cached_plans;
  // matrix: (m, k), row stride k: parity shard i = sum of parity[i * k + j] * data shard j over
  // GF(2^8), polynomial 0x11d. Copied. Other names: NULL.
  const uint8_t *parity;
  // Where recovery matrices come from. false: the CPU, in closed form where the code has one. true:
  // the device inverts the k x k matrix of what is there; for w = 8 on a context with a device, not
  // for `matrix`. The bytes are the same.
  bool device_inverse;
  // Encoding and recovery of PINNED stripes on a device context: true: the device reads and writes
  // them where they are, small ones too; false: they travel through its memory. Others: no matter.
  bool zero_copy;
} weft_code_options;

// Errors: WEFT_E_ARGUMENT (an unknown name, sizes the code does not have); WEFT_E_SINGULAR: the
// code would not be MDS at these sizes; WEFT_E_UNSUPPORTED: that could not be settled in reasonable
// time, or device_inverse without such a device, for w < 8 or for `matrix`; WEFT_E_NOMEM,
// WEFT_E_THREAD.
weft_status weft_code_new(weft_ctx *ctx, const weft_code_options *options, weft_code **out);
void weft_code_free(weft_code *code); // its plans and progresses go first; accepts NULL

// Name and layout, which together with k and m say what every byte of a shard is (of `matrix`, with
// its coefficients). The code's own, shorter than WEFT_CODE_NAME_BYTES.
const char *weft_code_name(const weft_code *code);
size_t weft_code_data_shards(const weft_code *code);   // k
size_t weft_code_parity_shards(const weft_code *code); // m
size_t weft_code_word_bits(const weft_code *code);     // w; 8 for RS
// Bytes of a group, in whole multiples of which parity is made: RS 1, CRS w * packet_bytes.
size_t weft_code_unit_bytes(const weft_code *code);
// Bytes of the parity shards that belong to data shards of `bytes` bytes: rounded up to units;
// SIZE_MAX, which nobody can have, where a size_t does not hold that.
size_t weft_code_parity_bytes(const weft_code *code, size_t bytes);
// A stride for a stripe of such shards, at least weft_code_parity_bytes. Shards a multiple of 4 KiB
// apart share few sets of a CPU's caches: with this stride most are encoded and recovered quicker,
// up to 1.7 times (docs/performance/storage-layout.md). On a device shards begin at multiples of
// 256 bytes. SIZE_MAX where a size_t does not hold it.
size_t weft_code_stride(const weft_code *code, size_t bytes);
// parity(m, k), row stride k: the coefficients, elements of GF(2^w).
void weft_code_parity_matrix(const weft_code *code, uint8_t *parity);

// The names there are, but `matrix`, static; NULL from the end on.
const char *weft_code_known_name(size_t index);

// ---------------------------------------------------------------------------------------------
// Stripes

// The k + m shards of one stripe. Shard i starts at shards[i], or at base + i * stride where shards
// is NULL. Entries that a call neither reads nor writes may be NULL. Shards overlap nowhere. Any
// address and stride will do; weft_code_stride says which is quick.
//
// Data shards hold `bytes` bytes, which need not be whole units: the tail group counts as padded
// with zeros, and no byte past the end of a data shard is read or written. Parity shards hold
// weft_code_parity_bytes().
typedef struct weft_stripe {
  uint8_t *const *shards;
  uint8_t *base;
  size_t stride; // bytes, >= weft_code_parity_bytes(code, bytes); not looked at with `shards`
  size_t bytes;  // true length of a data shard; may be 0
  weft_mem mem;  // HOST or PINNED; DEVICE is WEFT_E_UNSUPPORTED on rows without storage kernels
} weft_stripe;

// Every call below takes `count` stripes where it says so, which are worked on together: small
// stripes are best handed over many at a time.
//
// With a queue, the work comes after what the queue holds. HOST memory is done with when the call
// returns. DEVICE memory is not, nor is PINNED memory of calls that encode, recover or run a plan:
// it must stay, and what is read unchanged, until weft_queue_wait or weft_queue_poll has found the
// queue idle. What a device fails at meanwhile is the error of these two, or of a later call that
// has to wait for the queue, and nothing is done on the CPU then. With queue NULL all memory is
// done with on return.

// Makes all parity shards.
weft_status weft_code_encode(weft_code *code, const weft_stripe *stripes, size_t count,
                             weft_queue *queue);

// What is lost, and which of it is asked for. Lost shards are not read.
typedef struct weft_erasures {
  const uint8_t *lost; // distinct ids, data and parity in any order
  size_t lost_count;
  const uint8_t *wanted; // ids among the lost; NULL: all of them
  size_t wanted_count;
} weft_erasures;

// Rebuilds the wanted shards, data and parity in one pass, in every stripe. WEFT_E_SINGULAR when
// more than m are lost (`matrix`: when one that is wanted does not follow from what is left):
// nothing is written then. Shards that are not read may be NULL: weft_plan_for tells which are.
weft_status weft_code_recover(weft_code *code, const weft_erasures *erasures,
                              const weft_stripe *stripes, size_t count, weft_queue *queue);

// Compares parity with data. wrong(m): wrong[i] becomes 1 where parity shard k + i does not match,
// else 0; `wrong` may be NULL. *wrong_count gets how many do not. A data shard that is corrupt is
// seen in every parity shard that is made of it.
weft_status weft_code_verify(weft_code *code, const weft_stripe *stripe, uint8_t *wrong,
                             size_t *wrong_count, weft_queue *queue);

// ---------------------------------------------------------------------------------------------
// Plans: recovery matrices made ahead of time, for known losses or in an order of one's own.

typedef struct weft_plan weft_plan;

// The plan that weft_code_recover would use. CRS plans of this call are reduced at once; those of
// the cache when they have been used enough to repay it. Errors: WEFT_E_ARGUMENT, WEFT_E_SINGULAR
// (as weft_code_recover), WEFT_E_NOMEM.
weft_status weft_plan_for(weft_code *code, const weft_erasures *erasures, weft_plan **out);

// Rebuilds shards `outputs` from the k shards `inputs`, in the orders given (Gibraltar's B *
// A'^-1). Errors: WEFT_E_ARGUMENT (NULL, ids out of range, one named twice, an output that is an
// input), WEFT_E_SINGULAR (`matrix`: an output does not follow from them), WEFT_E_NOMEM.
weft_status weft_plan_new(weft_code *code, const uint8_t *inputs, const uint8_t *outputs,
                          size_t output_count, weft_plan **out);
void weft_plan_free(weft_plan *plan); // accepts NULL

// Shards lie at their ids, as in weft_code_recover.
weft_status weft_plan_run(weft_plan *plan, const weft_stripe *stripes, size_t count,
                          weft_queue *queue);
// Shards lie in the plan's own order: input i at place i, and behind them output i at place
// weft_plan_input_count() + i, which is k + i but for a plan of `matrix` that reads fewer.
weft_status weft_plan_run_in_order(weft_plan *plan, const weft_stripe *stripes, size_t count,
                                   weft_queue *queue);

// What a plan is; the pointers are its own.
size_t weft_plan_outputs(const weft_plan *plan);
// How many shards it reads: k, or fewer for a loss of `matrix` that takes fewer.
size_t weft_plan_input_count(const weft_plan *plan);
const uint8_t *weft_plan_inputs(const weft_plan *plan); // (input_count) ids
// matrix(outputs, input_count), row stride input_count, elements of GF(2^w).
const uint8_t *weft_plan_matrix(const weft_plan *plan);
// CRS: bits(outputs * w, k * w), row stride k * w. RS: WEFT_E_UNSUPPORTED.
weft_status weft_plan_bits(const weft_plan *plan, uint8_t *bits);

// Puts the plans of every loss of 1..losses shards that can be made good into the cache. Errors:
// WEFT_E_ARGUMENT (NULL, losses > m), WEFT_E_BUFFER (the cache does not hold that many),
// WEFT_E_NOMEM.
weft_status weft_code_precompute(weft_code *code, size_t losses);

typedef struct weft_plan_stats {
  size_t plans;    // in the cache
  size_t capacity; // at most
  uint64_t hits;   // of weft_code_recover, weft_code_precompute and groups that recover
  uint64_t misses; // likewise: plans that were made
} weft_plan_stats;

void weft_code_plan_stats(weft_code *code, weft_plan_stats *out);

// ---------------------------------------------------------------------------------------------
// Groups: one code on several contexts, which is to say on several GPUs, at once.

typedef struct weft_code_group weft_code_group;

#define WEFT_MAX_GROUP 16u

// `codes`: 1..WEFT_MAX_GROUP, alike in name, k and m, each best of a context of its own; they must
// outlive the group. It has a thread for each. A group is used by one thread at a time. Errors:
// WEFT_E_ARGUMENT, WEFT_E_NOMEM, WEFT_E_THREAD.
weft_status weft_code_group_new(weft_code *const *codes, size_t count, weft_code_group **out);
void weft_code_group_free(weft_code_group *group); // accepts NULL

typedef enum weft_code_split {
  WEFT_CODE_SPLIT_STRIPES, // each member has stripes of its own; columns of each, if these are few
  WEFT_CODE_SPLIT_ROWS     // each member makes some of the shards, from all of the data (Gibraltar)
} weft_code_split;

// As weft_code_encode and weft_code_recover, in HOST or PINNED memory (DEVICE memory is one
// context's: WEFT_E_UNSUPPORTED). They return when all members are done. A member whose device
// fails computes its part on the CPU, with the exception at the top. WEFT_E_ARGUMENT also for a
// split that there is not. By rows, a member that makes part of the parity goes by a plan for that
// loss.
weft_status weft_code_group_encode(weft_code_group *group, weft_code_split split,
                                   const weft_stripe *stripes, size_t count);
weft_status weft_code_group_recover(weft_code_group *group, weft_code_split split,
                                    const weft_erasures *erasures, const weft_stripe *stripes,
                                    size_t count);

// ---------------------------------------------------------------------------------------------
// Parity in parts. Of the stripe only the parity shards are used; those that are NULL are left out,
// so that parity kept elsewhere can be brought up to date there. Bytes of a data shard (old, new,
// delta, data) are stripe->bytes of them, in memory of stripe->mem; where a stripe holds the shard,
// they may be that. WEFT_E_ARGUMENT also for index >= k and for NULL instead of them.

// Data shard `index` changes from old_bytes to new_bytes: parity follows. The shard itself is not
// written.
weft_status weft_code_update(weft_code *code, size_t index, const uint8_t *old_bytes,
                             const uint8_t *new_bytes, const weft_stripe *stripe,
                             weft_queue *queue);
// The same, given old ^ new.
weft_status weft_code_add_delta(weft_code *code, size_t index, const uint8_t *delta,
                                const weft_stripe *stripe, weft_queue *queue);
// Writes the parity deltas themselves into the parity shards, for others to add (exclusive-or).
weft_status weft_code_parity_delta(weft_code *code, size_t index, const uint8_t *delta,
                                   const weft_stripe *stripe, weft_queue *queue);

// Progressive encoding: data shards are added in any order as they arrive and need not be kept.
typedef struct weft_progress weft_progress;

// The parity shards, which need not be cleared, hold the code's bytes once every data shard was
// added, or the progress is finished. They are where the stripe says now: it may go, with its array
// of pointers. A progress is used by one thread at a time.
weft_status weft_progress_new(weft_code *code, const weft_stripe *stripe, weft_progress **out);
void weft_progress_free(weft_progress *progress); // accepts NULL
// WEFT_E_STATE: that shard was added before, or the progress is finished. Nothing is written then,
// nor with WEFT_E_ARGUMENT; after other errors the progress is good for freeing alone.
weft_status weft_progress_add(weft_progress *progress, size_t index, const uint8_t *data,
                              weft_queue *queue);
size_t weft_progress_missing(const weft_progress *progress); // shards not added yet
// Ends it: shards that never came count as zeros. Afterwards nothing can be added. Errors:
// WEFT_E_STATE (ended before), WEFT_E_UNSUPPORTED (DEVICE memory, when no shard was added at all).
weft_status weft_progress_finish(weft_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
