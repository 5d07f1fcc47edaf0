// SPDX-License-Identifier: Apache-2.0
// The session layer under scripted time and datagrams: loss of every handshake message, tampering
// with every byte, replays, reordering, expiry, both sides at once, floods, failed allocations.
#include <stdlib.h>
#include <string.h>

#include "tests/peer/fixture.h"
#include "tests/support/test_allocator.h"
#include "tests/support/test_main.h"
#include "tests/support/test_rng.h"
#include "weft/peer_session.h"

enum { NODES = 3, QUEUE = 512, SECOND = 1000000 };
enum { INIT = 0x71, RETRY = 0x72, ACCEPT = 0x73, CONFIRM = 0x74, DATA = 0x75, CLOSE = 0x76 };

typedef struct parcel {
  size_t from, to, bytes;
  int64_t due_us;
  uint8_t data[WEFT_SESSION_DATAGRAM_BYTES];
} parcel;

typedef struct net {
  weft_ctx *ctx;
  weft_sessions *node[NODES];
  weft_identity identity[NODES];
  weft_rng_chacha chacha[NODES], chance;
  weft_session_event opened[NODES], lost[NODES]; // the last ones
  size_t opens[NODES], losses[NODES], received[NODES];
  uint8_t last[NODES][WEFT_SESSION_PLAIN_BYTES];
  size_t last_bytes[NODES];
  parcel *queue; // (QUEUE)
  size_t queued;
  int64_t now_us;
  // The script: loses the n-th datagram of a type (from 1), delays at random.
  uint8_t lose_type;
  unsigned lose_nth, seen;
  int64_t jitter_us;
  // What was sent, for tampering and replays.
  parcel sent[256];
  size_t sent_count;
} net;

static weft_address address_of(size_t node) {
  weft_address a = {.port = (uint16_t)(1000 + node)};
  a.ip[10] = a.ip[11] = 0xff;
  a.ip[15] = (uint8_t)node;
  return a;
}

static weft_sessions_options options_of(net *n, size_t i, const weft_rng *rng) {
  static const uint8_t blob[] = "about me";
  uint8_t seed[32] = {(uint8_t)(i + 1)};
  weft_identity_from_seed(seed, &n->identity[i]);
  return (weft_sessions_options){.identity = n->identity[i],
                                 .blob = blob,
                                 .blob_bytes = sizeof blob,
                                 .links_max = 4,
                                 .rng = rng};
}

static weft_status net_new(net *n, const weft_allocator *allocator,
                           void (*adjust)(weft_sessions_options *options, size_t node)) {
  memset(n, 0, sizeof *n);
  n->now_us = 7 * SECOND;
  const weft_ctx_options ctx = {.allocator = allocator};
  WEFT_TRY(weft_ctx_new(&n->ctx, &ctx));
  n->queue = calloc(QUEUE, sizeof *n->queue);
  weft_rng_chacha_seed(&n->chance, fixture_seed(), 99);
  for (size_t i = 0; i < NODES; i++) {
    weft_rng_chacha_seed(&n->chacha[i], fixture_seed(), i);
    const weft_rng rng = weft_rng_chacha_table(&n->chacha[i]);
    weft_sessions_options options = options_of(n, i, &rng);
    if (adjust)
      adjust(&options, i);
    WEFT_TRY(weft_sessions_new(n->ctx, &options, n->now_us, &n->node[i]));
  }
  return WEFT_OK;
}

static void net_free(net *n) {
  for (size_t i = 0; i < NODES; i++)
    weft_sessions_free(n->node[i]);
  free(n->queue);
  weft_ctx_free(n->ctx);
}

static void post(net *n, size_t from, const weft_address *to, const uint8_t *data, size_t bytes) {
  EXPECT(n->queued < QUEUE && bytes <= WEFT_SESSION_DATAGRAM_BYTES);
  parcel p = {.from = from, .to = to->ip[15], .bytes = bytes, .due_us = n->now_us + 1000};
  memcpy(p.data, data, bytes);
  if (n->sent_count < sizeof n->sent / sizeof *n->sent)
    n->sent[n->sent_count++] = p;
  if (n->lose_type == data[0] && ++n->seen == n->lose_nth)
    return;
  if (n->jitter_us) {
    const weft_rng rng = weft_rng_chacha_table(&n->chance);
    p.due_us += (int64_t)weft_rng_below(&rng, (uint64_t)n->jitter_us);
  }
  n->queue[n->queued++] = p;
}

static weft_status deliver(net *n, const parcel *p) {
  const weft_address from = address_of(p->from);
  weft_session_plain plain;
  uint8_t *copy = malloc(p->bytes + 1); // exactly as long, so that an over-read is seen
  memcpy(copy, p->data, p->bytes);
  const weft_status status =
      weft_sessions_input(n->node[p->to], &from, copy, p->bytes, n->now_us, &plain);
  if (status == WEFT_OK) {
    n->received[p->to]++;
    memcpy(n->last[p->to], plain.data, plain.bytes);
    n->last_bytes[p->to] = plain.bytes;
  }
  free(copy);
  return status;
}

static void turn(net *n) {
  for (size_t i = 0; i < NODES; i++) {
    weft_session_event event;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    weft_sessions_tick(n->node[i], n->now_us);
    while (weft_sessions_event(n->node[i], &event)) {
      const bool opened = event.kind == WEFT_SESSION_OPENED;
      (opened ? n->opened : n->lost)[i] = event;
      (opened ? n->opens : n->losses)[i]++;
    }
    while (weft_sessions_output(n->node[i], &to, &data, &bytes) == WEFT_OK)
      post(n, i, &to, data, bytes);
  }
}

static void run(net *n, int64_t for_us) {
  const int64_t until = n->now_us + for_us;
  for (;;) {
    turn(n);
    int64_t next = until;
    for (size_t i = 0; i < NODES; i++) {
      const int64_t d = weft_sessions_deadline(n->node[i]);
      next = d < next ? d : next;
    }
    for (size_t i = 0; i < n->queued; i++)
      next = n->queue[i].due_us < next ? n->queue[i].due_us : next;
    if (next >= until)
      break;
    n->now_us = next > n->now_us ? next : n->now_us;
    for (size_t i = 0; i < n->queued;) {
      if (n->queue[i].due_us > n->now_us) {
        i++;
        continue;
      }
      const parcel p = n->queue[i];
      n->queue[i] = n->queue[--n->queued];
      (void)deliver(n, &p);
    }
  }
  n->now_us = until;
  turn(n);
}

static size_t open_link(net *n, size_t from, size_t to, const uint8_t *expected) {
  const weft_address address = address_of(to);
  size_t link;
  EXPECT_OK(weft_sessions_open(n->node[from], &address, expected, n->now_us, &link));
  return link;
}

static void send(net *n, size_t from, size_t link, const void *text, size_t bytes) {
  uint8_t datagram[WEFT_SESSION_DATAGRAM_BYTES];
  weft_session_peer peer;
  weft_seal seal;
  EXPECT_OK(weft_sessions_peer(n->node[from], link, &peer));
  EXPECT_OK(weft_sessions_reserve(n->node[from], link, 1, n->now_us, &seal));
  const size_t whole = weft_seal_datagram(&seal, 0, text, bytes, datagram);
  post(n, from, &peer.address, datagram, whole);
}

static void expect_open(net *n, size_t a, size_t b) {
  static const char text[] = "0123456789";
  EXPECT(n->opens[a] - n->losses[a] == 1 && n->opens[b] - n->losses[b] == 1);
  weft_session_peer peer;
  EXPECT_OK(weft_sessions_peer(n->node[a], n->opened[a].link, &peer));
  EXPECT(memcmp(peer.public_key, n->identity[b].public_key, 32) == 0);
  EXPECT(peer.blob_bytes == 9 && memcmp(peer.blob, "about me", 9) == 0);
  EXPECT_OK(weft_sessions_peer(n->node[b], n->opened[b].link, &peer));
  EXPECT(memcmp(peer.public_key, n->identity[a].public_key, 32) == 0);
  const size_t at_a = n->received[a], at_b = n->received[b];
  n->lose_type = 0;
  send(n, a, n->opened[a].link, text, sizeof text);
  send(n, b, n->opened[b].link, text, sizeof text);
  run(n, SECOND);
  EXPECT(n->received[a] == at_a + 1 && n->received[b] == at_b + 1);
  EXPECT(n->last_bytes[a] == sizeof text && memcmp(n->last[a], text, sizeof text) == 0);
}

static void only_chacha(weft_sessions_options *options, size_t node) {
  if (node == 1)
    options->cipher = WEFT_CIPHER_CHACHA;
}

START_TEST(opens_with_either_cipher) {
  for (int chacha = 0; chacha < 2; chacha++) {
    net n;
    weft_session_peer peer;
    EXPECT_OK(net_new(&n, NULL, chacha ? only_chacha : NULL));
    open_link(&n, 0, 1, n.identity[1].public_key);
    run(&n, SECOND);
    expect_open(&n, 0, 1);
    EXPECT_OK(weft_sessions_peer(n.node[0], n.opened[0].link, &peer));
    EXPECT(!chacha || !peer.aes);
    weft_sessions_close(n.node[0], n.opened[0].link, n.now_us);
    run(&n, SECOND);
    EXPECT(n.losses[1] == 1 && n.lost[1].reason == WEFT_SESSION_CLOSED && n.losses[0] == 0);
    net_free(&n);
  }
}
END_TEST

// Every message of the handshake, lost once and lost twice.
START_TEST(survives_loss_of_each_message) {
  static const uint8_t types[] = {INIT, RETRY, ACCEPT, CONFIRM, DATA};
  for (size_t t = 0; t < sizeof types; t++)
    for (unsigned nth = 1; nth <= 3; nth++) {
      net n;
      EXPECT_OK(net_new(&n, NULL, NULL));
      n.lose_type = types[t];
      n.lose_nth = nth;
      open_link(&n, 0, 1, NULL);
      run(&n, 4 * SECOND);
      expect_open(&n, 0, 1);
      net_free(&n);
    }
}
END_TEST

START_TEST(both_sides_at_once_keep_one) {
  for (int64_t jitter = 0; jitter < 20; jitter++) {
    net n;
    EXPECT_OK(net_new(&n, NULL, NULL));
    n.jitter_us = jitter * 300;
    open_link(&n, 0, 1, NULL);
    run(&n, jitter * 200);
    open_link(&n, 1, 0, NULL);
    run(&n, 8 * SECOND);
    // Whatever was lost was replaced, and both ends speak through the same one.
    EXPECT(n.opens[0] >= 1 && n.opens[1] >= 1);
    EXPECT(n.losses[0] == 0 || n.lost[0].reason == WEFT_SESSION_REPLACED ||
           n.lost[0].reason == WEFT_SESSION_CLOSED);
    size_t open = 0;
    for (size_t i = 0; i < 2; i++)
      for (size_t link = 0; link < 4; link++) {
        weft_session_peer peer;
        if (weft_sessions_peer(n.node[i], link, &peer) != WEFT_OK)
          continue;
        open++;
        n.opened[i].link = link;
      }
    EXPECT(open == 2);
    n.opens[0] = n.opens[1] = 1;
    n.losses[0] = n.losses[1] = 0;
    expect_open(&n, 0, 1);
    net_free(&n);
  }
}
END_TEST

// Each byte of each message, changed in each of three ways, on its first passage: the damaged
// datagram is refused, and the handshake ends well all the same when the good one follows.
START_TEST(tampering_with_any_byte_is_refused) {
  static const uint8_t flips[] = {0x01, 0x80, 0xff};
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  send(&n, 0, n.opened[0].link, "abc", 3);
  run(&n, SECOND);
  const size_t messages = n.sent_count;
  net_free(&n);
  EXPECT(messages >= 6);
  for (size_t m = 0; m < messages; m++)
    for (size_t at = 0;; at++) {
      bool past = false;
      for (size_t f = 0; f < sizeof flips; f++) {
        EXPECT_OK(net_new(&n, NULL, NULL)); // the same seeds: the same datagrams
        open_link(&n, 0, 1, NULL);
        // Up to the message.
        for (int steps = 0; n.sent_count <= m && steps < 100; steps++) {
          run(&n, 500);
          if (n.opens[0] && n.opens[1] && n.received[1] == 0 && n.sent_count <= m)
            send(&n, 0, n.opened[0].link, "abc", 3);
        }
        EXPECT(n.sent_count > m);
        parcel p = n.sent[m];
        past = at >= p.bytes;
        if (!past) {
          n.queued = 0; // nothing but the damaged one
          p.data[at] ^= flips[f];
          const size_t opens = n.opens[p.to], received = n.received[p.to];
          const weft_status status = deliver(&n, &p);
          // These are answered, with what the initiator refuses.
          const bool answered = p.data[0] == INIT && at >= 5 && at < 60;
          const bool cookie = p.data[0] == RETRY && at >= 12; // nobody can tell
          EXPECT(answered || cookie || status >= WEFT_E_ARGUMENT);
          turn(&n);
          EXPECT(n.opens[p.to] == opens && n.received[p.to] == received);
          if (f == 0 && at % 7 == 0) {
            run(&n, 4 * SECOND);
            EXPECT(n.opens[0] == 1 && n.opens[1] == 1);
          }
        }
        net_free(&n);
      }
      if (past)
        break;
    }
}
END_TEST

START_TEST(replays_and_reordering) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  expect_open(&n, 0, 1);
  // A random order within the window: each is taken once.
  enum { COUNT = 2000 };
  parcel *sent = calloc(COUNT, sizeof *sent);
  for (size_t i = 0; i < COUNT; i++) {
    n.sent_count = n.queued = 0;
    send(&n, 0, n.opened[0].link, &i, sizeof i);
    sent[i] = n.sent[0];
  }
  n.queued = 0;
  test_rng rng = test_rng_new(test_seed(), 3);
  for (size_t i = COUNT; i-- > 1;) {
    const size_t j = test_rng_below(&rng, i + 1);
    const parcel t = sent[i];
    sent[i] = sent[j];
    sent[j] = t;
  }
  const size_t before = n.received[1];
  for (size_t i = 0; i < COUNT; i++) {
    EXPECT_OK(deliver(&n, &sent[i]));
    EXPECT_STATUS(deliver(&n, &sent[i]), WEFT_DEPENDENT);
  }
  for (size_t i = 0; i < COUNT; i++)
    EXPECT_STATUS(deliver(&n, &sent[i]), WEFT_DEPENDENT);
  EXPECT(n.received[1] == before + COUNT);
  // Older than the window: refused although never seen.
  n.sent_count = 0;
  send(&n, 0, n.opened[0].link, "old", 3);
  const parcel old = n.sent[0];
  for (size_t i = 0; i < 2100; i++) {
    n.sent_count = n.queued = 0;
    send(&n, 0, n.opened[0].link, "new", 3);
  }
  EXPECT_OK(deliver(&n, &n.sent[0]));
  EXPECT_STATUS(deliver(&n, &old), WEFT_DEPENDENT);
  n.queued = 0;
  free(sent);
  net_free(&n);
}
END_TEST

START_TEST(handshake_replays_change_nothing) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  const size_t count = n.sent_count;
  for (size_t i = 0; i < count; i++)
    for (int twice = 0; twice < 2; twice++)
      (void)deliver(&n, &n.sent[i]);
  run(&n, 10 * SECOND);
  EXPECT(n.losses[0] == 0 && n.losses[1] == 0);
  expect_open(&n, 0, 1);
  // A captured INIT whose cookie is too old gets a new cookie and no signature.
  weft_session_statistics before, after;
  n.now_us += 60 * SECOND;
  weft_sessions_get_statistics(n.node[1], &before);
  for (size_t i = 0; i < count; i++)
    if (n.sent[i].data[0] == INIT)
      (void)deliver(&n, &n.sent[i]);
  weft_sessions_get_statistics(n.node[1], &after);
  EXPECT(after.handshakes == before.handshakes && after.retries > before.retries);
  net_free(&n);
}
END_TEST

START_TEST(other_identity_is_refused) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, n.identity[2].public_key);
  run(&n, 7 * SECOND);
  EXPECT(n.opens[0] == 0 && n.losses[0] == 1);
  EXPECT(n.lost[0].reason == WEFT_SESSION_OTHER_IDENTITY && n.opens[1] == 0);
  net_free(&n);
}
END_TEST

static bool nobody(void *user, const uint8_t public_key[32], const weft_address *address) {
  (void)user, (void)public_key, (void)address;
  return false;
}
static void admit_nobody(weft_sessions_options *options, size_t node) {
  if (node == 1)
    options->admit = nobody;
}

START_TEST(refused_and_absent_are_told) {
  net n;
  EXPECT_OK(net_new(&n, NULL, admit_nobody));
  open_link(&n, 0, 1, NULL);
  run(&n, 7 * SECOND);
  EXPECT(n.opens[1] == 0 && n.opens[0] == 0 && n.lost[0].reason == WEFT_SESSION_NO_ANSWER);
  net_free(&n);
}
END_TEST

static void rekey_often(weft_sessions_options *options, size_t node) {
  (void)node;
  options->rekey_us = 3 * SECOND;
}

START_TEST(keys_are_replaced_and_expire) {
  net n;
  weft_session_statistics s;
  EXPECT_OK(net_new(&n, NULL, rekey_often));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  for (int i = 0; i < 300; i++) { // nothing is lost while keys change
    const size_t a = n.received[0], b = n.received[1];
    send(&n, 0, n.opened[0].link, "abc", 3);
    send(&n, 1, n.opened[1].link, "abc", 3);
    n.sent_count = 0;
    run(&n, 100000);
    EXPECT(n.received[0] == a + 1 && n.received[1] == b + 1);
  }
  weft_sessions_get_statistics(n.node[0], &s);
  EXPECT(s.rekeyed >= 8 && s.rekeyed <= 11 && n.opens[0] == 1 && n.losses[0] == 0);
  // New keys cannot be had any more: the old ones are given up.
  for (int i = 0; i < 100 && n.losses[0] == 0; i++) {
    n.sent_count = 0;
    n.lose_type = INIT;
    n.seen = 0;
    n.lose_nth = 1;
    send(&n, 0, n.opened[0].link, "abc", 3);
    send(&n, 1, n.opened[1].link, "abc", 3);
    run(&n, 100000);
  }
  EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_EXPIRED);
  net_free(&n);
}
END_TEST

START_TEST(silence_loses_a_link) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  run(&n, 100 * SECOND); // keep-alives hold it
  EXPECT(n.opens[0] == 1 && n.losses[0] == 0 && n.losses[1] == 0);
  for (int i = 0; i < 40; i++) {
    n.now_us += SECOND;
    weft_sessions_tick(n.node[0], n.now_us); // its datagrams go nowhere
  }
  turn(&n);
  EXPECT(n.losses[0] == 1 && n.lost[0].reason == WEFT_SESSION_SILENT);
  net_free(&n);
}
END_TEST

START_TEST(a_restarted_neighbour_replaces_itself) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  weft_sessions_free(n.node[0]);
  const weft_rng rng = weft_rng_chacha_table(&n.chacha[0]);
  const weft_sessions_options options = options_of(&n, 0, &rng);
  EXPECT_OK(weft_sessions_new(n.ctx, &options, n.now_us, &n.node[0]));
  n.opens[0] = 0;
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  EXPECT(n.opens[1] == 2 && n.losses[1] == 1 && n.lost[1].reason == WEFT_SESSION_REPLACED);
  expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

// Answers are never three times what was asked, and a flood without cookies costs no signature.
START_TEST(floods_are_limited) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  turn(&n);
  const parcel init = n.sent[0];
  n.queued = 0;
  size_t in = 0, out = 0;
  for (int i = 0; i < 5000; i++) {
    const weft_address from = {.ip = {[10] = 0xff, [11] = 0xff, [12] = (uint8_t)(i >> 8), [15] = 2},
                               .port = (uint16_t)i};
    uint8_t copy[WEFT_SESSION_DATAGRAM_BYTES];
    weft_session_plain plain;
    weft_address to;
    const uint8_t *data;
    size_t bytes;
    memcpy(copy, init.data, init.bytes);
    (void)weft_sessions_input(n.node[1], &from, copy, init.bytes, n.now_us, &plain);
    in += init.bytes;
    while (weft_sessions_output(n.node[1], &to, &data, &bytes) == WEFT_OK) {
      EXPECT(bytes <= 3 * init.bytes);
      out += bytes;
    }
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.handshakes == 0 && s.retries <= 1001 && s.limited >= 3999 && out <= 3 * in);
  net_free(&n);
}
END_TEST

// With a cookie of its own an address gets a bounded number of signatures.
START_TEST(handshakes_are_limited) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (int i = 0; i < 200; i++) {
    const size_t link = open_link(&n, 0, 1, NULL);
    turn(&n); // INIT
    n.lose_type = CONFIRM;
    n.seen = 0;
    n.lose_nth = 1;
    run(&n, 3500);
    weft_sessions_close(n.node[0], link, n.now_us);
    n.queued = n.sent_count = 0;
    turn(&n);
  }
  weft_session_statistics s;
  weft_sessions_get_statistics(n.node[1], &s);
  EXPECT(s.handshakes >= 50 && s.handshakes <= 101 + 100 * 7 / 10);
  n.lose_type = 0;
  n.opens[1] = n.losses[1] = n.opens[0] = n.losses[0] = 0;
  run(&n, 6 * SECOND);
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  EXPECT(n.opens[0] == 1);
  net_free(&n);
}
END_TEST

START_TEST(noise_is_refused) {
  net n;
  EXPECT_OK(net_new(&n, NULL, NULL));
  open_link(&n, 0, 1, NULL);
  run(&n, SECOND);
  test_rng rng = test_rng_new(test_seed(), 8);
  for (int i = 0; i < 100000; i++) {
    parcel p = {.from = test_rng_below(&rng, 3), .to = 1};
    p.bytes = test_rng_below(&rng, 400);
    test_rng_fill(&rng, p.data, p.bytes);
    if (p.bytes > 4 && i % 2)
      p.data[0] = (uint8_t)(INIT + test_rng_below(&rng, 6));
    const weft_status status = deliver(&n, &p);
    EXPECT(status == WEFT_E_MALFORMED || status == WEFT_E_FOREIGN);
  }
  expect_open(&n, 0, 1);
  net_free(&n);
}
END_TEST

START_TEST(links_run_out) {
  net n;
  const weft_address address = address_of(1);
  size_t link;
  EXPECT_OK(net_new(&n, NULL, NULL));
  for (int i = 0; i < 4; i++)
    open_link(&n, 0, 2, NULL);
  EXPECT_STATUS(weft_sessions_open(n.node[0], &address, NULL, n.now_us, &link), WEFT_E_STATE);
  weft_seal seal;
  EXPECT_STATUS(weft_sessions_reserve(n.node[0], 0, 1, n.now_us, &seal), WEFT_E_STATE);
  run(&n, 20 * SECOND); // four sessions with one identity: one stays
  EXPECT(n.opens[0] - n.losses[0] + 3 >= 1);
  size_t open = 0;
  for (size_t i = 0; i < 4; i++) {
    weft_session_peer peer;
    open += weft_sessions_peer(n.node[0], i, &peer) == WEFT_OK;
  }
  EXPECT(open == 1);
  net_free(&n);
}
END_TEST

START_TEST(failed_allocations) {
  for (long fail = 1;; fail++) {
    test_allocator memory;
    net n;
    test_allocator_init(&memory, fail);
    const weft_status status = net_new(&n, &memory.allocator, NULL);
    EXPECT(status == WEFT_OK || status == WEFT_E_NOMEM);
    net_free(&n);
    EXPECT(test_allocator_live(&memory) == 0);
    if (!test_allocator_failed(&memory))
      break;
  }
}
END_TEST

START_TEST(wrong_arguments) {
  net n;
  weft_sessions *s;
  EXPECT_OK(net_new(&n, NULL, NULL));
  const weft_rng rng = weft_rng_chacha_table(&n.chacha[0]);
  weft_sessions_options o = options_of(&n, 0, &rng);
  o.links_max = 0;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = options_of(&n, 0, &rng);
  o.blob_bytes = WEFT_SESSION_BLOB_BYTES + 1;
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  o = options_of(&n, 0, NULL);
  EXPECT_STATUS(weft_sessions_new(n.ctx, &o, 0, &s), WEFT_E_ARGUMENT);
  net_free(&n);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("session");
  TCase *tc = tcase_create("session");
  tcase_add_test(tc, opens_with_either_cipher);
  tcase_add_test(tc, survives_loss_of_each_message);
  tcase_add_test(tc, both_sides_at_once_keep_one);
  tcase_add_test(tc, tampering_with_any_byte_is_refused);
  tcase_add_test(tc, replays_and_reordering);
  tcase_add_test(tc, handshake_replays_change_nothing);
  tcase_add_test(tc, other_identity_is_refused);
  tcase_add_test(tc, refused_and_absent_are_told);
  tcase_add_test(tc, keys_are_replaced_and_expire);
  tcase_add_test(tc, silence_loses_a_link);
  tcase_add_test(tc, a_restarted_neighbour_replaces_itself);
  tcase_add_test(tc, floods_are_limited);
  tcase_add_test(tc, handshakes_are_limited);
  tcase_add_test(tc, noise_is_refused);
  tcase_add_test(tc, links_run_out);
  tcase_add_test(tc, failed_allocations);
  tcase_add_test(tc, wrong_arguments);
  suite_add_tcase(suite, tc);
  return test_main(suite);
}
