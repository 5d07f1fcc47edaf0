// SPDX-License-Identifier: Apache-2.0
// Sums of a few words, many times over, by as few LOP3s as can be found (no CUDA types here).
#ifndef WEFT_KERNELS_CUDA_STORAGE_NETWORK_H
#define WEFT_KERNELS_CUDA_STORAGE_NETWORK_H

#include <stddef.h>
#include <stdint.h>

namespace weft_made {

// Up to eight inputs; rows, each the sum of some of them and of `others` that are nobody else's
// business; and sums in between that shorten rows. Inputs and sums are nodes. A LOP3 adds three.
class Network {
public:
  enum { InputsMost = 8, RowsMost = 256, NodesMost = 64 };

  Network();
  void want(uint8_t inputs, size_t others);
  // Looks for sums as long as these save more than they cost, two at a time.
  void find();

  size_t lop3s() const; // of all sums and rows
  size_t nodes() const { return nodes_; }
  // The nodes that are added to make sum `node`, or row `row`, in `parts`; how many. Sums are made
  // of nodes before them.
  size_t parts_of_sum(size_t node, size_t parts[InputsMost]) const;
  size_t parts_of_row(size_t row, size_t parts[InputsMost]) const;

private:
  typedef uint8_t Distances[256]; // how many nodes it takes to make each vector

  struct Row {
    uint8_t inputs;
    size_t others;
  };

  size_t total(const Distances &distance) const;
  size_t total_with(const Distances &distance, uint8_t vector) const;
  size_t best_with_one_more(const Distances &distance) const;
  bool find_one();
  void add_node(uint8_t vector);
  size_t parts_of(uint8_t vector, size_t nodes, size_t parts[InputsMost]) const;

  Row rows_[RowsMost];
  size_t row_count_;
  uint8_t node_[NodesMost]; // as sums of inputs
  size_t nodes_;
  size_t made_; // LOP3s for sums
  Distances distance_;
};

} // namespace weft_made
#endif
