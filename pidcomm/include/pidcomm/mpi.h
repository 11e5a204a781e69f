/* mpi.h: a transport between hosts by MPI. The functions compile in your program, with the mpi.h of
 * your MPI; the library links no MPI.
 *
 *   pidcomm_transport transport;
 *   PIDCOMM_CHECK(pidcomm_mpi_transport(MPI_COMM_WORLD, &transport));
 *   PIDCOMM_CHECK(pidcomm_hosts_connect(cube, &transport, NULL, &hosts));
 *
 * Each process of the communicator is a host, and its rank is the number of the host. */
#ifndef PIDCOMM_MPI_H
#define PIDCOMM_MPI_H

#include <mpi.h>
#include <pidcomm/hosts.h>
#include <stdlib.h>

/* The context of the transport. */
typedef struct pidcomm_mpi {
  MPI_Comm comm; /* a duplicate, so that messages cannot meet messages of the program */
  char sentence[MPI_MAX_ERROR_STRING];
} pidcomm_mpi;

/* Returns NULL, or the sentence of an MPI error. */
static inline const char *pidcomm_mpi_sentence(pidcomm_mpi *mpi, int error) {
  int length = 0;
  if (error == MPI_SUCCESS) return NULL;
  if (MPI_Error_string(error, mpi->sentence, &length) != MPI_SUCCESS)
    return "an MPI error without a sentence";
  return mpi->sentence;
}

static inline const char *pidcomm_mpi_post(void *context, const pidcomm_message *message,
                                           void **posted) {
  pidcomm_mpi *const mpi = (pidcomm_mpi *)context;
  const int is_row = message->bytes == message->stride, host = (int)message->host;
  const int count = is_row ? (int)(message->rows * message->bytes) : 1;
  MPI_Datatype type = MPI_BYTE;
  MPI_Request *const request = (MPI_Request *)malloc(sizeof *request);
  int error;
  if (request == NULL) return "the host is out of memory";
  error = is_row ? MPI_SUCCESS
                 : MPI_Type_create_hvector((int)message->rows, (int)message->bytes,
                                           (MPI_Aint)message->stride, MPI_BYTE, &type);
  if (error == MPI_SUCCESS && !is_row) error = MPI_Type_commit(&type);
  if (error == MPI_SUCCESS)
    error = message->is_send ? MPI_Isend(message->base, count, type, host, 0, mpi->comm, request)
                             : MPI_Irecv(message->base, count, type, host, 0, mpi->comm, request);
  if (type != MPI_BYTE) MPI_Type_free(&type);
  if (error == MPI_SUCCESS)
    *posted = request;
  else
    free(request);
  return pidcomm_mpi_sentence(mpi, error);
}

static inline const char *pidcomm_mpi_test(void *context, void *posted, int *is_done) {
  const int error = MPI_Test((MPI_Request *)posted, is_done, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS && *is_done) free(posted);
  return pidcomm_mpi_sentence((pidcomm_mpi *)context, error);
}

static inline void pidcomm_mpi_abandon(void *context, void *posted) {
  MPI_Request *const request = (MPI_Request *)posted;
  (void)context;
  if (*request != MPI_REQUEST_NULL) { /* null if MPI_Test failed */
    MPI_Cancel(request);
    MPI_Request_free(request);
  }
  free(request);
}

static inline void *pidcomm_mpi_allocate(void *context, size_t bytes) {
  (void)context;
  return malloc(bytes); /* without memory, MPI_Alloc_mem of some MPIs ends the process */
}

static inline void pidcomm_mpi_release(void *context, void *memory) {
  (void)context;
  free(memory);
}

static inline void pidcomm_mpi_close(void *context) {
  pidcomm_mpi *const mpi = (pidcomm_mpi *)context;
  int is_finalized = 0;
  if (MPI_Finalized(&is_finalized) == MPI_SUCCESS && !is_finalized) MPI_Comm_free(&mpi->comm);
  free(mpi);
}

/* Fills *transport for the processes of `comm`; all of them must call it. Errors:
 * PIDCOMM_ERR_DEVICE (MPI is not initialised or failed), PIDCOMM_ERR_MEMORY. Without an error, pass
 * the transport to pidcomm_hosts_connect. */
static inline int pidcomm_mpi_transport(MPI_Comm comm, pidcomm_transport *transport) {
  int host = 0, hosts = 0, level = MPI_THREAD_SINGLE, is_initialized = 0;
  const pidcomm_transport empty = PIDCOMM_TRANSPORT_INITIALIZER;
  pidcomm_mpi *mpi;
  *transport = empty;
  if (MPI_Initialized(&is_initialized) != MPI_SUCCESS || !is_initialized) return PIDCOMM_ERR_DEVICE;
  mpi = (pidcomm_mpi *)malloc(sizeof *mpi);
  if (mpi == NULL) return PIDCOMM_ERR_MEMORY;
  if (MPI_Comm_dup(comm, &mpi->comm) != MPI_SUCCESS) {
    free(mpi);
    return PIDCOMM_ERR_DEVICE;
  }
  MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(mpi->comm, &host);
  MPI_Comm_size(mpi->comm, &hosts);
  MPI_Query_thread(&level);
  transport->context = mpi;
  transport->host = (uint32_t)host;
  transport->hosts = (uint32_t)hosts;
  transport->allows_any_thread = level >= MPI_THREAD_SERIALIZED;
  transport->post = pidcomm_mpi_post;
  transport->test = pidcomm_mpi_test;
  transport->abandon = pidcomm_mpi_abandon;
  transport->allocate = pidcomm_mpi_allocate;
  transport->release = pidcomm_mpi_release;
  transport->close = pidcomm_mpi_close;
  return PIDCOMM_OK;
}

#endif /* PIDCOMM_MPI_H */
