// SPDX-License-Identifier: Apache-2.0
// Chooses the backend row, and multiplies with it on the calling thread.
#include "integrations/isal/product.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu.h"

static _Noreturn void give_up(const char *what, weft_status status) {
  fprintf(stderr, "weft: %s: %s\n", what, weft_status_text(status));
  abort();
}

const weft_backend *weft_isal_row(void) {
  static _Atomic(const weft_backend *) chosen; // every thread would choose the same one
  const weft_backend *row = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (row)
    return row;
  const char *const name = getenv("WEFT_BACKEND");
  const weft_machine machine = {.cpu = weft_cpu_features()};
  const weft_status status = weft_backend_select(&machine, WEFT_MEM_HOST, name, &row);
  if (status != WEFT_OK)
    give_up(name ? name : "no row of the table runs here", status);
  atomic_store_explicit(&chosen, row, memory_order_relaxed);
  return row;
}

void weft_isal_multiply(const weft_isal_product *p) {
  static const weft_allocator none; // one thread of a host row needs no memory
  const weft_exec exec = {.allocator = &none};
  weft_gemm gemm = weft_gemm_of(p->m, p->k, p->len, p->a, p->a_stride, p->x, p->y);
  gemm.accumulate = p->accumulate;
  const weft_backend *const row = weft_isal_row();
  const weft_status status = row->gemm(row, &exec, &gemm, 1);
  if (status != WEFT_OK)
    give_up(row->name, status);
}
