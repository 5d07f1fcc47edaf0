// SPDX-License-Identifier: Apache-2.0
// Counts the audience, second by second and at most, from the times when each peer came and left.
#include <stdlib.h>

#include "sim/crowd.h"
#include "sim/swarm/swarm.h"

static void add_presence(weft_sim_second *seconds, size_t second_count, int64_t from_us,
                         int64_t to_us) {
  for (size_t s = (size_t)(from_us / 1000000); s < second_count && from_us < to_us; s++) {
    const int64_t next_us = ((int64_t)s + 1) * 1000000,
                  until_us = to_us < next_us ? to_us : next_us;
    seconds[s].online_us += (uint64_t)(until_us - from_us);
    from_us = until_us;
  }
}

weft_status weft_sim_count_audience(const weft_sim_viewer *viewers, size_t count, int64_t end_us,
                                    weft_sim_second *seconds, size_t second_count, uint64_t *most) {
  int64_t *came_us = malloc((2 * count + 1) * sizeof *came_us), *left_us = came_us + count;
  if (!came_us)
    return WEFT_E_NOMEM;
  size_t watching = 0;
  for (size_t i = 0; i < count; i++) {
    const weft_sim_viewer *v = &viewers[i];
    if (!weft_sim_is_audience(v))
      continue;
    came_us[watching] = v->joined_us;
    left_us[watching] = v->left && v->left_us < end_us ? v->left_us : end_us;
    add_presence(seconds, second_count, v->joined_us, left_us[watching]);
    watching++;
  }
  weft_sim_sort_times(came_us, watching);
  weft_sim_sort_times(left_us, watching);
  *most = 0;
  for (size_t came = 0, left = 0; came < watching; came++) {
    while (left < came && left_us[left] <= came_us[came])
      left++;
    *most = came + 1 - left > *most ? came + 1 - left : *most;
  }
  free(came_us);
  return WEFT_OK;
}
