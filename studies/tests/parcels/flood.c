/// Process 0 starts 150 eager messages of 60,000 bytes and 5 long ones before process 1 receives
/// any: more bytes than a process has for unexpected messages. They must arrive in order. Prints a
/// line if one is wrong.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGES = 155, BYTES = 60000, LONG = 70000 };
static char data[MESSAGES][LONG], back[LONG];

int main(int argc, char **argv) {
  int rank, wrong = 0;
  MPI_Request requests[MESSAGES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < MESSAGES && rank == 0; ++i) {
    memset(data[i], i, LONG);
    MPI_Isend(data[i], i % 31 ? BYTES : LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MESSAGES && rank == 1; ++i) {
    MPI_Status status;
    int count;
    MPI_Recv(back, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    wrong += count != (i % 31 ? BYTES : LONG) || back[0] != (char)i || back[count - 1] != (char)i;
  }
  if (rank == 0) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
  if (wrong) printf("%d messages are wrong\n", wrong);
  MPI_Finalize();
  return wrong != 0;
}
