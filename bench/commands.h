// SPDX-License-Identifier: Apache-2.0
// The comparisons of `weft bench`. Each gets its own name as argv[0] and returns an exit status.
#ifndef WEFT_BENCH_COMMANDS_H
#define WEFT_BENCH_COMMANDS_H

int weft_bench_banks_command(int argc, char **argv);
int weft_bench_ceilings_command(int argc, char **argv);
int weft_bench_mul_command(int argc, char **argv);
int weft_bench_rlnc_command(int argc, char **argv);
int weft_bench_decoder_command(int argc, char **argv);
int weft_bench_pool_command(int argc, char **argv);
int weft_bench_storage_command(int argc, char **argv);
int weft_bench_gpu_command(int argc, char **argv);
int weft_bench_server_command(int argc, char **argv);
int weft_bench_peer_command(int argc, char **argv);
int weft_bench_sim_command(int argc, char **argv);
int weft_bench_compare_command(int argc, char **argv);

#endif
