// SPDX-License-Identifier: Apache-2.0
// `weft peer`: which options there are, and the text that was given for each.
#ifndef WEFT_CLI_PEER_OPTIONS_H
#define WEFT_CLI_PEER_OPTIONS_H

#include "cli/peer.h"

// The words of `weft peer`, as bits.
enum { PEER_SOURCE = 1, PEER_JOIN = 2, PEER_TRACKER = 4 };

enum {
  O_CONFIG,
  O_INPUT,
  O_LISTEN,
  O_MAP_PORT,
  O_SOURCE,
  O_TRACKER,
  O_OUTPUT,
  O_SOURCE_KEY,
  O_KEY_FILE,
  O_RATE,
  O_UPLOAD,
  O_CONGESTION,
  O_SCHEME,
  O_STREAM,
  O_BLOCKS,
  O_BLOCK_BYTES,
  O_WINDOW,
  O_BATCH,
  O_NEIGHBOURS,
  O_FROM,
  O_GATHER,
  O_STARTUP,
  O_LAG,
  O_CHECKSUMS,
  O_LINGER,
  O_STAY,
  O_TIMEOUT,
  O_CIPHER,
  O_METRICS,
  O_LOG_LEVEL,
  O_LOG_FORMAT,
  O_BACKEND,
  O_THREADS,
  OPTIONS
};

const char *peer_option_name(size_t which);
// Before anything can be wrong: whether flags or the environment want the log in JSON, and errors
// with it.
void peer_options_foresee_log(int argc, char *const *argv);
// Each value from the flags, else the environment, else the file, else what holds otherwise; NULL:
// the word has no such option, or nothing was said. *given: bits of those that were said and are
// not what holds otherwise. -1 to go on, else the exit code.
int peer_options_gather(const char *word_text, int word, int argc, char **argv, uint64_t *given,
                        char *values[OPTIONS]);
// Of those that were given (bits) and ask for something: warns of what a stream of that kind does
// not use.
void peer_options_tell_unused(uint64_t given, int word, weft_engine_mode mode);

#endif
