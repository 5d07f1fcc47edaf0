// SPDX-License-Identifier: Apache-2.0
// Drives all forms of a packet product. It processes a run of bytes of every packet of a group at a
// time; several groups at once where packets are short for bit blocks or machine code. Packets that
// are too short even for that are gathered from several groups into contiguous runs of bytes, and
// scattered afterwards.
#include "lib/storage/packet_run.h"

#include <string.h>

#include "kernels/smaller.h"

enum {
  LINE = 64,
  PROGRAM_MIN = 512,  // bytes of a packet at a time: with fewer, calls cost too much
  BLOCKS_MIN = 64,    // likewise; with fewer, vectors would be mostly empty
  AT_ONCE_MAX = 4096, // larger runs do not help
  GATHER_BYTES = 96,  // the fixed cost of a copy, in bytes
  BLOCKS_SCRATCH = 32 << 10,
  TOTAL = 96 * 1024, // of all packets at a time: slightly more than a first-level cache
  CACHED = 2 << 20,  // larger inputs are far: prefetched, as they are too many streams for hardware
  AHEAD_MAX = 4096,  // most bytes of a shard that machine code prefetches
  AHEAD_TOTAL = 256 << 10, // most for all shards together: part of a second-level cache
  PIECES_PER_THREAD = 2,
  UNITS_PER_THREAD = 4
};

typedef struct run {
  const weft_host_kernel *kernel;
  const weft_packet_product *product;
  size_t w, packet_bytes;
  const weft_packet_job *jobs;
  size_t count;
  size_t outputs_at;  // index of the first output among a workplace's packets
  size_t slots_at;    // index of the first slot among them
  size_t bytes;       // bytes of a packet at a time
  size_t groups;      // at once
  bool gathered;      // otherwise packets are used in place
  size_t units;       // work items of all jobs: runs of bytes times sets of groups
  size_t pieces;      // each takes consecutive units
  uint8_t *scratch;   // (pieces, piece_bytes)
  size_t piece_bytes; // bytes
} run;

// The working memory of one piece; all of it is in its part of the scratch.
typedef struct workplace {
  uint8_t **packet;       // inputs, outputs, slots: pointers to the current bytes
  const uint8_t **source; // likewise, for the sources of all of a program's steps
  size_t at;              // current offset in the shards, for packets in place
  uint8_t *scratch;       // the kernel's own
  uint8_t *bytes;         // when gathering, inputs and outputs; then slots
} workplace;

static size_t cut(size_t a, size_t pieces) { return a / pieces + (a % pieces != 0); }

static size_t lines(size_t bytes) { return cut(bytes, LINE) * LINE; }

bool weft_packets_are_far(size_t input_bytes) { return input_bytes > CACHED; }

static bool is_far(const weft_packet_product *p, size_t packet_bytes, const weft_packet_job *job) {
  return job->far || weft_packets_are_far(p->inputs * job->groups * packet_bytes);
}

static bool by_program(const weft_packet_product *p) { return !p->code && p->program; }

static bool by_blocks(const weft_packet_product *p) { return !p->code && !p->program; }

static size_t slots(const weft_packet_product *p) { return by_program(p) ? p->program->slots : 0; }

static size_t packets(const run *r) { return r->slots_at + slots(r->product); }

static size_t sources(const weft_packet_product *p) {
  return by_program(p) ? p->program->source_count : 0;
}

static size_t kernel_scratch(const weft_packet_product *p) {
  if (p->code)
    return lines(p->code->scratch_bytes);
  const size_t least = cut(p->inputs, 8) * WEFT_BIT_SCRATCH;
  return !by_blocks(p) ? 0 : least < BLOCKS_SCRATCH ? BLOCKS_SCRATCH : least;
}

// Returns the number of packets stored in the scratch: slots, preceded by inputs and outputs when
// gathering.
static size_t held(const run *r) {
  return slots(r->product) + (r->gathered ? r->product->inputs + r->product->outputs : 0);
}

static workplace workplace_of(const run *r, size_t piece) {
  uint8_t *at = r->scratch + piece * r->piece_bytes;
  workplace w;
  w.packet = (uint8_t **)(void *)at;
  at += lines(packets(r) * sizeof *w.packet);
  w.source = (const uint8_t **)(void *)at;
  at += lines(sources(r->product) * sizeof *w.source);
  w.scratch = at;
  at += kernel_scratch(r->product);
  w.bytes = at;
  return w;
}

static size_t workplace_bytes(const run *r) {
  return lines(packets(r) * sizeof(uint8_t *)) + lines(sources(r->product) * sizeof(uint8_t *)) +
         kernel_scratch(r->product) + held(r) * r->bytes + LINE;
}

// Prefetches the bytes that are `ahead` bytes further on in inputs [first, last).
static void fetch_ahead(const workplace *place, size_t first, size_t last, size_t ahead,
                        size_t bytes) {
  for (size_t i = first; i < last; i++)
    for (size_t b = 0; b < bytes; b += LINE)
      __builtin_prefetch(place->packet[i] + ahead + b, 0, 2);
}

// Runs the program on the bytes that the workplace's packets point to. `ahead`, unless 0, is the
// distance to the next run's inputs; they are prefetched between the steps.
static void run_steps(const run *r, const workplace *place, size_t bytes, size_t ahead) {
  const weft_xor_program *p = r->product->program;
  size_t fetched = 0;
  for (size_t s = 0; s < p->step_count; s++) {
    if (ahead) {
      const size_t until = (s + 1) * p->inputs / p->step_count;
      fetch_ahead(place, fetched, until, ahead, bytes);
      fetched = until;
    }
    const weft_xor_step *step = &p->steps[s];
    uint8_t *target = place->packet[step->target];
    if (step->count == 0)
      memset(target, 0, bytes);
    else
      r->kernel->xor_rows(target, place->source + step->first, step->count, 0, bytes, false);
  }
}

// The same with bit blocks, in `groups` groups; far and gap as in weft_bit_panel.
static void run_blocks(const run *r, const workplace *place, size_t bytes, size_t groups, bool far,
                       size_t gap) {
  const weft_bit_panel panel = {.m = r->product->outputs,
                                .k = r->product->inputs,
                                .groups = groups,
                                .group_bytes = r->w * r->packet_bytes,
                                .end = bytes,
                                .blocks = r->product->blocks,
                                .x = (const uint8_t *const *)place->packet,
                                .y = place->packet + r->outputs_at,
                                .far = far,
                                .gap = gap,
                                .scratch = place->scratch,
                                .scratch_bytes = kernel_scratch(r->product)};
  r->kernel->bits(&panel);
}

// Returns how far ahead machine code prefetches inputs: as many whole groups as it asks for, or as
// second-level caches can hold until they are used; if one group is too much, the next line of each
// packet.
static size_t fetched_ahead(const run *r) {
  const size_t group = r->w * r->packet_bytes, shards = r->product->inputs / r->w;
  const size_t groups = weft_smaller(AHEAD_MAX, AHEAD_TOTAL / shards) / group;
  const size_t asked = r->product->code->groups_ahead;
  return groups == 0 ? LINE : group * (asked ? weft_smaller(asked, groups) : groups);
}

// Runs machine code on `bytes` bytes at `begin` of every packet, or on `groups` groups, all in
// place.
static void run_code(const run *r, const workplace *place, const weft_packet_job *job, size_t begin,
                     size_t bytes, size_t groups, bool far) {
  const size_t all = groups == 1 ? bytes : groups * r->w * r->packet_bytes;
  r->product->code->run(job->in, job->out, begin, begin + all, place->scratch,
                        far ? fetched_ahead(r) : 0);
}

// Pads the inputs with copies of the last one's pointer, which kernels read again.
static void repeat_last(const run *r, const workplace *place) {
  for (size_t i = r->product->inputs; i < r->outputs_at; i++)
    place->packet[i] = place->packet[i - 1];
}

static void place_sources(const run *r, const workplace *place) {
  const weft_xor_program *p = r->product->program;
  for (size_t i = 0; i < sources(r->product); i++)
    place->source[i] = place->packet[p->sources[i]];
}

static void place_job(const run *r, workplace *place, const weft_packet_job *job) {
  const weft_packet_product *p = r->product;
  uint8_t **packet = place->packet;
  for (size_t j = 0; j < p->inputs / r->w; j++)
    for (size_t c = 0; c < r->w; c++) // only read, but the table also holds targets
      *packet++ = (uint8_t *)(uintptr_t)(job->in[j] + c * r->packet_bytes);
  repeat_last(r, place);
  packet = place->packet + r->outputs_at;
  for (size_t i = 0; i < p->outputs / r->w; i++)
    for (size_t l = 0; l < r->w; l++)
      *packet++ = job->out[i] + l * r->packet_bytes;
  place_sources(r, place);
  place->at = 0;
}

// Moves all pointers to another offset of the same job: a branch-free sweep, where looking up every
// source for each step would cost a twentieth of the whole.
static void move_to(const run *r, workplace *place, size_t offset) {
  const size_t by = offset - place->at;
  for (size_t i = 0; i < r->slots_at; i++)
    place->packet[i] += by;
  for (size_t i = 0; i < sources(r->product); i++)
    place->source[i] += r->product->program->sources[i] < r->slots_at ? by : 0;
  place->at = offset;
}

// Processes bytes [begin, begin + r->bytes) of every packet, as far as they exist, of groups from g
// on. The workplace's pointers are those of an earlier run of the same job.
static void run_in_place(const run *r, workplace *place, const weft_packet_job *job, size_t g,
                         size_t begin) {
  const weft_packet_product *p = r->product;
  const size_t n = weft_smaller(r->bytes, r->packet_bytes - begin);
  const size_t group = r->w * r->packet_bytes, at = g * group + begin;
  const bool far = is_far(p, r->packet_bytes, job);
  if (p->code) {
    run_code(r, place, job, at, n, weft_smaller(r->groups, job->groups - g), far);
    return;
  }
  move_to(r, place, at);
  if (by_program(p)) {
    run_steps(r, place, n, far && g + 1 < job->groups ? group : 0);
  } else {
    const size_t gap = begin + n < r->packet_bytes ? 0 : group - r->packet_bytes;
    run_blocks(r, place, n, weft_smaller(r->groups, job->groups - g), far, gap);
  }
}

// Copies one packet of each of `groups` groups from a shard into a contiguous run of bytes.
static void gather(uint8_t *to, const uint8_t *shard, size_t groups, size_t step, size_t bytes) {
  if (bytes == 8) // G-CRS: a copy of constant size is one instruction
    for (size_t g = 0; g < groups; g++)
      memcpy(to + g * 8, shard + g * step, 8);
  else
    for (size_t g = 0; g < groups; g++)
      memcpy(to + g * bytes, shard + g * step, bytes);
}

static void scatter(uint8_t *shard, const uint8_t *from, size_t groups, size_t step, size_t bytes) {
  if (bytes == 8)
    for (size_t g = 0; g < groups; g++)
      memcpy(shard + g * step, from + g * 8, 8);
  else
    for (size_t g = 0; g < groups; g++)
      memcpy(shard + g * step, from + g * bytes, bytes);
}

static void run_gathered(const run *r, const workplace *place, const weft_packet_job *job,
                         size_t first) {
  const weft_packet_product *p = r->product;
  const size_t groups = weft_smaller(r->groups, job->groups - first);
  const size_t step = r->w * r->packet_bytes, offset = first * step;
  for (size_t i = 0; i < p->inputs; i++)
    gather(place->packet[i], job->in[i / r->w] + offset + i % r->w * r->packet_bytes, groups, step,
           r->packet_bytes);
  if (by_program(p))
    run_steps(r, place, groups * r->packet_bytes, 0);
  else
    run_blocks(r, place, groups * r->packet_bytes, 1, false, 0);
  for (size_t o = 0; o < p->outputs; o++)
    scatter(job->out[o / r->w] + offset + o % r->w * r->packet_bytes,
            place->packet[r->outputs_at + o], groups, step, r->packet_bytes);
}

static size_t runs_of_packet(const run *r) {
  return r->gathered ? 1 : cut(r->packet_bytes, r->bytes);
}

static size_t units_of(const run *r, const weft_packet_job *job) {
  return cut(job->groups, r->groups) * runs_of_packet(r);
}

// Points to the packets that are stored in the scratch.
static void place_held(const run *r, const workplace *place) {
  uint8_t *at = place->bytes;
  if (r->gathered) {
    for (size_t i = 0; i < r->product->inputs; i++, at += r->bytes)
      place->packet[i] = at;
    for (size_t i = 0; i < r->product->outputs; i++, at += r->bytes)
      place->packet[r->outputs_at + i] = at;
    repeat_last(r, place);
  }
  for (size_t s = r->slots_at; s < packets(r); s++, at += r->bytes)
    place->packet[s] = at;
  if (r->gathered)
    place_sources(r, place);
}

static void piece_task(void *user, size_t index) {
  const run *r = user;
  workplace place = workplace_of(r, index);
  place_held(r, &place);
  const size_t share = cut(r->units, r->pieces), last = weft_smaller((index + 1) * share, r->units);
  const size_t runs = runs_of_packet(r);
  size_t before = 0; // units of earlier jobs
  for (size_t j = 0; j < r->count && before < last; j++) {
    const weft_packet_job *job = &r->jobs[j];
    const size_t own = units_of(r, job), start = weft_smaller(index * share, last);
    size_t u = start > before ? start - before : 0;
    if (!r->gathered && !r->product->code && u < own)
      place_job(r, &place, job);
    for (; u < own && before + u < last; u++) {
      if (r->gathered)
        run_gathered(r, &place, job, u * r->groups);
      else
        run_in_place(r, &place, job, u / runs * r->groups, u % runs * r->bytes);
    }
    before += own;
  }
}

// Returns the bytes of a packet to process at a time: equal runs, as close to `most` as the packet
// allows.
static size_t even_run(size_t packet_bytes, size_t most) {
  return lines(cut(packet_bytes, cut(packet_bytes, most)));
}

// Machine code processes one line after the other; takes as many groups as leave each thread
// several units.
static void choose_size_for_code(run *r, size_t threads) {
  size_t groups = 0, most = AT_ONCE_MAX / r->packet_bytes;
  for (size_t j = 0; j < r->count; j++)
    groups += r->jobs[j].groups;
  if (threads > 1)
    most = weft_smaller(most, groups / (threads * UNITS_PER_THREAD));
  r->groups = most > 1 ? most : 1;
  r->bytes = even_run(r->packet_bytes, AT_ONCE_MAX);
}

static void choose_size(run *r) {
  const size_t least = by_program(r->product) ? PROGRAM_MIN : BLOCKS_MIN;
  size_t bytes = TOTAL / packets(r) / LINE * LINE;
  bytes = bytes < PROGRAM_MIN ? PROGRAM_MIN : weft_smaller(bytes, AT_ONCE_MAX);
  r->gathered = r->packet_bytes < least;
  r->groups = 1;
  if (r->gathered || (by_blocks(r->product) && r->packet_bytes <= bytes / 2))
    r->groups = bytes / r->packet_bytes;
  r->bytes = r->gathered ? lines(r->groups * r->packet_bytes) : even_run(r->packet_bytes, bytes);
}

bool weft_packet_blocks_pay(const weft_host_kernel *kernel, const uint8_t *bits, size_t outputs,
                            size_t inputs, size_t packet_bytes) {
  if (!kernel->bits)
    return false;
  size_t ones = 0;
  for (size_t i = 0; i < outputs * inputs; i++)
    ones += bits[i];
  size_t program = ones * kernel->bits_one;
  if (packet_bytes >= BLOCKS_MIN && packet_bytes < PROGRAM_MIN) { // a program must gather them
    if (!kernel->bits_gather)
      return true;
    program +=
        (inputs + outputs) * kernel->bits_gather * (packet_bytes + GATHER_BYTES) / packet_bytes;
  }
  const size_t in = cut(inputs, 8), out = cut(outputs, 8);
  return program >
         in * kernel->bits_input + out * kernel->bits_output + in * out * kernel->bits_block;
}

weft_status weft_packet_run(const weft_exec *exec, const weft_host_kernel *kernel,
                            const weft_packet_product *product, size_t w, size_t packet_bytes,
                            const weft_packet_job *jobs, size_t count) {
  run r = {.kernel = kernel,
           .product = product,
           .w = w,
           .packet_bytes = packet_bytes,
           .jobs = jobs,
           .count = count,
           .outputs_at = by_program(product) ? product->inputs : cut(product->inputs, 8) * 8};
  r.slots_at = r.outputs_at + product->outputs;
  const size_t threads = weft_pool_threads(exec->pool);
  if (product->code)
    choose_size_for_code(&r, threads);
  else
    choose_size(&r);
  for (size_t j = 0; j < count; j++)
    r.units += units_of(&r, &jobs[j]);
  if (r.units == 0 || product->outputs == 0)
    return WEFT_OK;
  r.pieces = weft_smaller(threads == 1 ? 1 : threads * PIECES_PER_THREAD, r.units);
  r.piece_bytes = workplace_bytes(&r);
  r.scratch = exec->allocator->alloc(exec->allocator->user, r.pieces * r.piece_bytes, LINE);
  if (!r.scratch)
    return WEFT_E_NOMEM;
  weft_pool_run(exec->pool, r.pieces, piece_task, &r);
  exec->allocator->free(exec->allocator->user, r.scratch);
  return WEFT_OK;
}
