// SPDX-License-Identifier: Apache-2.0
// A kernel without IPv6 (ipv6.disable=1), as far as a process can see: it gets no such socket.
#ifndef WEFT_TESTS_NO_IPV6_H
#define WEFT_TESTS_NO_IPV6_H

#include <stdbool.h>

// From now on socket(AF_INET6, ...) fails with EAFNOSUPPORT in this thread and what it starts, for
// good. False, and errno says why: the kernel has no seccomp filters, or grants none.
bool test_no_ipv6(void);

#endif
