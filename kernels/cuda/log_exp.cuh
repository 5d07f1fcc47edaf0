// SPDX-License-Identifier: Apache-2.0
// The plain log/exp product, three lookups and two tests for zero, nothing prepared: a thread owns
// bytes of one coded row (the coefficient's log serves them all). Place says where tables live:
//   TABLE_BYTES, fill(shared); Place(shared, tables); log(byte); exp(sum)
#ifndef WEFT_KERNELS_CUDA_LOG_EXP_CUH
#define WEFT_KERNELS_CUDA_LOG_EXP_CUH

#include "kernels/cuda/log_domain.cuh"

template <class Place>
struct weft_cuda_log_exp {
  enum { ROWS = 1, BYTES = 8, ACC = 8, CHUNK = 128, COEF_WORDS = 1 };
  enum { TABLE_BYTES = Place::TABLE_BYTES, GROUP_BYTES = WEFT_CUDA_COLUMN_PAD };
  typedef typename Place::Tables Tables;
  typedef uint2 Data;
  Place place;

  __device__ weft_cuda_log_exp(const uint8_t *shared, const Tables &tables)
      : place(shared, tables) {}
  __device__ static void fill(uint8_t *shared, const Tables &) { Place::fill(shared); }
  __device__ static uint32_t coefficient(const uint8_t *a, size_t at) { return a[at]; }
  __device__ static void expand(uint32_t *block, uint32_t r, uint32_t c, const uint8_t *) {
    block[r] = c;
  }
  __device__ static size_t offset(uint32_t column, uint32_t lane) { return column + 8 * lane; }
  __device__ static Data load(const uint8_t *x) { return *reinterpret_cast<const uint2 *>(x); }

  __device__ void one(uint32_t (&acc)[ROWS][ACC], const Data &data, uint32_t c) const {
    if (c == 0)
      return;
    const uint32_t log_c = place.log(c);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const uint32_t byte = ((i < 4 ? data.x : data.y) >> (8 * (i % 4))) & 255;
      if (byte)
        acc[0][i] ^= place.exp(place.log(byte) + log_c);
    }
  }
  __device__ void mac(uint32_t (&acc)[ROWS][ACC], const Data &first, const Data &second,
                      const uint32_t *block0, const uint32_t *block1) const {
    one(acc, first, block0[0]);
    one(acc, second, block1[0]);
  }
  __device__ static uint32_t word(const uint32_t (&acc)[ACC], uint32_t w) {
    return weft_cuda_word_of(acc + 4 * w);
  }
};

// Both tables in shared memory, as table-based-0 has them; INIT says who writes them.
template <void (*INIT)(uint8_t *shared)>
struct weft_cuda_shared_place {
  enum { TABLE_BYTES = 1024 }; // exp at 0 (509 used), log at 512
  typedef weft_cuda_no_tables Tables;
  uint32_t base;
  __device__ weft_cuda_shared_place(const uint8_t *shared, const Tables &)
      : base(weft_cuda_shared_at(shared)) {}
  __device__ static void fill(uint8_t *shared) { INIT(shared); }
  __device__ uint32_t log(uint32_t byte) const { return weft_cuda_shared_byte(base + 512 + byte); }
  __device__ uint32_t exp(uint32_t sum) const { return weft_cuda_shared_byte(base + sum); }
};

#endif
