// SPDX-License-Identifier: Apache-2.0
// `weft peer`: its options, from flags, environment and a file.
#include <string.h>

#include "cli/peer_options.h"
#include "sim/scenario/key_file.h"
#include "sim/scenario/scenario.h"

enum { SOURCE = PEER_SOURCE, JOIN = PEER_JOIN, ALL = SOURCE | JOIN | PEER_TRACKER };

typedef struct option {
  const char *name;
  int words;             // of `weft peer` that have it, as bits
  const char *otherwise; // default
  const char *argument, *about;
} option;

_Static_assert(OPTIONS <= 64, "given has a bit for each");

static const option options[OPTIONS] = {
    [O_CONFIG] = {"config", ALL, NULL, "FILE",
                  "File with more options, one per line, under [peer]"},
    [O_INPUT] = {"input", SOURCE, NULL, "INPUT", "FILE, - or udp://[ADDRESS]:PORT"},
    [O_LISTEN] = {"listen", ALL, ":0", "ADDRESS",
                  "Address to listen on: 1.2.3.4:7000, [::1]:7000, :7000"},
    [O_MAP_PORT] = {"map-port", ALL, "off", "on|off",
                    "At home: have the router forward that port (NAT-PMP, UPnP)"},
    [O_SOURCE] = {"source", JOIN, NULL, "ADDRESS,...",
                  "Addresses of a source, or of peers or trackers of its stream"},
    [O_TRACKER] = {"tracker", SOURCE | JOIN, NULL, "ADDRESS,...",
                   "Trackers to announce this node to"},
    [O_OUTPUT] = {"output", JOIN, NULL, "OUTPUT",
                  "FILE, -, udp://HOST:PORT or http://[ADDRESS]:PORT/"},
    [O_SOURCE_KEY] =
        {"source-key", JOIN, NULL, "HEX",
         "The source's public key; without it, the key in the first answer is trusted"},
    [O_KEY_FILE] =
        {"key-file", ALL, NULL, "FILE",
         "File with this node's identity, created if missing; without it, one for this run only"},
    [O_RATE] = {"rate", SOURCE, "0", "RATE",
                "Playback rate in bits/s: a FILE is played on demand (0: it is fetched as fast as "
                "possible; live: as the input arrives)"},
    [O_UPLOAD] = {"upload", SOURCE | JOIN, "0", "RATE", "Upload limit in bits/s (0: none)"},
    [O_CONGESTION] =
        {"congestion", SOURCE | JOIN, "ledbat", "NAME",
         "ledbat: yields when packets queue on the path to a neighbour; off: only --upload limits"},
    [O_SCHEME] = {"scheme", SOURCE | JOIN, "push", "NAME",
                  "push: sends what others lack, unrequested; pull (sources: live only): requests, "
                  "to save uplink; ./FILE: a policy of your own"},
    [O_STREAM] = {"stream", SOURCE, "0", "HEX",
                  "The stream's id (0: for a file with --key-file derived from both, else random)"},
    [O_BLOCKS] = {"segment-blocks", SOURCE, "64", "N", "Blocks in a segment"},
    [O_BLOCK_BYTES] = {"block-bytes", SOURCE, "1024", "N", "Bytes in a block"},
    [O_WINDOW] = {"window", SOURCE | JOIN, NULL, "N",
                  "Window in segments (64; live: as many as --lag needs; a file to fetch: all of "
                  "it, up to 64 MiB)"},
    [O_BATCH] = {"batch", SOURCE | JOIN, "16", "N",
                 "Packets coded in one product and sent to one neighbour at a time"},
    [O_NEIGHBOURS] = {"neighbours", SOURCE | JOIN, "8", "N",
                      "Neighbours to seek; up to twice as many are accepted"},
    [O_FROM] = {"from", JOIN, "0", "PLACE",
                "On demand: where to begin playback: a time, or a byte position with B appended "
                "(3000000B)"},
    [O_GATHER] = {"gather", JOIN, "8", "N",
                  "Not live: segments decoded in one call, on a thread beside the main loop (1: "
                  "each at once)"},
    [O_STARTUP] = {"startup", JOIN, "1000ms", "TIME",
                   "Startup delay: time to buffer before playback"},
    [O_LAG] = {"lag", SOURCE, "3000ms", "TIME", "Live: how far behind the source all peers play"},
    [O_CHECKSUMS] = {"checksums", SOURCE, "off", "on|off",
                     "Live: reveal checksums, so that polluters are found at their first packet"},
    [O_LINGER] =
        {"linger", SOURCE | JOIN, "5s", "TIME",
         "After the end (not on demand), longest time to keep serving peers that still lack "
         "something; after a signal, to wait for the reader of a full pipe"},
    [O_STAY] = {"stay", SOURCE | JOIN, "0", "TIME|forever",
                "Fetched files: how long to stay once complete, to serve peers that come later"},
    [O_TIMEOUT] = {"timeout", JOIN, "15s", "TIME",
                   "Give up after this long without a stream, or without new data of it once the "
                   "source has left or, if it was killed, has been silent for some 16 s"},
    [O_CIPHER] = {"cipher", ALL, "best", "NAME", "best, or chacha20"},
    [O_METRICS] = {"metrics", ALL, NULL, "ADDRESS",
                   "Address to serve HTTP on: /metrics, /healthz, /status"},
    [O_LOG_LEVEL] = {"log-level", ALL, "info", "LEVEL", "error, warning, info or debug"},
    [O_LOG_FORMAT] = {"log-format", ALL, "text", "FORMAT", "text or json"},
    [O_BACKEND] = {"backend", SOURCE | JOIN, NULL, "NAME", "Backend row to use (the best one)"},
    [O_THREADS] = {"threads", SOURCE | JOIN, "1", "N", "Threads that share a product"},
};

// --- Where a value comes from

// Returns the variable of an option, such as WEFT_PEER_LOG_LEVEL for --log-level.
static char *variable_of(const char *name) {
  g_autofree char *upper = g_ascii_strup(name, -1);
  g_strdelimit(upper, "-", '_');
  return g_strconcat(CLI_PEER_PREFIX, upper, NULL);
}

// Refuses WEFT_PEER_ variables of unknown options. Those of another word's options are accepted, as
// one environment may serve all.
static int refuse_unknown_variables(void) {
  g_auto(GStrv) names = g_listenv();
  for (char **name = names; *name; name++) {
    bool there = !g_str_has_prefix(*name, CLI_PEER_PREFIX);
    for (size_t i = 0; i < OPTIONS && !there; i++) {
      g_autofree char *variable = variable_of(options[i].name);
      there = strcmp(*name, variable) == 0;
    }
    if (!there)
      return cli_error(PEER_NAME, CLI_USAGE,
                       "%s in the environment is not an option (see weft help peer)", *name);
  }
  return -1;
}

// Returns the value of an option's last flag, which counts for GLib as well, or NULL.
static const char *flag_of(size_t which, int argc, char *const *argv) {
  const size_t length = strlen(options[which].name);
  const char *found = NULL;
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, options[which].name, length) != 0)
      continue;
    const char *rest = argv[i] + 2 + length;
    if (*rest == '=')
      found = rest + 1;
    else if (!*rest && i + 1 < argc)
      found = argv[++i];
  }
  return found;
}

// Sets the log's format before anything else is checked, so that errors are reported in it.
static void foresee(const char *format) {
  peer_log_set(PEER_INFO, format && strcmp(format, "json") == 0);
}

void peer_options_foresee_log(int argc, char *const *argv) {
  g_autofree char *variable = variable_of(options[O_LOG_FORMAT].name);
  const char *flag = flag_of(O_LOG_FORMAT, argc, argv);
  foresee(flag ? flag : g_getenv(variable));
}

static void from_environment(int word, char **values) {
  for (size_t i = 0; i < OPTIONS; i++) {
    g_autofree char *variable = variable_of(options[i].name);
    if (!values[i] && (options[i].words & word))
      values[i] = g_strdup(g_getenv(variable));
  }
}

static bool known(const char *name, int word) {
  for (size_t i = 0; i < OPTIONS; i++)
    if (strcmp(options[i].name, name) == 0)
      return i != O_CONFIG && (options[i].words & word);
  return false;
}

static int from_file(const char *path, int word, char **values) {
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;
  char why[WEFT_SIM_TEXT];
  gsize bytes;
  if (!g_file_get_contents(path, &text, &bytes, &error))
    return cli_error(PEER_NAME, CLI_USAGE, "--config: %s", error->message);
  if (!g_utf8_validate(text, (gssize)bytes, NULL)) // errors would show a terminal its bytes
    return cli_error(PEER_NAME, CLI_USAGE, "--config %s: not a text file (UTF-8)", path);
  g_autoptr(GKeyFile) file = weft_sim_key_file(text, path, why);
  if (!file)
    return cli_error(PEER_NAME, CLI_USAGE, "--config %s", why);
  for (size_t i = 0; i < OPTIONS; i++)
    if (!values[i] && (options[i].words & word))
      values[i] = g_key_file_get_string(file, "peer", options[i].name, NULL);
  foresee(values[O_LOG_FORMAT]);
  g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
  if (*groups && !g_key_file_has_group(file, "peer"))
    return cli_error(PEER_NAME, CLI_USAGE, "--config %s: there is no group [peer], only [%s]", path,
                     *groups);
  g_auto(GStrv) keys = g_key_file_get_keys(file, "peer", NULL, NULL);
  for (char **key = keys; key && *key; key++)
    if (!known(*key, word))
      return cli_error(PEER_NAME, CLI_USAGE, "--config %s:%d: '%s' is not an option here", path,
                       weft_sim_key_file_line(text, "peer", *key, 0), *key);
  return -1;
}

const char *peer_option_name(size_t which) { return options[which].name; }

enum { LIVE = 1 << WEFT_MODE_LIVE, VOD = 1 << WEFT_MODE_VOD, BULK = 1 << WEFT_MODE_BULK };

// Options that some kinds of streams do not use.
static const struct {
  size_t which;
  int words, modes; // bits; where it has no effect
} idle[] = {
    {O_LAG, SOURCE, VOD | BULK}, {O_CHECKSUMS, SOURCE, VOD | BULK},
    {O_LINGER, SOURCE, VOD},     {O_STAY, SOURCE, VOD}, // stays until SIGTERM
    {O_STAY, JOIN, LIVE},        {O_GATHER, JOIN, LIVE},
    {O_STARTUP, JOIN, BULK},
};

void peer_options_tell_unused(uint64_t given, int word, weft_engine_mode mode) {
  static const char *const kinds[] = {
      [WEFT_MODE_BULK] = "fetched", [WEFT_MODE_VOD] = "on-demand", [WEFT_MODE_LIVE] = "live"};
  for (size_t i = 0; i < G_N_ELEMENTS(idle); i++)
    if (given >> idle[i].which & 1 && (idle[i].words & word) && (idle[i].modes >> mode & 1))
      peer_log(PEER_WARNING, "option-unused", "option=--%s stream=%s", options[idle[i].which].name,
               kinds[mode]);
}

// Returns whether a value is the default: the same text, or the same time, as 5 and 5000ms for 5s.
static bool is_default(size_t which, const char *text) {
  const double number_us = which == O_STARTUP || which == O_LAG ? 1e3 : 1e6;
  const char *otherwise = options[which].otherwise;
  double own_us, default_us;
  return g_strcmp0(text, otherwise) == 0 ||
         (otherwise && weft_sim_parse_time(text, number_us, &own_us) &&
          weft_sim_parse_time(otherwise, number_us, &default_us) && own_us == default_us);
}

int peer_options_gather(const char *word_text, int word, int argc, char **argv, uint64_t *given,
                        char *values[OPTIONS]) {
  GOptionEntry entries[OPTIONS + 1] = {{0}};
  char *about[OPTIONS] = {0}; // with defaults
  size_t count = 0;
  g_autofree char *command = g_strconcat(PEER_NAME " ", word_text, NULL);
  for (size_t i = 0; i < OPTIONS; i++) {
    const option *o = &options[i];
    if (!(o->words & word))
      continue;
    about[i] = g_strdup_printf(o->otherwise ? "%s [%s]" : "%s", o->about, o->otherwise);
    entries[count++] =
        (GOptionEntry){o->name, 0, 0, G_OPTION_ARG_STRING, &values[i], about[i], o->argument};
  }
  int code =
      cli_parse(command, "See weft peer --help for an overview and the exit codes.",
                "Defaults are in brackets. Rates accept the suffixes k, M, G (powers of 1000).\n"
                "Times accept a unit (500ms, 1s, 2min, 1h); a plain number is milliseconds for "
                "--startup\nand --lag, and seconds for the others.",
                entries, argc, argv);
  for (size_t i = 0; i < OPTIONS; i++)
    g_free(about[i]);
  if (code < 0)
    code = refuse_unknown_variables();
  if (code < 0)
    from_environment(word, values);
  if (code < 0 && values[O_CONFIG])
    code = from_file(values[O_CONFIG], word, values);
  for (size_t i = 0; i < OPTIONS && code < 0; i++)
    if (!values[i])
      values[i] = g_strdup(options[i].otherwise);
    else if (!is_default(i, values[i]))
      *given |= UINT64_C(1) << i;
  return code;
}
