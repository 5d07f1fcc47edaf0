// SPDX-License-Identifier: Apache-2.0
// Expands seeds to coefficients on host rows whose technique has vectors for it; threads share the
// rows.
#include "kernels/host_kernels.h"

enum { TOGETHER = 64 }; // rows that a thread takes at once

typedef struct expand_job {
  const weft_host_kernel *kernel;
  const weft_expansion *expansion;
} expand_job;

static void expand_task(void *user, size_t index) {
  const expand_job *job = user;
  const size_t begin = index * TOGETHER, left = job->expansion->count - begin;
  job->kernel->expand(job->expansion, begin, begin + (left < TOGETHER ? left : TOGETHER));
}

weft_status weft_host_expand(const weft_backend *row, const weft_exec *exec,
                             const weft_expansion *expansion) {
  if (!row->host->expand || expansion->fresh || expansion->density_q16 != 0)
    return WEFT_E_UNSUPPORTED;
  expand_job job = {.kernel = row->host, .expansion = expansion};
  const size_t count = expansion->count;
  weft_pool_run(exec->pool, count / TOGETHER + (count % TOGETHER != 0), expand_task, &job);
  return WEFT_OK;
}
