// SPDX-License-Identifier: Apache-2.0
#include "sim/core/reserve.h"

#include <stdlib.h>
#include <string.h>

weft_status weft_sim_reserve(void *array, size_t *room, size_t count, size_t more, size_t bytes) {
  void *items;
  if (count + more <= *room)
    return WEFT_OK;
  memcpy(&items, array, sizeof items);
  const size_t larger = 2 * (count + more);
  items = realloc(items, larger * bytes);
  if (!items)
    return WEFT_E_NOMEM;
  memcpy(array, &items, sizeof items);
  *room = larger;
  return WEFT_OK;
}
