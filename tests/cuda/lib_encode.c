// SPDX-License-Identifier: Apache-2.0
// Encoding on a device: every row, every mode and memory, many segments in one call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/lib_cases.h"

START_TEST(encode_modes_and_memories) {
  if (gpu_skip_row("encode_modes_and_memories", _i))
    return;
  fixture_start(100 + (uint64_t)_i);
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  for (int round = 0; round < (lib_reduced() ? 2 : _i < 2 ? 60 : 15); round++)
    lib_encode_once(ctx);
  weft_ctx_free(ctx);
}
END_TEST

// Coded packets of more bytes than two pieces of the pipeline go to pinned memory, dense and
// strided, so that the third piece reuses the room of the first.
START_TEST(pinned_pieces) {
  if (gpu_skip("pinned_pieces"))
    return;
  fixture_start(150);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  const size_t n = 16, k = 4096, m = lib_reduced() ? 4400 : 9000;
  fixture_source source =
      fixture_source_new(ctx, n, k, n * k, &(weft_encoder_options){.seeded = true});
  for (size_t extra = 0; extra <= 32; extra += 32) {
    const size_t stride = k + extra;
    gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, m * stride);
    const weft_batch batch = {
        .count = m, .payload = out.at, .payload_stride = stride, .mem = WEFT_MEM_PINNED};
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, NULL));
    uint8_t *got = gpu_read(&out), *c = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
    for (size_t i = 0; i < m; i++)
      EXPECT_OK(weft_packet_coefficients(&(weft_packet){.id = source.id,
                                                        .mode = WEFT_PACKET_DENSE,
                                                        .seed = i + (extra ? m : 0),
                                                        .payload = got},
                                         c + i * n));
    gpu_reference(expect, c, source.data, m, n, k);
    for (size_t i = 0; i < m; i++)
      EXPECT(memcmp(got + i * stride, expect + i * k, k) == 0);
    free(got), free(c), free(expect);
    gpu_buffer_free(&out);
  }
  fixture_source_free(&source);
  weft_ctx_free(ctx);
}
END_TEST

// Packets of two segments, the second's right after the first's: with the same stride, a larger
// one, a smaller one, and shorter packets.
START_TEST(pieces_behind_each_other) {
  enum { BLOCKS = 16, BYTES = 4096, PACKETS = 50 };
  const size_t ways[][4] = {{BYTES, BYTES, BYTES, BYTES}, // bytes and stride of either
                            {BYTES, BYTES, BYTES, BYTES + 32},
                            {BYTES, BYTES + 32, BYTES, BYTES},
                            {BYTES, BYTES, BYTES / 2, BYTES}};
  if (gpu_skip("pieces_behind_each_other"))
    return;
  fixture_start(155);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  uint8_t *c = fixture_malloc(2 * PACKETS * BLOCKS), *expect = fixture_malloc(PACKETS * BYTES);
  for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
    fixture_source sources[2];
    weft_encoder *encoders[2];
    weft_batch batches[2];
    gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, PACKETS * (ways[way][1] + ways[way][3]));
    for (size_t i = 0; i < 2; i++) {
      const size_t k = ways[way][2 * i];
      sources[i] = fixture_source_new(ctx, BLOCKS, k, BLOCKS * k, NULL);
      encoders[i] = sources[i].encoder;
      batches[i] = (weft_batch){.count = PACKETS,
                                .coefficients = c + i * PACKETS * BLOCKS,
                                .coefficients_stride = BLOCKS,
                                .payload = out.at + i * PACKETS * ways[way][1],
                                .payload_stride = ways[way][2 * i + 1],
                                .mem = WEFT_MEM_PINNED};
    }
    EXPECT_OK(weft_encoder_batches(encoders, batches, 2, NULL));
    uint8_t *got = gpu_read(&out);
    for (size_t i = 0; i < 2; i++) {
      const size_t k = ways[way][2 * i];
      gpu_reference(expect, batches[i].coefficients, sources[i].data, PACKETS, BLOCKS, k);
      for (size_t p = 0; p < PACKETS; p++) {
        const uint8_t *row = got + (batches[i].payload - out.at) + p * batches[i].payload_stride;
        EXPECT(memcmp(row, expect + p * k, k) == 0);
        for (size_t at = k; at < batches[i].payload_stride; at++)
          EXPECT(row[at] == out.poison);
      }
      fixture_source_free(&sources[i]);
    }
    free(got);
    gpu_buffer_free(&out);
  }
  free(c), free(expect);
  weft_ctx_free(ctx);
}
END_TEST

// One encoder draws fresh coefficients and the other uses seeds, in either order: the device
// combines only what is alike.
START_TEST(unlike_encoders_together) {
  enum { BLOCKS = 24, BYTES = 512, PACKETS = 10 };
  if (gpu_skip("unlike_encoders_together"))
    return;
  fixture_start(156);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  uint8_t c[PACKETS * BLOCKS], *expect = fixture_malloc(PACKETS * BYTES);
  for (size_t seeded = 0; seeded < 2; seeded++) {
    weft_encoder *encoders[2];
    weft_packet packets[2][PACKETS];
    weft_batch batches[2];
    gpu_buffer out[2], vectors = gpu_output(ctx, WEFT_MEM_PINNED, sizeof c);
    fixture_source source = fixture_source_new(ctx, BLOCKS, BYTES, BLOCKS * BYTES, NULL);
    for (size_t i = 0; i < 2; i++) {
      const weft_encoder_options options = {.seeded = i == seeded, .first_seed = 77};
      EXPECT_OK(weft_encoder_new(source.segment, &options, &encoders[i]));
      out[i] = gpu_output(ctx, WEFT_MEM_PINNED, PACKETS * BYTES);
      batches[i] = (weft_batch){.count = PACKETS,
                                .packets = packets[i],
                                .coefficients = i == seeded ? NULL : vectors.at,
                                .coefficients_stride = BLOCKS,
                                .coefficients_mem = WEFT_MEM_PINNED,
                                .payload = out[i].at,
                                .payload_stride = BYTES,
                                .mem = WEFT_MEM_PINNED};
    }
    EXPECT_OK(weft_encoder_batches(encoders, batches, 2, NULL));
    for (size_t i = 0; i < 2; i++) {
      for (size_t p = 0; p < PACKETS; p++)
        EXPECT_OK(weft_packet_coefficients(&packets[i][p], c + p * BLOCKS));
      gpu_reference(expect, c, source.data, PACKETS, BLOCKS, BYTES);
      uint8_t *got = gpu_read(&out[i]);
      EXPECT(memcmp(got, expect, PACKETS * BYTES) == 0);
      free(got);
      gpu_buffer_free(&out[i]);
      weft_encoder_free(encoders[i]);
    }
    gpu_buffer_free(&vectors);
    fixture_source_free(&source);
  }
  free(expect);
  weft_ctx_free(ctx);
}
END_TEST

// Coefficients derived from a key are the same on every machine and in every memory.
START_TEST(keys_give_the_same_everywhere) {
  enum { BLOCKS = 24, BYTES = 512, PACKETS = 10 };
  if (gpu_skip("keys_give_the_same_everywhere"))
    return;
  fixture_start(157);
  uint8_t key[32], *expect = NULL;
  weft_ctx *device = fixture_ctx("cuda", 1), *host = fixture_ctx("scalar", 1);
  fixture_fill(key, sizeof key);
  for (int i = 0; i < 4; i++) { // on the host first
    weft_ctx *ctx = i == 0 ? host : device;
    const weft_mem mem = i == 0 ? WEFT_MEM_HOST : (weft_mem)(i - 1);
    weft_encoder_options options = {.density_q16 = _i ? 20000 : 0};
    fixture_source source = fixture_source_new(ctx, BLOCKS, BYTES, BLOCKS * BYTES, &options);
    gpu_buffer out = gpu_output(device, mem, PACKETS * BYTES);
    gpu_buffer vectors = gpu_output(device, mem, PACKETS * BLOCKS);
    const weft_batch batch = {.count = PACKETS,
                              .coefficients = vectors.at,
                              .coefficients_stride = BLOCKS,
                              .coefficients_mem = mem,
                              .payload = out.at,
                              .payload_stride = BYTES,
                              .mem = mem};
    EXPECT_OK(weft_encoder_fix_random(source.encoder, key));
    EXPECT_OK(weft_encoder_batch(source.encoder, &batch, NULL));
    uint8_t *got = gpu_read(&vectors);
    EXPECT(!expect || memcmp(got, expect, PACKETS * BLOCKS) == 0);
    free(expect);
    expect = got;
    gpu_buffer_free(&out);
    gpu_buffer_free(&vectors);
    fixture_source_free(&source);
  }
  free(expect);
  weft_ctx_free(host);
  weft_ctx_free(device);
}
END_TEST

// Combinations are right for coefficients and payloads in any kinds of memory.
START_TEST(combine_memories) {
  if (gpu_skip("combine_memories"))
    return;
  fixture_start(160);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  for (int round = 0; round < (lib_reduced() ? 9 : 27); round++) {
    const size_t n = 1 + fixture_below(200), k = 1 + fixture_below(2000), m = 1 + fixture_below(90);
    fixture_source source = fixture_source_new(ctx, n, k, n * k, NULL);
    uint8_t *c = fixture_malloc(m * n), *expect = fixture_malloc(m * k);
    fixture_fill(c, m * n);
    gpu_buffer a = gpu_input(ctx, (weft_mem)(round % 3), c, m * n);
    gpu_buffer y = gpu_output(ctx, (weft_mem)(round / 3 % 3), m * k);
    const weft_batch batch = {
        .count = m, .payload = y.at, .payload_stride = k, .mem = y.mem, .coefficients_mem = a.mem};
    weft_queue *queue;
    EXPECT_OK(weft_queue_new(ctx, &queue));
    EXPECT_OK(weft_encoder_combine(source.encoder, m, a.at, n, &batch, queue));
    EXPECT_OK(weft_queue_wait(queue));
    gpu_reference(expect, c, source.data, m, n, k);
    uint8_t *got = gpu_read(&y);
    EXPECT(memcmp(got, expect, m * k) == 0);
    free(got), free(c), free(expect);
    weft_queue_free(queue);
    gpu_buffer_free(&a);
    gpu_buffer_free(&y);
    fixture_source_free(&source);
  }
  weft_ctx_free(ctx);
}
END_TEST

// Rows of coefficients in pinned memory are further apart than the runtime can copy in one call.
START_TEST(coefficients_far_apart) {
  if (gpu_skip_row("coefficients_far_apart", _i))
    return;
  fixture_start(170);
  enum { BLOCKS = 40, BYTES = 300, ROWS = 2 };
  const size_t apart = ((size_t)2 << 30) + 64;
  weft_ctx *ctx = fixture_ctx(gpu_row_name(_i), 1);
  void *memory;
  if (weft_alloc(ctx, WEFT_MEM_PINNED, apart + BLOCKS, &memory) != WEFT_OK) {
    printf("SKIPPED coefficients_far_apart: there are no 2 GiB of pinned memory\n");
    weft_ctx_free(ctx);
    return;
  }
  uint8_t c[ROWS * BLOCKS], expect[ROWS * BYTES];
  fixture_fill(c, sizeof c);
  for (size_t i = 0; i < ROWS; i++)
    memcpy((uint8_t *)memory + i * apart, c + i * BLOCKS, BLOCKS);
  fixture_source source = fixture_source_new(ctx, BLOCKS, BYTES, BLOCKS * BYTES, NULL);
  gpu_buffer y = gpu_output(ctx, WEFT_MEM_DEVICE, sizeof expect);
  const weft_batch batch = {.count = ROWS,
                            .payload = y.at,
                            .payload_stride = BYTES,
                            .mem = y.mem,
                            .coefficients_mem = WEFT_MEM_PINNED};
  EXPECT_OK(weft_encoder_combine(source.encoder, ROWS, memory, apart, &batch, NULL));
  gpu_reference(expect, c, source.data, ROWS, BLOCKS, BYTES);
  uint8_t *got = gpu_read(&y);
  EXPECT(memcmp(got, expect, sizeof expect) == 0);
  free(got);
  gpu_buffer_free(&y);
  fixture_source_free(&source);
  weft_free(ctx, WEFT_MEM_PINNED, memory);
  weft_ctx_free(ctx);
}
END_TEST

// Segments made in one call, for one batch or more, are coded by one call, each in one batch or
// two, to rows that are adjacent or not: the bytes are those of the specification.
static void code_together(weft_ctx *ctx, weft_queue *queue, bool contiguous) {
  const size_t n = 1 + fixture_below(140), k = 1 + fixture_below(5000);
  const size_t count = 1 + fixture_below(40), m = 1 + fixture_below(150), bytes = n * k;
  const size_t stride = contiguous ? k : k + 16;
  const weft_mem mem = lib_any_memory();
  uint8_t *data = fixture_malloc(count * bytes), *c = fixture_malloc(m * n);
  uint8_t *expect = fixture_malloc(m * k);
  fixture_fill(data, count * bytes);
  gpu_buffer source = gpu_input(ctx, mem, data, count * bytes);
  gpu_buffer out = gpu_output(ctx, WEFT_MEM_PINNED, count * m * stride);
  weft_segment_options *options = fixture_malloc(count * sizeof *options);
  weft_segment **segments = fixture_malloc(count * sizeof *segments);
  weft_encoder **encoders = fixture_malloc(2 * count * sizeof *encoders);
  weft_batch *batches = fixture_malloc(2 * count * sizeof *batches);
  weft_packet *packets = fixture_malloc(m * sizeof *packets); // the same for all but the segment
  const weft_encoder_options how = {.seeded = true, .systematic = fixture_below(2)};
  const bool described = how.systematic || fixture_below(2);
  const bool once = fixture_below(2), backwards = fixture_below(3) == 0;
  for (size_t i = 0; i < count; i++) {
    options[i] = (weft_segment_options){.id = fixture_id(n, k), .bytes = bytes, .mem = mem};
    options[i].data = source.at + (backwards ? count - 1 - i : i) * bytes;
    options[i].id.segment = i;
    options[i].once = once;
  }
  EXPECT_OK(weft_segments_new(ctx, options, count, queue, segments));
  for (size_t i = 0; i < count; i++) {
    EXPECT_OK(weft_encoder_new(segments[i], &how, &encoders[2 * i]));
    encoders[2 * i + 1] = encoders[2 * i];
    const size_t first = fixture_below(2) ? m : fixture_below(m + 1);
    for (size_t b = 0; b < 2; b++)
      batches[2 * i + b] = (weft_batch){.count = b ? m - first : first,
                                        .packets = described ? packets + b * first : NULL,
                                        .payload = out.at + (i * m + b * first) * stride,
                                        .payload_stride = stride,
                                        .mem = WEFT_MEM_PINNED};
  }
  EXPECT_OK(weft_encoder_batches(encoders, batches, 2 * count, queue));
  EXPECT_OK(weft_queue_wait(queue));
  uint8_t *got = gpu_read(&out);
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < m; j++) {
      const bool block = how.systematic && j < n;
      const weft_packet packet = {.id = options[i].id,
                                  .mode = block ? WEFT_PACKET_SYSTEMATIC : WEFT_PACKET_DENSE,
                                  .index = block ? (uint32_t)j : 0,
                                  .seed = block ? 0 : j - (how.systematic ? n : 0),
                                  .payload = out.at};
      EXPECT(!described || (packets[j].mode == packet.mode && packets[j].index == packet.index &&
                            packets[j].seed == packet.seed));
      EXPECT_OK(weft_packet_coefficients(&packet, c + j * n));
    }
    gpu_reference(expect, c, data + (backwards ? count - 1 - i : i) * bytes, m, n, k);
    for (size_t j = 0; j < m; j++)
      EXPECT(memcmp(got + (i * m + j) * stride, expect + j * k, k) == 0);
    weft_encoder_free(encoders[2 * i]);
    weft_segment_free(segments[i]);
  }
  gpu_buffer_free(&source);
  gpu_buffer_free(&out);
  free(got), free(data), free(c), free(expect);
  free(options), free(segments), free(encoders), free(batches), free(packets);
}

START_TEST(segments_made_together) {
  if (gpu_skip("segments_made_together"))
    return;
  fixture_start(180);
  weft_ctx *ctx = fixture_ctx("cuda", 1);
  weft_queue *queue;
  EXPECT_OK(weft_queue_new(ctx, &queue));
  for (int i = 0; i < (lib_reduced() ? 2 : 24); i++)
    code_together(ctx, queue, i % 2 == 0);
  weft_queue_free(queue);
  weft_ctx_free(ctx);
}
END_TEST

void lib_add_encode_tests(TCase *cases) {
  tcase_add_loop_test(cases, encode_modes_and_memories, 0, gpu_row_count());
  tcase_add_test(cases, pinned_pieces);
  tcase_add_test(cases, pieces_behind_each_other);
  tcase_add_test(cases, unlike_encoders_together);
  tcase_add_loop_test(cases, keys_give_the_same_everywhere, 0, 2);
  tcase_add_test(cases, segments_made_together);
  tcase_add_test(cases, combine_memories);
  tcase_add_loop_test(cases, coefficients_far_apart, 0, gpu_row_count());
}
