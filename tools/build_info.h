// SPDX-License-Identifier: Apache-2.0
// What this program was built from and how, for `weft --version` and for the provenance of every
// measured figure.
#ifndef WEFT_TOOLS_BUILD_INFO_H
#define WEFT_TOOLS_BUILD_INFO_H

// Full commit id, with "-dirty" if the tree had changes; "unknown" outside a checkout. Static
// strings, also below.
const char *weft_build_commit(void);
// Compiler and its version, such as "gcc 12.2.0".
const char *weft_build_compiler(void);
// Compilation mode and the flags of the configuration, such as "opt -O3".
const char *weft_build_flags(void);

#endif
