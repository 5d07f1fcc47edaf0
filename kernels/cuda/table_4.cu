// SPDX-License-Identifier: Apache-2.0
// cuda-table-4: as cuda-table-3 with exp in texture memory, read through a texture object, so that
// shared memory serves the coefficients alone. Limited by the texture units.
#include "kernels/cuda/log_domain.cuh"

namespace {

struct Texture {
  enum { SCALE = 1, TABLE_BYTES = 0 };
  struct Tables {
    cudaTextureObject_t texture;
  };
  cudaTextureObject_t texture;
  __device__ Texture(const uint8_t *, const Tables &tables) : texture(tables.texture) {}
  __device__ static void fill(uint8_t *) {}
  __device__ uint32_t lane() const { return 0; }
  __device__ uint32_t at(uint32_t index) const {
    return tex1Dfetch<unsigned char>(texture, static_cast<int>(index));
  }
};

typedef weft_cuda_log_domain<Texture> Policy;

} // namespace

WEFT_CUDA_TABLE_ROW(table_4, Policy, false, weft_cuda_pack_launch<Policy::Layout>,
                    weft_device_table_texture(exec->device, &tables.texture))
