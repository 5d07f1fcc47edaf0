// SPDX-License-Identifier: Apache-2.0
// The table of keys: what a scenario may set, and in which range (values.c parses and prints
// values).
#include <string.h>

#include "sim/scenario/keys.h"
#include "weft/peer_options.h"

#define AT(field) offsetof(weft_sim_parameters, field)
#define S 1e6
#define INFINITE 9e15

static const char *const kinds[] = {"swarm", "server", "store", NULL};
static const char *const modes[] = {"bulk", "vod", "live", NULL};
static const char *const schemes[] = {"push", "pull", "source-only", "rarest", NULL};
static const char *const fidelities[] = {"bytes", "coefficients", "rank", NULL};
static const char *const topologies[] = {"tracker", "graph", "source", "peer", NULL};
static const char *const latencies[] = {"uniform", "plane", "matrix", NULL};
static const char *const arrivals[] = {"together", "poisson", "flash", "trace", NULL};
static const char *const departures[] = {"stay", "exponential", "pareto", NULL};

static const char *const never[] = {"never", NULL};
static const char *const as_class[] = {"class", NULL};

#define PEERS 1, WEFT_SIM_MAX_PEERS
#define SHARE 0, 1

static const key_row rows[] = {
    {"stream", "seed", "random seed: same parameters and seed, same run, bit for bit", KEY_U64,
     AT(seed), 0, INFINITE, NULL},
    {"stream", "kind", "swarm, server (codes for each client) or store (keeps shards)", KEY_NAME,
     AT(kind), 0, 0, kinds},
    {"stream", "mode", "live, vod, or bulk (as fast as possible)", KEY_NAME, AT(mode), 0, 0, modes},
    {"stream", "scheme", "push, pull, source-only (RLNC), rarest (no coding), or ./FILE: your own",
     KEY_SCHEME, AT(scheme), 0, 0, schemes},
    {"stream", "fidelity", "auto, bytes, coefficients or rank", KEY_FIDELITY, AT(fidelity), 0, 0,
     fidelities},
    {"stream", "rate", "rate of the stream, bits/s", KEY_U64, AT(rate_bits_per_s), 1000, 1e12,
     NULL},
    {"stream", "duration", "length of the run, such as 60 s or 10 min", KEY_TIME, AT(duration_us),
     1 * S, 1e6 * S, NULL},
    {"stream", "bulk-bytes", "length of the stream in bulk mode", KEY_U64, AT(bulk_bytes), 1, 1e12,
     NULL},
    {"stream", "segment-blocks", "blocks in a segment: n", KEY_U32, AT(blocks), 1, WEFT_MAX_BLOCKS,
     NULL},
    {"stream", "block-bytes", "bytes in a block: k", KEY_U32, AT(block_bytes), 1,
     WEFT_MAX_BLOCK_BYTES, NULL},
    {"stream", "coded-only", "the source sends no uncoded blocks: true or false", KEY_BOOL,
     AT(coded_only), 0, 0, NULL},
    {"engine", "window", "window of a peer, in segments", KEY_U32, AT(window), 1, 4096, NULL},
    {"engine", "ahead", "bulk: segments accepted from the first missing one on; 0: the window",
     KEY_U32, AT(ahead), 0, 4096, NULL},
    {"engine", "batch", "packets in one burst", KEY_U32, AT(batch), 1, WEFT_SIM_TOKEN_PACKETS,
     NULL},
    {"engine", "neighbours", "neighbours that a peer seeks", KEY_U32, AT(neighbours), 1, 1024,
     NULL},
    {"engine", "neighbours-max", "most neighbours that a peer accepts", KEY_U32, AT(neighbours_max),
     1, 1024, NULL},
    {"engine", "source-neighbours", "most neighbours that the source accepts; 0: neighbours-max",
     KEY_U32, AT(source_neighbours), 0, 1024, NULL},
    {"engine", "manifests", "every segment is signed: true or false", KEY_BOOL, AT(manifests), 0, 0,
     NULL},
    {"engine", "congestion", "LEDBAT for each neighbour: true or false", KEY_BOOL, AT(congestion),
     0, 0, NULL},
    {"engine", "gather-segments", "vod, bulk: segments decoded in one batch; 0: each by itself",
     KEY_U32, AT(gather_segments), 0, WEFT_ENGINE_MAX_GATHER, NULL},
    {"engine", "exchange-every", "interval between requests for addresses; 0: the engine's default",
     KEY_TIME, AT(exchange_us), 0, 600 * S, NULL},
    {"engine", "flights", "bursts in flight to one neighbour; 0: 64", KEY_U32, AT(flights), 0, 1024,
     NULL},
    {"engine", "requests", "waiting requests of one neighbour; 0: 8", KEY_U32, AT(requests), 0, 32,
     NULL},
    {"engine", "addresses", "addresses of other peers that a peer remembers", KEY_U32,
     AT(addresses), 1, 1024, NULL},
    {"engine", "lag", "live: how far behind the source to play", KEY_TIME, AT(lag_us), 0.01 * S,
     3600 * S, NULL},
    {"engine", "startup", "time allowed for the first segments before playback", KEY_TIME,
     AT(startup_us), 1000, 3600 * S, NULL},
    {"engine", "map-every", "interval between announcements of changed ranks", KEY_TIME, AT(map_us),
     1000, 60 * S, NULL},
    {"engine", "map-idle", "interval between announcements while ranks do not change", KEY_TIME,
     AT(map_idle_us), 1000, 600 * S, NULL},
    {"engine", "silence", "time of silence after which a neighbour counts as lost", KEY_TIME,
     AT(silent_us), 0.1 * S, 3600 * S, NULL},
    {"engine", "checksum-every", "interval between checksum reveals against pollution; 0 s: none",
     KEY_TIME, AT(checksum_us), 0, 60 * S, NULL},
    {"engine", "overhead-bytes", "overhead of each datagram: IP, UDP, seal", KEY_U32,
     AT(overhead_bytes), 0, 1000, NULL},
    {"engine", "handshake-bytes", "bytes of one session's handshake, both directions together",
     KEY_U32, AT(handshake_bytes), 2, 100000, NULL},
    {"network", "peers", "viewers that may come", KEY_U32, AT(peers), PEERS, NULL},
    {"network", "source-upload", "the source's uplink, bits/s", KEY_U64, AT(source_bits_per_s),
     1000, 1e13, NULL},
    {"network", "source-line",
     "rate of the source's physical line, if higher than its uplink; 0: same as the uplink",
     KEY_U64, AT(source_line_bits_per_s), 0, 1e13, NULL},
    {"network", "source-delay",
     "one-way access delay of the source; class: that of the first class", KEY_TIME_OR,
     AT(source_delay_us), 0, 10 * S, as_class},
    {"network", "classes", "access classes and their weights, such as dsl:40 fibre:60", KEY_CLASSES,
     0, 0, 0, NULL},
    {"network", "loss", "probability that a path loses a datagram", KEY_REAL, AT(loss), 0, 0.9,
     NULL},
    {"network", "queue", "longest wait in an uplink or downlink", KEY_TIME, AT(queue_us), 1000,
     3600 * S, NULL},
    {"network", "topology",
     "tracker, source or peer (joiners know only its address), or graph (fixed, random)", KEY_NAME,
     AT(topology), 0, 0, topologies},
    {"network", "latency", "uniform, plane or matrix", KEY_NAME, AT(latency), 0, 0, latencies},
    {"network", "delay-min", "smallest one-way delay of a path", KEY_TIME, AT(delay_min_us), 100,
     10 * S, NULL},
    {"network", "delay-max", "largest one-way delay of a path", KEY_TIME, AT(delay_max_us), 100,
     60 * S, NULL},
    {"network", "matrix", "delays between regions in ms, rows separated by ;", KEY_MATRIX, 0, 0, 0,
     NULL},
    {"network", "isps", "providers (or regions) that peers belong to", KEY_U32, AT(isps), 1, 100000,
     NULL},
    {"network", "isp-local", "share of a tracker's answers from the same provider", KEY_REAL,
     AT(isp_local), SHARE, NULL},
    {"churn", "arrival", "together, poisson, flash or trace", KEY_NAME, AT(arrival), 0, 0,
     arrivals},
    {"churn", "arrivals-per-s",
     "arrivals per second: of poisson, and of the viewers outside a flash, from the start",
     KEY_REAL, AT(arrivals_per_s), 1e-6, 1e7, NULL},
    {"churn", "flash-share", "share of the viewers that come in the flash", KEY_REAL,
     AT(flash_share), SHARE, NULL},
    {"churn", "flash-within", "duration of the flash", KEY_TIME, AT(flash_us), 0, 3600 * S, NULL},
    {"churn", "trace", "file with one line per arrival: seconds and (optional) stay", KEY_TEXT,
     AT(trace_file), 0, 0, NULL},
    {"churn", "departure", "stay, exponential or pareto", KEY_NAME, AT(departure), 0, 0,
     departures},
    {"churn", "stay-mean", "mean stay", KEY_STAY, AT(stay_mean_s), 0.1, 1e7, NULL},
    {"churn", "pareto-alpha", "how heavy the tail is, above 1", KEY_REAL, AT(pareto_alpha), 1.01,
     100, NULL},
    {"churn", "polite", "share of leaving viewers that say goodbye; those that fail never do",
     KEY_REAL, AT(polite), SHARE, NULL},
    {"churn", "failure-at", "time at which many peers fail at once, or never", KEY_TIME_OR,
     AT(failure_us), 0, 1e6 * S, never},
    {"churn", "failure-share", "share of the peers present that fail at that time", KEY_REAL,
     AT(failure_share), SHARE, NULL},
    {"churn", "free-riders", "share of peers that forward nothing", KEY_REAL, AT(free_riders),
     SHARE, NULL},
    {"churn", "polluters", "share of peers that send garbage", KEY_REAL, AT(polluters), SHARE,
     NULL},
    {"churn", "seeks-per-hour", "vod: seeks per hour of each viewer", KEY_REAL, AT(seeks_per_hour),
     0, 3600, NULL},
    {"server", "coding-rate",
     "bytes/s that the server codes; 0: the speed of this machine, measured at each start", KEY_U64,
     AT(coding_bytes_per_s), 0, 1e13, NULL},
    {"server", "gather", "time that a request waits for others of its segment", KEY_TIME,
     AT(gather_us), 0, 10 * S, NULL},
    {"server", "ask-packets", "packets in one request", KEY_U32, AT(ask_packets), 1,
     WEFT_MAX_BLOCKS, NULL},
    {"store", "code", "a code of weft/storage.h, such as cauchy or cauchy_good:w=4:packet=512",
     KEY_NAMED, AT(code), 0, 0, NULL},
    {"store", "data-shards", "data shards of an object: k", KEY_U32, AT(data_shards), 1, 255, NULL},
    {"store", "parity-shards", "parity shards of an object: m", KEY_U32, AT(parity_shards), 1, 255,
     NULL},
    {"store", "shard-bytes", "bytes of each shard", KEY_U32, AT(shard_bytes), 1, 1 << 26, NULL},
    {"store", "objects", "number of objects kept", KEY_U32, AT(objects), 1, 1e6, NULL},
    {"store", "away-mean", "mean absence of a peer that comes back", KEY_STAY, AT(away_mean_s), 1,
     1e7, NULL},
    {"store", "gone-share", "share of departures that are permanent, with loss of the disk",
     KEY_REAL, AT(gone_share), SHARE, NULL},
    {"store", "repair-after", "absence after which a peer counts as gone", KEY_TIME,
     AT(repair_after_us), 1 * S, 1e6 * S, NULL},
    {"store", "repair-below", "repair when fewer shards than this are counted, above k; 0: all",
     KEY_U32, AT(repair_below), 0, 256, NULL},
    {"store", "repair-rate", "rate of one repair, bits/s", KEY_U64, AT(repair_bits_per_s), 1000,
     1e12, NULL},
    {"store", "reads-per-hour", "reads per hour, of all objects together", KEY_REAL,
     AT(reads_per_hour), 0, 1e6, NULL},
    {"report", "sampled", "peers followed in trace and report", KEY_U32, AT(sampled), 0, 10000,
     NULL},
};

size_t weft_sim_key_count(void) { return sizeof rows / sizeof *rows; }

weft_sim_key weft_sim_key_at(size_t index) {
  return (weft_sim_key){
      .group = rows[index].group, .name = rows[index].name, .help = rows[index].help};
}

const key_row *weft_sim_find_key(const char *group, const char *name) {
  for (size_t i = 0; i < weft_sim_key_count(); i++)
    if (strcmp(rows[i].name, name) == 0 && (!group || strcmp(rows[i].group, group) == 0))
      return &rows[i];
  return NULL;
}

const key_row *weft_sim_row_at(size_t index) { return &rows[index]; }
