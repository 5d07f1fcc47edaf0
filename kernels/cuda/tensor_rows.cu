// SPDX-License-Identifier: Apache-2.0
// The rows of the binary tensor product (cuda-b1 and those whose names begin so): products brought
// to device pointers and tiles, cut into panels of up to 256 source blocks, and launched in batches
// of one shape.
#include "kernels/cuda/batch.cuh"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/tensor.cuh"

#include <string.h>

namespace {

const weft_tensor_technique Wgmma = {WEFT_TENSOR_STEP,          WEFT_TENSOR_STEPS_MAX,
                                     WEFT_TENSOR_PAIR_BYTES(1), WEFT_TENSOR_CHUNK_BYTES(1),
                                     weft_tensor_prepare,       weft_tensor_wgmma};
const weft_tensor_technique Mma = {WEFT_TENSOR_STEP,          WEFT_TENSOR_STEPS_MAX,
                                   WEFT_TENSOR_PAIR_BYTES(1), WEFT_TENSOR_CHUNK_BYTES(1),
                                   weft_tensor_prepare,       weft_tensor_mma};
const weft_tensor_technique Karatsuba = {
    WEFT_KARATSUBA_STEP,           WEFT_KARATSUBA_STEPS_MAX, 2 * WEFT_KARATSUBA_TILE_BYTES(1),
    WEFT_KARATSUBA_CHUNK_BYTES(1), weft_karatsuba_prepare,   weft_karatsuba_wgmma};

// Which technique a row takes for k source blocks of len bytes.
typedef const weft_tensor_technique &(*Choice)(size_t k, size_t len);
const weft_tensor_technique &choose_wgmma(size_t, size_t) { return Wgmma; }
const weft_tensor_technique &choose_mma(size_t, size_t) { return Mma; }
const weft_tensor_technique &choose_karatsuba(size_t, size_t) { return Karatsuba; }
// As measured (docs/gpu/karatsuba.md): there Karatsuba saves more than its third sum costs.
const weft_tensor_technique &choose_quicker(size_t k, size_t len) {
  return k > 448 && len >= 4096 ? Karatsuba : Wgmma;
}

// The inner dimension in panels of equal steps; a product with k = 0 has none. An operand that was
// prepared for a technique on a device has the panels of a product there.
struct Panels {
  const weft_tensor_technique &technique;
  uint32_t count, steps; // steps of every panel
  Panels(const weft_tensor_technique &with, const weft_exec *exec, size_t k) : technique(with) {
    const uint32_t all = static_cast<uint32_t>((k + with.step - 1) / with.step);
    const uint32_t most = weft_tensor_steps_most(
        with.steps_max, with.chunk_bytes + 2 * with.pair_bytes,
        static_cast<uint32_t>(weft_device_get_shape(exec->device)->block_shared_bytes));
    count = (all + most - 1) / most;
    steps = count ? (all + count - 1) / count : 0;
  }
  size_t first(uint32_t panel) const { return size_t{panel} * steps * technique.step; }
  // Source blocks of a panel; the last may have few, or none.
  uint32_t blocks(size_t k, uint32_t panel) const {
    const size_t from = first(panel), most = first(1);
    return static_cast<uint32_t>(from >= k ? 0 : k - from < most ? k - from : most);
  }
  size_t panel_bytes(size_t len) const { // of one panel's tiles
    return (len + WEFT_TENSOR_PAIR - 1) / WEFT_TENSOR_PAIR * technique.pair_bytes * steps;
  }
  size_t bytes(size_t len) const { return panel_bytes(len) * count; }
};

bool words(const void *base, size_t stride) {
  return reinterpret_cast<uintptr_t>(base) % 4 == 0 && stride % 4 == 0 && stride < 1u << 30;
}

size_t a_stride_of(const weft_gemm &gemm) {
  return gemm.a_mem == WEFT_MEM_DEVICE ? gemm.a_stride : gemm.k; // what is brought is dense
}

// Whether two products can share a launch.
bool alike(const weft_gemm &a, const weft_gemm &b) {
  return a.m == b.m && a.k == b.k && a.len == b.len && a.accumulate == b.accumulate && !a.x.ptr &&
         !b.x.ptr && !a.y.ptr && !b.y.ptr && a.y.mem == b.y.mem && a.y.stride == b.y.stride &&
         a_stride_of(a) == a_stride_of(b) && !a.x_prepared == !b.x_prepared &&
         (a.x_prepared || a.x.stride == b.x.stride);
}

// Device scratch of one product beside descriptors and coefficients.
struct Needs {
  size_t tiles, x_ptr, y_ptr;
};

Needs needs_of(const Panels &panels, const weft_gemm &gemm) {
  Needs needs = {0, 0, 0};
  if (!gemm.x_prepared) {
    needs.tiles = panels.bytes(gemm.len);
    needs.x_ptr = gemm.x.ptr ? weft_align16(gemm.k * sizeof(uint8_t *)) : 0;
  }
  needs.y_ptr = gemm.y.ptr ? weft_align16(gemm.m * sizeof(uint8_t *)) : 0;
  return needs;
}

// Y of a product without source blocks. Row by row: what clears several at once has a largest
// pitch, and a single row may have any stride.
weft_status clear(const weft_exec *exec, const weft_gemm &gemm) {
  const cudaStream_t stream = weft_cuda_stream(exec);
  for (size_t i = 0; i < gemm.m && !gemm.accumulate; i++)
    WEFT_CUDA_TRY(cudaMemsetAsync(weft_row(&gemm.y, i), 0, gemm.len, stream));
  return WEFT_OK;
}

// Products of one shape on their way to the device.
class Batch {
public:
  // jobs: (count), for the host side; on_device: the same in device memory when they are not few.
  Batch(const weft_exec *exec, const Panels &panels, size_t k, size_t len, size_t count,
        weft_tensor_job *jobs, weft_tensor_job *on_device)
      : exec_(exec), panels_(panels), k_(k), panel_bytes_(panels.panel_bytes(len)), count_(count),
        jobs_(jobs), on_device_(on_device), batch_() {
    batch_.count = static_cast<uint32_t>(count);
    batch_.len = static_cast<uint32_t>(len);
    batch_.steps = panels_.steps;
  }

  // Makes tiles at jobs[i].y of the rows at jobs[i].x, a panel at a time.
  weft_status prepare(size_t x_stride, const uint8_t *const *x_ptr) {
    batch_.x_stride = x_stride;
    batch_.x_words = !x_ptr;
    for (size_t i = 0; i < count_; i++)
      batch_.x_words = batch_.x_words && words(jobs_[i].x, x_stride);
    for (uint32_t panel = 0; panel < panels_.count; panel++) {
      batch_.n = panels_.blocks(k_, panel);
      batch_.x_ptr = x_ptr ? x_ptr + panels_.first(panel) : nullptr;
      WEFT_TRY(send());
      WEFT_TRY(panels_.technique.prepare(exec_, batch_));
      for (size_t i = 0; i < count_; i++) {
        jobs_[i].x += x_ptr ? 0 : panels_.first(1) * x_stride;
        jobs_[i].y += panel_bytes_;
      }
    }
    return WEFT_OK;
  }

  // jobs[i].x: the first panel's tiles.
  weft_status multiply(const weft_gemm &like, uint8_t *const *y_ptr) {
    batch_.m = static_cast<uint32_t>(like.m);
    batch_.a_stride = a_stride_of(like);
    batch_.y_stride = like.y.stride;
    batch_.y_ptr = y_ptr;
    batch_.a_words = true;
    batch_.y_words = !y_ptr;
    batch_.y_device = like.y.mem == WEFT_MEM_DEVICE;
    for (size_t i = 0; i < count_; i++) {
      batch_.a_words = batch_.a_words && words(jobs_[i].a, batch_.a_stride);
      batch_.y_words = batch_.y_words && words(jobs_[i].y, batch_.y_stride);
    }
    for (uint32_t panel = 0; panel < panels_.count; panel++) {
      batch_.n = panels_.blocks(k_, panel);
      batch_.accumulate = like.accumulate || panel > 0;
      WEFT_TRY(send());
      WEFT_TRY(panels_.technique.multiply(exec_, batch_));
      for (size_t i = 0; i < count_; i++) {
        jobs_[i].a += panels_.first(1);
        jobs_[i].x += panel_bytes_;
      }
    }
    return WEFT_OK;
  }

private:
  weft_status send() {
    if (count_ <= WEFT_TENSOR_FEW) {
      memcpy(batch_.few, jobs_, count_ * sizeof *jobs_);
      return WEFT_OK;
    }
    batch_.jobs = on_device_;
    return weft_cuda_upload(exec_, on_device_, jobs_, count_ * sizeof *jobs_);
  }

  const weft_exec *exec_;
  const Panels panels_;
  const size_t k_, panel_bytes_, count_;
  weft_tensor_job *jobs_, *on_device_;
  weft_tensor_batch batch_;
};

// Host memory for descriptors, given back with the scope.
class Jobs {
public:
  Jobs(const weft_allocator *allocator, size_t count)
      : allocator_(allocator),
        at(static_cast<weft_tensor_job *>(allocator->alloc(
            allocator->user, count * sizeof(weft_tensor_job), alignof(weft_tensor_job)))) {}
  ~Jobs() {
    if (at)
      allocator_->free(allocator_->user, at);
  }
  Jobs(const Jobs &) = delete;
  Jobs &operator=(const Jobs &) = delete;

private:
  const weft_allocator *allocator_;

public:
  weft_tensor_job *const at; // NULL: there is none
};

// Row addresses to device memory at `to`; gives them there, or NULL if there are none.
template <class Pointer>
weft_status send_rows(const weft_exec *exec, Pointer const *rows, size_t count, uint8_t *to,
                      Pointer const **out) {
  *out = rows ? reinterpret_cast<Pointer const *>(to) : nullptr;
  return rows ? weft_cuda_upload(exec, to, rows, count * sizeof *rows) : WEFT_OK;
}

// `count` products that can share a launch, none of them empty. Scratch: descriptors, row
// addresses (of a single product), then coefficients and tiles of each.
weft_status like_products(const weft_backend *row, Choice choice, const weft_exec *exec,
                          const weft_gemm *gemms, size_t count) {
  const weft_gemm &like = gemms[0];
  const Panels panels(choice(like.k, like.len), exec, like.k);
  const Needs needs = needs_of(panels, like);
  const size_t descriptors =
      count > WEFT_TENSOR_FEW ? weft_align16(count * sizeof(weft_tensor_job)) : 0;
  bool bring_a = false;
  for (size_t i = 0; i < count; i++) {
    WEFT_TRY(weft_cuda_check(row, gemms[i]));
    bring_a = bring_a || gemms[i].a_mem != WEFT_MEM_DEVICE;
  }
  const size_t a_bytes = bring_a ? weft_align16(like.m * like.k) : 0;
  const size_t head = descriptors + needs.x_ptr + needs.y_ptr;
  const size_t bytes = head + count * (a_bytes + needs.tiles);
  Jobs jobs(exec->allocator, count);
  if (!jobs.at)
    return WEFT_E_NOMEM;
  weft_scratch scratch(exec);
  if (bytes)
    WEFT_TRY(scratch.alloc(bytes));
  uint8_t *const memory = scratch.as<uint8_t>(), *const as = memory + head;
  uint8_t *const tiles = as + count * a_bytes;
  const uint8_t *const *x_ptr = nullptr;
  uint8_t *const *y_ptr = nullptr;
  WEFT_TRY(send_rows(exec, like.y.ptr, like.m, memory + descriptors, &y_ptr));
  Batch batch(exec, panels, like.k, like.len, count, jobs.at, scratch.as<weft_tensor_job>());
  if (needs.tiles) {
    WEFT_TRY(send_rows(exec, like.x.ptr, like.k, memory + descriptors + needs.y_ptr, &x_ptr));
    for (size_t i = 0; i < count; i++)
      jobs.at[i] = {nullptr, gemms[i].x.base, tiles + i * needs.tiles};
    WEFT_TRY(batch.prepare(like.x.stride, x_ptr));
  }
  for (size_t i = 0; i < count; i++) {
    const weft_gemm &gemm = gemms[i];
    const uint8_t *a = gemm.a;
    if (gemm.a_mem != WEFT_MEM_DEVICE) {
      WEFT_TRY(weft_cuda_bring_a(exec, gemm, as + i * a_bytes));
      a = as + i * a_bytes;
    }
    jobs.at[i] = {a,
                  needs.tiles ? tiles + i * needs.tiles
                              : static_cast<const uint8_t *>(gemm.x_prepared->data),
                  gemm.y.base};
  }
  return batch.multiply(like, y_ptr);
}

weft_status products(const weft_backend *row, Choice choice, const weft_exec *exec,
                     const weft_gemm *gemms, size_t count) {
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  size_t end = 0;
  for (size_t i = 0; i < count; i = end) {
    for (end = i + 1; end < count && alike(gemms[i], gemms[end]);)
      end++;
    if (gemms[i].m == 0 || gemms[i].len == 0)
      continue;
    // Few outputs of long rows: no tiles are made.
    if (weft_storage_suits(&gemms[i], end - i)) {
      weft_status stored = WEFT_OK;
      while (i < end && stored == WEFT_OK) {
        size_t done = 0;
        stored = weft_storage_gemm(exec, &gemms[i], count - i, &done);
        i += stored == WEFT_OK ? done : 0; // from this one on as others
      }
      end = end < i ? i : end;
      if (stored == WEFT_OK)
        continue;
      if (stored != WEFT_E_UNSUPPORTED)
        return stored;
    }
    if (gemms[i].k) {
      WEFT_TRY(like_products(row, choice, exec, gemms + i, end - i));
      continue;
    }
    for (size_t j = i; j < end; j++) {
      WEFT_TRY(weft_cuda_check(row, gemms[j]));
      WEFT_TRY(clear(exec, gemms[j]));
    }
  }
  return WEFT_OK;
}

weft_status prepare(const weft_backend *row, Choice choice, const weft_exec *exec, size_t k,
                    size_t len, const weft_const_rows *x, weft_operand **out) {
  *out = nullptr;
  WEFT_TRY(weft_cuda_check_source(k, len, *x));
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const Panels panels(choice(k, len), exec, k);
  weft_operand *operand;
  WEFT_TRY(weft_cuda_operand_new(row, exec, k, len, 0, panels.bytes(len), &operand));
  weft_scratch pointers(exec);
  const uint8_t *const *x_ptr = nullptr;
  weft_status status = WEFT_OK;
  if (operand->bytes && x->ptr)
    status = pointers.alloc(k * sizeof(uint8_t *));
  if (status == WEFT_OK && operand->bytes)
    status = send_rows(exec, x->ptr, k, pointers.as<uint8_t>(), &x_ptr);
  if (status == WEFT_OK && operand->bytes) {
    weft_tensor_job job = {nullptr, x->base, static_cast<uint8_t *>(operand->data)};
    status = Batch(exec, panels, k, len, 1, &job, nullptr).prepare(x->stride, x_ptr);
  }
  if (status != WEFT_OK) {
    (void)weft_device_stream_wait(exec->device, exec->stream); // it may be about to be filled
    weft_cuda_release(row, exec, operand);
    return status;
  }
  *out = operand;
  return WEFT_OK;
}

weft_status fill_operands(const weft_exec *exec, const Panels &panels, size_t k, size_t len,
                          const uint8_t *const *x, size_t x_stride, size_t count,
                          weft_operand *const *operands) {
  Jobs jobs(exec->allocator, count);
  if (!jobs.at)
    return WEFT_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    jobs.at[i] = {nullptr, x[i], static_cast<uint8_t *>(operands[i]->data)};
  weft_scratch descriptors(exec);
  if (count > WEFT_TENSOR_FEW)
    WEFT_TRY(descriptors.alloc(count * sizeof(weft_tensor_job)));
  return Batch(exec, panels, k, len, count, jobs.at, descriptors.as<weft_tensor_job>())
      .prepare(x_stride, nullptr);
}

weft_status prepare_many(const weft_backend *row, Choice choice, const weft_exec *exec, size_t k,
                         size_t len, const uint8_t *const *x, size_t x_stride, size_t count,
                         weft_operand **out) {
  for (size_t i = 0; i < count; i++)
    out[i] = nullptr;
  if (k > UINT32_MAX / 2 || len > UINT32_MAX / 2 || count > UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const Panels panels(choice(k, len), exec, k);
  const size_t bytes = panels.bytes(len);
  weft_status status = WEFT_OK;
  for (size_t i = 0; status == WEFT_OK && i < count; i++)
    status = weft_cuda_operand_new(row, exec, k, len, 0, bytes, &out[i]);
  if (status == WEFT_OK && bytes && count)
    status = fill_operands(exec, panels, k, len, x, x_stride, count, out);
  if (status != WEFT_OK) // some of them may be about to be filled
    (void)weft_device_stream_wait(exec->device, exec->stream);
  for (size_t i = 0; status != WEFT_OK && i < count; i++) {
    weft_cuda_release(row, exec, out[i]);
    out[i] = nullptr;
  }
  return status;
}

} // namespace

weft_status weft_tensor_cut(const weft_tensor_batch &batch, const weft_tensor_sizes &sizes,
                            uint32_t sms, uint32_t shared_bytes, weft_tensor_plan *plan) {
  const uint32_t chunk = sizes.chunk_bytes, pair = sizes.stage_bytes * sizes.parts;
  if (shared_bytes < chunk + 2 * pair)
    return WEFT_E_UNSUPPORTED;
  const uint32_t room = (shared_bytes - 2 * pair) / chunk; // beside two pairs of tiles
  plan->chunks = (batch.m + sizes.chunk_blocks - 1) / sizes.chunk_blocks;
  plan->pairs = (batch.len + WEFT_TENSOR_PAIR - 1) / WEFT_TENSOR_PAIR;
  // Both warpgroups on the same tiles, at least.
  uint32_t group = 2 * chunk > WEFT_TENSOR_COEF_BYTES ? 2 : WEFT_TENSOR_COEF_BYTES / chunk;
  group = group < room ? group : room;
  const uint32_t most_slots = WEFT_TENSOR_SLOTS_MAX, most_stages = WEFT_TENSOR_STAGES_MAX;
  group = group < most_slots ? group : most_slots;
  group = group < plan->chunks ? group : plan->chunks;
  // Few units: smaller groups, so that every multiprocessor has some.
  const uint64_t products = static_cast<uint64_t>(batch.count) * plan->pairs;
  while (group > 1 && products * ((plan->chunks + group - 1) / group) < 2ull * sms)
    group = (group + 1) / 2;
  plan->groups = (plan->chunks + group - 1) / group;
  plan->group = (plan->chunks + plan->groups - 1) / plan->groups; // all about equal
  plan->groups = (plan->chunks + plan->group - 1) / plan->group;
  const uint64_t total = products * plan->groups;
  if (total >= UINT32_MAX / 2)
    return WEFT_E_ARGUMENT;
  plan->total = static_cast<uint32_t>(total);
  // Slots for the next group's chunks come before more stages: expanding takes longer than copying.
  const uint32_t slots = 2 * plan->group < room ? 2 * plan->group : room;
  plan->slots = slots < most_slots ? slots : most_slots;
  const uint32_t stages = (shared_bytes - plan->slots * chunk) / sizes.stage_bytes;
  plan->stages = stages < most_stages ? stages : most_stages;
  // A small chunk with few pairs of tiles: nothing hides the way to its coefficients, so that warps
  // wait side by side.
  plan->alone = chunk <= 16384 && plan->pairs <= 8 && plan->slots > 3 && total >= 16ull * sms;
  plan->power = {2, 4, 16, 1u << 16};
  return WEFT_OK;
}

#define WEFT_TENSOR_ROW(id, choice)                                                                \
  extern "C" weft_status weft_cuda_##id##_gemm(const weft_backend *row, const weft_exec *exec,     \
                                               const weft_gemm *gemms, size_t count) {             \
    return products(row, choice, exec, gemms, count);                                              \
  }                                                                                                \
  extern "C" weft_status weft_cuda_##id##_prepare(const weft_backend *row, const weft_exec *exec,  \
                                                  size_t k, size_t len, const weft_const_rows *x,  \
                                                  weft_operand **out) {                            \
    return prepare(row, choice, exec, k, len, x, out);                                             \
  }                                                                                                \
  extern "C" weft_status weft_cuda_##id##_prepare_many(                                            \
      const weft_backend *row, const weft_exec *exec, size_t k, size_t len,                        \
      const uint8_t *const *x, size_t x_stride, size_t count, weft_operand **out) {                \
    return prepare_many(row, choice, exec, k, len, x, x_stride, count, out);                       \
  }

WEFT_TENSOR_ROW(b1, choose_quicker)
WEFT_TENSOR_ROW(b1_wgmma, choose_wgmma)
WEFT_TENSOR_ROW(b1_wgmma_karatsuba, choose_karatsuba)
WEFT_TENSOR_ROW(b1_mma, choose_mma)
