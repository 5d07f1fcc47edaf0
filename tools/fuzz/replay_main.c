// SPDX-License-Identifier: Apache-2.0
// Replays a corpus through a fuzz target without libFuzzer, so that it runs as an ordinary test
// under any compiler and sanitizer. Each file is fed whole, and truncated to every length. Each
// input is a heap block of exactly its size, so that ASan detects a read past its end.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A target may define this to report, after the replay, what its corpus should have reached but did
// not; NULL: nothing. Otherwise a stale corpus would still pass.
__attribute__((weak)) const char *weft_fuzz_missing(void);

// Long files are truncated to only this many lengths, evenly spread.
enum { MAX_CUTS = 4096 };

static int feed(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);
  if (exact == NULL) {
    return -1;
  }
  memcpy(exact, data, size);
  (void)LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  return 0;
}

static int replay(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    return -1;
  }
  uint8_t *data = NULL;
  long size = -1;
  int result = -1;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    data = malloc(size > 0 ? (size_t)size : 1);
  }
  if (data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size) {
    size_t step = (size_t)size / MAX_CUTS + 1;
    result = 0;
    for (size_t cut = 0; cut < (size_t)size && result == 0; cut += step) {
      result = feed(data, cut);
    }
    result = result == 0 ? feed(data, (size_t)size) : result;
  }
  if (result != 0) {
    fprintf(stderr, "%s: cannot be read\n", path);
  }
  free(data);
  fclose(file);
  return result;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "no corpus: a replay of nothing proves nothing\n");
    return 1;
  }
  for (int i = 1; i < argc; i++) {
    // Print the name first, so that a crash shows its input.
    printf("%s\n", argv[i]);
    fflush(stdout);
    if (replay(argv[i]) != 0) {
      return 1;
    }
  }
  const char *missing = weft_fuzz_missing != NULL ? weft_fuzz_missing() : NULL;
  if (missing != NULL) {
    fprintf(stderr, "the corpus never reaches: %s\n", missing);
    return 1;
  }
  printf("%d inputs replayed\n", argc - 1);
  return 0;
}
