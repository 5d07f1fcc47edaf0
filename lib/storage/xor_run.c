// SPDX-License-Identifier: Apache-2.0
// The interpreter of XOR programs. A block is a run of bytes of every packet of one group; where
// packets are shorter than a block, the same packets of several groups are gathered into one.
#include "lib/storage/xor_run.h"

#include <string.h>

enum {
  LINE = 64,
  BLOCK_MIN = 512,         // bytes of a packet in one block: fewer, and the calls cost too much
  BLOCK_MAX = 4096,        // more does not help
  BLOCK_TOTAL = 96 * 1024, // of all packets in a block: first-level cache and a bit
  CACHED = 2 << 20,        // inputs beyond this are fetched ahead: too many streams for hardware
  PIECES_PER_THREAD = 2
};

typedef struct run {
  const weft_host_kernel *kernel;
  const weft_xor_program *program;
  size_t w, packet_bytes;
  const weft_xor_job *jobs;
  size_t count;
  size_t block;       // bytes of a packet in one block
  size_t gathered;    // groups in one block; 0: packets are used in place
  size_t units;       // blocks of all jobs
  size_t pieces;      // each takes a run of units
  uint8_t *scratch;   // (pieces, piece_bytes)
  size_t piece_bytes; // bytes
} run;

// What one piece works with; all of it in its part of the scratch.
typedef struct workplace {
  uint8_t **packet;       // inputs, outputs, slots: where the block's bytes are
  const uint8_t **source; // of the step at hand
  uint8_t *bytes;         // slots; and, when gathering, inputs and outputs before them
} workplace;

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static size_t cut(size_t a, size_t pieces) { return a / pieces + (a % pieces != 0); }

static size_t lines(size_t bytes) { return cut(bytes, LINE) * LINE; }

static size_t packets(const weft_xor_program *p) { return p->inputs + p->outputs + p->slots; }

static size_t most_sources(const weft_xor_program *p) {
  size_t most = 0;
  for (size_t s = 0; s < p->step_count; s++)
    if (p->steps[s].count > most)
      most = p->steps[s].count;
  return most;
}

static workplace workplace_of(const run *r, size_t piece) {
  uint8_t *at = r->scratch + piece * r->piece_bytes;
  workplace w;
  w.packet = (uint8_t **)(void *)at;
  at += lines(packets(r->program) * sizeof *w.packet);
  w.source = (const uint8_t **)(void *)at;
  at += lines(most_sources(r->program) * sizeof *w.source);
  w.bytes = at;
  return w;
}

// Starts fetching the bytes `ahead` of inputs [first, last), without waiting for them.
static void fetch_ahead(const workplace *place, size_t first, size_t last, size_t ahead,
                        size_t bytes) {
  for (size_t i = first; i < last; i++)
    for (size_t b = 0; b < bytes; b += LINE)
      __builtin_prefetch(place->packet[i] + ahead + b, 0, 2);
}

// Runs the program over one block. `ahead`, when not 0, is how far on the inputs of the next block
// lie; they are fetched between the steps.
static void run_steps(const run *r, const workplace *place, size_t bytes, size_t ahead) {
  const weft_xor_program *p = r->program;
  size_t fetched = 0;
  for (size_t s = 0; s < p->step_count; s++) {
    if (ahead) {
      const size_t until = (s + 1) * p->inputs / p->step_count;
      fetch_ahead(place, fetched, until, ahead, bytes);
      fetched = until;
    }
    const weft_xor_step *step = &p->steps[s];
    uint8_t *target = place->packet[step->target];
    const uint16_t *source = p->sources + step->first;
    if (step->count == 0) {
      memset(target, 0, bytes);
      continue;
    }
    for (size_t i = 0; i < step->count; i++)
      place->source[i] = place->packet[source[i]];
    r->kernel->xor_rows(target, place->source, step->count, 0, bytes, false);
  }
}

static void place_slots(const run *r, const workplace *place, uint8_t *bytes) {
  const size_t first = r->program->inputs + r->program->outputs;
  for (size_t s = 0; s < r->program->slots; s++)
    place->packet[first + s] = bytes + s * r->block;
}

// One block of packets in place: bytes [begin, begin + n) of every packet of group g.
static void run_in_place(const run *r, const workplace *place, const weft_xor_job *job, size_t g,
                         size_t begin) {
  const weft_xor_program *p = r->program;
  const size_t n = smaller(r->block, r->packet_bytes - begin);
  const size_t offset = g * r->w * r->packet_bytes + begin;
  uint8_t **packet = place->packet;
  for (size_t j = 0; j < p->inputs / r->w; j++)
    for (size_t c = 0; c < r->w; c++) // only read, but the table serves targets too
      *packet++ = (uint8_t *)(uintptr_t)(job->in[j] + offset + c * r->packet_bytes);
  for (size_t i = 0; i < p->outputs / r->w; i++)
    for (size_t l = 0; l < r->w; l++)
      *packet++ = job->out[i] + offset + l * r->packet_bytes;
  const size_t group = r->w * r->packet_bytes;
  const bool fetch = p->inputs / r->w * job->groups * group > CACHED && g + 1 < job->groups;
  run_steps(r, place, n, fetch ? group : 0);
}

// Copies packet c of `groups` groups between a shard and a run of bytes.
static void gather(uint8_t *to, const uint8_t *shard, size_t groups, size_t step, size_t bytes) {
  if (bytes == 8) // G-CRS: a copy of known size is one instruction
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

static void run_gathered(const run *r, const workplace *place, const weft_xor_job *job,
                         size_t first) {
  const weft_xor_program *p = r->program;
  const size_t groups = smaller(r->gathered, job->groups - first);
  const size_t step = r->w * r->packet_bytes, offset = first * step;
  for (size_t i = 0; i < p->inputs; i++)
    gather(place->packet[i], job->in[i / r->w] + offset + i % r->w * r->packet_bytes, groups, step,
           r->packet_bytes);
  run_steps(r, place, groups * r->packet_bytes, 0);
  for (size_t o = 0; o < p->outputs; o++)
    scatter(job->out[o / r->w] + offset + o % r->w * r->packet_bytes, place->packet[p->inputs + o],
            groups, step, r->packet_bytes);
}

static size_t units_of(const run *r, const weft_xor_job *job) {
  return r->gathered ? cut(job->groups, r->gathered) : job->groups * cut(r->packet_bytes, r->block);
}

static void piece_task(void *user, size_t index) {
  const run *r = user;
  const workplace place = workplace_of(r, index);
  const size_t held = r->gathered ? r->program->inputs + r->program->outputs : 0;
  for (size_t i = 0; i < held; i++)
    place.packet[i] = place.bytes + i * r->block;
  place_slots(r, &place, place.bytes + held * r->block);
  const size_t share = cut(r->units, r->pieces), last = smaller((index + 1) * share, r->units);
  const size_t blocks = r->gathered ? 1 : cut(r->packet_bytes, r->block);
  size_t before = 0; // units of earlier jobs
  for (size_t j = 0; j < r->count && before < last; j++) {
    const size_t own = units_of(r, &r->jobs[j]);
    const size_t start = smaller(index * share, last);
    for (size_t u = start > before ? start - before : 0; u < own && before + u < last; u++) {
      if (r->gathered)
        run_gathered(r, &place, &r->jobs[j], u * r->gathered);
      else
        run_in_place(r, &place, &r->jobs[j], u / blocks, u % blocks * r->block);
    }
    before += own;
  }
}

static void choose_block(run *r) {
  size_t block = BLOCK_TOTAL / packets(r->program) / LINE * LINE;
  block = block < BLOCK_MIN ? BLOCK_MIN : smaller(block, BLOCK_MAX);
  if (r->packet_bytes < BLOCK_MIN) {
    r->gathered = block / r->packet_bytes;
    r->block = lines(r->gathered * r->packet_bytes);
  } else { // blocks of one size, as near to that as the packet allows
    r->block = lines(cut(r->packet_bytes, cut(r->packet_bytes, block)));
  }
}

weft_status weft_xor_run(const weft_exec *exec, const weft_host_kernel *kernel,
                         const weft_xor_program *program, size_t w, size_t packet_bytes,
                         const weft_xor_job *jobs, size_t count) {
  run r = {.kernel = kernel,
           .program = program,
           .w = w,
           .packet_bytes = packet_bytes,
           .jobs = jobs,
           .count = count};
  choose_block(&r);
  for (size_t j = 0; j < count; j++)
    r.units += units_of(&r, &jobs[j]);
  if (r.units == 0 || program->outputs == 0)
    return WEFT_OK;
  const size_t threads = weft_pool_threads(exec->pool);
  r.pieces = smaller(threads == 1 ? 1 : threads * PIECES_PER_THREAD, r.units);
  const size_t held = packets(program) - (r.gathered ? 0 : program->inputs + program->outputs);
  r.piece_bytes = lines(packets(program) * sizeof(uint8_t *)) +
                  lines(most_sources(program) * sizeof(uint8_t *)) + held * r.block + LINE;
  r.scratch = exec->allocator->alloc(exec->allocator->user, r.pieces * r.piece_bytes, LINE);
  if (!r.scratch)
    return WEFT_E_NOMEM;
  weft_pool_run(exec->pool, r.pieces, piece_task, &r);
  exec->allocator->free(exec->allocator->user, r.scratch);
  return WEFT_OK;
}
