// SPDX-License-Identifier: Apache-2.0
// cuda-logexp-constant: log/exp tables in constant memory, which serves one word per clock to a
// whole warp: right for coefficients, wrong for data, as the measurement shows.
#include "kernels/cuda/log_exp.cuh"

namespace {

__constant__ const weft_cuda_tables constant_tables = weft_cuda_make_tables();

struct Constant {
  enum { TABLE_BYTES = 0 };
  typedef weft_cuda_no_tables Tables;
  __device__ Constant(const uint8_t *, const Tables &) {}
  __device__ static void fill(uint8_t *) {}
  __device__ uint32_t log(uint32_t byte) const { return constant_tables.log[byte]; }
  __device__ uint32_t exp(uint32_t sum) const { return constant_tables.exp[sum]; }
};

typedef weft_cuda_log_exp<Constant> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(logexp_constant, Policy, true, weft_cuda_pack_raw, WEFT_OK)
