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
      "  source     serves a stream: a file from its first byte, or live input as it arrives\n"
      "  join       receives a stream, passes it on and plays it; ends with the stream\n"
      "  tracker    tells joining peers about each other\n\n"
      "weft peer WORD --help lists the options. Each can also be set in the environment\n"
      "(WEFT_PEER_LISTEN=...) or in a file (--config: listen=... under [peer]). A flag overrides\n"
      "the environment, which overrides the file.\n\n"
      "After the end, HTTP output stays for clients that are still reading, for at most 10\n"
      "minutes.\n\n"
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
    return cli_error(PEER_NAME, CLI_USAGE, "needs source, join or tracker");
  if (argc < 2)
    return usage(stderr);
  peer_settings settings;
  int code = peer_settings_read(word, argc - 1, argv + 1, &settings);
  if (code < 0)
    code = peer_run(&settings);
  peer_settings_clear(&settings);
  return code;
}
