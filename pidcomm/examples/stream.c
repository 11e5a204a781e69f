/* A stream: kernel, allreduce, kernel. While the host sums vectors of some PEs, others compute.
 * pe/stream.c is the PE program. Loops on the host check the result; words wrap. */
#include "pe/stream.h"

#include <pidcomm/stream.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef STREAM_PE
#define STREAM_PE "./stream_pe"
#endif

enum { kRanks = 4, kPesOfRank = 64, kPes = kRanks * kPesOfRank, kRuns = 2 };

static uint32_t vectors[kPes][kWords], sums[kWords];

/* The steps of the stream, on the host. */
static void run_here(void) {
  for (uint32_t i = 0; i < kWords; ++i) {
    sums[i] = 0;
    for (uint32_t pe = 0; pe < kPes; ++pe) sums[i] += new_word(vectors[pe][i]);
    for (uint32_t pe = 0; pe < kPes; ++pe) vectors[pe][i] = new_word(sums[i]);
  }
}

int main(void) {
  for (uint32_t i = 0; i < kPes * kWords; ++i) vectors[i / kWords][i % kWords] = i * 2654435761u;

  struct dpu_set_t dpu_set;
  DPU_ASSERT(dpu_alloc_ranks(kRanks, NULL, &dpu_set));
  DPU_ASSERT(dpu_load(dpu_set, STREAM_PE, NULL));
  const uint32_t axis_len[2] = {kPesOfRank, kRanks};
  pidcomm_hypercube *cube;
  PIDCOMM_CHECK(pidcomm_hypercube_create(dpu_set, 2, axis_len, &cube));
  PIDCOMM_CHECK(pidcomm_write(cube, 0, sizeof vectors[0], vectors)); /* row = PE */

  /* [stream] */
  pidcomm_access vector = {0, sizeof vectors[0], 1, 1}; /* window, bytes, is written, is cut */
  pidcomm_request sum = PIDCOMM_REQUEST_INITIALIZER;
  sum.collective = PIDCOMM_ALLREDUCE;
  sum.mask = "11";
  sum.bytes = sizeof vectors[0];
  sum.type = PIDCOMM_UINT32;
  sum.op = PIDCOMM_SUM;
  pidcomm_stream *stream;
  PIDCOMM_CHECK(pidcomm_stream_create(dpu_set, 4, &stream));           /* 4 rank groups */
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &vector, 1, 2, "part")); /* 2 parts */
  PIDCOMM_CHECK(pidcomm_stream_run(stream, cube, &sum, NULL, 2));
  PIDCOMM_CHECK(pidcomm_stream_launch(stream, &vector, 1, 2, "part"));
  pidcomm_stream_trace trace = PIDCOMM_STREAM_TRACE_INITIALIZER;
  for (int run = 0; run < kRuns; ++run) PIDCOMM_CHECK(pidcomm_stream_execute(stream, &trace));
  pidcomm_stream_destroy(stream);
  /* [end] */
  static uint32_t got[kPes][kWords];
  PIDCOMM_CHECK(pidcomm_read(cube, 0, sizeof got[0], got));
  pidcomm_hypercube_destroy(cube);
  DPU_ASSERT(dpu_free(dpu_set));

  for (int run = 0; run < kRuns; ++run) run_here();
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kPes * kWords; ++i)
    wrong += got[i / kWords][i % kWords] != vectors[i / kWords][i % kWords];
  printf(
      "kernel, allreduce, kernel in %zu pieces: %.3f ms; host %.3f ms, PEs %.3f ms; %u words "
      "wrong\n",
      trace.pieces, trace.seconds_total * 1e3, trace.seconds_host * 1e3, trace.seconds_pes * 1e3,
      wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
