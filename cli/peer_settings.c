// SPDX-License-Identifier: Apache-2.0
// `weft peer`: reads the values of its options, and the identity that one of them names.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "cli/peer.h"
#include "cli/peer_options.h"
#include "cli/policy.h"
#include "sim/scenario/scenario.h"

// --- One value

static int refuse(size_t which, const char *text, const char *wanted) {
  return cli_error(PEER_NAME, CLI_USAGE, "--%s needs %s, not '%s'", peer_option_name(which), wanted,
                   text);
}

static int whole(char **values, size_t which, uint64_t min, uint64_t max, uint64_t *out) {
  char *end;
  const char *text = values[which];
  errno = 0;
  *out = g_ascii_strtoull(text, &end, 10);
  if (errno == 0 && g_ascii_isdigit(*text) && !*end && *out >= min && *out <= max)
    return -1;
  return cli_error(PEER_NAME, CLI_USAGE,
                   "--%s must be %" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT ", not '%s'",
                   peer_option_name(which), min, max, text);
}

static int rate(char **values, size_t which, uint64_t *out) {
  *out = 0;
  if (strcmp(values[which], "0") == 0 || cli_parse_quantity(values[which], out))
    return -1;
  return refuse(which, values[which], "a rate such as 2500k");
}

static int time_in_seconds(char **values, size_t which, const char *wanted, double *out) {
  if (!weft_sim_parse_time(values[which], 1e6, out) || *out < 0 || *out > 1e12)
    return refuse(which, values[which], wanted);
  *out /= 1e6;
  return -1;
}

static int seconds(char **values, size_t which, double *out) {
  return time_in_seconds(values, which, "a time such as 5, 5s or 500ms", out);
}

static int seconds_or_forever(char **values, size_t which, double *out) {
  *out = INFINITY;
  return strcmp(values[which], "forever") == 0
             ? -1
             : time_in_seconds(values, which, "a time such as 30min or 2h, or forever", out);
}

static int milliseconds(char **values, size_t which, double least, uint32_t *out) {
  double us;
  if (!weft_sim_parse_time(values[which], 1e3, &us) || us < least * 1e3 || us > 600e6 ||
      fmod(us, 1e3) != 0)
    return refuse(which, values[which], "milliseconds up to 600000, or a time such as 1s or 500ms");
  *out = (uint32_t)(us / 1e3);
  return -1;
}

// Reads a time, or bytes with the suffix B.
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

// Returns whether the text may be NAME:PORT, which may be unknown now, rather than an address,
// which must be valid.
static bool is_name(const char *text) {
  return *text != '[' && strchr(text, ':') == strrchr(text, ':');
}

static int addresses(char **values, size_t which, peer_settings *s) {
  if (!values[which])
    return -1;
  g_auto(GStrv) words = g_strsplit(values[which], ",", -1);
  for (char **w = words; *w; w++) {
    weft_address *to = &s->bootstrap[s->bootstrap_count];
    if (s->bootstrap_words == PEER_WORDS)
      return refuse(which, values[which], "at most 16 addresses");
    const size_t known = weft_address_parse_all(*w, PEER_WORD_ADDRESSES, to);
    if (to->port == 0 || **w == ':' || (!known && !is_name(*w)))
      return cli_error(PEER_NAME, CLI_USAGE, "--%s: '%s' is not HOST:PORT", peer_option_name(which),
                       *w);
    if (!known) // it may be known tomorrow
      return cli_error(PEER_NAME, CLI_IO, "--%s: no address was found for '%s'",
                       peer_option_name(which), *w);
    memset(s->bootstrap_host + s->bootstrap_count, (int)s->bootstrap_words++, known);
    s->bootstrap_count += known;
  }
  return -1;
}

static int word_of(char **values, size_t which, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(values[which], words[i]) == 0)
      return (int)i;
  return -1;
}

// Reads on or off; an option that the word does not have is off.
static int switched(char **v, size_t which, bool *out) {
  static const char *const switches[] = {"off", "on"};
  const int value = v[which] ? word_of(v, which, switches, 2) : 0;
  *out = value == 1;
  return value < 0 ? refuse(which, v[which], "on or off") : -1;
}

// Reads --scheme; text with a slash is a file with the user's policy. A tracker has none (NULL).
static int scheme(const char *text, const weft_policy **out) {
  cli_policy own;
  *out = text && strcmp(text, weft_policy_pull.name) == 0 ? &weft_policy_pull : &weft_policy_push;
  if (!text || strcmp(text, (*out)->name) == 0)
    return -1;
  if (!strchr(text, '/'))
    return refuse(O_SCHEME, text, "push, pull or a file such as ./policy.so");
  const int code = cli_policy_load(PEER_NAME, text, &own);
  if (code < 0)
    *out = own.policy;
  return code;
}

static int words(char **v, peer_settings *s) {
  static const char *const ciphers[] = {"best", "chacha20"}, *const formats[] = {"text", "json"},
                           *const levels[] = {"error", "warning", "info", "debug"};
  static const char *const controls[] = {"off", "ledbat"};
  const int control = v[O_CONGESTION] ? word_of(v, O_CONGESTION, controls, 2) : 0;
  if (control < 0)
    return refuse(O_CONGESTION, v[O_CONGESTION], "ledbat or off");
  s->congestion = control == 1;
  int code = scheme(v[O_SCHEME], &s->policy);
  if (code < 0)
    code = switched(v, O_CHECKSUMS, &s->checksums);
  if (code < 0)
    code = switched(v, O_MAP_PORT, &s->map_port);
  if (code >= 0)
    return code;
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
  uint64_t n[5];
  const struct {
    size_t which;
    uint64_t min, max;
  } ranges[] = {{O_BLOCKS, 1, WEFT_MAX_BLOCKS},
                {O_BLOCK_BYTES, 1, WEFT_SESSION_PLAIN_BYTES},
                {O_BATCH, 1, WEFT_ENGINE_MAX_BATCH},
                {O_NEIGHBOURS, 1, 48},
                {O_THREADS, 1, 1024}};
  for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++) {
    const int code = whole(v, ranges[i].which, ranges[i].min, ranges[i].max, &n[i]);
    if (code >= 0)
      return code;
  }
  if (s->checksums && n[0] > WEFT_CHECKSUM_MAX_BLOCKS)
    return cli_error(PEER_NAME, CLI_USAGE, "--checksums needs --segment-blocks of at most %u",
                     WEFT_CHECKSUM_MAX_BLOCKS);
  const uint64_t before = WEFT_WIRE_SESSION_HEADER_BYTES + WEFT_PACKET_COEFFICIENT_BYTES(n[0]);
  if (before + n[1] > WEFT_SESSION_PLAIN_BYTES)
    return cli_error(PEER_NAME, CLI_USAGE,
                     "--block-bytes may be at most %" PRIu64 " with %" PRIu64
                     " blocks: a packet must fit into one datagram",
                     before < WEFT_SESSION_PLAIN_BYTES ? WEFT_SESSION_PLAIN_BYTES - before : 0,
                     (uint64_t)n[0]);
  s->blocks = (uint32_t)n[0];
  s->block_bytes = (uint32_t)n[1];
  s->batch = (size_t)n[2];
  s->neighbours = (size_t)n[3];
  s->threads = (size_t)n[4];
  return -1;
}

static int numbers(char **v, peer_settings *s) {
  char *end;
  uint64_t gather = 0, window = 0;
  errno = 0;
  s->stream = g_ascii_strtoull(v[O_STREAM], &end, 16);
  if (errno || !g_ascii_isxdigit(*v[O_STREAM]) || *end)
    return refuse(O_STREAM, v[O_STREAM], "a 64-bit hexadecimal number");
  s->stream_given = s->stream != 0;
  while (s->stream == 0)
    randombytes_buf(&s->stream, sizeof s->stream);
  int code = shape(v, s);
  if (code < 0 && v[O_GATHER])
    code = whole(v, O_GATHER, 1, WEFT_ENGINE_MAX_GATHER, &gather);
  s->gather = (size_t)gather;
  if (code < 0 && v[O_WINDOW])
    code = whole(v, O_WINDOW, 1, WEFT_ENGINE_MAX_WINDOW, &window);
  s->window = (size_t)window;
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
  if (code < 0)
    code = seconds_or_forever(v, O_STAY, &s->stay_s);
  if (code < 0 && v[O_FROM])
    code = place(v, O_FROM, s);
  return code < 0 ? seconds(v, O_TIMEOUT, &s->timeout_s) : code;
}

static int places(char **v, peer_settings *s) {
  size_t key_bytes = 0;
  if (!weft_address_parse(v[O_LISTEN], &s->listen))
    return refuse(O_LISTEN, v[O_LISTEN], "an address such as 0.0.0.0:7000 or :7000");
  if (s->map_port && !weft_port_map_possible(&s->listen))
    return cli_error(
        PEER_NAME, CLI_USAGE,
        "--map-port needs an IPv4 address that other machines can reach, unlike --listen %s",
        v[O_LISTEN]);
  s->has_metrics = v[O_METRICS] != NULL;
  if (s->has_metrics && !weft_address_parse(v[O_METRICS], &s->metrics))
    return refuse(O_METRICS, v[O_METRICS], "an address such as 127.0.0.1:9100");
  s->has_source_key = v[O_SOURCE_KEY] != NULL;
  if (s->has_source_key && (sodium_hex2bin(s->source_key, 32, v[O_SOURCE_KEY],
                                           strlen(v[O_SOURCE_KEY]), NULL, &key_bytes, NULL) != 0 ||
                            key_bytes != 32))
    return cli_error(PEER_NAME, CLI_KEY, "--source-key needs 64 hexadecimal digits");
  const int code = addresses(v, O_SOURCE, s);
  return code < 0 ? addresses(v, O_TRACKER, s) : code;
}

static int required(char **v, size_t which, const char *word) {
  return v[which] && *v[which]
             ? -1
             : cli_error(PEER_NAME, CLI_USAGE, "--%s is missing (see weft help peer %s)",
                         peer_option_name(which), word);
}

int peer_settings_read(const char *word, int argc, char **argv, peer_settings *s) {
  char *v[OPTIONS] = {0};
  *s = (peer_settings){.role = WEFT_NODE_SOURCE};
  int bit = PEER_SOURCE;
  if (strcmp(word, "join") == 0) {
    s->role = WEFT_NODE_JOINING;
    bit = PEER_JOIN;
  } else if (strcmp(word, "tracker") == 0) {
    s->role = WEFT_NODE_TRACKER;
    bit = PEER_TRACKER;
  } else if (strcmp(word, "source") != 0) {
    return cli_error(PEER_NAME, CLI_USAGE,
                     "needs source, join or tracker, not '%s' (see weft help peer)", word);
  }
  if (sodium_init() < 0)
    return cli_error(PEER_NAME, CLI_MACHINE, "libsodium could not start");
  int code = peer_options_gather(word, bit, argc, argv, &s->given, v);
  if (code < 0 && bit == PEER_SOURCE)
    code = required(v, O_INPUT, word);
  if (code < 0 && bit == PEER_JOIN)
    code = required(v, O_OUTPUT, word);
  if (code < 0 && bit == PEER_JOIN && !v[O_TRACKER])
    code = required(v, O_SOURCE, word);
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
  const ssize_t put = fd >= 0 ? write(fd, hex, sizeof hex) : -1;
  sodium_memzero(hex, sizeof hex);
  if (put >= 0 && put < (ssize_t)sizeof hex)
    errno = ENOSPC; // what makes so few bytes a short write
  const bool written = put == (ssize_t)sizeof hex && fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0)
    close(fd);
  if (fd >= 0 && !written)
    (void)unlink(path); // half a key would be refused in every later run
  return written ? -1 : cli_error(PEER_NAME, CLI_IO, "--key-file %s: %s", path, g_strerror(code));
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
      code = cli_error(PEER_NAME, CLI_KEY, "--key-file %s does not hold 64 hexadecimal digits",
                       s->key_file);
  } else if (g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
    code = new_key_file(s->key_file, seed);
  } else {
    code = cli_error(PEER_NAME, CLI_IO, "--key-file: %s", error->message);
  }
  if (code < 0)
    weft_identity_from_seed(seed, out);
  sodium_memzero(seed, sizeof seed);
  if (text)
    sodium_memzero(text, strlen(text));
  return code;
}
