// SPDX-License-Identifier: Apache-2.0
// What the subcommands of `weft` share: exit codes, interruption, progress, input, sizes.
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#include "weft/weft.h"

// Exit codes, the same for every subcommand.
enum {
  CLI_OK = 0,
  CLI_DIFFERS = 1, // the run ended, and what it was to show does not hold
  CLI_USAGE = 2,   // the command line
  CLI_IO = 3,      // input or output could not be read or written
  CLI_MACHINE = 4, // memory, backend row or device
  CLI_KEY = 5,     // a key is missing or wrong
  CLI_SIGNAL = 128 // + the signal's number: 130 after Ctrl-C
};

// Every subcommand takes its own name as argv[0] and returns an exit code.
typedef int cli_command(int argc, char **argv);
cli_command cli_demo, cli_sim, cli_backends, cli_peer, cli_store;

// "weft demo: --peers ..." on standard error; returns the code.
int cli_error(const char *command, int code, const char *format, ...) G_GNUC_PRINTF(3, 4);
// From now on such messages are appended to `text`, and what follows of them to `objects`, instead;
// NULL: written again.
void cli_hold_messages(GString *text, GString *objects);

// --- Errors for programs: under --json the first error is one JSON object, too.
// cli_parse begins with that where --json is an option and given; who wants another place than
// standard output, or errors of before, says so first. Where `to` is standard error the object is
// all there is on it. False: the command line does not ask for it.
bool cli_json_errors(int argc, char *const *argv, FILE *to);
// What was to be printed is about to be: errors from here on are text alone.
void cli_json_errors_end(void);

// Errors, but no remarks, are told by `tell` instead, as in a log of JSON; NULL: as before.
typedef void cli_error_teller(const char *command, int code, const char *text);
void cli_tell_errors(cli_error_teller *tell);
// The fields of an error's object.
struct json_t;
void cli_error_describe(struct json_t *object, const char *command, int code, const char *text);

// A backend row that cannot be had, by the name that asked for it (NULL: WEFT_BACKEND, or none);
// returns CLI_MACHINE.
int cli_error_backend(const char *command, const char *name, weft_status status);

// Parses with GOption; answers --help. Returns -1 to go on, else the exit code.
int cli_parse(const char *command, const char *summary, const char *description,
              const GOptionEntry *entries, int argc, char **argv);

// --- The environment: weft peer's options, under this prefix, and a few others.
#define CLI_PEER_PREFIX "WEFT_PEER_"
void cli_environment_tell(FILE *to);
// Warns of variables WEFT_... that nobody reads: a mistyped one would be passed over in silence.
// Those of weft peer it checks itself.
void cli_environment_check(void);

// Before anything else: no file that the program opens may get the number of a standard one that
// was closed, or what is printed would end in it; and a file that may not grow is an error of that
// file. False: that cannot be.
bool cli_start(void);

// Writes what standard output still holds; an exit code that says whether that worked.
int cli_flush(const char *command, int code);

// --- Interruption: SIGINT, SIGTERM and SIGHUP set a flag; a second one ends the program at once.
// One that was ignored when the program began stays so: nohup ignores SIGHUP, and shells without
// job control SIGINT for what they start with `&`, where a Ctrl-C is meant for others.
bool cli_signal_ignored(int number);
void cli_catch_signals(void);
// From here on the first ends it at once: all is done but a report, which somebody may not read.
void cli_leave_by_signals(void);
int cli_signal(void); // 0, or the signal that came

// --- Progress on standard error, if that is a terminal.
typedef struct cli_progress {
  bool shown;
  gint64 start_us, next_us;
  const char *verb; // what was done to the bytes; NULL: "decoded"
} cli_progress;
void cli_progress_start(cli_progress *progress);
// total 0: unknown. Draws at most ten times a second.
void cli_progress_draw(cli_progress *progress, uint64_t done, uint64_t total);
void cli_progress_end(cli_progress *progress); // wipes the line
// One line that takes the place of the one before; empty: wipes it. What a narrow terminal has no
// room for is left out, as a line that wraps could not be wiped.
void cli_progress_line(const char *text);
int cli_terminal_columns(void); // of standard error; INT_MAX: not known

// --- Input: a file, standard input ("-"), or (path == NULL) a clip made from a seed.
typedef struct cli_input {
  const char *path;
  int fd;
  uint64_t total, at; // of a clip or regular file; total 0 where unknown
  bool cut;           // a regular file ended before the size that it had when it was opened
  uint64_t seed;
} cli_input;
// Both return 0 or an errno.
int cli_input_open(cli_input *input);
// Fills `out` but for the end of the input. EINTR: a signal came.
int cli_input_read(cli_input *input, uint8_t *out, size_t capacity, size_t *bytes);
void cli_input_close(cli_input *input);

// "20M", "1.5G", "32Mi": SI and binary suffixes. False: no such number, or not in 1..2^63.
bool cli_parse_quantity(const char *text, uint64_t *out);
// Bytes as "32.0 MiB"; rates of bytes as "1.25 GB/s". Into a buffer of CLI_TEXT bytes, returned.
enum { CLI_TEXT = 32 };
const char *cli_bytes_text(uint64_t bytes, char out[CLI_TEXT]);
const char *cli_rate_text(double bytes_per_s, char out[CLI_TEXT]);

#endif
