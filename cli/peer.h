// SPDX-License-Identifier: Apache-2.0
// `weft peer`: what its files share.
#ifndef WEFT_CLI_PEER_H
#define WEFT_CLI_PEER_H

#include "cli/cli.h"
#include "peer/runtime/feed.h"
#include "peer/runtime/http.h"
#include "peer/runtime/port_map.h"
#include "peer/runtime/sink.h"
#include "weft/peer_loop.h"
#include "weft/peer_node.h"

#define PEER_NAME "peer"

// Words of --source and --tracker, at most, and addresses of each: enough for, say, two of IPv4 and
// two of IPv6.
enum { PEER_WORDS = 16, PEER_WORD_ADDRESSES = WEFT_NODE_BOOTSTRAP / PEER_WORDS };

typedef enum peer_log_level { PEER_ERROR, PEER_WARNING, PEER_INFO, PEER_DEBUG } peer_log_level;

typedef struct peer_settings {
  weft_node_role role; // SOURCE, JOINING, TRACKER
  char *input, *output, *key_file, *backend, *config;
  weft_address listen, metrics;
  char *bootstrap_text; // as it was given: words separated by commas
  bool has_metrics, has_source_key, log_json, checksums, congestion, map_port, stream_given;
  uint64_t given;            // options, as bits (peer_options.h), given with other than the default
  const weft_policy *policy; // of --scheme
  weft_address bootstrap[WEFT_NODE_BOOTSTRAP];
  uint8_t bootstrap_host[WEFT_NODE_BOOTSTRAP]; // which word named it
  size_t bootstrap_count, bootstrap_words;
  uint8_t source_key[32];
  uint64_t rate_bits_per_s, upload_bits_per_s, stream;
  uint32_t blocks, block_bytes, lag_ms, startup_ms;
  size_t window, batch, neighbours, threads, gather;
  double linger_s, timeout_s, from_s;
  double stay_s;       // INFINITY: forever
  uint64_t from_bytes; // if from_is_bytes, else from_s
  bool from_is_bytes;
  weft_session_cipher cipher;
  peer_log_level log_level;
} peer_settings;

// peer_settings.c. Returns -1 to go on, else the exit code.
int peer_settings_read(const char *word, int argc, char **argv, peer_settings *out);
void peer_settings_clear(peer_settings *settings);
// Gives the identity of --key-file, which is made if there is none yet; without it, one for this
// run. Returns as above.
int peer_identity(const peer_settings *settings, weft_identity *out);

// peer_log.c. Sets what is logged, and as what: with `json`, errors are lines of the log, too.
void peer_log_set(peer_log_level level, bool json);
bool peer_log_is_json(void);
// Writes one line on standard error. `format` gives "key=value" pairs with spaces between.
void peer_log(peer_log_level level, const char *event, const char *format, ...) G_GNUC_PRINTF(3, 4);

// peer_report.c
typedef struct peer_view {
  const peer_settings *settings;
  weft_node *node;
  weft_feed *feed;       // NULL unless this is a source
  const weft_sink *sink; // NULL unless this is a peer that has joined
  gint64 start_us;       // when it started
  gint64 play_us;        // joined: when playback began; 0: not yet
  bool healthy;
  bool stands_still;        // the source goes on, and nothing of that is played here
  weft_port_map_event port; // --map-port: the last answer; all zero: none yet
} peer_view;
char *peer_metrics(const peer_view *view); // Prometheus text
char *peer_status(const peer_view *view);  // JSON
// A line of the log, by the statistics from before the node left.
void peer_tell_summary(const peer_view *view, const weft_node_statistics *s);
// For weft_http_options.page, user: a peer_view.
char *peer_page(void *user, const char *path, const char **type, unsigned *status);

// peer_run.c
int peer_run(const peer_settings *settings);

#endif
