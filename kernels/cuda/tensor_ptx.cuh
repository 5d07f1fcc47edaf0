// SPDX-License-Identifier: Apache-2.0
// The PTX instructions that the binary tensor product needs, one small wrapper each.
#ifndef WEFT_KERNELS_CUDA_TENSOR_PTX_CUH
#define WEFT_KERNELS_CUDA_TENSOR_PTX_CUH

#include <stdint.h>

__device__ __forceinline__ uint32_t weft_shared_address(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void weft_mbarrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void weft_mbarrier_init_done() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void weft_mbarrier_arrive(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count)
               : "memory");
}

__device__ __forceinline__ void weft_mbarrier_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Waits until the barrier's phase of this parity is complete.
__device__ __forceinline__ void weft_mbarrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n.reg .pred done;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n}\n" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// Whether it is, after waiting for a while.
__device__ __forceinline__ bool weft_mbarrier_try(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "selp.u32 %0, 1, 0, p;\n}\n"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}

// Keeps the compiler from computing a value again where it is used.
__device__ __forceinline__ uint32_t weft_opaque(uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Copies contiguous global bytes to shared memory; the barrier counts them in.
__device__ __forceinline__ void weft_bulk_load(uint32_t to, const void *from, uint32_t bytes,
                                               uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// Makes this thread's shared-memory stores visible to the tensor cores and the copy engine.
__device__ __forceinline__ void weft_fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int Registers>
__device__ __forceinline__ void weft_registers_take() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void weft_registers_give() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

__device__ __forceinline__ void weft_wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void weft_wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int Groups>
__device__ __forceinline__ void weft_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// Keeps the compiler from moving accumulators across the asynchronous product that owns them.
template <int Count>
__device__ __forceinline__ void weft_pin(uint32_t (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++)
    asm volatile("" : "+r"(d[i])::"memory");
}

// Says that the accumulators' old values are dead, so that the next product starts in them.
template <int Count>
__device__ __forceinline__ void weft_pin_undefined(uint32_t (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; i++)
    asm volatile("" : "=r"(d[i]));
}

// Low word of the descriptor of a K-major operand in core matrices without swizzle; k_stride: bytes
// between core matrices along the inner dimension. Adding bytes / 16 moves the operand.
__device__ __forceinline__ uint32_t weft_wgmma_operand(uint32_t shared, uint32_t k_stride) {
  return (shared & 0x3ffffu) >> 4 | k_stride >> 4 << 16;
}

// The whole descriptor; core matrices that neighbour along the rows are 128 bytes apart.
__device__ __forceinline__ uint64_t weft_wgmma_descriptor(uint32_t operand) {
  return static_cast<uint64_t>(128u >> 4) << 32 | operand;
}

// acc(64, 256) = a(64, 256 bits) and.popc b(256, 256 bits) (+ acc when keep is not 0).
__device__ __forceinline__ void weft_wgmma_n256(uint32_t (&d)[128], uint64_t a, uint64_t b,
                                                uint32_t keep) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, "
      "%72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, "
      "%88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, "
      "%104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, "
      "%120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p;\n}\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]),
        "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]),
        "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]),
        "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]),
        "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]),
        "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]),
        "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]),
        "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]),
        "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]),
        "+r"(d[63]), "+r"(d[64]), "+r"(d[65]), "+r"(d[66]), "+r"(d[67]), "+r"(d[68]), "+r"(d[69]),
        "+r"(d[70]), "+r"(d[71]), "+r"(d[72]), "+r"(d[73]), "+r"(d[74]), "+r"(d[75]), "+r"(d[76]),
        "+r"(d[77]), "+r"(d[78]), "+r"(d[79]), "+r"(d[80]), "+r"(d[81]), "+r"(d[82]), "+r"(d[83]),
        "+r"(d[84]), "+r"(d[85]), "+r"(d[86]), "+r"(d[87]), "+r"(d[88]), "+r"(d[89]), "+r"(d[90]),
        "+r"(d[91]), "+r"(d[92]), "+r"(d[93]), "+r"(d[94]), "+r"(d[95]), "+r"(d[96]), "+r"(d[97]),
        "+r"(d[98]), "+r"(d[99]), "+r"(d[100]), "+r"(d[101]), "+r"(d[102]), "+r"(d[103]),
        "+r"(d[104]), "+r"(d[105]), "+r"(d[106]), "+r"(d[107]), "+r"(d[108]), "+r"(d[109]),
        "+r"(d[110]), "+r"(d[111]), "+r"(d[112]), "+r"(d[113]), "+r"(d[114]), "+r"(d[115]),
        "+r"(d[116]), "+r"(d[117]), "+r"(d[118]), "+r"(d[119]), "+r"(d[120]), "+r"(d[121]),
        "+r"(d[122]), "+r"(d[123]), "+r"(d[124]), "+r"(d[125]), "+r"(d[126]), "+r"(d[127])
      : "l"(a), "l"(b), "r"(keep));
}

#endif
