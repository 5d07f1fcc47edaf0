// SPDX-License-Identifier: Apache-2.0
// Reports a service's state to systemd (the datagram of sd_notify, without its library).
#ifndef WEFT_PEER_NOTIFY_H
#define WEFT_PEER_NOTIFY_H

#ifdef __cplusplus
extern "C" {
#endif

// Sends `state`, such as "READY=1", "STOPPING=1" or "STATUS=...". Does nothing if NOTIFY_SOCKET is
// not set.
void weft_notify(const char *state);

#ifdef __cplusplus
}
#endif
#endif
