// SPDX-License-Identifier: Apache-2.0
// `weft backends`: lists the backend rows of this build, and which of them this machine can run. A
// row is one coding technique for certain CPUs or GPUs.
#include <stdio.h>

#include <jansson.h>

#include "cli/cli.h"

static int as_json(void) {
  json_t *rows = json_array();
  for (size_t i = 0; i < weft_backend_count_all(); i++) {
    weft_backend_info info;
    if (weft_backend_describe(i, &info) == WEFT_OK)
      json_array_append_new(rows, json_pack("{s:s, s:s, s:b, s:I, s:s}", "name", info.name,
                                            "memory", info.mem == WEFT_MEM_HOST ? "host" : "device",
                                            "here", info.available, "align", (json_int_t)info.align,
                                            "technique", info.technique));
  }
  json_t *root = json_pack("{s:s, s:o}", "version", weft_version(), "backends", rows);
  cli_json_errors_end();
  const bool written = root && json_dumpf(root, stdout, JSON_COMPACT) == 0;
  json_decref(root);
  if (!written)
    return cli_error("backends", CLI_IO, "standard output could not be written");
  putchar('\n');
  return cli_flush("backends", CLI_OK);
}

int cli_backends(int argc, char **argv) {
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"json", 0, 0, G_OPTION_ARG_NONE, &json, "Print one JSON object instead of the table", NULL},
      {0}};
  const int code = cli_parse("backends",
                             "Lists the backend rows (implementations of the kernels), best "
                             "first. weft uses the\n"
                             "first host row that this machine can run, unless --backend NAME or "
                             "WEFT_BACKEND=NAME\n"
                             "selects another one (cuda: the first device row).",
                             "Exit codes: 0 done; 2 command line; 3 output.", entries, argc, argv);
  if (code >= 0)
    return code;
  if (json)
    return as_json();
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
