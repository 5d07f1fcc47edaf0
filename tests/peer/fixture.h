// SPDX-License-Identifier: Apache-2.0
// What the test suites of peer/ share: engines connected by a network that a test scripts.
#ifndef WEFT_TESTS_PEER_FIXTURE_H
#define WEFT_TESTS_PEER_FIXTURE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/peer_engine.h"
#include "weft/peer_rng.h"

// Fails with the condition and the seed that reproduces it.
#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ck_abort_msg("%s (WEFT_TEST_SEED=%#llx)", #condition, (unsigned long long)fixture_seed());   \
  } while (0)
#define EXPECT_STATUS(expression, wanted)                                                          \
  do {                                                                                             \
    const weft_status got_ = (expression);                                                         \
    if (got_ != (wanted))                                                                          \
      ck_abort_msg("%s = %s, not %s (WEFT_TEST_SEED=%#llx)", #expression, weft_status_name(got_),  \
                   weft_status_name(wanted), (unsigned long long)fixture_seed());                  \
  } while (0)
#define EXPECT_OK(expression) EXPECT_STATUS(expression, WEFT_OK)

uint64_t fixture_seed(void);

enum { FIXTURE_ENGINES = 4, FIXTURE_BLOCKS = 8, FIXTURE_BLOCK_BYTES = 64, FIXTURE_WINDOW = 4 };
enum { FIXTURE_SEGMENT_BYTES = FIXTURE_BLOCKS * FIXTURE_BLOCK_BYTES };

// What the network does to one datagram; chosen for each datagram in the order of sending.
typedef struct fixture_fate {
  int copies; // 0: lost
  int64_t delay_us;
  bool corrupt; // one random bit is flipped
} fixture_fate;

typedef struct fixture_datagram fixture_datagram;

// Engine 0 is the source.
typedef struct fixture {
  weft_ctx *ctx;
  weft_codec_rlnc rlnc;
  weft_codec codec;
  size_t engines;
  weft_engine_options options[FIXTURE_ENGINES];
  weft_engine *engine[FIXTURE_ENGINES];
  weft_rng_chacha chacha[FIXTURE_ENGINES], network;
  size_t neighbour[FIXTURE_ENGINES][FIXTURE_ENGINES]; // j's number at i
  const uint8_t *input;
  size_t input_bytes, fed;
  uint8_t *output[FIXTURE_ENGINES]; // room for the whole input
  size_t got[FIXTURE_ENGINES];
  int64_t now_us;
  fixture_datagram *pending; // in the order of sending
  uint64_t sent, digest;     // of all datagrams sent
  fixture_fate (*fate)(struct fixture *f);
  bool tolerate_nomem;
  size_t nomem;    // calls that returned WEFT_E_NOMEM, when that is tolerated
  bool may_differ; // the network damages packets: the output may exceed the input
} fixture;

// Makes a full mesh of `engines` engines. options, which may be NULL, is called with each engine's
// options before that engine is made. WEFT_E_NOMEM leaves nothing behind.
weft_status fixture_new(fixture *f, const weft_allocator *allocator, size_t engines,
                        const uint8_t *input, size_t bytes, uint64_t salt,
                        void (*adjust)(weft_engine_options *options, weft_engine_self *self,
                                       size_t index));
void fixture_free(fixture *f);

// Runs until every receiver has everything and no engine is due, or until the time. Returns false
// at the time, or if an engine failed other than by an allocation that may fail.
bool fixture_run(fixture *f, int64_t until_us);
bool fixture_all_same(const fixture *f); // all received data is the same as the input
// One turn of one engine: feeding, reading, sending.
weft_status fixture_turn(fixture *f, size_t index);

fixture_fate fixture_perfect(fixture *f); // 10 ms, no losses

#endif
