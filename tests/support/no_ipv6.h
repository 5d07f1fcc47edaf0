// SPDX-License-Identifier: Apache-2.0
// Simulates a kernel without IPv6 (ipv6.disable=1) for a process: it gets no IPv6 socket.
#ifndef WEFT_TESTS_NO_IPV6_H
#define WEFT_TESTS_NO_IPV6_H

#include <stdbool.h>

// Makes socket(AF_INET6, ...) fail with EAFNOSUPPORT from now on, in this thread and all it starts.
// Returns false and sets errno if the kernel has no seccomp filters, or does not permit one.
bool test_no_ipv6(void);

#endif
