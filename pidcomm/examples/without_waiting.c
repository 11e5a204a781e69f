/* The host works while collectives move data: two calls that do not wait, on 8 x 8 PEs.
 *
 * An alltoall along x and then an allreduce along y of its result queue in this order. Meanwhile
 * the host adds its input. Both results and the sum are compared with loops. */
#include <pidcomm/buffer.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSide = 8, kPes = kSide * kSide, kWords = 4096, kBlock = kWords / kSide };

static uint32_t input[kPes][kWords], moved[kPes][kWords], sums[kPes][kWords];

int main(void) {
  for (uint32_t pe = 0; pe < kPes; ++pe) {
    for (uint32_t i = 0; i < kWords; ++i) input[pe][i] = (pe * kWords + i) * 2654435761u;
  }
  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc(kPes, NULL, &dpu_set));
  const uint32_t axis_len[2] = {kSide, kSide};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));
  pidcomm_buffer *in, *out, *sum_of_out;
  PIDCOMM_CHECK(pidcomm_buffer_create(cube, "in", kWords, PIDCOMM_UINT32, &in));
  PIDCOMM_CHECK(pidcomm_buffer_create(cube, "out", kWords, PIDCOMM_UINT32, &out));
  PIDCOMM_CHECK(pidcomm_buffer_create(cube, "sum_of_out", kWords, PIDCOMM_UINT32, &sum_of_out));
  PIDCOMM_CHECK(pidcomm_buffer_write(cube, in, input, sizeof input));

  pidcomm_pending *moving, *adding;
  pidcomm_trace trace = PIDCOMM_TRACE_INITIALIZER;
  /* [irun] */
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  PIDCOMM_CHECK(pidcomm_buffer_request(cube, PIDCOMM_ALLTOALL, "10", in, out, 0, &request));
  PIDCOMM_CHECK(pidcomm_irun(cube, &request, NULL, &moving));
  /* [end] */
  /* The allreduce starts after the alltoall and reads its result. */
  PIDCOMM_CHECK(pidcomm_buffer_request(cube, PIDCOMM_ALLREDUCE, "01", out, sum_of_out, PIDCOMM_SUM,
                                       &request));
  PIDCOMM_CHECK(pidcomm_irun(cube, &request, NULL, &adding));

  uint32_t total = 0;
  /* [irun] */
  int is_done = 0;
  for (uint32_t pe = 0; pe < kPes; ++pe) { /* work of the host, meanwhile */
    for (uint32_t i = 0; i < kWords; ++i) total += input[pe][i];
    if (!is_done) PIDCOMM_CHECK(pidcomm_test(&moving, &is_done, NULL));
  }
  PIDCOMM_CHECK(pidcomm_wait(&moving, NULL)); /* returns at once if a test reported the end */
  /* [end] */
  PIDCOMM_CHECK(pidcomm_wait(&adding, &trace));
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, out, moved, sizeof moved));
  PIDCOMM_CHECK(pidcomm_buffer_read(cube, sum_of_out, sums, sizeof sums));
  pidcomm_buffer_destroy(in);
  pidcomm_buffer_destroy(out);
  pidcomm_buffer_destroy(sum_of_out);
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  uint32_t wrong = trace.mram_bytes_read != sizeof input;
  for (uint32_t at = 0; at < kPes; ++at) {
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t x = at % kSide, from = i / kBlock;
      uint32_t sum = 0;
      for (uint32_t y = 0; y < kSide; ++y) sum += moved[x + kSide * y][i];
      wrong += moved[at][i] != input[at - x + from][x * kBlock + i % kBlock];
      wrong += sums[at][i] != sum;
      total -= input[at][i];
    }
  }
  wrong += total != 0;
  printf("alltoall and allreduce without waiting: %u of %u words wrong\n", wrong,
         2 * kPes * kWords);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
