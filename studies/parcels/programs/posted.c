/// The paper's benchmark (section 4.1): two processes send 10 messages in each direction, one after
/// another. A part of the receives is posted before the messages arrive, the others are not: the
/// receiver probes for them. Arguments: bytes of a message, percentage of posted receives. After
/// Brightwell and Underwood, EuroPVM/MPI 2003.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 10 };
const int parcels_processes[2] = {2, 2};

static unsigned char expected(int sender, int message, long i) {
  return (unsigned char)(31 * sender + 7 * message + i);
}

static void send_all(char *data, int bytes, int rank) {
  for (int m = 0; m < MESSAGES; ++m) {
    for (long i = 0; i < bytes; ++i) data[i] = (char)expected(rank, m, i);
    MPI_Send(data, bytes, MPI_BYTE, 1 - rank, m, MPI_COMM_WORLD);
  }
}

static int receive_all(char *data, int bytes, int rank, int posted) {
  MPI_Request requests[MESSAGES];
  for (int m = 0; m < posted; ++m)
    MPI_Irecv(data + (long)m * bytes, bytes, MPI_BYTE, 1 - rank, m, MPI_COMM_WORLD, &requests[m]);
  MPI_Barrier(MPI_COMM_WORLD);  // the sender starts after this
  for (int m = posted; m < MESSAGES; ++m) {
    MPI_Status status;
    MPI_Probe(1 - rank, m, MPI_COMM_WORLD, &status);
    MPI_Recv(data + (long)m * bytes, bytes, MPI_BYTE, 1 - rank, m, MPI_COMM_WORLD, &status);
  }
  MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
  int wrong = 0;
  for (int m = 0; m < MESSAGES; ++m)
    for (long i = 0; i < bytes; ++i)
      wrong += (unsigned char)data[(long)m * bytes + i] != expected(1 - rank, m, i);
  return wrong;
}

int main(int argc, char **argv) {
  int rank, wrong = 0;
  MPI_Init(&argc, &argv);
  const int bytes = argc > 1 ? atoi(argv[1]) : 256,
            posted = (argc > 2 ? atoi(argv[2]) : 100) * MESSAGES / 100;
  if (bytes < 0 || bytes > 1 << 27 || posted < 0 || posted > MESSAGES)
    return puts("the arguments are at most 128 MiB, and 0 to 100% of posted receives"), 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *data = malloc((size_t)bytes * MESSAGES + 1);
  for (int sender = 0; sender < 2 && data; ++sender) {
    if (rank == sender) {
      MPI_Barrier(MPI_COMM_WORLD);
      send_all(data, bytes, rank);
    } else {
      wrong += receive_all(data, bytes, rank, posted);
    }
  }
  free(data);
  MPI_Finalize();
  if (wrong) printf("rank %d: %d wrong bytes\n", rank, wrong);
  return !data || wrong;
}
