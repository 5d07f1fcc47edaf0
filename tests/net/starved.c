// SPDX-License-Identifier: Apache-2.0
// A peer that has no memory left for a stream once it has found one.
#include "weft/peer_engine.h"

weft_status __real_weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                                   const weft_engine_self *self, weft_engine **out);
weft_status __wrap_weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                                   const weft_engine_self *self, weft_engine **out);

weft_status __wrap_weft_engine_new(weft_ctx *ctx, const weft_engine_options *options,
                                   const weft_engine_self *self, weft_engine **out) {
  return self->source ? __real_weft_engine_new(ctx, options, self, out) : WEFT_E_NOMEM;
}
