// SPDX-License-Identifier: Apache-2.0
// A program as ISA-L's users write it, with nothing of weft: encode, lose, invert, recover,
// compare.
#include <isa-l.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 10, M = 14, BYTES = 4096 };

static unsigned char shard[M][BYTES], again[M - K][BYTES];

// Rows of `decode` that rebuild what is lost from the first k shards that are not.
static int make_decoder(unsigned char *generator, const int *lost, int count, unsigned char *decode,
                        int *used) {
  unsigned char held[K * K], inverse[K * K];
  for (int i = 0, r = 0; r < K; i++) {
    int is_lost = 0;
    for (int e = 0; e < count; e++)
      is_lost |= lost[e] == i;
    if (is_lost)
      continue;
    memcpy(held + r * K, generator + i * K, K);
    used[r++] = i;
  }
  if (gf_invert_matrix(held, inverse, K) != 0)
    return -1;
  for (int e = 0; e < count; e++)
    for (int c = 0; c < K; c++) {
      unsigned char sum = 0;
      for (int t = 0; t < K; t++)
        sum ^= gf_mul(generator[lost[e] * K + t], inverse[t * K + c]);
      decode[e * K + c] = sum;
    }
  return 0;
}

static int recover(unsigned char *generator, const int *lost, int count) {
  unsigned char decode[(M - K) * K], tables[(M - K) * K * 32], *in[K], *out[M - K];
  int used[K];
  if (make_decoder(generator, lost, count, decode, used) != 0)
    return -1;
  for (int i = 0; i < K; i++)
    in[i] = shard[used[i]];
  for (int e = 0; e < count; e++)
    out[e] = again[e];
  ec_init_tables(K, count, decode, tables);
  ec_encode_data(BYTES, K, count, tables, in, out);
  for (int e = 0; e < count; e++)
    if (memcmp(again[e], shard[lost[e]], BYTES) != 0)
      return -1;
  return 0;
}

int main(void) {
  unsigned char generator[M * K], tables[(M - K) * K * 32], *data[K], *parity[M - K];
  int tried = 0;
  for (int i = 0; i < K; i++) {
    data[i] = shard[i];
    for (int b = 0; b < BYTES; b++)
      shard[i][b] = (unsigned char)rand();
  }
  for (int i = 0; i < M - K; i++)
    parity[i] = shard[K + i];
  gf_gen_cauchy1_matrix(generator, M, K);
  ec_init_tables(K, M - K, generator + K * K, tables);
  ec_encode_data(BYTES, K, M - K, tables, data, parity);
  for (int a = 0; a < M; a++)
    for (int b = a + 1; b < M; b++)
      for (int c = b + 1; c < M; c++)
        for (int d = c + 1; d < M; d++, tried++) {
          const int lost[] = {a, b, c, d};
          if (recover(generator, lost, 4) != 0) {
            fprintf(stderr, "losing %d, %d, %d, %d: not recovered\n", a, b, c, d);
            return 1;
          }
        }
  printf("%d losses of 4 recovered\n", tried);
  return 0;
}
