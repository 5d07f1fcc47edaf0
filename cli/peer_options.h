// SPDX-License-Identifier: Apache-2.0
// `weft peer`: its options, and the text that was given for each.
#ifndef WEFT_CLI_PEER_OPTIONS_H
#define WEFT_CLI_PEER_OPTIONS_H

#include "cli/peer.h"

// The words (subcommands) of `weft peer`, as bits.
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
// Switches the log, and errors with it, to JSON if the flags or the environment ask for that. To be
// called before there can be errors.
void peer_options_foresee_log(int argc, char *const *argv);
// Takes each value from the flags, else the environment, else the file, else the default; NULL: the
// word has no such option, or it has no value. *given: bits of those that were given and differ
// from the default. Returns -1 to go on, else the exit code.
int peer_options_gather(const char *word_text, int word, int argc, char **argv, uint64_t *given,
                        char *values[OPTIONS]);
// Warns about those of the options `given` (bits) that a stream of that kind does not use.
void peer_options_tell_unused(uint64_t given, int word, weft_engine_mode mode);

#endif
