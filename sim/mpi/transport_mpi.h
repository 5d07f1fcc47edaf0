// SPDX-License-Identifier: Apache-2.0
// Ranks that meet through MPI. MPI's calls come from the thread that made the transport.
#ifndef WEFT_SIM_MPI_TRANSPORT_MPI_H
#define WEFT_SIM_MPI_TRANSPORT_MPI_H

#include "sim/core/transport.h"

// After MPI_Init_thread with MPI_THREAD_FUNNELED at least. WEFT_E_NOMEM.
weft_status weft_sim_mpi_new(weft_sim_transport *out);
void weft_sim_mpi_free(weft_sim_transport *transport);
// Ranks on this machine.
size_t weft_sim_mpi_local_ranks(void);

#endif
