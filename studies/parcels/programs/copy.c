/// Copies data within one process, for figure 7c. Arguments: bytes of a copy, number of copies.
#include <mpi.h>
#include <stdlib.h>

__attribute__((noinline)) static void copy(long *to, const long *from, long words) {
  for (long i = 0; i < words; ++i) to[i] = from[i];
}

int main(int argc, char **argv) {
  const long bytes = argc > 1 ? atol(argv[1]) : 4096;
  const int copies = argc > 2 ? atoi(argv[2]) : 1;
  MPI_Init(&argc, &argv);
  long *from = calloc(2, (size_t)bytes), *to = from + bytes / 8;
  for (int i = 0; from && i < copies; ++i) copy(to, from, bytes / 8);
  MPI_Finalize();
  return !from;
}
