// SPDX-License-Identifier: Apache-2.0
// Names and texts of weft_status.
#include "weft/status.h"

static const struct {
  const char *name;
  const char *text;
} words[WEFT_STATUS_COUNT] = {
#define WORDS(status, sentence) [status] = {#status, sentence}
    WORDS(WEFT_OK, "done"),
    WORDS(WEFT_DEPENDENT, "the packet does not raise the rank"),
    WORDS(WEFT_PENDING, "not yet: work or packets are still pending"),
    WORDS(WEFT_E_ARGUMENT, "an argument is outside its documented range"),
    WORDS(WEFT_E_BUFFER, "the caller's buffer is too small"),
    WORDS(WEFT_E_STATE, "the call does not fit the handle's state"),
    WORDS(WEFT_E_VERSION, "the packet or shard has an unknown version"),
    WORDS(WEFT_E_MALFORMED, "the packet is truncated or contradicts itself"),
    WORDS(WEFT_E_FOREIGN, "the packet belongs to another stream, segment or shape"),
    WORDS(WEFT_E_SINGULAR,
          "the matrix has no inverse: too much is lost, or packets are linearly dependent"),
    WORDS(WEFT_E_NOMEM, "out of host memory"),
    WORDS(WEFT_E_THREAD, "a thread could not be started"),
    WORDS(WEFT_E_DESCRIPTOR, "no file descriptor is left"),
    WORDS(WEFT_E_RANDOM, "the system's source of randomness failed"),
    WORDS(WEFT_E_BACKEND_UNKNOWN, "no backend of that name is compiled in"),
    WORDS(WEFT_E_BACKEND_ABSENT, "this machine lacks what the backend needs"),
    WORDS(WEFT_E_UNSUPPORTED, "the backend does not support this operation or kind of memory"),
    WORDS(WEFT_E_DEVICE, "the device reported an error"),
    WORDS(WEFT_E_DEVICE_NOMEM, "out of device memory"),
    WORDS(WEFT_E_DEVICE_LOST, "the device stopped responding"),
    WORDS(WEFT_E_IO, "a file could not be read or written"),
    WORDS(WEFT_E_DAMAGED, "more is lost or corrupt than the code can repair"),
    WORDS(WEFT_E_KEY, "the key is missing, or is not the one that was used"),
    WORDS(WEFT_E_STOPPED, "stopped at the caller's request"),
#undef WORDS
};

// Callers may pass a number that is no status (from a file, from another version).
static int known(weft_status status) { return (unsigned)status < WEFT_STATUS_COUNT; }

const char *weft_status_text(weft_status status) {
  return known(status) ? words[status].text : "unknown status";
}

const char *weft_status_name(weft_status status) {
  return known(status) ? words[status].name : "WEFT_STATUS_UNKNOWN";
}
