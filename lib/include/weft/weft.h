// SPDX-License-Identifier: Apache-2.0
// weft: random linear network coding and storage erasure codes over GF(2^8). This header includes
// everything except the peer (weft/peer_engine.h, weft/peer_session.h) and weft/cuda.h, for
// programs with CUDA streams of their own.
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include "weft/context.h"
#include "weft/memory.h"
#include "weft/packet.h"
#include "weft/rlnc.h"
#include "weft/server.h"
#include "weft/status.h"
#include "weft/storage.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

const char *weft_version(void); // "0.1.0"

#ifdef __cplusplus
}
#endif
#endif
