// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "peer/runtime/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void weft_notify(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  const size_t length = path ? strlen(path) : 0;
  if (length < 2 || length >= sizeof to.sun_path || (path[0] != '/' && path[0] != '@'))
    return;
  memcpy(to.sun_path, path, length);
  if (path[0] == '@')
    to.sun_path[0] = '\0'; // an abstract address
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  if (fd < 0)
    return;
  // Failure does not matter: the service manager may be gone.
  (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
  close(fd);
}
