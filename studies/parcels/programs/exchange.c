/// One exchange, for a timeline: process 0 sends one message to a posted receive and one that is
/// unexpected, each of the given number of bytes. Argument: bytes.
#include <mpi.h>
#include <stdlib.h>

const int parcels_processes[2] = {2, 4096};

int main(int argc, char **argv) {
  const int bytes = argc > 1 ? atoi(argv[1]) : 256;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = calloc(2, (size_t)bytes + 1);
  MPI_Request request;
  if (rank == 1) MPI_Irecv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Send(data, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(data + bytes, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  free(data);
  MPI_Finalize();
  return 0;
}
