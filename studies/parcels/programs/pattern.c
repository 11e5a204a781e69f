/// Runs message patterns from a file and prints what each receive got: for the tests of the
/// engines.
///
/// The file has integers. A pattern: number of operations, then the operations: rank, kind, peer,
/// tag, communicator (0 to 2), bytes, slot, id. A process runs the operations of its rank. Payloads
/// follow from the sender's id. A line per finished receive: pattern, place of the operation,
/// source, tag, bytes, error, id of the payload (-1 if it is not the payload of one message, -2 if
/// there are no bytes).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64, OPERATIONS = 512, MAX_BYTES = 100000 };
enum { ISEND, IRECV, SEND, RECV, PROBE, WAIT, WAITALL, BARRIER, TEST };
typedef struct operation {
  int rank, kind, peer, tag, communicator, bytes, slot, id;
} operation;

static operation operations[OPERATIONS];
static MPI_Request requests[SLOTS];
static unsigned char *buffers[SLOTS];
static int places[SLOTS];  // of the receive in a slot, or -1
static int pattern;

static unsigned char payload(int id, int i) {
  return (unsigned char)((id * 2654435761u + (unsigned)i * 97u) >> 5);
}

static int id_of(const unsigned char *data, int bytes, int id) {
  if (bytes == 0) return -2;
  for (int i = 0; i < bytes; ++i)
    if (data[i] != payload(id, i)) return -1;
  return id;
}

static void print_receive(int slot, const MPI_Status *status, int count) {
  int bytes, found = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  for (int i = 0; i < count && found == -1; ++i)  // the sender's operation with this payload
    if (operations[i].id >= 0 && operations[i].rank == status->MPI_SOURCE)
      found = id_of(buffers[slot], bytes, operations[i].id);
  printf("%d %d %d %d %d %d %d\n", pattern, places[slot], status->MPI_SOURCE, status->MPI_TAG,
         bytes, status->MPI_ERROR, found);
}

static void finished(int slot, const MPI_Status *status, int count) {
  if (places[slot] >= 0) print_receive(slot, status, count);
  places[slot] = -1;
}

static unsigned char *buffer(int slot, int id, int bytes) {
  if (!buffers[slot]) buffers[slot] = malloc(MAX_BYTES);
  if (!buffers[slot]) abort();
  for (int i = 0; id >= 0 && i < bytes; ++i) buffers[slot][i] = payload(id, i);
  return buffers[slot];
}

static void run(int at, const operation *it, int count, const MPI_Comm *communicators) {
  const MPI_Comm comm = communicators[it->communicator];
  MPI_Status status, statuses[SLOTS];
  int flag = 0;
  switch (it->kind) {
    case ISEND:
      places[it->slot] = -1;
      MPI_Isend(buffer(it->slot, it->id, it->bytes), it->bytes, MPI_BYTE, it->peer, it->tag, comm,
                &requests[it->slot]);
      break;
    case SEND:
      MPI_Send(buffer(it->slot, it->id, it->bytes), it->bytes, MPI_BYTE, it->peer, it->tag, comm);
      break;
    case IRECV:
      places[it->slot] = at;
      MPI_Irecv(buffer(it->slot, -1, 0), it->bytes, MPI_BYTE, it->peer, it->tag, comm,
                &requests[it->slot]);
      break;
    case RECV:
      places[it->slot] = at;
      status.MPI_ERROR =
          MPI_Recv(buffer(it->slot, -1, 0), it->bytes, MPI_BYTE, it->peer, it->tag, comm, &status);
      finished(it->slot, &status, count);
      break;
    case PROBE: {
      MPI_Status probed;
      int bytes, received;
      places[it->slot] = at;
      MPI_Probe(it->peer, it->tag, comm, &probed);
      MPI_Get_count(&probed, MPI_BYTE, &bytes);
      status.MPI_ERROR = MPI_Recv(buffer(it->slot, -1, 0), bytes, MPI_BYTE, probed.MPI_SOURCE,
                                  probed.MPI_TAG, comm, &status);
      MPI_Get_count(&status, MPI_BYTE, &received);
      if (received != bytes)
        printf("%d %d: the probe said %d bytes, %d came\n", pattern, at, bytes, received);
      finished(it->slot, &status, count);
      break;
    }
    case WAIT:
      status.MPI_ERROR = MPI_SUCCESS;
      status.MPI_ERROR = MPI_Wait(&requests[it->slot], &status);
      finished(it->slot, &status, count);
      break;
    case TEST:
      while (!flag) MPI_Test(&requests[it->slot], &flag, &status);
      finished(it->slot, &status, count);
      break;
    case WAITALL:
      for (int i = 0; i < SLOTS; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
      MPI_Waitall(SLOTS, requests, statuses);
      for (int i = 0; i < SLOTS; ++i) finished(i, &statuses[i], count);
      break;
    case BARRIER:
      MPI_Barrier(comm);
      break;
    default:
      abort();
  }
}

int main(int argc, char **argv) {
  FILE *file = argc > 1 ? fopen(argv[1], "r") : 0;
  if (!file) return 2;
  int rank, size, count;
  MPI_Comm communicators[3] = {MPI_COMM_WORLD};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 1; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
  for (int i = 0; i < SLOTS; ++i) requests[i] = MPI_REQUEST_NULL, places[i] = -1;
  for (; fscanf(file, "%d", &count) == 1; ++pattern) {
    if (count > OPERATIONS) return 2;
    for (int i = 0; i < count; ++i) {
      operation *it = &operations[i];
      if (fscanf(file, "%d %d %d %d %d %d %d %d", &it->rank, &it->kind, &it->peer, &it->tag,
                 &it->communicator, &it->bytes, &it->slot, &it->id) != 8)
        return 2;
      if (it->rank >= size) return puts("the pattern needs more processes"), 2;
    }
    for (int i = 0; i < count; ++i)
      if (operations[i].rank == rank) run(i, &operations[i], count, communicators);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  fclose(file);
  MPI_Finalize();
  return 0;
}
