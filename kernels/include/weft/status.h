// SPDX-License-Identifier: Apache-2.0
// The status codes of weft: every call that can fail returns one, and reports failure in no other
// way.
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weft_status {
  WEFT_OK = 0,
  // Outcomes that are not errors.
  WEFT_DEPENDENT, // a well-formed packet that adds no rank; it was dropped, nothing changed
  WEFT_PENDING,   // work on a queue has not finished, or not enough rank has arrived yet
  // The caller's arguments.
  WEFT_E_ARGUMENT, // an argument is outside its documented range
  WEFT_E_BUFFER,   // the caller's buffer is too small
  WEFT_E_STATE,    // the call does not fit the handle's state (for example a shard added twice)
  // A packet or a matrix.
  WEFT_E_VERSION,   // a packet or shard of a format version unknown to this library
  WEFT_E_MALFORMED, // a packet that is truncated or contradicts itself
  WEFT_E_FOREIGN,   // a packet of another stream, segment or shape
  WEFT_E_SINGULAR,  // a matrix has no inverse: more shards are lost than the code can rebuild, or
                    // packets are linearly dependent
  // The machine.
  WEFT_E_NOMEM,           // out of host memory
  WEFT_E_THREAD,          // a thread could not be started
  WEFT_E_DESCRIPTOR,      // no file descriptor is left for this process, or on the machine
  WEFT_E_RANDOM,          // the system's source of randomness failed
  WEFT_E_BACKEND_UNKNOWN, // no backend row of that name was compiled in
  WEFT_E_BACKEND_ABSENT,  // the row exists, but this machine lacks what it needs
  WEFT_E_UNSUPPORTED,     // the row does not support this operation or this kind of memory
  WEFT_E_DEVICE,          // the device reported an error
  WEFT_E_DEVICE_NOMEM,    // out of device memory
  WEFT_E_DEVICE_LOST,     // the device stopped responding; its handles can only be freed
  // Files.
  WEFT_E_IO,        // a file could not be read or written
  WEFT_E_DAMAGED,   // more is lost or corrupt than the code can repair
  WEFT_E_KEY,       // a key is missing, or is not the one that was used
  WEFT_E_STOPPED,   // the caller asked to stop
  WEFT_STATUS_COUNT // not a status
} weft_status;

// A short English description of a status; never NULL, statically allocated.
const char *weft_status_text(weft_status status);

// The status's name as in the enum, for logs and JSON; never NULL.
const char *weft_status_name(weft_status status);

// Returns from the calling function with any status other than WEFT_OK.
#define WEFT_TRY(expression)                                                                       \
  do {                                                                                             \
    const weft_status weft_try_status_ = (expression);                                             \
    if (weft_try_status_ != WEFT_OK)                                                               \
      return weft_try_status_;                                                                     \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif
