/// The subset of MPI that runs on the simulated machine, with the names and the meaning of the
/// standard (MPI 1.2). It has only the functions below. Left out: derived types and MPI_Pack,
/// groups, MPI_Comm_split/create/compare, intercommunicators, topologies, attributes, collectives
/// other than MPI_Barrier, persistent requests, buffered, synchronous and ready modes,
/// MPI_Sendrecv, MPI_Cancel, MPI_Request_free, MPI_Waitany/some, MPI_Testall/any/some,
/// MPI_Get_elements, MPI_Abort, MPI_Initialized, MPI_Errhandler_*, MPI_Error_*,
/// MPI_Get_processor_name, MPI_Wtick.
///
/// A program that needs a certain number of processes defines `const int parcels_processes[2]`: the
/// least and the greatest number.
#pragma once

#define MPI_VERSION 1
#define MPI_SUBVERSION 2

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Errhandler;
typedef struct mpi_request *MPI_Request;
typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  unsigned long bytes;  ///< use MPI_Get_count
} MPI_Status;

enum { MPI_COMM_NULL = 0, MPI_COMM_WORLD = 2 };
enum {
  MPI_PROC_NULL = -1,
  MPI_ANY_SOURCE = -2,
  MPI_ANY_TAG = -3,
  MPI_UNDEFINED = -32766,
  MPI_TAG_UB_VALUE = 0x3fffffff
};
enum { MPI_ERRORS_ARE_FATAL = 1, MPI_ERRORS_RETURN = 2 };
enum {
  MPI_SUCCESS,
  MPI_ERR_BUFFER,
  MPI_ERR_COUNT,
  MPI_ERR_TYPE,
  MPI_ERR_TAG,
  MPI_ERR_COMM,
  MPI_ERR_RANK,
  MPI_ERR_REQUEST,
  MPI_ERR_ARG = 12,
  MPI_ERR_TRUNCATE = 14,
  MPI_ERR_OTHER = 15,
  MPI_ERR_IN_STATUS = 17
};
/// The lower byte of a type is the size of an element in bytes.
enum {
  MPI_BYTE = 0x101,
  MPI_CHAR = 0x201,
  MPI_UNSIGNED_CHAR = 0x301,
  MPI_SHORT = 0x402,
  MPI_UNSIGNED_SHORT = 0x502,
  MPI_INT = 0x604,
  MPI_UNSIGNED = 0x704,
  MPI_LONG = 0x808,
  MPI_UNSIGNED_LONG = 0x908,
  MPI_FLOAT = 0xa04,
  MPI_DOUBLE = 0xb08
};
#define MPI_REQUEST_NULL ((MPI_Request)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
/// Collective over the communicator. The new one has the same members and separate messages.
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made);
int MPI_Comm_free(MPI_Comm *comm);
/// Applies to all communicators of the process.
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int MPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status);
int MPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int MPI_Wait(MPI_Request *request, MPI_Status *status);
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses);
int MPI_Barrier(MPI_Comm comm);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
/// Seconds on the simulated machine at 1 GHz.
double MPI_Wtime(void);
