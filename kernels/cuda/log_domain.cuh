// SPDX-License-Identifier: Apache-2.0
// Products in the log domain with log(0) = 510, so that a sum with a zero's log lands in the zeros
// of exp and needs no test (table-based-3 and its successors). Techniques differ in Lookup:
//   SCALE              of the stored logs, so that a sum of two is the lookup's own index
//   TABLE_BYTES, fill  the table in shared memory
//   Lookup(shared, tables), lane()   what each thread adds to its data's logs
//   at(index)          exp
#ifndef WEFT_KERNELS_CUDA_LOG_DOMAIN_CUH
#define WEFT_KERNELS_CUDA_LOG_DOMAIN_CUH

#include "kernels/cuda/product.cuh"

__device__ __forceinline__ uint32_t weft_cuda_shared_byte(uint32_t address) {
  uint32_t byte;
  asm("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(address));
  return byte;
}

__device__ __forceinline__ uint32_t weft_cuda_shared_word(uint32_t address) {
  uint32_t word;
  asm("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
  return word;
}

__device__ __forceinline__ uint32_t weft_cuda_shared_at(const void *memory) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(memory));
}

// Four values of 0..255, each its own register, as a word.
__device__ __forceinline__ uint32_t weft_cuda_word_of(const uint32_t *byte) {
  return __byte_perm(__byte_perm(byte[0], byte[1], 0x0040), __byte_perm(byte[2], byte[3], 0x0040),
                     0x5410);
}

struct weft_cuda_no_tables {};

// The resident layout: 16-bit logs times SCALE.
template <int SCALE>
struct weft_cuda_log_layout {
  __device__ static uint32_t log_of(uint32_t byte) {
    const uint32_t log = weft_cuda_global_tables.log[byte];
    return SCALE * (byte ? log : static_cast<uint32_t>(WEFT_CUDA_LOG_ZERO));
  }
  __device__ static uint32_t pair(uint32_t word, int at) {
    return log_of((word >> at) & 255) | log_of((word >> (at + 8)) & 255) << 16;
  }
  __device__ static void write(const weft_cuda_pack &pack, uint32_t j, uint32_t column,
                               uint2 bytes) {
    *reinterpret_cast<uint4 *>(pack.out + j * pack.out_stride + 2 * column) =
        make_uint4(pair(bytes.x, 0), pair(bytes.x, 16), pair(bytes.y, 0), pair(bytes.y, 16));
  }
};

template <class Lookup>
struct weft_cuda_log_domain {
  enum { ROWS = 8, BYTES = 8, ACC = 8, CHUNK = 128, COEF_WORDS = 1 };
  enum { TABLE_BYTES = Lookup::TABLE_BYTES, GROUP_BYTES = 2 * WEFT_CUDA_COLUMN_PAD };
  typedef typename Lookup::Tables Tables;
  typedef uint4 Data;
  typedef weft_cuda_log_layout<Lookup::SCALE> Layout;
  Lookup lookup;

  __device__ weft_cuda_log_domain(const uint8_t *shared, const Tables &tables)
      : lookup(shared, tables) {}
  __device__ static void fill(uint8_t *shared, const Tables &) { Lookup::fill(shared); }
  __device__ static uint32_t coefficient(const uint8_t *a, size_t at) { return a[at]; }
  __device__ static void expand(uint32_t *block, uint32_t r, uint32_t c, const uint8_t *) {
    block[r] = Layout::log_of(c);
  }
  __device__ static size_t offset(uint32_t column, uint32_t lane) {
    return 2 * static_cast<size_t>(column) + 16 * lane;
  }
  __device__ static Data load(const uint8_t *x) { return *reinterpret_cast<const uint4 *>(x); }

  // One register per index, with the thread's own offset; shared by all rows.
  __device__ void unpack(uint32_t (&index)[8], const Data &data) const {
    const uint32_t word[4] = {data.x, data.y, data.z, data.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      index[2 * i] = (word[i] & 0xffff) + lookup.lane();
      index[2 * i + 1] = (word[i] >> 16) + lookup.lane();
    }
  }

  __device__ void mac(uint32_t (&acc)[ROWS][ACC], const Data &first, const Data &second,
                      const uint32_t *block0, const uint32_t *block1) const {
    uint32_t index0[8], index1[8];
    unpack(index0, first);
    unpack(index1, second);
#pragma unroll
    for (int r4 = 0; r4 < ROWS; r4 += 4) {
      const uint4 quad0 = *reinterpret_cast<const uint4 *>(block0 + r4);
      const uint4 quad1 = *reinterpret_cast<const uint4 *>(block1 + r4);
      const uint32_t c0[4] = {quad0.x, quad0.y, quad0.z, quad0.w};
      const uint32_t c1[4] = {quad1.x, quad1.y, quad1.z, quad1.w};
#pragma unroll
      for (int r = 0; r < 4; r++)
#pragma unroll
        for (int i = 0; i < 8; i++)
          acc[r4 + r][i] ^= lookup.at(index0[i] + c0[r]) ^ lookup.at(index1[i] + c1[r]);
    }
  }

  __device__ static uint32_t word(const uint32_t (&acc)[ACC], uint32_t w) {
    return weft_cuda_word_of(acc + 4 * w);
  }
};

// Private word-wide copies of exp, side by side: copy p of entry i is word i * COPIES + p, and the
// logs are stored as byte offsets, so that one add gives the address.
template <int COPIES>
struct weft_cuda_word_copies {
  enum { SCALE = 4 * COPIES, TABLE_BYTES = 1024 * SCALE };
  typedef weft_cuda_no_tables Tables;
  uint32_t own;
  __device__ weft_cuda_word_copies(const uint8_t *shared, const Tables &)
      : own(weft_cuda_shared_at(shared) + 4 * (threadIdx.x % COPIES)) {}
  __device__ static void fill(uint8_t *shared) {
    uint32_t *words = reinterpret_cast<uint32_t *>(shared);
    for (uint32_t i = threadIdx.x; i < 1024 * COPIES; i += blockDim.x)
      words[i] = weft_cuda_global_tables.exp[i / COPIES];
  }
  __device__ uint32_t lane() const { return own; }
  __device__ uint32_t at(uint32_t index) const { return weft_cuda_shared_word(index); }
};

// The pair of calls that a row needs, for a policy with a Layout and no kernel argument.
#define WEFT_CUDA_TABLE_ROW(name, Policy, is_raw, pack_call, tables_call)                          \
  static weft_status name##_launch(const weft_exec *exec, const weft_cuda_batch &batch) {          \
    Policy::Tables tables = {};                                                                    \
    WEFT_TRY(tables_call);                                                                         \
    return weft_cuda_product_launch<Policy>(exec, batch, tables);                                  \
  }                                                                                                \
  static const weft_cuda_technique name##_technique = {                                            \
      Policy::ROWS, Policy::BYTES, Policy::GROUP_BYTES, is_raw, pack_call, name##_launch};         \
  extern "C" weft_status weft_cuda_##name##_gemm(const weft_backend *row, const weft_exec *exec,   \
                                                 const weft_gemm *gemms, size_t count) {           \
    return weft_cuda_product(name##_technique, row, exec, gemms, count);                           \
  }                                                                                                \
  extern "C" weft_status weft_cuda_##name##_prepare(                                               \
      const weft_backend *row, const weft_exec *exec, size_t k, size_t len,                        \
      const weft_const_rows *x, weft_operand **out) {                                              \
    return weft_cuda_prepare(name##_technique, row, exec, k, len, x, out);                         \
  }

#endif
