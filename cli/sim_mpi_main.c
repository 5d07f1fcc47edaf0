// SPDX-License-Identifier: Apache-2.0
// The program `weft-sim-mpi`: `weft sim` spread over the ranks of MPI. Rank 0 writes.
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "cli/sim.h"
#include "sim/mpi/transport_mpi.h"

// Removes --oversubscribe from the arguments; returns whether it was there.
static bool take_oversubscribe(int *argc, char **argv) {
  bool found = false;
  int kept = 0;
  for (int i = 0; i < *argc; i++) {
    if (strcmp(argv[i], "--oversubscribe") == 0)
      found = true;
    else
      argv[kept++] = argv[i];
  }
  argv[kept] = NULL;
  *argc = kept;
  return found;
}

// Prints the messages of a rank that failed while the others wait for it, and ends all ranks.
static void end_all(int code, const GString *messages, const GString *objects, FILE *out) {
  fputs(messages->str, stderr);
  if (out)
    fputs(objects->str, out), (void)fflush(out);
  MPI_Abort(MPI_COMM_WORLD, code);
}

// Has only the first rank that failed print its messages, as ranks mostly fail alike. Returns the
// worst exit code of all ranks.
static int tell_once(int code, int rank, const GString *messages, const GString *objects,
                     FILE *out) {
  int worst = code, first = code == CLI_OK ? INT_MAX : rank, speaker = first;
  MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&first, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  cli_hold_messages(NULL, NULL);
  if (rank > 0 && speaker == rank) {
    fputs(messages->str, stderr);
    if (out)
      fputs(objects->str, out), (void)fflush(out);
  }
  return worst;
}

// Runs the command with one thread, unless a --threads of the user's, which comes later, overrides
// it.
static int run_sim(int argc, char **argv, weft_sim_transport *transport) {
  char **words = g_new0(char *, (size_t)argc + 2);
  char name[] = "--threads=1";
  words[0] = argv[0];
  words[1] = name;
  for (int i = 1; i < argc; i++)
    words[i + 1] = argv[i];
  if (transport->rank == 0)
    cli_environment_check();
  const int code = sim_command(argc + 1, words, transport);
  g_free(words);
  return code;
}

// Runs a rank, unless a machine has fewer processors than ranks: then none runs, and its ranks say
// so.
static int run_rank(int argc, char **argv, weft_sim_transport *transport, bool oversubscribe) {
  const size_t local = weft_sim_mpi_local_ranks();
  const bool crowded = local > g_get_num_processors() && !oversubscribe;
  uint64_t any = crowded;
  if (transport->sum(transport->user, &any, 1) == WEFT_OK && !any)
    return run_sim(argc, argv, transport);
  return !crowded ? CLI_OK
                  : cli_error("sim", CLI_USAGE,
                              "%zu ranks on %u processors: ranks would wait for each other; use "
                              "--oversubscribe if that is intended",
                              local, g_get_num_processors());
}

int main(int argc, char **argv) {
  int provided;
  if (!cli_start())
    return CLI_IO;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const bool oversubscribe = take_oversubscribe(&argc, argv);
  weft_sim_transport transport = {0};
  GString *messages = g_string_new(""), *objects = g_string_new("");
  FILE *const out = fdopen(dup(STDOUT_FILENO), "w"); // of a rank whose own is closed below
  int code;
  (void)cli_json_errors(argc, argv, stdout);
  if (weft_sim_mpi_new(&transport) != WEFT_OK) {
    code = cli_error("sim", CLI_MACHINE, "%s", weft_status_text(WEFT_E_NOMEM));
  } else {
    if (transport.rank > 0) {
      (void)!freopen("/dev/null", "w", stdout); // help and lists are told once
      cli_hold_messages(messages, objects);
    }
    code = run_rank(argc, argv, &transport, oversubscribe);
  }
  if (transport.parted)
    end_all(code, messages, objects, out);
  const int rank = (int)transport.rank;
  weft_sim_mpi_free(&transport);
  const int worst = tell_once(code, rank, messages, objects, out);
  g_string_free(messages, TRUE);
  g_string_free(objects, TRUE);
  MPI_Finalize();
  return worst;
}
