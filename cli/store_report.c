// SPDX-License-Identifier: Apache-2.0
// `weft store`: what a call did and found, as text for people and as JSON for machines.
#include <inttypes.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "cli/store.h"
#include "tools/printable.h"

const char *store_error(const store_outcome *outcome) {
  if (outcome->status == WEFT_OK)
    return "";
  return outcome->status == WEFT_E_STOPPED ? "interrupted"
         : outcome->report.error[0]        ? outcome->report.error
                                           : weft_status_text(outcome->status);
}

static size_t shard_count(const weft_store_info *info) {
  return info->geometry.k + info->geometry.m;
}

void store_report_shards(const store_outcome *outcome) {
  const weft_store_info info = weft_store_get_info(outcome->store);
  if (info.update_pending && strcmp(outcome->call, "verify") == 0)
    fprintf(stderr,
            "weft store %s: update.journal: its update is committed, but not all shards have it "
            "yet: scrub or repair completes it\n",
            outcome->call);
  for (size_t i = 0; i < shard_count(&info); i++) {
    const weft_store_shard *s = &info.shards[i];
    const char *mended = s->mended ? " (repaired)" : "";
    char part[64] = "";
    if (s->rewritten_chunks && !s->mended)
      snprintf(part, sizeof part, " (%" PRIu64 " of %" PRIu64 " repaired)", s->rewritten_chunks,
               s->corrupt_chunks);
    if (s->text[0])
      fprintf(stderr, "weft store %s: %s%s\n", outcome->call, s->text, mended);
    if (s->corrupt_chunks)
      fprintf(stderr,
              "weft store %s: shard-%03zu.weft: %" PRIu64
              " of its chunks %s, the first in stripe %" PRIu64 "%s%s\n",
              outcome->call, i, s->corrupt_chunks,
              !s->unread_chunks                       ? "corrupt"
              : s->unread_chunks == s->corrupt_chunks ? "cannot be read"
                                                      : "corrupt or unreadable",
              s->first_corrupt, mended, part);
    if (s->write_error)
      fprintf(stderr, "weft store %s: shard-%03zu.weft: it cannot be written: %s%s\n",
              outcome->call, i, strerror(s->write_error), mended);
    if (s->was_link)
      fprintf(stderr,
              "weft store %s: shard-%03zu.weft was a link: the rebuilt shard is in the folder "
              "itself\n",
              outcome->call, i);
  }
}

// Gives the bytes of the file that a range of lost stripes holds: [from, to].
static void lost_bytes(const weft_store_info *info, const weft_store_lost *lost, uint64_t *from,
                       uint64_t *to) {
  const weft_store_geometry *g = &info->geometry;
  *from = weft_store_data_offset(g, lost->first);
  *to = weft_store_data_offset(g, lost->last) + weft_store_data_bytes(g, lost->last) - 1;
}

void store_report_lost(const store_outcome *outcome) {
  const weft_store_info info = weft_store_get_info(outcome->store);
  const weft_store_report *r = &outcome->report;
  bool withheld = false; // what they hold may not be lost
  for (size_t i = 0; i < shard_count(&info); i++)
    withheld |= info.shards[i].read_error != 0;
  for (size_t i = 0; i < r->lost_count; i++) {
    uint64_t from, to;
    lost_bytes(&info, &r->lost[i], &from, &to);
    fprintf(stderr,
            "weft store %s: bytes %" PRIu64 " to %" PRIu64 " of the file %s, at least in part\n",
            outcome->call, from, to,
            withheld ? "cannot be restored from what can be read" : "are lost");
  }
  if (r->lost_more)
    fprintf(stderr, "weft store %s: and more after these\n", outcome->call);
}

static void print_info(const store_outcome *outcome, FILE *to) {
  const weft_store_info info = weft_store_get_info(outcome->store);
  char id[2 * WEFT_STORE_ID_BYTES + 1], length[CLI_TEXT], chunk[CLI_TEXT];
  sodium_bin2hex(id, sizeof id, info.header.id, sizeof info.header.id);
  fprintf(to, "file        %s\n", id);
  fprintf(to, "length      %" PRIu64 " bytes (%s)\n", info.header.length,
          cli_bytes_text(info.header.length, length));
  fprintf(to, "code        %s, k = %zu data and m = %zu parity shards\n", info.header.code,
          info.geometry.k, info.geometry.m);
  fprintf(to, "stripes     %" PRIu64 " of %zu chunks of %s\n", info.geometry.stripes,
          shard_count(&info), cli_bytes_text(info.header.chunk_bytes, chunk));
  fprintf(to, "tags        %s\n",
          !info.header.keyed   ? "with a key of the file's own: against bit rot"
          : info.authenticated ? "with the user's key, which this is"
                               : "with the user's key, which was not given: headers not checked");
  fprintf(to, "generation  %" PRIu64 "%s\n", info.header.generation,
          info.update_pending ? "; its update is not yet in all shards"
          : info.update_unknown
              ? "; there is an update.journal: an update may be pending; give the key"
              : "");
  fprintf(to, "shards      %zu of %zu are readable (by their headers), %zu are needed\n",
          info.usable, shard_count(&info), info.geometry.k);
  for (size_t i = 0; i < shard_count(&info); i++)
    if (info.shards[i].text[0])
      fprintf(to, "  %s\n", info.shards[i].text);
    else
      fprintf(to, "  shard-%03zu.weft: good\n", i);
}

static uint64_t rewritten_chunks(const store_outcome *outcome) {
  const weft_store_info info = weft_store_get_info(outcome->store);
  uint64_t count = 0;
  for (size_t i = 0; i < shard_count(&info); i++)
    count += info.shards[i].rewritten_chunks;
  return count;
}

void store_report_text(const store_outcome *outcome, FILE *to) {
  const weft_store_report *r = &outcome->report;
  char bytes[CLI_TEXT], rate[CLI_TEXT];
  if (strcmp(outcome->call, "info") == 0) {
    print_info(outcome, to);
    return;
  }
  weft_print(
      to, "%s: %s in %.2f s, %s; backend %s, %zu thread%s\n", outcome->folder,
      cli_bytes_text(r->data_bytes, bytes), outcome->seconds,
      cli_rate_text(outcome->seconds > 0 ? (double)r->data_bytes / outcome->seconds : 0, rate),
      outcome->backend, outcome->threads, outcome->threads == 1 ? "" : "s");
  if (r->mended_shards || r->mended_chunks)
    fprintf(to, "shards rebuilt: %" PRIu64 "; chunks rewritten in others: %" PRIu64 "\n",
            r->mended_shards, rewritten_chunks(outcome));
  else if (strcmp(outcome->call, "verify") == 0 || strcmp(outcome->call, "scrub") == 0 ||
           strcmp(outcome->call, "repair") == 0)
    fputs("every byte of every shard is good\n", to);
}

// --- JSON

static json_t *shards_json(const weft_store_info *info) {
  json_t *list = json_array();
  for (size_t i = 0; i < shard_count(info); i++) {
    const weft_store_shard *s = &info->shards[i];
    json_array_append_new(
        list,
        json_pack("{s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:b, s:b}", "shard", (json_int_t)i,
                  "state", weft_shard_state_name(s->state), "message", s->text, "read_error",
                  s->read_error ? strerror(s->read_error) : "", "corrupt_chunks",
                  (json_int_t)s->corrupt_chunks, "unread_chunks", (json_int_t)s->unread_chunks,
                  "rewritten_chunks", (json_int_t)s->rewritten_chunks, "write_error",
                  s->write_error ? strerror(s->write_error) : "", "mended", (int)s->mended,
                  "was_link", (int)s->was_link));
  }
  return list;
}

static void add_info(json_t *root, const weft_store_info *info) {
  char id[2 * WEFT_STORE_ID_BYTES + 1];
  sodium_bin2hex(id, sizeof id, info->header.id, sizeof info->header.id);
  json_t *about = json_pack(
      "{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:I}", "id", id, "length",
      (json_int_t)info->header.length, "code", info->header.code, "k", (json_int_t)info->geometry.k,
      "m", (json_int_t)info->geometry.m, "chunk_bytes", (json_int_t)info->header.chunk_bytes,
      "stripes", (json_int_t)info->geometry.stripes, "shard_bytes", (json_int_t)info->shard_bytes,
      "generation", (json_int_t)info->header.generation, "keyed", (int)info->header.keyed,
      "authenticated", (int)info->authenticated, "update_pending", (int)info->update_pending,
      "usable_shards", (json_int_t)info->usable);
  json_object_update(root, about);
  if (info->update_unknown)
    json_object_set_new(root, "update_pending", json_null());
  json_decref(about);
  json_object_set_new(root, "shards", shards_json(info));
}

static json_t *lost_json(const weft_store_report *r, const weft_store_info *info) {
  json_t *list = json_array();
  for (size_t i = 0; i < r->lost_count; i++) {
    uint64_t from, to;
    lost_bytes(info, &r->lost[i], &from, &to);
    json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:I}", "first_stripe",
                                          (json_int_t)r->lost[i].first, "last_stripe",
                                          (json_int_t)r->lost[i].last, "offset", (json_int_t)from,
                                          "length", (json_int_t)(to - from + 1)));
  }
  return list;
}

void store_report_json(const store_outcome *outcome, int code, FILE *to) {
  const weft_store_report *r = &outcome->report;
  char *error = g_utf8_make_valid(store_error(outcome), -1); // file names
  json_t *root = json_pack(
      "{s:s, s:o, s:s, s:i, s:s, s:s, s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
      "version", weft_version(), "command", json_sprintf("store %s", outcome->call), "call",
      outcome->call, "exit_code", code, "status", weft_status_name(outcome->status), "error", error,
      "backend", outcome->backend ? outcome->backend : "", "threads", (json_int_t)outcome->threads,
      "seconds", outcome->seconds, "data_bytes", (json_int_t)r->data_bytes, "shard_bytes_read",
      (json_int_t)r->shard_bytes_read, "shard_bytes_written", (json_int_t)r->shard_bytes_written,
      "corrupt_chunks", (json_int_t)r->corrupt_chunks, "mended_chunks",
      (json_int_t)r->mended_chunks, "mended_shards", (json_int_t)r->mended_shards, "lost_stripes",
      (json_int_t)r->lost_stripes, "inconsistent_stripes", (json_int_t)r->inconsistent_stripes);
  g_free(error);
  if (outcome->store) {
    const weft_store_info info = weft_store_get_info(outcome->store);
    add_info(root, &info);
    json_object_set_new(root, "lost", lost_json(r, &info));
    json_object_set_new(root, "lost_more", json_boolean(r->lost_more));
  }
  char *const text = cli_json_text(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
  fprintf(to, "%s\n", text ? text : "{}");
  g_free(text);
  json_decref(root);
}
