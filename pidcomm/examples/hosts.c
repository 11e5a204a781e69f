/* An allreduce over the PEs of all MPI processes: each process is a host with 64 emulated PEs.
 *
 *   mpicc hosts.c $(pidcomm config --cflags --libs) -o hosts
 *   mpirun -n 2 ./hosts
 */
#include <pidcomm/mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPes = 64, kElements = 32 };

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  const uint32_t axis_len[2] = {8, 8};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));

  /* [hosts] */
  pidcomm_transport transport;
  pidcomm_hosts *hosts;
  PIDCOMM_CHECK(pidcomm_mpi_transport(MPI_COMM_WORLD, &transport));
  PIDCOMM_CHECK(pidcomm_hosts_connect(cube, &transport, NULL, &hosts));
  /* [end] */

  static int32_t rows[kPes][kElements];
  for (int pe = 0; pe < kPes; ++pe)
    for (int i = 0; i < kElements; ++i)
      rows[pe][i] = (int32_t)(transport.host * 1000 + (uint32_t)(pe * kElements + i));
  PIDCOMM_CHECK(pidcomm_write(cube, 0, sizeof rows[0], rows));

  /* The mask selects the first axis and, with its last character, the hosts. */
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "101";
  request.bytes = sizeof rows[0];
  request.type = PIDCOMM_INT32;
  request.op = PIDCOMM_SUM;
  PIDCOMM_CHECK(pidcomm_hosts_run(hosts, &request, 0, NULL, NULL));
  PIDCOMM_CHECK(pidcomm_read(cube, 0, sizeof rows[0], rows));

  int wrong = 0;
  for (int pe = 0; pe < kPes; ++pe)
    for (int i = 0; i < kElements; ++i) {
      int32_t want = 0;
      for (uint32_t host = 0; host < transport.hosts; ++host)
        for (int x = 0; x < 8; ++x)
          want += (int32_t)(host * 1000 + (uint32_t)((pe / 8 * 8 + x) * kElements + i));
      wrong += rows[pe][i] != want;
    }
  printf("host %u of %u: %d wrong elements\n", transport.host, transport.hosts, wrong);
  PIDCOMM_CHECK(pidcomm_hosts_disconnect(hosts));
  PIDCOMM_CHECK(pidcomm_hypercube_destroy(cube));
  DPU_ASSERT(dpu_free(dpu_set));
  MPI_Finalize();
  return wrong != 0;
}
