// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: messages, options, signals, progress, quantities.
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/printable.h"

static GString *held_text, *held_objects;
static FILE *objects; // NULL: errors are not printed as JSON
static cli_error_teller *teller;

void cli_hold_messages(GString *text, GString *to) {
  held_text = text;
  held_objects = to;
}

bool cli_json_errors(int argc, char *const *argv, FILE *to) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--json") == 0) {
      objects = objects ? objects : to;
      return true;
    }
  return false;
}

void cli_json_errors_end(void) { objects = NULL; }

void cli_tell_errors(cli_error_teller *tell) { teller = tell; }

void cli_error_describe(json_t *object, const char *command, int code, const char *text) {
  char *const valid = g_utf8_make_valid(text, -1); // file names
  json_object_set_new(object, "version", json_string(weft_version()));
  json_object_set_new(object, "command", json_string(command ? command : ""));
  json_object_set_new(object, "exit_code", json_integer(code));
  json_object_set_new(object, "error", json_string(valid));
  g_free(valid);
}

char *cli_json_text(const json_t *root, size_t flags) {
  char *const text = json_dumps(root, flags | JSON_ENSURE_ASCII);
  if (!text)
    return NULL;
  // What is still outside of JSON's escapes stands in a string.
  char **const parts = g_strsplit(text, "\x7F", -1);
  char *const out = g_strjoinv("\\u007f", parts);
  g_strfreev(parts);
  free(text);
  return out;
}

// Writes a line in one call, as MPI ranks share their output.
static void put(const char *line, GString *held, FILE *to) {
  if (held)
    g_string_append(held, line);
  else
    fputs(line, to);
}

static void put_object(const char *command, int code, const char *text) {
  json_t *const root = json_object();
  cli_error_describe(root, command, code, text);
  char *const object = cli_json_text(root, JSON_COMPACT);
  char *const line = g_strconcat(object ? object : "{}", "\n", NULL);
  put(line, held_objects, objects);
  (void)fflush(objects); // if that fails, the error itself still counts
  g_free(line);
  g_free(object);
  json_decref(root);
}

int cli_error(const char *command, int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *const text = g_strdup_vprintf(format, arguments);
  char *const shown = weft_printable(text);
  char *const line =
      g_strdup_printf("weft%s%s: %s\n", command ? " " : "", command ? command : "",
                      shown ? shown : text); // NULL: no memory; the message matters more
  const bool remark = code == CLI_OK, as_object = objects && !remark;
  if (teller && !remark)
    teller(command, code, text);
  else if (!as_object || objects != stderr)
    put(line, held_text, stderr);
  if (as_object) {
    put_object(command, code, text);
    objects = NULL;
  }
  g_free(line);
  free(shown);
  g_free(text);
  va_end(arguments);
  return code;
}

int cli_error_backend(const char *command, const char *name, weft_status status) {
  name = name ? name : getenv("WEFT_BACKEND");
  return cli_error(command, CLI_MACHINE, "backend %s: %s (see weft backends)",
                   name ? name : "(best)", weft_status_text(status));
}

// Refuses a flag with a value, which GLib would take for the flag alone: --json=false does not ask
// for JSON.
static int refuse_flag_values(const char *command, const GOptionEntry *entries, int argc,
                              char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    for (const GOptionEntry *e = entries; e->long_name; e++) {
      const size_t length = strlen(e->long_name);
      if (e->arg == G_OPTION_ARG_NONE && strncmp(argv[i], "--", 2) == 0 &&
          strncmp(argv[i] + 2, e->long_name, length) == 0 && argv[i][2 + length] == '=')
        return cli_error(command, CLI_USAGE,
                         "--%s accepts no value, but has '%s' (see weft help %s)", e->long_name,
                         argv[i] + 3 + length, command);
    }
  return -1;
}

// Refuses empty paths, as an unset shell variable leaves them.
static int refuse_empty_paths(const char *command, const GOptionEntry *entries) {
  for (const GOptionEntry *e = entries; e->long_name; e++) {
    const char *const one = e->arg == G_OPTION_ARG_FILENAME ? *(char **)e->arg_data : NULL;
    if (one && !*one)
      return cli_error(command, CLI_USAGE, "--%s needs %s, not an empty string (see weft help %s)",
                       e->long_name, e->arg_description, command);
    char **const words = e->arg == G_OPTION_ARG_FILENAME_ARRAY ? *(char ***)e->arg_data : NULL;
    for (char **w = words; w && *w; w++)
      if (!**w)
        return cli_error(command, CLI_USAGE, "needs %s, not an empty string (see weft help %s)",
                         e->arg_description, command);
  }
  return -1;
}

// Returns the option that a word names if it takes a value, which is the next word or directly
// follows the letter.
static const GOptionEntry *takes_value(const GOptionEntry *entries, const char *word) {
  for (const GOptionEntry *e = entries; e->long_name; e++) {
    const bool named = strncmp(word, "--", 2) == 0
                           ? strcmp(word + 2, e->long_name) == 0
                           : *word == '-' && e->short_name && word[1] == e->short_name;
    if (named && e->arg != G_OPTION_ARG_NONE)
      return e;
  }
  return NULL;
}

// Returns the value that a word gives a whole number's option by its name, as --peers=3 does.
static const char *number_in(const GOptionEntry *entries, const char *word) {
  for (const GOptionEntry *e = entries; e->long_name; e++) {
    const size_t length = strlen(e->long_name);
    if (e->arg == G_OPTION_ARG_INT64 && strncmp(word, "--", 2) == 0 &&
        strncmp(word + 2, e->long_name, length) == 0 && word[2 + length] == '=')
      return word + 3 + length;
  }
  return NULL;
}

// Refuses whole numbers that GLib reads in its own way: 010 as 8, 0x10 as 16, and signs and blanks
// before them. It refuses itself what is none.
static int refuse_odd_numbers(const char *command, const GOptionEntry *entries,
                              const GPtrArray *words) {
  for (guint i = 1; i + 1 < words->len && strcmp(words->pdata[i], "--") != 0; i++) {
    const char *const word = words->pdata[i], *const next = words->pdata[i + 1];
    const GOptionEntry *const before = takes_value(entries, word);
    const char *const text = !before                             ? number_in(entries, word)
                             : before->arg == G_OPTION_ARG_INT64 ? next
                                                                 : NULL;
    i += before != NULL; // the value is no option
    const char *const digits = text ? text + (*text == '-') : "1";
    if (*digits == '+' || g_ascii_isspace(*digits) || (*digits == '0' && digits[1]))
      return cli_error(command, CLI_USAGE,
                       "%.*s needs a whole number such as 10, not '%s' (see weft help %s)",
                       (int)strcspn(word, "="), word, text, command);
  }
  return -1;
}

// Returns the words with -k10 split into -k 10, the only form that GLib accepts.
static GPtrArray *part_values(const GOptionEntry *entries, int argc, char *const *argv) {
  GPtrArray *const words = g_ptr_array_new_with_free_func(g_free);
  bool is_value = false, options = true;
  for (int i = 0; i < argc; i++) {
    options = options && (is_value || strcmp(argv[i], "--") != 0);
    const bool names = i > 0 && options && !is_value && takes_value(entries, argv[i]);
    const bool both = names && argv[i][1] != '-' && argv[i][2];
    g_ptr_array_add(words, both ? g_strndup(argv[i], 2) : g_strdup(argv[i]));
    if (both)
      g_ptr_array_add(words, g_strdup(argv[i] + 2));
    is_value = names && !both;
  }
  g_ptr_array_add(words, NULL);
  return words;
}

// Adds the entries such that string values stay the bytes that were given. GLib would convert
// strings from the locale's encoding, which is ASCII in a program that sets no locale, and so
// refuse every path with other letters.
static void add_entries(GOptionContext *context, const GOptionEntry *entries) {
  size_t count = 1; // the terminating entry
  while (entries[count - 1].long_name)
    count++;
  GOptionEntry *const plain = g_new(GOptionEntry, count);
  memcpy(plain, entries, count * sizeof *entries);
  for (GOptionEntry *e = plain; e->long_name; e++)
    e->arg = e->arg == G_OPTION_ARG_STRING         ? G_OPTION_ARG_FILENAME
             : e->arg == G_OPTION_ARG_STRING_ARRAY ? G_OPTION_ARG_FILENAME_ARRAY
                                                   : e->arg;
  g_option_context_add_main_entries(context, plain, NULL);
  g_free(plain);
}

int cli_parse(const char *command, const char *summary, const char *description,
              const GOptionEntry *entries, int argc, char **argv) {
  GOptionContext *context = g_option_context_new(NULL);
  char *program = g_strdup_printf("weft %s", command);
  g_set_prgname(program);
  g_option_context_set_summary(context, summary);
  g_option_context_set_description(context, description);
  add_entries(context, entries);
  g_option_context_set_help_enabled(context, false); // GLib's own --help calls exit()
  int code = -1;
  for (const GOptionEntry *e = entries; e->long_name; e++)
    if (strcmp(e->long_name, "json") == 0)
      (void)cli_json_errors(argc, argv, stdout);
  for (int i = 1; i < argc && code < 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      char *help = g_option_context_get_help(context, true, NULL);
      fputs(help, stdout);
      g_free(help);
      code = cli_flush(command, CLI_OK);
    }
  GError *error = NULL;
  if (code < 0)
    code = refuse_flag_values(command, entries, argc, argv);
  GPtrArray *const words = part_values(entries, argc, argv);
  g_autofree gchar **left = g_new(gchar *, words->len); // GLib removes what it recognizes
  memcpy(left, words->pdata, words->len * sizeof *left);
  argc = (int)words->len - 1;
  if (code < 0)
    code = refuse_odd_numbers(command, entries, words);
  if (code < 0 && !g_option_context_parse(context, &argc, &left, &error)) {
    code = cli_error(command, CLI_USAGE, "%s (see weft help %s)", error->message, command);
    g_error_free(error);
  }
  if (code < 0 && argc > 1)
    code = cli_error(command, CLI_USAGE, "unexpected argument '%s' (see weft help %s)", left[1],
                     command);
  g_ptr_array_free(words, TRUE);
  if (code < 0)
    code = refuse_empty_paths(command, entries);
  g_option_context_free(context);
  g_free(program);
  return code;
}

bool cli_start(void) {
  signal(SIGXFSZ, SIG_IGN);
  // Opened in the opposite direction, so that using the descriptor still fails.
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return false;
  return true;
}

int cli_flush(const char *command, int code) {
  cli_json_errors_end();
  if (fflush(stdout) == 0 && !ferror(stdout))
    return code;
  return cli_error(command, CLI_IO, "standard output could not be written");
}

// --- Signals

static atomic_int signal_seen; // also read by threads other than the handler's

static void on_signal(int number) { signal_seen = number; }

static void leave(int number) {
  static const char text[] = "weft: interrupted\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(CLI_SIGNAL + number);
}

bool cli_signal_ignored(int number) {
  struct sigaction now;
  return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

// Installs a handler without SA_RESTART, so that a signal ends a read that waits for input, and for
// one signal only: the next one kills.
static void handle_signals(void handler(int)) {
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = handler, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
    if (!cli_signal_ignored(ending[i]))
      sigaction(ending[i], &action, NULL);
}

void cli_catch_signals(void) { handle_signals(on_signal); }
void cli_leave_by_signals(void) { handle_signals(leave); }

int cli_signal(void) { return signal_seen; }

// --- Progress

int cli_terminal_columns(void) {
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : INT_MAX;
}

void cli_progress_line(const char *text) {
  const int columns = cli_terminal_columns(); // writing in the last one wraps some terminals
  fprintf(stderr, "\r\033[K%.*s", columns > 1 ? columns - 1 : 1, text);
}

void cli_progress_start(cli_progress *progress) {
  *progress = (cli_progress){.shown = isatty(STDERR_FILENO) == 1,
                             .start_us = g_get_monotonic_time(),
                             .verb = progress->verb};
}

void cli_progress_draw(cli_progress *progress, uint64_t done, uint64_t total) {
  enum { WIDTH = 30, LEAST = 5, AROUND = 4 }; // of the bar: cells; AROUND: brackets and a blank
  if (!progress->shown)
    return;
  const gint64 now_us = g_get_monotonic_time();
  if (now_us < progress->next_us)
    return;
  progress->next_us = now_us + 100000;
  const double seconds = (double)(now_us - progress->start_us) / 1e6;
  const double rate = seconds > 0 ? (double)done / seconds : 0;
  const char *verb = progress->verb ? progress->verb : "decoded";
  char bytes[CLI_TEXT], speed[CLI_TEXT];
  cli_bytes_text(done, bytes);
  cli_rate_text(rate, speed);
  g_autoptr(GString) line = g_string_new(NULL);
  if (total > 0) {
    const double share = done < total ? (double)done / (double)total : 1;
    g_string_append_printf(line, "%3.0f %%  ", share * 100);
  }
  g_string_append_printf(line, "%s %s, %s", bytes, verb, speed);
  if (rate > 0 && done < total)
    g_string_append_printf(line, ", %.0f s left", ((double)total - (double)done) / rate);
  const int room = cli_terminal_columns() - (int)line->len - AROUND;
  const int width = room < WIDTH ? room : WIDTH;
  if (total > 0 && width >= LEAST) {
    g_autoptr(GString) bar = g_string_new("[");
    for (int i = 0; i < width; i++)
      g_string_append_c(bar, (double)done * width >= (double)total * (i + 1) ? '#' : '.');
    g_string_append(bar, "] ");
    g_string_prepend(line, bar->str);
  }
  cli_progress_line(line->str);
}

void cli_progress_end(cli_progress *progress) {
  if (progress->shown)
    cli_progress_line("");
  progress->shown = false;
}

// --- Quantities

bool cli_parse_quantity(const char *text, uint64_t *out) {
  static const char letters[] = "kMGT";
  char *end;
  // Refuse what strtod accepts besides: spaces, signs, hexadecimal numbers, infinities.
  if ((!g_ascii_isdigit(*text) && *text != '.') || (*text == '0' && g_ascii_isalpha(text[1])))
    return false;
  const double number = g_ascii_strtod(text, &end);
  if (end == text || !isfinite(number))
    return false;
  if (!*end && number != floor(number)) // without a suffix: whole numbers only
    return false;
  if (text[strspn(text, "0123456789")] == '\0') { // exact, beyond the 53 bits of a double
    *out = g_ascii_strtoull(text, NULL, 10);
    return number >= 1 && number <= 9.2e18;
  }
  double scale = 1;
  if (*end) {
    const char letter = *end == 'K' ? 'k' : *end;
    const char *at = strchr(letters, letter);
    if (!at)
      return false;
    end++;
    scale = pow(*end == 'i' ? 1024 : 1000, (double)(at - letters + 1));
    end += *end == 'i';
  }
  const double value = number * scale;
  if (*end || value < 1 || value > 9.2e18)
    return false;
  *out = (uint64_t)llround(value);
  return true;
}

const char *cli_bytes_text(uint64_t bytes, char out[CLI_TEXT]) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
    value /= 1024;
    unit++;
  }
  snprintf(out, CLI_TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return out;
}

const char *cli_rate_text(double bytes_per_s, char out[CLI_TEXT]) {
  if (bytes_per_s >= 1e9)
    snprintf(out, CLI_TEXT, "%.2f GB/s", bytes_per_s / 1e9);
  else if (bytes_per_s >= 1e6)
    snprintf(out, CLI_TEXT, "%.0f MB/s", bytes_per_s / 1e6);
  else
    snprintf(out, CLI_TEXT, "%.0f kB/s", bytes_per_s / 1e3);
  return out;
}
