/// Calls MPI_Barrier and prints the mean seconds of a call at process 0. Argument: number of calls.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 10;
  if (calls < 1) return puts("the argument is a number of calls from 1 on"), 2;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.9g\n", (MPI_Wtime() - start) / calls);
  MPI_Finalize();
  return 0;
}
