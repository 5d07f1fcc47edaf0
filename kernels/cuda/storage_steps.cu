// SPDX-License-Identifier: Apache-2.0
// Steps of a factored matrix (kernels/factors.h) as text. A slot is eight words of bits, and c
// times one a product with an 8 x 8 bit matrix: sums of three are looked for that several of its
// rows want, greedily, since a LOP3 adds three words.
#include "kernels/cuda/storage_sums.h"

extern "C" {
#include "kernels/gf256.h"
}

namespace {

using weft_made::Text;

enum { Bits = 8, TargetsMost = 4, RowsMost = Bits * TargetsMost, NodesMost = 64 };

// Rows to be summed up from nodes: the bits of a slot, and sums made of them.
struct Net {
  uint64_t row[RowsMost]; // nodes still to be added
  bool begun[RowsMost];   // to what the target holds already
  size_t rows, nodes;
  size_t first_name; // of the sums
};

void add_rows(Net &net, uint8_t c, bool begun) {
  for (unsigned l = 0; l < Bits; l++) {
    uint64_t row = 0;
    for (unsigned x = 0; x < Bits; x++)
      row |= static_cast<uint64_t>(weft_gf256_mul(c, static_cast<uint8_t>(1u << x)) >> l & 1) << x;
    net.row[net.rows] = row;
    net.begun[net.rows++] = begun;
  }
}

size_t terms(const Net &net, size_t row) {
  return static_cast<size_t>(__builtin_popcountll(net.row[row])) + net.begun[row];
}

// LOP3s that a sum of these nodes saves, itself not counted. A pair only saves one where the row's
// terms are even, as two of them go into one LOP3.
int saved(const Net &net, uint64_t nodes, bool pair) {
  int rows = 0;
  for (size_t r = 0; r < net.rows; r++)
    rows += (net.row[r] & nodes) == nodes && (!pair || terms(net, r) % 2 == 0);
  return rows - 1;
}

uint64_t best_sum(const Net &net, bool *is_pair) {
  uint64_t best = 0;
  int most = 0;
  for (size_t a = 0; a < net.nodes; a++)
    for (size_t b = 0; b < a; b++) {
      const uint64_t two = 1ull << a | 1ull << b;
      if (saved(net, two, false) <= 0)
        continue;
      for (size_t c = 0; c <= b; c++) { // c == b: these two
        const int saves = saved(net, two | 1ull << c, c == b);
        if (saves > most)
          most = saves, best = two | 1ull << c, *is_pair = c == b;
      }
    }
  return best;
}

class Writer {
public:
  explicit Writer(Text &text) : text_(text), names_(0) {}

  // c[i] times slot `from` is added to slot to[i], or becomes it where `set`.
  void products(size_t from, const uint8_t *to, const uint8_t *c, const bool *set, size_t count) {
    Net net = {};
    net.nodes = Bits;
    net.first_name = names_;
    for (size_t i = 0; i < count; i++)
      add_rows(net, c[i], !set[i]);
    bool pair = false;
    for (uint64_t sum; net.nodes < NodesMost && (sum = best_sum(net, &pair)) != 0;) {
      text_.add("  const u32 z%zu = ", names_++);
      write_sum(net, from, sum, nullptr);
      for (size_t r = 0; r < net.rows; r++)
        if ((net.row[r] & sum) == sum && (!pair || terms(net, r) % 2 == 0))
          net.row[r] = (net.row[r] & ~sum) | 1ull << net.nodes;
      net.nodes++;
    }
    // A slot that is set from itself is complete before it changes.
    for (size_t r = 0; r < net.rows; r++) {
      char own[32];
      snprintf(own, sizeof own, "s%d[%zu]", to[r / Bits], r % Bits);
      const bool alias = to[r / Bits] == from;
      if (alias)
        text_.add("  const u32 w%zu_%zu = ", names_, r);
      else
        text_.add("  %s = ", own);
      write_sum(net, from, net.row[r], net.begun[r] ? own : nullptr);
    }
    for (size_t r = 0; r < net.rows; r++)
      if (to[r / Bits] == from)
        text_.add("  s%d[%zu] = w%zu_%zu;\n", to[r / Bits], r % Bits, names_, r);
    names_++;
  }

  void add_slot(size_t to, size_t from) {
    for (size_t i = 0; i < Bits; i++)
      text_.add("  s%zu[%zu] = X2(s%zu[%zu], s%zu[%zu]);\n", to, i, to, i, from, i);
  }

private:
  void name_of(char *out, size_t bytes, const Net &net, size_t from, size_t node) {
    if (node < Bits)
      snprintf(out, bytes, "s%zu[%zu]", from, node);
    else
      snprintf(out, bytes, "z%zu", net.first_name + node - Bits);
  }

  // The sum of some nodes and of `own`, as an expression and the end of its statement.
  void write_sum(const Net &net, size_t from, uint64_t nodes, const char *own) {
    char terms_of[NodesMost + 1][32];
    size_t count = 0;
    if (own)
      snprintf(terms_of[count++], sizeof *terms_of, "%s", own);
    for (size_t n = 0; n < net.nodes; n++)
      if (nodes >> n & 1)
        name_of(terms_of[count++], sizeof *terms_of, net, from, n);
    if (count == 0) {
      text_.add("0;\n");
      return;
    }
    // From the inside: the first one to three, then two more at a time.
    size_t at = count % 2 ? 1 : 2;
    for (size_t i = at; i < count; i += 2)
      text_.add("X3(");
    if (at == 2)
      text_.add("X2(%s, %s)", terms_of[0], terms_of[1]);
    else
      text_.add("%s", terms_of[0]);
    for (; at < count; at += 2)
      text_.add(", %s, %s)", terms_of[at], terms_of[at + 1]);
    text_.add(";\n");
  }

  Text &text_;
  size_t names_;
};

// How many steps from `first` on are products with one slot as it is now.
size_t alike(const weft_factors &factors, size_t first) {
  const weft_step *steps = factors.steps + first;
  const size_t left = factors.count - first;
  size_t count = 0;
  bool changed = false;
  while (count < TargetsMost && count < left && !changed && steps[count].from == steps->from &&
         (steps[count].kind == WEFT_STEP_ADD || steps[count].kind == WEFT_STEP_SET)) {
    changed = steps[count].to == steps->from;
    count++;
  }
  return count;
}

void add_step(Text &text, Writer &writer, weft_made::Ring &ring, const weft_program_shape &shape,
              const weft_step &step) {
  const bool fresh = false;
  switch (step.kind) {
  case WEFT_STEP_LOAD:
    ring.next(step.from);
    text.add("  take(%zu, s%d);\n", ring.place(step.from), step.to);
    break;
  case WEFT_STEP_STORE:
    text.add("  { u32 v[8];\n");
    for (size_t i = 0; i < Bits; i++)
      text.add("    v[%zu] = s%d[%zu];\n", i, step.from, i);
    text.add("    leave(rows[%zu], v); }\n", shape.k + step.to);
    break;
  case WEFT_STEP_INVERSE:
    writer.add_slot(step.from, step.to);
    writer.products(step.from, &step.to, &step.c, &fresh, 1);
    break;
  default:
    writer.products(step.from, &step.to, &step.c, &fresh, 1);
    writer.add_slot(step.from, step.to);
  }
}

} // namespace

void weft_made::add_steps(Text &text, const weft_program_shape &shape,
                          const weft_program_plan &plan) {
  const weft_factors &factors = *shape.factors;
  Writer writer(text);
  weft_made::Ring ring(text, shape, plan);
  for (size_t slot = 0; slot < factors.slots; slot++)
    text.add("  u32 s%zu[8];\n", slot);
  ring.begin();
  for (size_t i = 0; i < factors.count; i++) {
    const weft_step &step = factors.steps[i];
    if (step.kind != WEFT_STEP_ADD && step.kind != WEFT_STEP_SET) {
      add_step(text, writer, ring, shape, step);
      continue;
    }
    uint8_t to[TargetsMost], c[TargetsMost];
    bool set[TargetsMost];
    const size_t count = alike(factors, i);
    for (size_t n = 0; n < count; n++) {
      to[n] = factors.steps[i + n].to;
      c[n] = factors.steps[i + n].c;
      set[n] = factors.steps[i + n].kind == WEFT_STEP_SET;
    }
    writer.products(step.from, to, c, set, count);
    i += count - 1;
  }
}
