// SPDX-License-Identifier: Apache-2.0
// `weft store`: its calls.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "cli/store.h"

static char title[64]; // for messages: "store encode"

// --- Shared by the calls

typedef struct watch {
  cli_progress progress;
} watch;

static bool keep_on(void *user, uint64_t done, uint64_t total) {
  watch *w = user;
  cli_progress_draw(&w->progress, done, total);
  return cli_signal() == 0;
}

static int exit_code(weft_status status) {
  switch (status) {
  case WEFT_OK:
    return CLI_OK;
  case WEFT_E_DAMAGED:
    return CLI_DIFFERS;
  case WEFT_E_ARGUMENT:
  case WEFT_E_STATE:
  case WEFT_E_SINGULAR:
    return CLI_USAGE;
  case WEFT_E_IO:
  case WEFT_E_VERSION: // input that this program does not know
    return CLI_IO;
  case WEFT_E_KEY:
    return CLI_KEY;
  case WEFT_E_STOPPED:
    return CLI_SIGNAL + cli_signal();
  default:
    return CLI_MACHINE;
  }
}

static bool quantity(const char *text, uint64_t *out) { // also 0, unlike sizes
  if (strcmp(text, "0") == 0) {
    *out = 0;
    return true;
  }
  return cli_parse_quantity(text, out);
}

__attribute__((format(printf, 3, 4))) static void failed(store_outcome *out, weft_status status,
                                                         const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *const text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  const size_t bytes = strlen(text), most = sizeof out->report.error - 1;
  if (bytes <= most)
    g_strlcpy(out->report.error, text, sizeof out->report.error);
  else // like the library: the end says most
    g_snprintf(out->report.error, sizeof out->report.error, "...%s", text + bytes - most + 3);
  g_free(text);
  out->status = status;
}

static bool open_input(const char *path, cli_input *input, uint64_t *total, store_outcome *out) {
  *input = (cli_input){.path = path};
  const int error = cli_input_open(input);
  if (error) // EINTR: while it waited for the other end of a pipe
    failed(out, error == EINTR && cli_signal() ? WEFT_E_STOPPED : WEFT_E_IO, "%s: %s", path,
           strerror(error));
  if (error)
    return false;
  *total = input->total;
  struct stat about;
  if (fstat(input->fd, &about) == 0 && S_ISBLK(about.st_mode)) {
    const off_t at = lseek(input->fd, 0, SEEK_CUR); // standard input may have been read in part
    const off_t end = lseek(input->fd, 0, SEEK_END);
    *total = end > at ? (uint64_t)(end - at) : 0;
    (void)lseek(input->fd, at, SEEK_SET);
  }
  return true;
}

static weft_status open_set(const weft_store_options *options, const char *folder,
                            weft_store_access access, store_outcome *out) {
  out->folder = folder;
  out->status = weft_store_open(options, folder, access, &out->report, &out->store);
  return out->status;
}

// --- The calls; each returns -1 if out->status has the result, else an exit code

// Returns -1 if there is a code of that name, whatever follows the name, else reports that and
// returns the exit code. The library checks the rest.
static int code_known(const char *code) {
  const char *name;
  GString *names = g_string_new("");
  int result = CLI_USAGE;
  for (size_t i = 0; result >= 0 && (name = weft_code_known_name(i)); i++) {
    const size_t length = strcspn(code, ":");
    if (strlen(name) == length && strncmp(name, code, length) == 0)
      result = -1;
    g_string_append_printf(names, "%s%s", i ? ", " : "", name);
  }
  if (result >= 0)
    cli_error(title, result, "unknown code '%s'; known codes: %s", code, names->str);
  g_string_free(names, TRUE);
  return result;
}

// Warns, before much is written, if what follows each chunk takes more than a tenth of its size.
static void warn_of_trailers(const store_words *w, const weft_store_options *options,
                             const weft_store_shape *shape) {
  enum { SEALED = WEFT_STORE_TRAILER_BYTES, LEAST = 10 * SEALED };
  weft_store_report report = {0};
  size_t chunk;
  if (!shape->stripe_bytes || shape->stripe_bytes > shape->k * LEAST ||
      weft_store_shape_chunk(options, shape, &report, &chunk) != WEFT_OK || chunk >= LEAST)
    return; // encode reports errors
  const double plain = (double)(shape->k + shape->m) / (double)shape->k;
  cli_error(title, CLI_OK,
            "--stripe %s makes chunks of %zu byte%s, and each is followed by %d bytes: the shards "
            "take about %.1f times the file's size, not %.1f",
            w->stripe, chunk, chunk == 1 ? "" : "s", SEALED,
            plain * (double)(chunk + SEALED) / (double)chunk, plain);
}

static int encode(const store_words *w, const weft_store_options *options, store_outcome *out) {
  uint64_t stripe = 0, total = 0;
  cli_input input;
  if (!w->output_dir)
    return cli_error(title, CLI_USAGE, "--output-dir is required");
  const gint64 most = WEFT_MAX_SHARDS;
  if (w->k < 1 || w->k > most || w->m < 0 || w->m > most - w->k)
    return cli_error(
        title, CLI_USAGE,
        "-k must be 1..256, -m 0..255, and their sum at most 256, not %" G_GINT64_FORMAT
        " and %" G_GINT64_FORMAT,
        w->k, w->m);
  if (w->stripe && !cli_parse_quantity(w->stripe, &stripe))
    return cli_error(title, CLI_USAGE, "--stripe needs a number such as 4Mi, not '%s'", w->stripe);
  const int code = w->code ? code_known(w->code) : -1;
  if (code >= 0 || !open_input(w->rest[0], &input, &total, out))
    return code;
  const weft_store_shape shape = {.code = w->code ? w->code : "cauchy",
                                  .k = (size_t)w->k,
                                  .m = (size_t)w->m,
                                  .stripe_bytes = stripe};
  warn_of_trailers(w, options, &shape);
  out->folder = w->output_dir;
  out->status = weft_store_encode(options, &shape, input.fd, total, w->output_dir, &out->report);
  if (out->status == WEFT_OK && out->report.data_bytes < total) // the input shrank meanwhile
    cli_error(title, CLI_OK,
              "%s had %" G_GUINT64_FORMAT " bytes when it was opened, and %" G_GUINT64_FORMAT
              " when it was read: the shards hold the latter",
              w->rest[0], total, out->report.data_bytes);
  struct stat about;
  const off_t at = lseek(input.fd, 0, SEEK_CUR);
  if (out->status == WEFT_OK && at >= 0 && fstat(input.fd, &about) == 0 && S_ISREG(about.st_mode) &&
      about.st_size > at)
    cli_error(title, CLI_OK,
              "%s grew while it was read: the shards hold the first %" G_GUINT64_FORMAT
              " bytes from the starting position",
              w->rest[0], out->report.data_bytes);
  cli_input_close(&input);
  return -1;
}

// Opens the set, which is the shards of one file, and writes a range of the file to `output`.
static int extract(const store_words *w, const weft_store_options *options, store_outcome *out,
                   const char *output, uint64_t offset, uint64_t length) {
  const int to = store_descriptor_of(output);
  if (to == STORE_FOREIGN)
    return cli_error(title, CLI_USAGE, "%s is open in another process", output);
  if (to >= 0 && fcntl(to, F_GETFD) < 0) { // before the set's files get that number
    failed(out, WEFT_E_IO, "%s: %s", output, strerror(errno));
    return -1;
  }
  if (open_set(options, w->rest[0], WEFT_STORE_READ, out) != WEFT_OK)
    return -1;
  out->status = to >= 0 ? weft_store_read(out->store, offset, length, to, true)
                        : weft_store_decode(out->store, offset, length, output);
  return -1;
}

static int decode(const store_words *w, const weft_store_options *options, store_outcome *out) {
  if (!w->output)
    return cli_error(title, CLI_USAGE, "--output is required (- is standard output)");
  return extract(w, options, out, w->output, 0, UINT64_MAX);
}

static int read_range(const store_words *w, const weft_store_options *options, store_outcome *out) {
  uint64_t offset = 0, length = UINT64_MAX;
  if (w->offset && !quantity(w->offset, &offset))
    return cli_error(title, CLI_USAGE, "--offset needs a number of bytes, not '%s'", w->offset);
  if (w->length && !quantity(w->length, &length))
    return cli_error(title, CLI_USAGE, "--length needs a number of bytes, not '%s'", w->length);
  return extract(w, options, out, w->output ? w->output : "-", offset, length);
}

static int mend(const store_words *w, const weft_store_options *options, store_outcome *out,
                weft_store_care care) {
  const weft_store_access access = care == WEFT_STORE_VERIFY ? WEFT_STORE_READ : WEFT_STORE_WRITE;
  if (open_set(options, w->rest[0], access, out) == WEFT_OK)
    out->status = weft_store_mend(out->store, care);
  return -1;
}

static int verify(const store_words *w, const weft_store_options *options, store_outcome *out) {
  return mend(w, options, out, WEFT_STORE_VERIFY);
}

static int scrub(const store_words *w, const weft_store_options *options, store_outcome *out) {
  return mend(w, options, out, WEFT_STORE_SCRUB);
}

static int repair(const store_words *w, const weft_store_options *options, store_outcome *out) {
  return mend(w, options, out, WEFT_STORE_REPAIR);
}

static int update(const store_words *w, const weft_store_options *options, store_outcome *out) {
  uint64_t offset = 0, total = 0;
  cli_input input;
  if (!w->offset)
    return cli_error(title, CLI_USAGE, "--offset is required");
  if (!quantity(w->offset, &offset))
    return cli_error(title, CLI_USAGE, "--offset needs a number of bytes, not '%s'", w->offset);
  if (!open_input(w->rest[1], &input, &total, out))
    return -1;
  if (open_set(options, w->rest[0], WEFT_STORE_WRITE, out) == WEFT_OK)
    out->status = weft_store_update(out->store, offset, input.fd, total);
  cli_input_close(&input);
  return -1;
}

static int info(const store_words *w, const weft_store_options *options, store_outcome *out) {
  (void)open_set(options, w->rest[0], WEFT_STORE_LOOK, out);
  return -1;
}

static const store_call calls[] = {
    {"encode", "make k + m shards from a file, block device or standard input", "IN", 1, encode},
    {"decode", "rebuild the file from any k shards", "FOLDER", 1, decode},
    {"read", "extract a range of the file, reading only the stripes it needs", "FOLDER", 1,
     read_range},
    {"info", "show what the headers record and which shards are present", "FOLDER", 1, info},
    {"verify", "check every byte of every shard, and change nothing", "FOLDER", 1, verify},
    {"scrub", "check every byte, and rewrite corrupt chunks in place", "FOLDER", 1, scrub},
    {"repair", "scrub, and rebuild lost, foreign, stale and misplaced shards", "FOLDER", 1, repair},
    {"update", "overwrite a range of the file, bringing parity up to date", "FOLDER FILE", 2,
     update},
};

// --- Command line

static bool read_key(const char *path, uint8_t key[WEFT_STORE_KEY_BYTES], store_outcome *out) {
  enum { LEAST = 16, MOST = 1 << 20 };
  cli_input input = {.path = path};
  size_t bytes = 0;
  uint8_t *secret = g_malloc(MOST);
  int error = cli_input_open(&input);
  if (!error)
    error = cli_input_read(&input, secret, MOST, &bytes);
  cli_input_close(&input);
  if (error)
    failed(out, WEFT_E_IO, "%s: %s", path, strerror(error));
  else if (bytes < LEAST || bytes == MOST)
    failed(out, WEFT_E_ARGUMENT, "%s: a key file must have at least 16 bytes and less than 1 MiB",
           path);
  else
    weft_store_user_key(secret, bytes, key);
  sodium_memzero(secret, MOST);
  g_free(secret);
  return out->status == WEFT_OK;
}

static int finish(const store_words *w, const store_outcome *out) {
  const int code = exit_code(out->status);
  cli_leave_by_signals();
  // If the data went to standard output, the report goes to standard error, where JSON is then all
  // that is written.
  const bool data = w->output ? store_is_stdout(w->output) : strcmp(out->call, "read") == 0;
  const bool alone = w->json && data;
  cli_json_errors_end(); // the report contains them
  if (out->store && strcmp(out->call, "info") != 0 && !alone)
    store_report_shards(out);
  if (out->store && !alone)
    store_report_lost(out);
  if (w->json)
    store_report_json(out, code, data ? stderr : stdout);
  else if (out->status == WEFT_OK)
    store_report_text(out, data ? stderr : stdout);
  if (out->status != WEFT_OK && !alone)
    cli_error(title, code, "%s", store_error(out));
  return cli_flush(title, code);
}

// A call opens up to twice as many files as there are shards. The soft limit is often 1024 or less
// for the sake of programs that use select(), which this one does not.
static void open_many(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= files.rlim_max)
    return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files); // if it fails, so does open(), which is reported
}

static int run(const store_call *call, const store_words *w) {
  uint8_t key[WEFT_STORE_KEY_BYTES];
  store_outcome out = {.call = call->name};
  if (w->key && !read_key(w->key, key, &out))
    return finish(w, &out);
  const weft_ctx_options ctx_options = {.backend = w->backend, .threads = 1};
  weft_ctx *ctx;
  const weft_status made = weft_ctx_new(&ctx, &ctx_options);
  if (made != WEFT_OK) {
    const char *name = w->backend ? w->backend : g_getenv("WEFT_BACKEND");
    failed(&out, made, "backend %s: %s (see weft backends)", name ? name : "(best)",
           weft_status_text(made));
    return finish(w, &out);
  }
  open_many();
  cli_catch_signals();
  signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of the output
  watch watching = {.progress = {.verb = call->run == encode ? "encoded" : "done"}};
  const guint processors = g_get_num_processors();
  size_t threads = w->threads ? (size_t)w->threads : processors < 2 ? 2 : processors;
  threads = threads < WEFT_STORE_MAX_THREADS ? threads : WEFT_STORE_MAX_THREADS;
  const weft_store_options options = {.ctx = ctx,
                                      .key = w->key ? key : NULL,
                                      .threads = threads,
                                      .keep_on = keep_on,
                                      .user = &watching};
  out.backend = weft_ctx_backend(ctx);
  out.threads = call->run == update ? 1 : threads; // an update goes from stripe to stripe
  cli_progress_start(&watching.progress);
  const gint64 start_us = g_get_monotonic_time();
  int code = call->run(w, &options, &out);
  out.seconds = (double)(g_get_monotonic_time() - start_us) / 1e6;
  cli_progress_end(&watching.progress);
  if (code < 0)
    code = finish(w, &out);
  weft_store_close(out.store);
  weft_ctx_free(ctx);
  sodium_memzero(key, sizeof key);
  return code;
}

static int usage(FILE *to) {
  fputs("usage: weft store CALL [OPTION...] ARGUMENT...\n\n", to);
  for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
    fprintf(to, "  %-8s%s\n", calls[i].name, calls[i].about);
  fprintf(to, "\n  weft help store CALL    shows a call's options\n%s\n", store_codes);
  return CLI_USAGE;
}

int cli_store(int argc, char **argv) {
  if (argc < 2)
    return usage(stderr);
  (void)cli_json_errors(argc, argv, store_data_to_stdout(argc, argv) ? stderr : stdout);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    usage(stdout);
    return cli_flush("store", CLI_OK);
  }
  for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
    if (strcmp(argv[1], calls[i].name) != 0)
      continue;
    g_snprintf(title, sizeof title, "store %s", calls[i].name);
    store_words words = {.k = 10, .m = 4};
    int code = store_parse(&calls[i], title, argc - 1, argv + 1, &words);
    if (code < 0)
      code = run(&calls[i], &words);
    store_words_free(&words);
    return code;
  }
  return cli_error("store", CLI_USAGE, "unknown call '%s' (see weft help store)", argv[1]);
}
