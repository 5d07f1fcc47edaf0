// SPDX-License-Identifier: Apache-2.0
// Gibraltar's interface (Curry et al., Concurrency and Computation 23, 2011) on weft: a program
// written for it changes its include and links //integrations/gibraltar instead. The bytes are the
// same, since weft's code `vandermonde` has Gibraltar's matrix.
//
// Buffers follow each other in memory: k data buffers, then m of parity. The distance between them
// is the buf_size of a call, which may be the ld that gib_alloc returned, or any other.
#ifndef WEFT_INTEGRATIONS_GIBRALTAR_H
#define WEFT_INTEGRATIONS_GIBRALTAR_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GIB_SUC = 0, // done
  GIB_OOM = 1, // out of memory
  GIB_ERR = 2  // anything else
};

// Any number of contexts may exist at once, each used by one thread at a time.
typedef struct gib_context_t {
  union { // data buffers: the paper says k, the library's sources n
    int n;
    int k;
  };
  int m;             // parity buffers
  unsigned char *F;  // (m, k): coefficients of the parity buffers
  void *acc_context; // weft's own
} * gib_context;

// Creates a context. WEFT_BACKEND chooses the backend row, as everywhere. n >= 1, m >= 0, n + m <=
// 256.
int gib_init(int n, int m, gib_context *c);
int gib_destroy(gib_context c); // accepts NULL

// Allocates k + m buffers of buf_size bytes, *ld bytes apart: at least buf_size, and such that
// equal offsets in the buffers do not compete for the same cache lines. ld may be NULL.
int gib_alloc(void **buffers, int buf_size, int *ld, gib_context c);
int gib_free(void *buffers, gib_context c);

// Fills the m parity buffers.
int gib_generate(void *buffers, int buf_size, gib_context c);
// The same for the first work_size bytes of buffers that are buf_size bytes apart.
int gib_generate_nc(void *buffers, int buf_size, int work_size, gib_context c);

// Rebuilds lost buffers, data and parity alike. Buffer i holds the shard buf_ids[i]: the first k
// are intact, and the recover_last after them are made from these.
int gib_recover(void *buffers, int buf_size, int *buf_ids, int recover_last, gib_context c);
int gib_recover_nc(void *buffers, int buf_size, int work_size, int *buf_ids, int recover_last,
                   gib_context c);

#ifdef __cplusplus
}
#endif
#endif
