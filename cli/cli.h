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
  CLI_DIFFERS = 1, // the run finished, but its result is wrong
  CLI_USAGE = 2,   // the command line
  CLI_IO = 3,      // input or output could not be read or written
  CLI_MACHINE = 4, // memory, backend row or device
  CLI_KEY = 5,     // a key is missing or wrong
  CLI_SIGNAL = 128 // + the signal's number: 130 after Ctrl-C
};

// Every subcommand takes its own name as argv[0] and returns an exit code.
typedef int cli_command(int argc, char **argv);
cli_command cli_demo, cli_sim, cli_backends, cli_peer, cli_store;

// Prints "weft demo: --peers ..." on standard error and returns the code. With CLI_OK it is a
// remark, not an error.
int cli_error(const char *command, int code, const char *format, ...) G_GNUC_PRINTF(3, 4);
// From now on appends such messages to `text`, and their JSON objects to `objects`, instead of
// writing them; NULL: writes them again.
void cli_hold_messages(GString *text, GString *objects);

// --- Errors for programs: with --json the first error is also written as one JSON object.
// Has errors written to `to` that way if the command line contains --json; returns whether it does.
// cli_parse calls this with standard output if --json is an option; a command calls it earlier for
// another place, or for errors before parsing, and the first call counts. If `to` is standard
// error, nothing but the object is written there.
bool cli_json_errors(int argc, char *const *argv, FILE *to);
// Called before the results are printed: errors from here on are text only.
void cli_json_errors_end(void);

// Passes errors, but not remarks, to `tell` instead of printing them, as for a JSON log; NULL:
// prints them again.
typedef void cli_error_teller(const char *command, int code, const char *text);
void cli_tell_errors(cli_error_teller *tell);
// Adds the fields of an error to its JSON object.
struct json_t;
void cli_error_describe(struct json_t *object, const char *command, int code, const char *text);
// Returns JSON that a terminal may show: ASCII, control characters of names escaped, DEL too. The
// caller g_frees it. NULL: out of memory.
char *cli_json_text(const struct json_t *root, size_t flags);

// Reports that a backend row (see backends.c) is not available, by the name that was asked for
// (NULL: WEFT_BACKEND, or none); returns CLI_MACHINE.
int cli_error_backend(const char *command, const char *name, weft_status status);

// Parses with GOption; answers --help. Returns -1 to go on, else the exit code.
int cli_parse(const char *command, const char *summary, const char *description,
              const GOptionEntry *entries, int argc, char **argv);

// --- The environment: weft peer's options with this prefix, and a few other variables.
#define CLI_PEER_PREFIX "WEFT_PEER_"
void cli_environment_tell(FILE *to);
// Warns about unknown WEFT_... variables, since a mistyped one would be silently ignored. weft peer
// checks its own.
void cli_environment_check(void);

// To be called before anything else. Occupies the numbers of closed standard descriptors, so that
// no file the program opens gets one of them, and with it what is printed; and ignores SIGXFSZ, so
// that a file size limit is an error of the write. Returns false on failure.
bool cli_start(void);

// Flushes standard output. Returns `code`, or CLI_IO if not everything could be written.
int cli_flush(const char *command, int code);

// --- Interruption: SIGINT, SIGTERM and SIGHUP set a flag; a second one ends the program at once.
// A signal that was ignored when the program started stays ignored: nohup ignores SIGHUP, and
// shells without job control ignore SIGINT for what they start with `&`, since Ctrl-C is not meant
// for it.
bool cli_signal_ignored(int number);
void cli_catch_signals(void);
// From here on the first signal ends the program at once: only the report is left to write, and its
// reader may have stopped reading.
void cli_leave_by_signals(void);
int cli_signal(void); // the signal received, or 0

// --- Progress on standard error, if that is a terminal.
typedef struct cli_progress {
  bool shown;
  gint64 start_us, next_us;
  const char *verb; // what was done to the bytes; NULL: "decoded"
} cli_progress;
void cli_progress_start(cli_progress *progress);
// Draws at most ten times a second. total 0: unknown.
void cli_progress_draw(cli_progress *progress, uint64_t done, uint64_t total);
void cli_progress_end(cli_progress *progress); // wipes the line
// Replaces the line before; an empty text wipes it. Cuts the text to the terminal's width, since a
// line that wraps could not be wiped.
void cli_progress_line(const char *text);
int cli_terminal_columns(void); // of standard error; INT_MAX: unknown

// --- Input: a file, standard input ("-"), or (path == NULL) a clip generated from a seed.
typedef struct cli_input {
  const char *path;
  int fd;
  uint64_t total, at; // bytes; total: of a clip or regular file, else 0; at: read so far
  bool cut;           // a regular file ended before the size it had when it was opened
  uint64_t seed;
} cli_input;
// Both return 0 or an errno.
int cli_input_open(cli_input *input);
// Fills `out` unless the input ends first. EINTR: a signal arrived.
int cli_input_read(cli_input *input, uint8_t *out, size_t capacity, size_t *bytes);
void cli_input_close(cli_input *input);

// Parses "20M", "1.5G", "32Mi": SI and binary suffixes. Returns false if the text is no such number
// or not in 1..2^63.
bool cli_parse_quantity(const char *text, uint64_t *out);
// Format bytes as "32.0 MiB" and byte rates as "1.25 GB/s" in `out`, which they return.
enum { CLI_TEXT = 32 };
const char *cli_bytes_text(uint64_t bytes, char out[CLI_TEXT]);
const char *cli_rate_text(double bytes_per_s, char out[CLI_TEXT]);

#endif
