// SPDX-License-Identifier: Apache-2.0
#ifndef WEFT_KERNELS_COPY_PAST_H
#define WEFT_KERNELS_COPY_PAST_H

#include <stddef.h>
#include <stdint.h>

// memcpy for what nobody reads soon: past the caches where the processor can, which saves reading
// the lines of `to` first.
void weft_copy_past(uint8_t *to, const uint8_t *from, size_t bytes);

#endif
