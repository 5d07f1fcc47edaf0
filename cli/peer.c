// SPDX-License-Identifier: Apache-2.0
// `weft peer`: source, join, tracker.
#include <stdio.h>
#include <string.h>

#include "cli/peer.h"
#include "cli/peer_options.h"

static int usage(FILE *to) {
  fputs(
      "usage: weft peer source --input FILE|-|udp://:PORT [--listen ADDRESS] [OPTION...]\n"
      "       weft peer join --source ADDRESS --output FILE|-|udp://HOST:PORT|http://:PORT/\n"
      "       weft peer tracker [--listen ADDRESS] [OPTION...]\n\n"
      "  source     gives a stream: a file from its first byte, or what comes\n"
      "  join       receives it, passes it on, and plays it; ends with the stream\n"
      "  tracker    tells those who join of each other\n\n"
      "weft peer WORD --help tells the options. Each may also stand in the environment\n"
      "(WEFT_PEER_LISTEN=...) or in a file (--config: under [peer], listen=...): a flag wins over\n"
      "the environment, that over the file.\n\n"
      "HTTP output stays for who still reads after the end, for 10 minutes at most.\n\n"
      "Exit codes: 0 the stream ended, or SIGTERM; 1 the stream was lost before its end; 2 "
      "command\n"
      "line; 3 input, output or address; 4 memory, backend, or fewer than 16 file descriptors\n"
      "left (ulimit -n); 5 key; 130 Ctrl-C, 129 a terminal that closed.\n",
      to);
  return CLI_USAGE;
}

int cli_peer(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    usage(stdout);
    return cli_flush(PEER_NAME, CLI_OK);
  }
  peer_options_foresee_log(argc, argv);
  if (argc < 2 && peer_log_is_json()) // a JSON log has no place for the usage
    return cli_error(PEER_NAME, CLI_USAGE, "takes source, join or tracker");
  if (argc < 2)
    return usage(stderr);
  peer_settings settings;
  int code = peer_settings_read(word, argc - 1, argv + 1, &settings);
  if (code < 0)
    code = peer_run(&settings);
  peer_settings_clear(&settings);
  return code;
}
