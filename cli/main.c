// SPDX-License-Identifier: Apache-2.0
// The program `weft`: runs the subcommand that the command line names.
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cli/cli.h"
#include "tools/build_info.h"

static const struct {
  const char *name;
  cli_command *run;
  const char *about;
  bool words; // has subcommands of its own
} commands[] = {
    {"demo", cli_demo, "stream through a swarm of recoding peers, and check every byte", false},
    {"sim", cli_sim, "simulate swarms of up to millions of viewers, and report what they saw",
     false},
    {"bench", weft_bench_main, "measure this machine against its ceilings and other libraries",
     true},
    {"store", cli_store, "keep a file as shards, any k of which suffice: encode, decode, repair",
     true},
    {"peer", cli_peer, "stream over UDP: run a source, join a stream, or run a tracker", true},
    {"backends", cli_backends, "list the backend rows and which of them this machine can run",
     false},
};

static int usage(FILE *to) {
  fputs("usage: weft COMMAND [OPTION...]\n\n", to);
  for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
    fprintf(to, "  %-10s%s\n", commands[i].name, commands[i].about);
  fputs("\n  weft help COMMAND    shows a command's options\n"
        "  weft --version       shows version, commit and build\n\n",
        to);
  cli_environment_tell(to);
  fputs(
      "\nWith --json an error is printed as a JSON object, too, in place of the report: with\n"
      "version, command, exit_code and error. (weft bench --json FILE prints its errors as text,\n"
      "weft peer as lines of its log with --log-format json.)\n"
      "\nExit codes: 0 done; 1 the result is wrong; 2 command line; 3 input or output; 4 memory,\n"
      "backend or device; 5 key; 130 interrupted by Ctrl-C, 143 by SIGTERM,\n"
      "129 by a terminal that closed.\n",
      to);
  return CLI_USAGE;
}

static int run(int argc, char **argv) {
  for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
    if (strcmp(argv[0], commands[i].name) == 0) {
      const int code = commands[i].run(argc, argv);
      return code == CLI_OK ? cli_flush(argv[0], code) : code;
    }
  (void)cli_json_errors(argc, argv, stdout);
  return cli_error(NULL, CLI_USAGE, "unknown command '%s' (see weft --help)", argv[0]);
}

// `weft help WORD...`: prints what `weft WORD... --help` does.
static int tell(int argc, char **argv) {
  bool words = true; // run() reports an unknown command
  for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
    if (strcmp(argv[0], commands[i].name) == 0)
      words = commands[i].words;
  const int most = words ? 2 : 1;
  if (argc > most)
    return cli_error("help", CLI_USAGE, "unexpected argument '%s'", argv[most]);
  char *question[] = {argv[0], argc > 1 ? argv[1] : (char[]){"--help"}, (char[]){"--help"}, NULL};
  return run(argc > 1 ? 3 : 2, question);
}

// Changes to the user's folder, since `bazel run` starts programs in one of its own.
// BUILD_WORKING_DIRECTORY is where bazel was called; if the user is outside the tree, that is where
// bazelw went first, and WEFT_CALLED_FROM, which bazelw sets, is the user's folder.
static void go_where_the_user_is(void) {
  const char *folder = getenv("BUILD_WORKING_DIRECTORY");
  const char *before = getenv("WEFT_CALLED_FROM");
  if (folder && before)
    folder = before;
  if (folder && chdir(folder) != 0)
    cli_error(NULL, CLI_IO, "cannot enter %s; paths are relative to the current folder", folder);
}

int main(int argc, char **argv) {
  if (!cli_start())
    return CLI_IO;
  go_where_the_user_is();
  if (argc < 2)
    return usage(stderr);
  if (strcmp(argv[1], "--version") == 0 && argc > 2)
    return cli_error(NULL, CLI_USAGE, "--version accepts no argument");
  if (strcmp(argv[1], "--version") == 0) {
    printf("weft %s, commit %s, %s, %s\n", weft_version(), weft_build_commit(),
           weft_build_compiler(), weft_build_flags());
    return cli_flush(NULL, CLI_OK);
  }
  const bool help = strcmp(argv[1], "help") == 0;
  if ((help && argc == 2) || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    usage(stdout);
    return cli_flush(NULL, CLI_OK);
  }
  if (help)
    return tell(argc - 2, argv + 2);
  if (argv[1][0] == '-') {
    (void)cli_json_errors(argc, argv, stdout);
    return cli_error(NULL, CLI_USAGE,
                     "options go after the command, but '%s' comes first (see weft --help)",
                     argv[1]);
  }
  cli_environment_check();
  return run(argc - 1, argv + 1);
}
