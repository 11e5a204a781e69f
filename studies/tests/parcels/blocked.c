/// Process 0 receives a message that process 1 never sends. Argument 1: a wrong rank; 2: process 0
/// polls for ever; 3: barriers of two communicators in two orders.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  const int wrong = argc > 1 ? atoi(argv[1]) : 0;
  int rank, value;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (wrong == 3) {
    MPI_Comm both[2] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &both[1]);
    for (int i = 0; i < 2; ++i) MPI_Barrier(both[(rank + i) % 2]);
  } else if (wrong == 1) {
    MPI_Send(&value, 1, MPI_INT, 17, 0, MPI_COMM_WORLD);
  } else if (rank == 0) {
    for (int is_there = 0; wrong == 2 && !is_there;)
      MPI_Iprobe(1, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
