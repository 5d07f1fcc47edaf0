// SPDX-License-Identifier: Apache-2.0
// Chooses the comparison.
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/commands.h"
#include "tools/printable.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *what;
} commands[] = {
    {"rlnc", weft_bench_rlnc_command, "encode, recode and decode segments"},
    {"decoder", weft_bench_decoder_command,
     "a decoder's parts: packets eliminated, blocks reduced; one recoded"},
    {"pool", weft_bench_pool_command,
     "a job of the thread pool, behind another one and after pauses"},
    {"mul", weft_bench_mul_command, "every multiplication technique, side by side"},
    {"storage", weft_bench_storage_command,
     "erasure codes, compared with their bounds and other libraries"},
    {"gpu", weft_bench_gpu_command, "the library on a GPU, compared with the GPU's ceilings"},
    {"server", weft_bench_server_command, "the streaming server on host and device lanes"},
    {"peer", weft_bench_peer_command, "a peer's send path: coding, sealing, sending; and a flood"},
    {"sim", weft_bench_sim_command, "swarms in virtual time: events per second, memory per peer"},
    {"ceilings", weft_bench_ceilings_command, "what this machine's arithmetic and memory can do"},
    {"banks", weft_bench_banks_command,
     "bank conflicts of a warp's lookups in shared memory, simulated"},
    {"compare", weft_bench_compare_command, "A.json B.json: what changed beyond noise"},
};

int weft_bench_main(int argc, char **argv) {
  const char *const wanted = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(wanted, commands[i].name) == 0)
      return commands[i].run(argc - 1, argv + 1);
  const int help = strcmp(wanted, "--help") == 0 || strcmp(wanted, "-h") == 0;
  if (*wanted && !help) {
    weft_print(stderr, "weft bench: unknown comparison '%s' (see weft bench --help)\n", wanted);
    return WEFT_BENCH_USAGE;
  }
  FILE *const out = help ? stdout : stderr;
  fprintf(out, "usage: weft bench COMPARISON [options]; COMPARISON --help lists them\n");
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
  fputs("\nNumbers accept Ki or K (1024) and Mi or M (1024^2): here also 4K is 4096, while the "
        "other\n"
        "commands of weft take k and M as powers of 1000.\n",
        out);
  fprintf(
      out,
      "\nExit codes: 0 done; 1 a result is wrong; 2 command line; 3 input or output; 4 memory,\n"
      "backend or device; 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by a terminal that "
      "closed:\n"
      "the groups and, of the current one, the complete repetitions measured by then are in\n"
      "FILE.part of --json.\n");
  return help ? 0 : WEFT_BENCH_USAGE;
}
