// SPDX-License-Identifier: Apache-2.0
// Another RLNC library, through a shared library that has the functions below. bench/peers/rlnc
// builds some; whoever writes these functions can compare their own.
//
//   const char *weft_rlnc_peer_version(void);   // its name and version
//   uint32_t weft_rlnc_peer_polynomial(void);   // of its GF(2^8), as 0x11d is weft's
//   void *weft_rlnc_peer_new(size_t n, size_t k, uint8_t *data, size_t *data_bytes);
//   void weft_rlnc_peer_free(void *coder);
//   bool weft_rlnc_peer_encode(void *coder, size_t m);
//   bool weft_rlnc_peer_give(void *coder, const uint8_t *packets, size_t bytes);
//   bool weft_rlnc_peer_recode(void *coder, size_t m);
//   bool weft_rlnc_peer_decode(void *coder);
//   size_t weft_rlnc_peer_take(const void *coder, uint8_t *out, size_t room);
//
// new: returns a coder for one segment of n blocks of k bytes, data(n, k), which it copies. A
// library that needs its own mark at the end writes it into data as well and sets *data_bytes to
// what remains for data, more than (n - 1) * k; others set n * k. NULL: this shape is not
// supported. encode: makes m packets with coefficients drawn in the call. give: passes packets for
// recode to mix and decode to decode. recode: makes m packets, each mixed from all of those.
// decode: decodes packet by packet with a decoder made for the call. The results stay in the coder
// until its next call. take: copies as much of them as there is room for (m packets of n
// coefficients and k bytes each, or the data) and returns their full length in bytes. False: the
// call failed.
#ifndef WEFT_BENCH_PEERS_RLNC_PEER_H
#define WEFT_BENCH_PEERS_RLNC_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weft_bench_rlnc_peer {
  const char *version;
  uint32_t polynomial;
  void *(*make)(size_t n, size_t k, uint8_t *data, size_t *data_bytes);
  void (*free)(void *coder);
  bool (*encode)(void *coder, size_t m);
  bool (*give)(void *coder, const uint8_t *packets, size_t bytes);
  bool (*recode)(void *coder, size_t m);
  bool (*decode)(void *coder);
  size_t (*take)(const void *coder, uint8_t *out, size_t room);
} weft_bench_rlnc_peer;

// Returns false after a line that says what is missing. The library stays open.
bool weft_bench_rlnc_peer_open(const char *file, weft_bench_rlnc_peer *out);

#endif
