// SPDX-License-Identifier: Apache-2.0
// The event queue: a binary heap.
#include "sim/queue.h"

#include <stdlib.h>

weft_sim_burst *weft_sim_burst_new(size_t count, size_t total_bytes) {
  const size_t head = sizeof(weft_sim_burst) + count * sizeof(size_t);
  weft_sim_burst *burst = malloc(head + total_bytes);
  if (burst) {
    burst->count = count;
    burst->bytes = (size_t *)(void *)(burst + 1);
    burst->data = (uint8_t *)burst + head;
  }
  return burst;
}

void weft_sim_burst_free(weft_sim_burst *burst) { free(burst); }

static bool before(const weft_sim_event *a, const weft_sim_event *b) {
  if (a->time_us != b->time_us)
    return a->time_us < b->time_us;
  if (a->destination != b->destination)
    return a->destination < b->destination;
  if (a->source != b->source)
    return a->source < b->source;
  return a->sequence < b->sequence;
}

weft_status weft_sim_queue_push(weft_sim_queue *queue, const weft_sim_event *event) {
  if (queue->count == queue->capacity) {
    const size_t capacity = queue->capacity ? 2 * queue->capacity : 256;
    weft_sim_event *heap = realloc(queue->heap, capacity * sizeof *heap);
    if (!heap)
      return WEFT_E_NOMEM;
    queue->heap = heap;
    queue->capacity = capacity;
  }
  size_t at = queue->count++;
  while (at > 0 && before(event, &queue->heap[(at - 1) / 2])) {
    queue->heap[at] = queue->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  queue->heap[at] = *event;
  return WEFT_OK;
}

bool weft_sim_queue_pop(weft_sim_queue *queue, weft_sim_event *out) {
  if (queue->count == 0)
    return false;
  *out = queue->heap[0];
  const weft_sim_event last = queue->heap[--queue->count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= queue->count)
      break;
    if (child + 1 < queue->count && before(&queue->heap[child + 1], &queue->heap[child]))
      child++;
    if (!before(&queue->heap[child], &last))
      break;
    queue->heap[at] = queue->heap[child];
    at = child;
  }
  queue->heap[at] = last;
  return true;
}

void weft_sim_queue_clear(weft_sim_queue *queue) {
  for (size_t i = 0; i < queue->count; i++)
    weft_sim_burst_free(queue->heap[i].burst);
  free(queue->heap);
  *queue = (weft_sim_queue){0};
}
