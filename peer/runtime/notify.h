// SPDX-License-Identifier: Apache-2.0
// Tells systemd how a service is (sd_notify's datagram, without its library).
#ifndef WEFT_PEER_NOTIFY_H
#define WEFT_PEER_NOTIFY_H

#ifdef __cplusplus
extern "C" {
#endif

// "READY=1", "STOPPING=1", "STATUS=..."; nothing where NOTIFY_SOCKET is not set.
void weft_notify(const char *state);

#ifdef __cplusplus
}
#endif
#endif
