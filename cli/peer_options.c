// SPDX-License-Identifier: Apache-2.0
// `weft peer`: its options, from flags, environment and a file.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "cli/peer.h"
#include "sim/scenario/scenario.h"

#define NAME "peer"

enum { SOURCE = 1, JOIN = 2, TRACKER = 4, ALL = 7 };

typedef struct option {
  const char *name;
  int words;             // of `weft peer`, that have it
  const char *otherwise; // default
  const char *argument, *about;
} option;

enum {
  O_CONFIG,
  O_INPUT,
  O_LISTEN,
  O_SOURCE,
  O_TRACKER,
  O_OUTPUT,
  O_SOURCE_KEY,
  O_KEY_FILE,
  O_RATE,
  O_UPLOAD,
  O_CONGESTION,
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
  O_TIMEOUT,
  O_CIPHER,
  O_METRICS,
  O_LOG_LEVEL,
  O_LOG_FORMAT,
  O_BACKEND,
  O_THREADS,
  OPTIONS
};

static const option options[OPTIONS] = {
    [O_CONFIG] = {"config", ALL, NULL, "FILE", "More options, one a line under [peer]"},
    [O_INPUT] = {"input", SOURCE, NULL, "INPUT", "FILE, - or udp://[ADDRESS]:PORT"},
    [O_LISTEN] = {"listen", ALL, ":0", "ADDRESS",
                  "Where to be reached: 1.2.3.4:7000, [::1]:7000, :7000"},
    [O_SOURCE] = {"source", JOIN, NULL, "ADDRESS,...",
                  "A source, or peers or trackers of its stream"},
    [O_TRACKER] = {"tracker", SOURCE | JOIN, NULL, "ADDRESS,...",
                   "Trackers to announce this node to"},
    [O_OUTPUT] = {"output", JOIN, NULL, "OUTPUT",
                  "FILE, -, udp://HOST:PORT or http://[ADDRESS]:PORT/"},
    [O_SOURCE_KEY] = {"source-key", JOIN, NULL, "HEX",
                      "The source's public key; without it the first that answers is believed"},
    [O_KEY_FILE] = {"key-file", ALL, NULL, "FILE",
                    "This node's identity; made if there is none. Without it: one for this run"},
    [O_RATE] = {"rate", SOURCE, "0", "RATE", "Bits/s at which the stream plays (0: as it comes)"},
    [O_UPLOAD] = {"upload", SOURCE | JOIN, "0", "RATE", "Bits/s sent at most (0: no limit)"},
    [O_CONGESTION] = {"congestion", SOURCE | JOIN, "ledbat", "NAME",
                      "ledbat: makes way when the path to a neighbour queues; off: --upload alone"},
    [O_STREAM] = {"stream", SOURCE, "0", "HEX", "The stream's number (0: a random one)"},
    [O_BLOCKS] = {"segment-blocks", SOURCE, "64", "N", "Blocks in a segment"},
    [O_BLOCK_BYTES] = {"block-bytes", SOURCE, "1024", "N", "Bytes in a block"},
    [O_WINDOW] = {"window", SOURCE | JOIN, "64", "N", "Segments held"},
    [O_BATCH] = {"batch", SOURCE | JOIN, "16", "N",
                 "Packets coded in one product, and sent to one neighbour"},
    [O_NEIGHBOURS] = {"neighbours", SOURCE | JOIN, "8", "N",
                      "Neighbours looked for; of a source: twice as many are taken"},
    [O_FROM] = {"from", JOIN, "0", "PLACE",
                "On demand: play from that time on, or from a byte with B behind (3000000B)"},
    [O_GATHER] = {"gather", JOIN, "8", "N",
                  "Not live: segments decoded in one call, beside the main loop (1: each at once)"},
    [O_STARTUP] = {"startup", JOIN, "1000ms", "TIME", "Buffered before playing"},
    [O_LAG] = {"lag", SOURCE, "3000ms", "TIME", "Live: how far behind the source all play"},
    [O_CHECKSUMS] = {"checksums", SOURCE, "off", "on|off",
                     "Live: reveal checksums, so that polluters are found at their first packet"},
    [O_LINGER] = {"linger", SOURCE | JOIN, "5s", "TIME", "Goes on serving others after the end"},
    [O_TIMEOUT] = {"timeout", JOIN, "15s", "TIME", "Gives up when there was nobody for so long"},
    [O_CIPHER] = {"cipher", ALL, "best", "NAME", "best, or chacha20"},
    [O_METRICS] = {"metrics", ALL, NULL, "ADDRESS", "HTTP: /metrics, /healthz, /status"},
    [O_LOG_LEVEL] = {"log-level", ALL, "info", "LEVEL", "error, warning, info or debug"},
    [O_LOG_FORMAT] = {"log-format", ALL, "text", "FORMAT", "text or json"},
    [O_BACKEND] = {"backend", SOURCE | JOIN, NULL, "NAME",
                   "Backend row that computes (the best one)"},
    [O_THREADS] = {"threads", SOURCE | JOIN, "1", "N", "Threads that share a product"},
};

// --- Where a value comes from

// --log-level is WEFT_PEER_LOG_LEVEL.
static char *variable_of(const char *name) {
  g_autofree char *upper = g_ascii_strup(name, -1);
  g_strdelimit(upper, "-", '_');
  return g_strconcat(CLI_PEER_PREFIX, upper, NULL);
}

// Variables of other words' options may stand beside, as one environment may be for all.
static int refuse_unknown_variables(void) {
  g_auto(GStrv) names = g_listenv();
  for (char **name = names; *name; name++) {
    bool there = !g_str_has_prefix(*name, CLI_PEER_PREFIX);
    for (size_t i = 0; i < OPTIONS && !there; i++) {
      g_autofree char *variable = variable_of(options[i].name);
      there = strcmp(*name, variable) == 0;
    }
    if (!there)
      return cli_error(NAME, CLI_USAGE, "%s in the environment is no option (see weft help peer)",
                       *name);
  }
  return -1;
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
  g_autoptr(GKeyFile) file = g_key_file_new();
  g_autoptr(GError) error = NULL;
  g_autofree char *text = NULL;
  gsize bytes;
  if (!g_file_get_contents(path, &text, &bytes, &error))
    return cli_error(NAME, CLI_USAGE, "--config: %s", error->message);
  if (!g_utf8_validate(text, (gssize)bytes, NULL)) // else a terminal would be shown its bytes
    return cli_error(NAME, CLI_USAGE, "--config %s: it is no text (UTF-8)", path);
  if (!g_key_file_load_from_data(file, text, bytes, G_KEY_FILE_NONE, &error))
    return cli_error(NAME, CLI_USAGE, "--config %s: %s", path, error->message);
  g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
  if (*groups && !g_key_file_has_group(file, "peer"))
    return cli_error(NAME, CLI_USAGE, "--config %s: there is no group [peer], but [%s]", path,
                     *groups);
  g_auto(GStrv) keys = g_key_file_get_keys(file, "peer", NULL, NULL);
  for (char **key = keys; key && *key; key++)
    if (!known(*key, word))
      return cli_error(NAME, CLI_USAGE, "--config %s: there is no option '%s' here", path, *key);
  for (size_t i = 0; i < OPTIONS; i++)
    if (!values[i] && (options[i].words & word))
      values[i] = g_key_file_get_string(file, "peer", options[i].name, NULL);
  return -1;
}

static int gather(const char *word_text, int word, int argc, char **argv, char **values) {
  GOptionEntry entries[OPTIONS + 1] = {{0}};
  char *about[OPTIONS] = {0}; // with defaults
  size_t count = 0;
  g_autofree char *command = g_strconcat(NAME " ", word_text, NULL);
  for (size_t i = 0; i < OPTIONS; i++) {
    const option *o = &options[i];
    if (!(o->words & word))
      continue;
    about[i] = g_strdup_printf(o->otherwise ? "%s [%s]" : "%s", o->about, o->otherwise);
    entries[count++] =
        (GOptionEntry){o->name, 0, 0, G_OPTION_ARG_STRING, &values[i], about[i], o->argument};
  }
  int code = cli_parse(command, "See weft peer --help for what it does and its exit codes.",
                       "In brackets: what holds otherwise. Rates take k, M, G (powers of 1000).\n"
                       "Times take a unit (500ms, 1s, 2min, 1h); a number alone is milliseconds "
                       "of --startup\n"
                       "and --lag, seconds of the others.",
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
  return code;
}

// --- What a value means

static int refuse(size_t which, const char *text, const char *wanted) {
  return cli_error(NAME, CLI_USAGE, "--%s takes %s, not '%s'", options[which].name, wanted, text);
}

static int whole(char **values, size_t which, uint64_t min, uint64_t max, uint64_t *out) {
  char *end;
  const char *text = values[which];
  errno = 0;
  *out = g_ascii_strtoull(text, &end, 10);
  if (errno == 0 && g_ascii_isdigit(*text) && !*end && *out >= min && *out <= max)
    return -1;
  return cli_error(NAME, CLI_USAGE,
                   "--%s must be %" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT ", not '%s'",
                   options[which].name, min, max, text);
}

static int rate(char **values, size_t which, uint64_t *out) {
  *out = 0;
  if (strcmp(values[which], "0") == 0 || cli_parse_quantity(values[which], out))
    return -1;
  return refuse(which, values[which], "a rate such as 2500k");
}

static int seconds(char **values, size_t which, double *out) {
  if (!weft_sim_parse_time(values[which], 1e6, out) || *out < 0 || *out > 1e12)
    return refuse(which, values[which], "a time such as 5, 5s or 500ms");
  *out /= 1e6;
  return -1;
}

static int milliseconds(char **values, size_t which, double least, uint32_t *out) {
  double us;
  if (!weft_sim_parse_time(values[which], 1e3, &us) || us < least * 1e3 || us > 600e6 ||
      fmod(us, 1e3) != 0)
    return refuse(which, values[which], "milliseconds up to 600000, or a time such as 1s or 500ms");
  *out = (uint32_t)(us / 1e3);
  return -1;
}

// A time, or bytes with a B behind.
static int place(char **values, size_t which, peer_settings *s) {
  static const char wanted[] = "a time such as 90 or 1.5min, or bytes as in 3000000B";
  const char *text = values[which];
  char *end;
  if (g_str_has_suffix(text, "B")) {
    errno = 0;
    s->from_bytes = g_ascii_strtoull(text, &end, 10);
    if (errno || !g_ascii_isdigit(*text) || strcmp(end, "B") != 0)
      return refuse(which, text, wanted);
    s->from_is_bytes = true;
    return -1;
  }
  if (!weft_sim_parse_time(text, 1e6, &s->from_s) || s->from_s < 0 || s->from_s > 1e15)
    return refuse(which, text, wanted);
  s->from_s /= 1e6;
  return -1;
}

static int addresses(char **values, size_t which, peer_settings *s) {
  if (!values[which])
    return -1;
  g_auto(GStrv) words = g_strsplit(values[which], ",", -1);
  for (char **w = words; *w; w++) {
    weft_address address;
    if (s->bootstrap_count == WEFT_NODE_BOOTSTRAP)
      return refuse(which, values[which], "16 addresses at most");
    if (!weft_address_parse(*w, &address) || address.port == 0 || **w == ':')
      return cli_error(NAME, CLI_USAGE, "--%s: '%s' is no HOST:PORT that can be found",
                       options[which].name, *w);
    s->bootstrap[s->bootstrap_count++] = address;
  }
  return -1;
}

static int word_of(char **values, size_t which, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(values[which], words[i]) == 0)
      return (int)i;
  return -1;
}

static int words(char **v, peer_settings *s) {
  static const char *const ciphers[] = {"best", "chacha20"}, *const formats[] = {"text", "json"},
                           *const levels[] = {"error", "warning", "info", "debug"};
  static const char *const switches[] = {"off", "on"}, *const controls[] = {"off", "ledbat"};
  const int control = v[O_CONGESTION] ? word_of(v, O_CONGESTION, controls, 2) : 0;
  if (control < 0)
    return refuse(O_CONGESTION, v[O_CONGESTION], "ledbat or off");
  s->congestion = control == 1;
  const int checksums = v[O_CHECKSUMS] ? word_of(v, O_CHECKSUMS, switches, 2) : 0;
  if (checksums < 0)
    return refuse(O_CHECKSUMS, v[O_CHECKSUMS], "on or off");
  s->checksums = checksums == 1;
  const int cipher = word_of(v, O_CIPHER, ciphers, 2),
            format = word_of(v, O_LOG_FORMAT, formats, 2),
            level = word_of(v, O_LOG_LEVEL, levels, 4);
  if (cipher < 0)
    return refuse(O_CIPHER, v[O_CIPHER], "best or chacha20");
  if (format < 0)
    return refuse(O_LOG_FORMAT, v[O_LOG_FORMAT], "text or json");
  if (level < 0)
    return refuse(O_LOG_LEVEL, v[O_LOG_LEVEL], "error, warning, info or debug");
  s->cipher = (weft_session_cipher)cipher;
  s->log_json = format == 1;
  s->log_level = (peer_log_level)level;
  return -1;
}

static int shape(char **v, peer_settings *s) {
  uint64_t n[6];
  const struct {
    size_t which;
    uint64_t min, max;
  } ranges[] = {{O_BLOCKS, 1, WEFT_MAX_BLOCKS},
                {O_BLOCK_BYTES, 1, WEFT_SESSION_PLAIN_BYTES},
                {O_WINDOW, 1, WEFT_ENGINE_MAX_WINDOW},
                {O_BATCH, 1, WEFT_ENGINE_MAX_BATCH},
                {O_NEIGHBOURS, 1, 48},
                {O_THREADS, 1, 1024}};
  for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
    const int code = whole(v, ranges[i].which, ranges[i].min, ranges[i].max, &n[i]);
    if (code >= 0)
      return code;
  }
  if (s->checksums && n[0] > WEFT_CHECKSUM_MAX_BLOCKS)
    return cli_error(NAME, CLI_USAGE, "--checksums takes --segment-blocks of %u at most",
                     WEFT_CHECKSUM_MAX_BLOCKS);
  if (WEFT_WIRE_SESSION_HEADER_BYTES + n[0] + n[1] > WEFT_SESSION_PLAIN_BYTES)
    return cli_error(NAME, CLI_USAGE,
                     "--segment-blocks and --block-bytes may be %u together at most: a packet must "
                     "fit into one datagram",
                     WEFT_SESSION_PLAIN_BYTES - WEFT_WIRE_SESSION_HEADER_BYTES);
  s->blocks = (uint32_t)n[0];
  s->block_bytes = (uint32_t)n[1];
  s->window = (size_t)n[2];
  s->batch = (size_t)n[3];
  s->neighbours = (size_t)n[4];
  s->threads = (size_t)n[5];
  return -1;
}

static int numbers(char **v, peer_settings *s) {
  char *end;
  uint64_t gather = 0;
  errno = 0;
  s->stream = g_ascii_strtoull(v[O_STREAM], &end, 16);
  if (errno || !g_ascii_isxdigit(*v[O_STREAM]) || *end)
    return refuse(O_STREAM, v[O_STREAM], "a hexadecimal number of 64 bits");
  while (s->stream == 0)
    randombytes_buf(&s->stream, sizeof s->stream);
  int code = shape(v, s);
  if (code < 0 && v[O_GATHER])
    code = whole(v, O_GATHER, 1, WEFT_ENGINE_MAX_GATHER, &gather);
  s->gather = (size_t)gather;
  if (code < 0)
    code = rate(v, O_RATE, &s->rate_bits_per_s);
  if (code < 0)
    code = rate(v, O_UPLOAD, &s->upload_bits_per_s);
  if (code < 0)
    code = milliseconds(v, O_STARTUP, 0, &s->startup_ms);
  if (code < 0)
    code = milliseconds(v, O_LAG, 1, &s->lag_ms);
  if (code < 0)
    code = seconds(v, O_LINGER, &s->linger_s);
  if (code < 0 && v[O_FROM])
    code = place(v, O_FROM, s);
  return code < 0 ? seconds(v, O_TIMEOUT, &s->timeout_s) : code;
}

static int places(char **v, peer_settings *s) {
  size_t key_bytes = 0;
  if (!weft_address_parse(v[O_LISTEN], &s->listen))
    return refuse(O_LISTEN, v[O_LISTEN], "an address such as 0.0.0.0:7000 or :7000");
  s->has_metrics = v[O_METRICS] != NULL;
  if (s->has_metrics && !weft_address_parse(v[O_METRICS], &s->metrics))
    return refuse(O_METRICS, v[O_METRICS], "an address such as 127.0.0.1:9100");
  s->has_source_key = v[O_SOURCE_KEY] != NULL;
  if (s->has_source_key && (sodium_hex2bin(s->source_key, 32, v[O_SOURCE_KEY],
                                           strlen(v[O_SOURCE_KEY]), NULL, &key_bytes, NULL) != 0 ||
                            key_bytes != 32))
    return cli_error(NAME, CLI_KEY, "--source-key takes 64 hexadecimal digits");
  const int code = addresses(v, O_SOURCE, s);
  return code < 0 ? addresses(v, O_TRACKER, s) : code;
}

static int required(char **v, size_t which) {
  return v[which] && *v[which] ? -1
                               : cli_error(NAME, CLI_USAGE, "--%s is missing", options[which].name);
}

int peer_settings_read(const char *word, int argc, char **argv, peer_settings *s) {
  char *v[OPTIONS] = {0};
  *s = (peer_settings){.role = WEFT_NODE_SOURCE};
  int bit = SOURCE;
  if (strcmp(word, "join") == 0) {
    s->role = WEFT_NODE_JOINING;
    bit = JOIN;
  } else if (strcmp(word, "tracker") == 0) {
    s->role = WEFT_NODE_TRACKER;
    bit = TRACKER;
  } else if (strcmp(word, "source") != 0) {
    return cli_error(NAME, CLI_USAGE, "takes source, join or tracker, not '%s'", word);
  }
  if (sodium_init() < 0)
    return cli_error(NAME, CLI_MACHINE, "libsodium could not start");
  int code = gather(word, bit, argc, argv, v);
  if (code < 0 && bit == SOURCE)
    code = required(v, O_INPUT);
  if (code < 0 && bit == JOIN)
    code = required(v, O_OUTPUT);
  if (code < 0 && bit == JOIN && !v[O_TRACKER])
    code = required(v, O_SOURCE);
  if (code < 0)
    code = words(v, s);
  if (code < 0)
    code = numbers(v, s);
  if (code < 0)
    code = places(v, s);
  s->input = g_steal_pointer(&v[O_INPUT]);
  s->output = g_steal_pointer(&v[O_OUTPUT]);
  s->key_file = g_steal_pointer(&v[O_KEY_FILE]);
  s->backend = g_steal_pointer(&v[O_BACKEND]);
  s->bootstrap_text = v[O_SOURCE] && v[O_TRACKER]
                          ? g_strconcat(v[O_SOURCE], ",", v[O_TRACKER], NULL)
                          : g_strdup(v[O_SOURCE] ? v[O_SOURCE] : v[O_TRACKER]);
  for (size_t i = 0; i < OPTIONS; i++)
    g_free(v[i]);
  return code;
}

void peer_settings_clear(peer_settings *s) {
  g_free(s->input);
  g_free(s->output);
  g_free(s->key_file);
  g_free(s->backend);
  g_free(s->bootstrap_text);
}

// --- The identity

static int new_key_file(const char *path, uint8_t seed[32]) {
  char hex[65];
  randombytes_buf(seed, 32);
  (void)sodium_bin2hex(hex, sizeof hex, seed, 32);
  hex[64] = '\n';
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && write(fd, hex, sizeof hex) == (ssize_t)sizeof hex && fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0)
    close(fd);
  if (fd >= 0 && !written)
    (void)unlink(path); // half a key would be refused for ever
  return written ? -1 : cli_error(NAME, CLI_IO, "--key-file %s: %s", path, g_strerror(code));
}

int peer_identity(const peer_settings *s, weft_identity *out) {
  uint8_t seed[32];
  g_autofree char *text = NULL;
  g_autoptr(GError) error = NULL;
  size_t bytes = 0;
  int code = -1;
  if (!s->key_file) {
    randombytes_buf(seed, sizeof seed);
  } else if (g_file_get_contents(s->key_file, &text, NULL, &error)) {
    if (sodium_hex2bin(seed, sizeof seed, text, strlen(text), "\r\n\t ", &bytes, NULL) != 0 ||
        bytes != 32)
      code = cli_error(NAME, CLI_KEY, "--key-file %s does not hold 64 hexadecimal digits",
                       s->key_file);
  } else if (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
    code = new_key_file(s->key_file, seed);
  } else {
    code = cli_error(NAME, CLI_IO, "--key-file: %s", error->message);
  }
  if (code < 0)
    weft_identity_from_seed(seed, out);
  sodium_memzero(seed, sizeof seed);
  return code;
}
