// SPDX-License-Identifier: Apache-2.0
// Whether two runs of device memory hold the same bytes.
#include "kernels/cuda/device.cuh"

template <class Word>
static __global__ void __launch_bounds__(256)
    compare_kernel(const Word *a, const Word *b, size_t words, uint32_t *flag) {
  const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  bool differs = false;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += step) {
    const Word x = a[i], y = b[i];
    if constexpr (sizeof(Word) == 16)
      differs = differs || ((x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w)) != 0;
    else
      differs = differs || x != y;
  }
  if (__any_sync(~0u, differs) && threadIdx.x % 32 == 0)
    *flag = 1;
}

template <class Word>
static weft_status compare(const weft_exec *exec, const uint8_t *a, const uint8_t *b, size_t words,
                           uint32_t *flag) {
  if (!words)
    return WEFT_OK;
  const size_t blocks = (words + 255) / 256;
  compare_kernel<<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), 256, 0,
                   weft_cuda_stream(exec)>>>(reinterpret_cast<const Word *>(a),
                                             reinterpret_cast<const Word *>(b), words, flag);
  return WEFT_CUDA_LAUNCHED();
}

extern "C" weft_status weft_device_compare(const weft_exec *exec, const uint8_t *a,
                                           const uint8_t *b, size_t bytes, void *flag) {
  weft_device_scope scope(exec->device);
  WEFT_TRY(scope.status());
  const bool wide = (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0;
  const size_t whole = wide ? bytes / 16 * 16 : 0;
  WEFT_TRY(compare<uint4>(exec, a, b, whole / 16, static_cast<uint32_t *>(flag)));
  return compare<uint8_t>(exec, a + whole, b + whole, bytes - whole, static_cast<uint32_t *>(flag));
}
