/* Calls with options and a trace of the header's version; the library may have another version.
 * Prints the number of failed checks. */
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <string.h>

static int wrong;

static void check(int condition, const char *what) {
  if (condition) return;
  ++wrong;
  printf("FAILED %s: %s\n", what, pidcomm_last_error());
}

int main(void) {
  const uint32_t axis_len[2] = {8, 8};
  struct dpu_set_t set;
  pidcomm_hypercube *cube;
  DPU_ASSERT(dpu_alloc(64, NULL, &set));
  PIDCOMM_CHECK(pidcomm_hypercube_create(set, 2, axis_len, &cube));

  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  request.collective = PIDCOMM_ALLTOALL;
  request.mask = "10";
  request.bytes = 64;
  request.dst = 4096;
  request.type = PIDCOMM_INT64;
  pidcomm_options options = PIDCOMM_OPTIONS_INITIALIZER;
  options.threads = 1;
  struct {
    pidcomm_trace trace;
    unsigned char behind[64];
  } filled;
  memset(&filled, 0xAA, sizeof filled);
  filled.trace = (pidcomm_trace)PIDCOMM_TRACE_INITIALIZER;
  check(pidcomm_run(cube, &request, &options, &filled.trace) == PIDCOMM_OK, "run");
  check(filled.trace.size == sizeof filled.trace, "the size of the trace stays");
  check(filled.trace.threads == 1 && filled.trace.mram_bytes_read == 64 * 64,
        "fields that both versions know");
  for (size_t i = 0; i < sizeof filled.behind; ++i)
    check(filled.behind[i] == 0xAA, "nothing is written behind the trace");
#ifdef HAS_ADDED_FIELD
  check(filled.trace.added == 0, "a field that the library does not know stays 0");
  options.added = 1;
  check(pidcomm_run(cube, &request, &options, NULL) == PIDCOMM_ERR_ARGUMENT,
        "an option that the library does not know is refused");
#endif
  options.size = 0;
  check(pidcomm_run(cube, &request, &options, NULL) == PIDCOMM_ERR_ARGUMENT,
        "a size of 0 is refused");

  PIDCOMM_CHECK(pidcomm_hypercube_destroy(cube));
  DPU_ASSERT(dpu_free(set));
  printf("%d wrong\n", wrong);
  return wrong != 0;
}
