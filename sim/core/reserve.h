// SPDX-License-Identifier: Apache-2.0
// Lists that grow.
#ifndef WEFT_SIM_CORE_RESERVE_H
#define WEFT_SIM_CORE_RESERVE_H

#include <stddef.h>

#include "weft/status.h"

// Makes room for `more` items of `bytes` bytes after `count`, and for as many again. `array`: the
// address of a pointer to objects, from malloc or NULL; *room: how many fit. On WEFT_E_NOMEM the
// list is unchanged.
weft_status weft_sim_reserve(void *array, size_t *room, size_t count, size_t more, size_t bytes);

#endif
