// SPDX-License-Identifier: Apache-2.0
// A policy in a file (WEFT_POLICY_FILE in weft/peer_policy.h), for `weft sim` and `weft peer`. A
// policy decides what a peer sends, or asks for, next.
#ifndef WEFT_CLI_POLICY_H
#define WEFT_CLI_POLICY_H

#include "weft/peer_policy.h"

// A policy, valid until the program ends, and the BLAKE2b hash of its file.
typedef struct cli_policy {
  const weft_policy *policy;
  char hash[65];
} cli_policy;

// Loads a policy. Returns -1 to go on, else an exit code, having reported what is wrong with the
// file.
int cli_policy_load(const char *command, const char *path, cli_policy *out);

// Reports that the policy chose something that does not exist, for which an engine returns
// WEFT_E_ARGUMENT. Returns the exit code.
int cli_policy_wrong(const char *command, const weft_policy *policy);

#endif
