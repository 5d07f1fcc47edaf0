// SPDX-License-Identifier: Apache-2.0
// All sums of eight inputs are 255 vectors, so that distances to every one of them are a table, and
// what one more sum would save is looked up rather than estimated (after Boyar and Peralta's
// heuristic, but for LOP3, which adds three).
#include "kernels/cuda/storage_network.h"

#include <string.h>

namespace {

enum { Vectors = 256, Tried = 16 };

// A row of `terms` words in all, added two to a word at a time; one alone costs nothing.
size_t lop3s_of_row(size_t terms) { return terms / 2; }

void put_near(uint8_t (&to)[Vectors], const uint8_t (&from)[Vectors], uint8_t vector) {
  for (unsigned v = 0; v < Vectors; v++) {
    const uint8_t by_it = static_cast<uint8_t>(from[v ^ vector] + 1);
    to[v] = from[v] < by_it ? from[v] : by_it;
  }
}

} // namespace

weft_made::Network::Network() : row_count_(0), nodes_(InputsMost), made_(0) {
  for (unsigned v = 0; v < Vectors; v++)
    distance_[v] = static_cast<uint8_t>(__builtin_popcount(v));
  for (unsigned i = 0; i < InputsMost; i++)
    node_[i] = static_cast<uint8_t>(1u << i);
}

void weft_made::Network::want(uint8_t inputs, size_t others) {
  rows_[row_count_++] = {inputs, others};
}

size_t weft_made::Network::total(const Distances &distance) const {
  size_t sum = 0;
  for (size_t r = 0; r < row_count_; r++)
    sum += lop3s_of_row(distance[rows_[r].inputs] + rows_[r].others);
  return sum;
}

// The same if there were one more sum, `vector`.
size_t weft_made::Network::total_with(const Distances &distance, uint8_t vector) const {
  size_t sum = 0;
  for (size_t r = 0; r < row_count_; r++) {
    const size_t by_it = distance[rows_[r].inputs ^ vector] + size_t{1};
    const size_t without = distance[rows_[r].inputs];
    sum += lop3s_of_row((by_it < without ? by_it : without) + rows_[r].others);
  }
  return sum;
}

size_t weft_made::Network::best_with_one_more(const Distances &distance) const {
  size_t best = total(distance);
  for (unsigned v = 1; v < Vectors; v++) {
    if (distance[v] < 2)
      continue;
    const size_t all = total_with(distance, static_cast<uint8_t>(v)) + lop3s_of_row(distance[v]);
    best = all < best ? all : best;
  }
  return best;
}

// Adds the sum that saves most, the one after it counted in; of the few that look best by
// themselves.
bool weft_made::Network::find_one() {
  size_t alone[Vectors];
  for (unsigned v = 1; v < Vectors; v++)
    alone[v] = distance_[v] < 2
                   ? SIZE_MAX
                   : total_with(distance_, static_cast<uint8_t>(v)) + lop3s_of_row(distance_[v]);
  size_t least = total(distance_);
  unsigned found = 0;
  for (unsigned tried = 0; tried < Tried; tried++) {
    unsigned best = 1;
    for (unsigned v = 2; v < Vectors; v++)
      best = alone[v] < alone[best] ? v : best;
    if (alone[best] == SIZE_MAX)
      break;
    Distances with;
    put_near(with, distance_, static_cast<uint8_t>(best));
    const size_t all = best_with_one_more(with) + lop3s_of_row(distance_[best]);
    if (all < least)
      least = all, found = best;
    alone[best] = SIZE_MAX;
  }
  if (!found || nodes_ == NodesMost)
    return false;
  add_node(static_cast<uint8_t>(found));
  return true;
}

void weft_made::Network::add_node(uint8_t vector) {
  Distances with;
  made_ += lop3s_of_row(distance_[vector]);
  put_near(with, distance_, vector);
  memcpy(distance_, with, sizeof distance_);
  node_[nodes_++] = vector;
}

void weft_made::Network::find() {
  while (find_one()) {
  }
}

size_t weft_made::Network::lop3s() const { return made_ + total(distance_); }

// As few of the first `nodes` as make `vector`.
size_t weft_made::Network::parts_of(uint8_t vector, size_t nodes, size_t parts[InputsMost]) const {
  Distances distance;
  for (unsigned v = 0; v < Vectors; v++)
    distance[v] = static_cast<uint8_t>(__builtin_popcount(v));
  for (size_t n = InputsMost; n < nodes; n++) {
    Distances with;
    put_near(with, distance, node_[n]);
    memcpy(distance, with, sizeof distance);
  }
  size_t count = 0;
  while (vector)
    for (size_t n = nodes; n-- > 0;)
      if (distance[vector ^ node_[n]] + 1 == distance[vector]) {
        parts[count++] = n;
        vector ^= node_[n];
        break;
      }
  return count;
}

size_t weft_made::Network::parts_of_sum(size_t node, size_t parts[InputsMost]) const {
  return parts_of(node_[node], node, parts);
}

size_t weft_made::Network::parts_of_row(size_t row, size_t parts[InputsMost]) const {
  return parts_of(rows_[row].inputs, nodes_, parts);
}
