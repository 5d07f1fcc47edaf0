// SPDX-License-Identifier: Apache-2.0
// Who is connected to whom: a random connected graph whose nodes have a bounded number of
// neighbours.
#ifndef WEFT_SIM_GRAPH_H
#define WEFT_SIM_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "weft/peer_rng.h"
#include "weft/status.h"

typedef struct weft_sim_graph {
  size_t nodes, degree_max;
  uint32_t *degree;    // (nodes)
  uint32_t *neighbour; // (nodes, degree_max)
} weft_sim_graph;

// Makes a ring through all nodes in random order, so that the graph is connected, and adds random
// edges between nodes with room. degree_max >= 2. Errors: WEFT_E_ARGUMENT, WEFT_E_NOMEM.
weft_status weft_sim_graph_new(size_t nodes, size_t degree_max, const weft_rng *rng,
                               weft_sim_graph *out);
void weft_sim_graph_free(weft_sim_graph *graph);

#endif
