// SPDX-License-Identifier: Apache-2.0
// Marks in a stream, for the host to wait for: events, which cost less than waiting for the stream.
#include "kernels/cuda/device.cuh"

extern "C" weft_status weft_device_mark_new(weft_device *device, void *stream, void **out) {
  *out = nullptr;
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  cudaEvent_t event;
  WEFT_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const weft_status status = WEFT_CUDA(cudaEventRecord(event, static_cast<cudaStream_t>(stream)));
  if (status == WEFT_OK)
    *out = event;
  else
    weft_device_mark_free(device, event);
  return status;
}

extern "C" weft_status weft_device_mark_wait(weft_device *device, void *mark) {
  weft_device_scope scope(device);
  WEFT_TRY(scope.status());
  return WEFT_CUDA(cudaEventSynchronize(static_cast<cudaEvent_t>(mark)));
}

extern "C" void weft_device_mark_free(weft_device *device, void *mark) {
  if (!mark)
    return;
  weft_device_scope scope(device);
  (void)cudaEventDestroy(static_cast<cudaEvent_t>(mark));
  (void)cudaGetLastError(); // the next launch must not be blamed
}
