// SPDX-License-Identifier: Apache-2.0
// cuda-logexp-texture: log/exp tables both behind a texture object.
#include "kernels/cuda/log_exp.cuh"

namespace {

struct Texture {
  enum { TABLE_BYTES = 0, LogAt = offsetof(weft_cuda_tables, log) };
  struct Tables {
    cudaTextureObject_t texture;
  };
  cudaTextureObject_t texture;
  __device__ Texture(const uint8_t *, const Tables &tables) : texture(tables.texture) {}
  __device__ static void fill(uint8_t *) {}
  __device__ uint32_t log(uint32_t byte) const { return exp(LogAt + byte); }
  __device__ uint32_t exp(uint32_t sum) const {
    return tex1Dfetch<unsigned char>(texture, static_cast<int>(sum));
  }
};

typedef weft_cuda_log_exp<Texture> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(logexp_texture, Policy, true, weft_cuda_pack_raw,
                    weft_device_table_texture(exec->device, &tables.texture))
