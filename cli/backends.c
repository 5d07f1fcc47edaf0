// SPDX-License-Identifier: Apache-2.0
// `weft backends`: the table of rows as this build has it, and what this machine can run.
#include <stdio.h>

#include "cli/cli.h"

int cli_backends(int argc, char **argv) {
  static const GOptionEntry none[] = {{0}};
  const int code = cli_parse("backends",
                             "Lists the backend rows, best first. The first host row that is here "
                             "computes; another\n"
                             "one if --backend NAME or WEFT_BACKEND=NAME says so (cuda: the first "
                             "device row).",
                             NULL, none, argc, argv);
  if (code >= 0)
    return code;
  // 23: the longest name, cuda-b1-wgmma-karatsuba.
  printf("%-23s  %-6s  %-4s  %s\n", "name", "memory", "here", "technique");
  for (size_t i = 0; i < weft_backend_count_all(); i++) {
    weft_backend_info info;
    const weft_status status = weft_backend_describe(i, &info);
    if (status != WEFT_OK)
      return cli_error("backends", CLI_MACHINE, "%s", weft_status_text(status));
    printf("%-23s  %-6s  %-4s  %s\n", info.name, info.mem == WEFT_MEM_HOST ? "host" : "device",
           info.available ? "yes" : "no", info.technique);
  }
  return cli_flush("backends", CLI_OK);
}
