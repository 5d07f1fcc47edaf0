// SPDX-License-Identifier: Apache-2.0
// The environment variables that belong to weft.
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
  const char *name, *value, *about; // about NULL: of what runs the program
} variables[] = {
    {"WEFT_BACKEND", "NAME", "the default of --backend"},
    {"WEFT_CODE_FOLDER", "FOLDER", "where to keep kernels compiled for a GPU at run time"},
    {CLI_PEER_PREFIX "OPTION", "VALUE", "sets --option of weft peer (docs/peer.md)"},
    {"WEFT_ARCHIVE", NULL, NULL},     // tools/install
    {"WEFT_BAZEL", NULL, NULL},       // bazelw
    {"WEFT_CALLED_FROM", NULL, NULL}, // bazelw tells where it was called
    {"WEFT_CI_FUZZ_SECONDS", NULL, NULL},
    {"WEFT_CI_SECONDS", NULL, NULL},
    {"WEFT_CLUSTER_INSIDE", NULL, NULL}, // bench/cluster
    {"WEFT_FUZZ_OUT", NULL, NULL},
    {"WEFT_GPU_REDUCED", NULL, NULL},
    {"WEFT_IN_NAMESPACE", NULL, NULL}, // tests/net
    {"WEFT_LIBRARY", NULL, NULL},      // integrations/python
    {"WEFT_MPI", NULL, NULL},          // bazelw tells Bazel, which tells what it runs
    {"WEFT_PRINT_BOUNDS", NULL, NULL}, // tests/bench
    {"WEFT_SOAK_SECONDS", NULL, NULL},
    {"WEFT_TEST_SEED", NULL, NULL},
};

void cli_environment_tell(FILE *to) {
  fputs("Environment:\n", to);
  for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
    if (variables[i].about) {
      char text[64];
      g_snprintf(text, sizeof text, "%s=%s", variables[i].name, variables[i].value);
      fprintf(to, "  %-26s%s\n", text, variables[i].about);
    }
}

static bool known(const char *name) {
  if (g_str_has_prefix(name, CLI_PEER_PREFIX))
    return true; // weft peer checks these itself
  for (size_t i = 0; i < G_N_ELEMENTS(variables); i++)
    if (strcmp(variables[i].name, name) == 0)
      return true;
  return false;
}

void cli_environment_check(void) {
  g_auto(GStrv) names = g_listenv();
  for (char **name = names; *name; name++)
    if (g_str_has_prefix(*name, "WEFT_") && !known(*name))
      cli_error(NULL, CLI_OK, "%s in the environment is not a variable of weft (see weft --help)",
                *name);
}
