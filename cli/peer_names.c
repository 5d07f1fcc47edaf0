// SPDX-License-Identifier: Apache-2.0
// `weft peer`: looks up names of sources and trackers again, since their addresses change while a
// node runs: at homes every day, in clouds with every machine.
#include <string.h>

#include "cli/peer_run.h"

enum { AGAIN_US = 10000000 };

typedef struct look_up {
  peer_run_state *run; // exists whenever its loop calls `take`
  size_t word;
  char *text;
  weft_address found[PEER_WORD_ADDRESSES];
  size_t count;
} look_up;

static gboolean take(gpointer user) {
  look_up *l = user;
  l->run->look_up_us[l->word] = g_get_monotonic_time() + AGAIN_US;
  peer_log(PEER_DEBUG, "looked-up", "host=%s addresses=%u", l->text, (unsigned)l->count);
  if (l->count > 0) { // else the old ones may still be right
    weft_node_set_host(l->run->node, l->word, l->found, l->count);
    peer_run_wake(l->run);
  }
  g_free(l->text);
  g_free(l);
  return G_SOURCE_REMOVE;
}

// Runs on a thread, since a resolver may take seconds. If the run is over first, the process ends
// without waiting for it.
static gpointer ask(gpointer user) {
  look_up *l = user;
  l->count = weft_address_parse_all(l->text, PEER_WORD_ADDRESSES, l->found);
  (void)g_timeout_add(0, take, l); // idle sources may never get a turn
  return NULL;
}

static bool is_name(const char *word) {
  g_autofree char *host = g_strndup(word, (gsize)(strrchr(word, ':') - word));
  return *host != '[' && !g_hostname_is_ip_address(host);
}

void peer_names_look_up(peer_run_state *r, size_t word) {
  g_auto(GStrv) words = g_strsplit(r->s->bootstrap_text, ",", -1);
  if (g_get_monotonic_time() < r->look_up_us[word] || !is_name(words[word]))
    return;
  look_up *l = g_new0(look_up, 1);
  *l = (look_up){.run = r, .word = word, .text = g_strdup(words[word])};
  GThread *thread = g_thread_try_new("look-up", ask, l, NULL);
  if (!thread) { // it is tried again later
    g_free(l->text);
    g_free(l);
    return;
  }
  r->look_up_us[word] = G_MAXINT64;
  g_thread_unref(thread);
}
