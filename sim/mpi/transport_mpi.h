// SPDX-License-Identifier: Apache-2.0
// Ranks that communicate through MPI. All MPI calls come from the thread that made the transport.
#ifndef WEFT_SIM_MPI_TRANSPORT_MPI_H
#define WEFT_SIM_MPI_TRANSPORT_MPI_H

#include "sim/core/transport.h"

// Requires MPI_Init_thread with at least MPI_THREAD_FUNNELED. Errors: WEFT_E_NOMEM.
weft_status weft_sim_mpi_new(weft_sim_transport *out);
void weft_sim_mpi_free(weft_sim_transport *transport);
// Returns the number of ranks on this machine.
size_t weft_sim_mpi_local_ranks(void);

#endif
