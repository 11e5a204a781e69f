/// Exchanges halos on a torus of processes: each sends its four sides to its neighbours and checks
/// what it gets. Prints the mean seconds of an exchange at process 0. Arguments: bytes of a side,
/// number of exchanges.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  const int bytes = argc > 1 ? atoi(argv[1]) : 1024, exchanges = argc > 2 ? atoi(argv[2]) : 4;
  if (bytes < 0 || bytes > 1 << 28 || exchanges < 1)
    return puts("the arguments are at most 256 MiB, and a number of exchanges from 1 on"), 2;
  int rank, size, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int width = 1;
  while (2 * width * width <= size)
    width *= 2;  // the greatest power of two whose rows fill the processes
  while (size % width) --width;
  const int height = size / width, x = rank % width, y = rank / width;
  const int neighbours[4] = {y * width + (x + 1) % width, y * width + (x + width - 1) % width,
                             (y + 1) % height * width + x, (y + height - 1) % height * width + x};
  char *out = malloc(4 * (size_t)bytes + 1), *in = malloc(4 * (size_t)bytes + 1);
  if (!out || !in) return 2;
  for (int side = 0; side < 4; ++side) memset(out + side * bytes, rank * 4 + side, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < exchanges; ++i) {
    MPI_Request requests[8];
    for (int side = 0; side < 4; ++side)  // what comes from a neighbour is its opposite side
      MPI_Irecv(in + side * bytes, bytes, MPI_BYTE, neighbours[side], side ^ 1, MPI_COMM_WORLD,
                &requests[side]);
    for (int side = 0; side < 4; ++side)
      MPI_Isend(out + side * bytes, bytes, MPI_BYTE, neighbours[side], side, MPI_COMM_WORLD,
                &requests[4 + side]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  }
  if (rank == 0) printf("%.9g\n", (MPI_Wtime() - start) / exchanges);
  for (int side = 0; side < 4 && bytes; ++side) {
    const char sent = (char)(neighbours[side] * 4 + (side ^ 1));
    wrong += in[side * bytes] != sent || in[side * bytes + bytes - 1] != sent;
  }
  free(out), free(in);
  MPI_Finalize();
  return wrong;
}
