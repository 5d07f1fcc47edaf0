// SPDX-License-Identifier: Apache-2.0
// A policy in a file (WEFT_POLICY_FILE in weft/peer_policy.h), for `weft sim` and `weft peer`.
#ifndef WEFT_CLI_POLICY_H
#define WEFT_CLI_POLICY_H

#include "weft/peer_policy.h"

// There until the program ends, and BLAKE2b of the file that has it.
typedef struct cli_policy {
  const weft_policy *policy;
  char hash[65];
} cli_policy;

// -1 to go on, else an exit code: it has told what is wrong with the file.
int cli_policy_load(const char *command, const char *path, cli_policy *out);

// Tells that it chose what there is not, which an engine answers with WEFT_E_ARGUMENT. The exit
// code.
int cli_policy_wrong(const char *command, const weft_policy *policy);

#endif
