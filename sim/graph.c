// SPDX-License-Identifier: Apache-2.0
#include "sim/graph.h"

#include <stdbool.h>
#include <stdlib.h>

#include "weft/peer_rng.h"

static bool adjacent(const weft_sim_graph *g, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < g->degree[a]; i++)
    if (g->neighbour[a * g->degree_max + i] == b)
      return true;
  return false;
}

static void connect(weft_sim_graph *g, uint32_t a, uint32_t b) {
  if (a == b || adjacent(g, a, b) || g->degree[a] >= g->degree_max || g->degree[b] >= g->degree_max)
    return;
  g->neighbour[a * g->degree_max + g->degree[a]++] = b;
  g->neighbour[b * g->degree_max + g->degree[b]++] = a;
}

weft_status weft_sim_graph_new(size_t nodes, size_t degree_max, const weft_rng *rng,
                               weft_sim_graph *out) {
  if (nodes < 1 || nodes > UINT32_MAX / 2 || degree_max < 2)
    return WEFT_E_ARGUMENT;
  weft_sim_graph g = {.nodes = nodes, .degree_max = degree_max};
  uint32_t *order = calloc(nodes, sizeof *order);
  g.degree = calloc(nodes, sizeof *g.degree);
  g.neighbour = calloc(nodes, degree_max * sizeof *g.neighbour);
  if (!order || !g.degree || !g.neighbour) {
    free(order);
    weft_sim_graph_free(&g);
    return WEFT_E_NOMEM;
  }
  for (uint32_t i = 0; i < nodes; i++) { // shuffle while filling
    const uint32_t j = (uint32_t)weft_rng_below(rng, i + 1u);
    order[i] = order[j];
    order[j] = i;
  }
  for (size_t i = 0; i < nodes; i++)
    connect(&g, order[i], order[(i + 1) % nodes]);
  // A few attempts per free place leave hardly any place that could still be filled.
  for (size_t i = 0; i < 4 * nodes * degree_max; i++)
    connect(&g, (uint32_t)weft_rng_below(rng, nodes), (uint32_t)weft_rng_below(rng, nodes));
  free(order);
  *out = g;
  return WEFT_OK;
}

void weft_sim_graph_free(weft_sim_graph *graph) {
  free(graph->degree);
  free(graph->neighbour);
  *graph = (weft_sim_graph){0};
}
