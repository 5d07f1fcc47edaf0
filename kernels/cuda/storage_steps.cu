// SPDX-License-Identifier: Apache-2.0
// Steps of a factored matrix (kernels/factors.h) as text. A slot is eight words of bits, and c
// times one a product with an 8 x 8 bit matrix, which a network of sums makes.
//
// A butterfly can be had in two ways, by c and by c ^ 1, whose results lie in each other's slots:
// the one that takes fewer LOP3s is written. And what a butterfly only adds its other value to goes
// into the rows that make it, where it often costs nothing.
#include "kernels/cuda/storage_network.h"
#include "kernels/cuda/storage_sums.h"

extern "C" {
#include "kernels/gf256.h"
}

namespace {

using weft_made::Network;
using weft_made::Text;

enum { Bits = 8, TargetsMost = 8, SlotsMost = 256 };

// What is added, by name.
struct Term {
  char name[32];
};

// The sum of some terms, as an expression and the end of its statement.
void put_sum(Text &text, const Term *terms, size_t count) {
  // From the inside: the first one to three, then two more at a time.
  size_t at = count % 2 ? 1 : 2;
  for (size_t i = at; i < count; i += 2)
    text.add("X3(");
  if (count == 0)
    text.add("0");
  else if (at == 2)
    text.add("X2(%s, %s)", terms[0].name, terms[1].name);
  else
    text.add("%s", terms[0].name);
  for (; at < count; at += 2)
    text.add(", %s, %s)", terms[at].name, terms[at + 1].name);
  text.add(";\n");
}

// c times a slot: rows that are added to `others` more.
void want_product(Network &net, uint8_t c, size_t others) {
  for (unsigned l = 0; l < Bits; l++) {
    unsigned row = 0;
    for (unsigned x = 0; x < Bits; x++)
      row |= (weft_gf256_mul(c, static_cast<uint8_t>(1u << x)) >> l & 1u) << x;
    net.want(static_cast<uint8_t>(row), others);
  }
}

// A product that is added to a slot, or becomes it; and another slot, whose value is added, too.
struct Product {
  size_t to;
  uint8_t c;
  bool set, also;
  size_t other;
};

class Writer {
public:
  explicit Writer(Text &text) : text_(text), names_(0) {
    for (size_t s = 0; s < SlotsMost; s++)
      slot_[s] = s;
    memset(ahead_, 0, sizeof ahead_);
    memset(cost_, 0, sizeof cost_);
  }

  size_t slot(size_t s) const { return slot_[s]; } // where the value of slot s of the steps is
  void exchange(size_t a, size_t b) {
    const size_t was = slot_[a];
    slot_[a] = slot_[b];
    slot_[b] = was;
  }

  // Butterfly `step`, whose `from` is slot s, has its first half done already.
  void begin_ahead(size_t s, size_t step) { ahead_[s] = step; }
  bool begun(size_t s, size_t step) const { return step && ahead_[s] == step; }

  // LOP3s of a product that is added to one slot.
  size_t cost(uint8_t c) {
    if (c && !cost_[c]) {
      Network net;
      want_product(net, c, 1);
      net.find();
      cost_[c] = static_cast<uint8_t>(net.lop3s());
    }
    return cost_[c];
  }

  // Products of one slot, all at once.
  void products(size_t from, const Product *product, size_t count) {
    Network net;
    size_t parts[Network::InputsMost];
    Term terms[Network::InputsMost + 2];
    for (size_t i = 0; i < count; i++)
      want_product(net, product[i].c, !product[i].set + product[i].also);
    net.find();
    for (size_t node = Network::InputsMost; node < net.nodes(); node++) {
      const size_t some = net.parts_of_sum(node, parts);
      for (size_t p = 0; p < some; p++)
        terms[p] = name_of(from, parts[p]);
      text_.add("  const u32 z%zu_%zu = ", node, names_);
      put_sum(text_, terms, some);
    }
    for (size_t r = 0; r < count * Bits; r++) {
      const Product &p = product[r / Bits];
      size_t some = net.parts_of_row(r, parts);
      for (size_t t = 0; t < some; t++)
        terms[t] = name_of(from, parts[t]);
      if (!p.set)
        terms[some++] = name_of(p.to, r % Bits);
      if (p.also)
        terms[some++] = name_of(p.other, r % Bits);
      // A slot that is set from itself is complete before it changes.
      if (p.to == from)
        text_.add("  const u32 w%zu_%zu = ", r, names_);
      else
        text_.add("  s%zu[%zu] = ", p.to, r % Bits);
      put_sum(text_, terms, some);
    }
    for (size_t r = 0; r < count * Bits; r++)
      if (product[r / Bits].to == from)
        text_.add("  s%zu[%zu] = w%zu_%zu;\n", from, r % Bits, r, names_);
    names_++;
  }

  void add_slot(size_t to, size_t from) {
    for (size_t i = 0; i < Bits; i++)
      text_.add("  s%zu[%zu] = X2(s%zu[%zu], s%zu[%zu]);\n", to, i, to, i, from, i);
  }

private:
  Term name_of(size_t slot, size_t node) const {
    Term term;
    if (node < Bits)
      snprintf(term.name, sizeof term.name, "s%zu[%zu]", slot, node);
    else
      snprintf(term.name, sizeof term.name, "z%zu_%zu", node, names_);
    return term;
  }

  Text &text_;
  size_t names_;
  size_t slot_[SlotsMost];
  size_t ahead_[SlotsMost];
  uint8_t cost_[256];
};

bool touches(const weft_step &s, size_t slot) {
  return (s.kind != WEFT_STEP_STORE && s.to == slot) ||
         (s.kind != WEFT_STEP_LOAD && s.from == slot);
}

bool changes(const weft_step &s, size_t slot) {
  return (s.kind != WEFT_STEP_STORE && s.to == slot) ||
         (weft_step_is_butterfly(&s) && s.from == slot);
}

// The step of an inverse butterfly that begins by adding to slot `slot`, as left by step `at`, a
// value that is there by then: 0 if what is done with the slot is anything else.
size_t only_added_to(const weft_factors &factors, size_t at, size_t slot) {
  size_t next = at + 1;
  while (next < factors.count && !touches(factors.steps[next], slot))
    next++;
  if (next == factors.count || factors.steps[next].kind != WEFT_STEP_INVERSE ||
      factors.steps[next].from != slot)
    return 0;
  for (size_t i = at; i < next; i++)
    if (changes(factors.steps[i], factors.steps[next].to))
      return 0;
  return next;
}

// The bits of a slot are packets, or sliced out of bytes.
void load(Text &text, const weft_program_shape &shape, size_t place, size_t slot) {
  if (!shape.packet_bytes)
    text.add("  take(%zu, s%zu);\n", place, slot);
  for (size_t i = 0; i < Bits && shape.packet_bytes; i++)
    text.add("  s%zu[%zu] = take(%zu, %zu);\n", slot, i, place, i);
}

void store(Text &text, const weft_program_shape &shape, weft_made::Ring &ring, size_t output,
           size_t slot) {
  if (!shape.packet_bytes) {
    const size_t place = ring.place_for_output(output);
    text.add("  keep(%zu, s%zu);\n", place, slot);
    ring.kept();
    return;
  }
  text.add("  if (is_own) {\n");
  for (size_t i = 0; i < Bits; i++)
    text.add("    put(rows[%zu] + at + %zu, s%zu[%zu]);\n", shape.k + output,
             i * shape.packet_bytes, slot, i);
  text.add("  }\n");
}

// Everything that the steps are written with.
struct Scene {
  Text &text;
  Writer &writer;
  weft_made::Ring &ring;
  const weft_program_shape &shape;
};

// c times `from`, added to slot `to` by step `at`.
Product product_of(const Scene &s, size_t at, size_t to, uint8_t c, bool set) {
  const weft_factors &factors = *s.shape.factors;
  const size_t next = only_added_to(factors, at, to);
  Product p = {s.writer.slot(to), c, set, next != 0, 0};
  if (next) {
    p.other = s.writer.slot(factors.steps[next].to);
    s.writer.begin_ahead(factors.steps[next].from, next);
  }
  return p;
}

// Products with one slot as it is now, by steps from `at` on; how many.
size_t add_products(const Scene &s, size_t at) {
  const weft_factors &factors = *s.shape.factors;
  const size_t from = factors.steps[at].from;
  Product product[TargetsMost];
  size_t count = 0;
  for (bool changed = false; count < TargetsMost && at + count < factors.count && !changed;) {
    const weft_step &step = factors.steps[at + count];
    if (step.from != from || (step.kind != WEFT_STEP_ADD && step.kind != WEFT_STEP_SET))
      break;
    product[count] = product_of(s, at + count, step.to, step.c, step.kind == WEFT_STEP_SET);
    changed = step.to == from;
    count++;
  }
  s.writer.products(s.writer.slot(from), product, count);
  return count;
}

void add_inverse(const Scene &s, size_t at) {
  const weft_step &step = s.shape.factors->steps[at];
  const bool begun = s.writer.begun(step.from, at);
  const bool other_way = !begun && s.writer.cost(step.c ^ 1) < s.writer.cost(step.c) &&
                         !only_added_to(*s.shape.factors, at, step.to);
  if (!begun)
    s.writer.add_slot(s.writer.slot(other_way ? step.to : step.from),
                      s.writer.slot(other_way ? step.from : step.to));
  if (other_way)
    s.writer.exchange(step.to, step.from);
  const uint8_t c = other_way ? step.c ^ 1 : step.c;
  const Product p = product_of(s, at, step.to, c, false);
  if (c || p.also)
    s.writer.products(s.writer.slot(step.from), &p, 1);
}

void add_forward(const Scene &s, size_t at) {
  const weft_step &step = s.shape.factors->steps[at];
  const bool other_way = s.writer.cost(step.c ^ 1) < s.writer.cost(step.c);
  const uint8_t c = other_way ? step.c ^ 1 : step.c;
  const Product p = {s.writer.slot(step.to), c, false, false, 0};
  if (c)
    s.writer.products(s.writer.slot(step.from), &p, 1);
  s.writer.add_slot(s.writer.slot(step.from), s.writer.slot(step.to));
  if (other_way)
    s.writer.exchange(step.to, step.from);
}

// How many steps were written.
size_t add_step(const Scene &s, size_t at) {
  const weft_step &step = s.shape.factors->steps[at];
  switch (step.kind) {
  case WEFT_STEP_LOAD:
    s.ring.next(step.from);
    load(s.text, s.shape, s.ring.place(step.from), s.writer.slot(step.to));
    return 1;
  case WEFT_STEP_STORE:
    store(s.text, s.shape, s.ring, step.to, s.writer.slot(step.from));
    return 1;
  case WEFT_STEP_INVERSE:
    add_inverse(s, at);
    return 1;
  case WEFT_STEP_FORWARD:
    add_forward(s, at);
    return 1;
  default:
    return add_products(s, at);
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
  const Scene scene = {text, writer, ring, shape};
  for (size_t at = 0; at < factors.count;)
    at += add_step(scene, at);
  ring.leave();
}
