// SPDX-License-Identifier: Apache-2.0
// `weft store`: the command lines of its calls.
#include <string.h>

#include "cli/store.h"

const char store_codes[] =
    "\nExit codes: 0 done; 1 damage: found by verify, left by scrub or repair, or too much to "
    "read\n"
    "the file; or an update that verify found pending; 2 command line, or a folder that holds\n"
    "shards already; 3 input, output, shards that may not be opened or that are of another format\n"
    "version; 4 memory, backend or device; 5 the key is missing or wrong; 130 interrupted by\n"
    "Ctrl-C, 143 by SIGTERM, 129 by a terminal that closed.\n"
    "A killed call leaves the file's old state or its new one, complete. Where bytes are lost,\n"
    "repair rebuilds missing shards from what is left, and replaces no existing shard.\n"
    "Format: docs/format.md. Sizes and offsets are bytes; they accept k, M, G (powers of 1000)\n"
    "and Ki, Mi, Gi (of 1024).";

enum { STORE_OPTIONS = 16 }; // at least all there are, and a terminator

static bool is(const store_call *call, const char *name) { return strcmp(call->name, name) == 0; }

// Selects the options that a call has; all others are unknown to it.
static void options_of(const store_call *call, store_words *w, GOptionEntry *out) {
  const bool makes = is(call, "encode"), decodes = is(call, "decode");
  const bool reads = is(call, "read"), updates = is(call, "update");
  const bool computes = !is(call, "info");
  const struct {
    bool here;
    GOptionEntry entry;
  } all[] = {
      {makes,
       {"data-shards", 'k', 0, G_OPTION_ARG_STRING, &w->k_text, "Data shards, 1..256 (10)", "K"}},
      {makes,
       {"parity-shards", 'm', 0, G_OPTION_ARG_STRING, &w->m_text,
        "Parity shards: how many may be lost, 0..255 (4)", "M"}},
      {makes,
       {"code", 'c', 0, G_OPTION_ARG_STRING, &w->code,
        "Code (cauchy); also vandermonde, reed_sol_van, raid6, cauchy_good:w=4:packet=512 ...",
        "NAME"}},
      {makes,
       {"stripe", 0, 0, G_OPTION_ARG_STRING, &w->stripe, "Bytes of data coded together (4Mi)",
        "SIZE"}},
      {makes,
       {"output-dir", 'd', 0, G_OPTION_ARG_FILENAME, &w->output_dir,
        "Folder for the shards (required; created if missing)", "FOLDER"}},
      {decodes,
       {"output", 'o', 0, G_OPTION_ARG_FILENAME, &w->output,
        "Output file (required); - is standard output", "OUT"}},
      {reads,
       {"output", 'o', 0, G_OPTION_ARG_FILENAME, &w->output,
        "Output file (-, which is standard output)", "OUT"}},
      {reads,
       {"offset", 0, 0, G_OPTION_ARG_STRING, &w->offset, "First byte of the range (0)", "N"}},
      {updates,
       {"offset", 0, 0, G_OPTION_ARG_STRING, &w->offset, "First byte of the range (required)",
        "N"}},
      {reads,
       {"length", 0, 0, G_OPTION_ARG_STRING, &w->length,
        "Length of the range in bytes (to the end of the file)", "N"}},
      {true,
       {"key", 0, 0, G_OPTION_ARG_FILENAME, &w->key,
        "File whose bytes (at least 16) are the key that reveals tampering (none)", "FILE"}},
      {computes,
       {"backend", 'b', 0, G_OPTION_ARG_STRING, &w->backend,
        "Backend row to use (the best one; see weft backends)", "NAME"}},
      {computes && !updates,
       {"threads", 't', 0, G_OPTION_ARG_STRING, &w->threads_text,
        "Stripes processed at once, 1..64 (one per processor, at least 2)", "N"}},
      {true,
       {"json", 0, 0, G_OPTION_ARG_NONE, &w->json, "Print one JSON object instead of text", NULL}},
      {true, {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &w->rest, NULL, call->takes}},
      {true, {0}}};
  G_STATIC_ASSERT(G_N_ELEMENTS(all) <= STORE_OPTIONS);
  size_t count = 0;
  for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
    if (all[i].here)
      out[count++] = all[i].entry;
}

// Reads numbers as decimal, whatever they begin with; GLib takes 010 for 8.
static int counts(const char *title, store_words *w) {
  const struct {
    const char *name, *text;
    gint64 *out;
  } all[] = {{"-k", w->k_text, &w->k},
             {"-m", w->m_text, &w->m},
             {"--threads", w->threads_text, &w->threads}};
  for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
    if (all[i].text &&
        !g_ascii_string_to_signed(all[i].text, 10, G_MININT64, G_MAXINT64, all[i].out, NULL))
      return cli_error(title, CLI_USAGE, "%s needs a number, not '%s'", all[i].name, all[i].text);
  return -1;
}

int store_parse(const store_call *call, const char *title, int argc, char **argv, store_words *w) {
  GOptionEntry entries[STORE_OPTIONS];
  options_of(call, w, entries);
  char *about = g_strdup_printf("%c%s.", g_ascii_toupper(call->about[0]), call->about + 1);
  int code = cli_parse(title, about, store_codes + 1, entries, argc, argv);
  g_free(about);
  const int given = w->rest ? (int)g_strv_length(w->rest) : 0;
  if (code < 0 && given != call->arguments)
    code = cli_error(title, CLI_USAGE, "needs %s, not %d argument%s (see weft help %s)",
                     call->takes, given, given == 1 ? "" : "s", title);
  code = code < 0 ? counts(title, w) : code;
  if (code < 0 && w->threads_text && (w->threads < 1 || w->threads > WEFT_STORE_MAX_THREADS))
    code = cli_error(title, CLI_USAGE, "--threads must be 1..%d, not %" G_GINT64_FORMAT,
                     WEFT_STORE_MAX_THREADS, w->threads);
  // Reading the key would take the bytes that belong to the file.
  const bool reads = is(call, "encode") || is(call, "update");
  if (code < 0 && reads && w->key && store_same_source(w->key, w->rest[given - 1]))
    code = cli_error(title, CLI_USAGE,
                     "--key and %s cannot both be standard input, or the same pipe", call->takes);
  return code;
}

void store_words_free(store_words *w) {
  char *const owned[] = {w->k_text, w->m_text, w->threads_text, w->code,   w->stripe,    w->backend,
                         w->key,    w->offset, w->length,       w->output, w->output_dir};
  for (size_t i = 0; i < G_N_ELEMENTS(owned); i++)
    g_free(owned[i]);
  g_strfreev(w->rest);
}

bool store_data_to_stdout(int argc, char *const *argv) {
  const char *output = strcmp(argv[1], "read") == 0 ? "-" : "";
  for (int i = 2; i < argc; i++) {
    const bool other = strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0;
    if (other && i + 1 < argc)
      output = argv[++i];
    else if (g_str_has_prefix(argv[i], "--output="))
      output = argv[i] + strlen("--output=");
    else if (g_str_has_prefix(argv[i], "-o"))
      output = argv[i] + strlen("-o");
  }
  return store_is_stdout(output);
}
