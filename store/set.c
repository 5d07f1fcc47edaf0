// SPDX-License-Identifier: Apache-2.0
// What every call on a set needs: names, messages, memory, closing.
#include "store/set.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

static weft_status print_path(char *out, const char *folder, const char *name) {
  const int n = snprintf(out, WEFT_STORE_PATH_BYTES, "%s/%s", folder, name);
  return n > 0 && n < WEFT_STORE_PATH_BYTES ? WEFT_OK : WEFT_E_IO;
}

weft_status weft_store_shard_path(const char *folder, size_t shard, bool fresh, char *out) {
  char name[32];
  snprintf(name, sizeof name, "shard-%03u.weft%s", (unsigned)(shard % 1000), fresh ? ".new" : "");
  return print_path(out, folder, name);
}

weft_status weft_store_journal_path(const char *folder, bool fresh, char *out) {
  return print_path(out, folder, fresh ? "update.journal.new" : "update.journal");
}

// Sets the report's error. A path may be longer than the report has room for; then the end of the
// text is kept, which says more.
static void put_error(weft_store_report *report, const char *text) {
  const size_t bytes = strlen(text) + 1, room = sizeof report->error;
  memcpy(report->error, "...", 3);
  if (bytes <= room)
    memcpy(report->error, text, bytes);
  else
    memcpy(report->error + 3, text + bytes - (room - 3), room - 3);
}

enum { WHOLE_TEXT_BYTES = 2 * WEFT_STORE_PATH_BYTES + WEFT_STORE_TEXT_BYTES };

weft_status weft_store_fail(weft_store_report *report, weft_status status, const char *format,
                            ...) {
  char text[WHOLE_TEXT_BYTES];
  if (report->error[0]) // the first error is the cause
    return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  put_error(report, text);
  return status;
}

weft_status weft_store_fail_io(weft_store_report *report, const char *what, int error) {
  // EINTR: a signal ended a wait.
  return weft_store_fail(report, error == EINTR ? WEFT_E_STOPPED : WEFT_E_IO, "%s: %s%s", what,
                         strerror(error), weft_store_advice(error));
}

const char *weft_store_advice(int error) {
  return error == EMFILE ? "; a call opens up to twice as many files as there are shards: raise "
                           "the limit (ulimit -n)"
                         : "";
}

weft_status weft_store_told(weft_store_report *report, weft_status status) {
  return status == WEFT_OK ? status
                           : weft_store_fail(report, status, "%s", weft_status_text(status));
}

// Says in the error that `what` has taken effect: otherwise its reader would assume that the old
// state is still there.
weft_status weft_store_holds(weft_store_report *report, weft_status status, const char *what) {
  char text[WEFT_STORE_TEXT_BYTES + 128];
  (void)weft_store_told(report, status);
  snprintf(text, sizeof text, "%s; %s is committed all the same, and scrub or repair completes it",
           report->error, what);
  put_error(report, text);
  return status;
}

weft_status weft_store_new_memory(weft_ctx *ctx, size_t bytes, void **out) {
  WEFT_TRY(weft_alloc(ctx, WEFT_MEM_HOST, bytes, out));
  memset(*out, 0, bytes);
  return WEFT_OK;
}

const char *weft_shard_state_name(weft_shard_state state) {
  static const char *const names[WEFT_SHARD_STATES] = {[WEFT_SHARD_GOOD] = "good",
                                                       [WEFT_SHARD_MISSING] = "missing",
                                                       [WEFT_SHARD_UNREADABLE] = "unreadable",
                                                       [WEFT_SHARD_CORRUPT] = "corrupt",
                                                       [WEFT_SHARD_VERSION] = "version",
                                                       [WEFT_SHARD_FORGED] = "forged",
                                                       [WEFT_SHARD_FOREIGN] = "foreign",
                                                       [WEFT_SHARD_STALE] = "stale",
                                                       [WEFT_SHARD_NEWER] = "newer",
                                                       [WEFT_SHARD_TRUNCATED] = "truncated",
                                                       [WEFT_SHARD_OVERLONG] = "overlong",
                                                       [WEFT_SHARD_MISPLACED] = "misplaced"};
  return (unsigned)state < WEFT_SHARD_STATES ? names[state] : "unknown";
}

weft_store_info weft_store_get_info(const weft_store *store) {
  weft_store_info info = {.header = store->header,
                          .geometry = store->geometry,
                          .shard_bytes = weft_store_shard_bytes(&store->geometry),
                          .update_pending = store->journal_fd >= 0,
                          .update_unknown = store->journal_unread,
                          .authenticated = store->authenticated,
                          .shards = store->shards};
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    info.usable += store->files[i].fd >= 0;
  memset(info.header.key, 0, sizeof info.header.key);
  return info;
}

weft_status weft_store_new(const weft_store_options *options, const char *folder,
                           weft_store_report *report, weft_store **out) {
  void *memory;
  if (strlen(folder) > WEFT_STORE_PATH_BYTES - 32) // leaves room for file names
    return weft_store_fail_io(report, folder, ENAMETOOLONG);
  if (sodium_init() < 0)
    return weft_store_told(report, WEFT_E_RANDOM);
  weft_status status = weft_store_new_memory(options->ctx, sizeof(weft_store), &memory);
  if (status != WEFT_OK)
    return weft_store_told(report, status);
  weft_store *store = memory;
  store->options = *options;
  store->io = options->io ? options->io : &weft_store_posix_io;
  store->report = report;
  store->folder_fd = store->journal_fd = -1;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    store->files[i].fd = -1;
  pthread_mutex_init(&store->lock, NULL);
  randombytes_buf(&store->nonce, sizeof store->nonce);
  status = weft_store_new_memory(options->ctx, strlen(folder) + 1, &memory);
  if (status != WEFT_OK) {
    weft_store_close(store);
    return weft_store_told(report, status);
  }
  store->folder = memory;
  memcpy(store->folder, folder, strlen(folder) + 1);
  *out = store;
  return WEFT_OK;
}

size_t weft_store_withheld(const weft_store *store, size_t *first) {
  size_t count = 0;
  for (size_t i = 0; i < store->geometry.k + store->geometry.m; i++)
    if (store->shards[i].read_error && count++ == 0)
      *first = i;
  return count;
}

weft_status weft_store_begin(weft_store *store) {
  store->report->error[0] = 0; // the previous call's
  if (store->ended)
    return weft_store_fail(store->report, WEFT_E_STATE,
                           "%s: a call on it failed after its changes were committed: reopen it",
                           store->folder);
  // A new nonce per call: a failed call may have used the old one for other bytes.
  randombytes_buf(&store->nonce, sizeof store->nonce);
  return WEFT_OK;
}

void weft_store_close(weft_store *store) {
  if (!store)
    return;
  for (size_t i = 0; i < WEFT_STORE_MAX_SHARDS; i++)
    if (store->files[i].fd >= 0)
      store->io->close(store->files[i].fd);
  weft_store_journal_drop(store);
  if (store->folder_fd >= 0)
    store->io->close(store->folder_fd);
  weft_code_free(store->code);
  weft_ctx *ctx = store->options.ctx;
  weft_free(ctx, WEFT_MEM_HOST, store->folder);
  pthread_mutex_destroy(&store->lock);
  weft_free(ctx, WEFT_MEM_HOST, store);
}
