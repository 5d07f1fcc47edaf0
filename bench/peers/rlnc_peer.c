// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/rlnc_peer.h"

#include "bench/peers/library.h"

bool weft_bench_rlnc_peer_open(const char *file, weft_bench_rlnc_peer *out) {
  const char *(*version)(void) = NULL;
  uint32_t (*polynomial)(void) = NULL;
  const weft_bench_import functions[] = {
      {"weft_rlnc_peer_version", &version},    {"weft_rlnc_peer_polynomial", &polynomial},
      {"weft_rlnc_peer_new", &out->make},      {"weft_rlnc_peer_free", &out->free},
      {"weft_rlnc_peer_encode", &out->encode}, {"weft_rlnc_peer_give", &out->give},
      {"weft_rlnc_peer_recode", &out->recode}, {"weft_rlnc_peer_decode", &out->decode},
      {"weft_rlnc_peer_take", &out->take}};
  void *const library = weft_bench_library_open("the RLNC library", file, "");
  if (!library || !weft_bench_library_import(library, "the RLNC library", file, functions,
                                             sizeof functions / sizeof *functions))
    return false;
  out->version = version();
  out->polynomial = polynomial();
  return true;
}
