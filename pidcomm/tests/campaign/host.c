/* A host program as users write it: a set, a PE program, a launch, collectives with and without
 * blocking. faults.py makes its allocations fail, kills.py ends it. If a step fails, the program
 * releases everything and starts once more. Exit status: 0 the first attempt was right, 3 the
 * second was right after an error of the first, 4 a result was wrong, 5 both attempts reported
 * errors. Usage: campaign_host [ATTEMPTS_MORE] repeats the work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pidcomm/pidcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kPes = 64,
  kWords = 64,
  kBytes = 8 * kWords,
  kDst = 4096,
  kGathered = 8192,
  kScratch = 65536,
  kWrong = 4
};

static uint64_t rows[kPes][kWords], got[kPes][kWords], sums[kWords];
static struct dpu_set_t set;
static pidcomm_hypercube *cube;
static pidcomm_pending *pending;

/* Ends the attempt if a call fails. */
#define TRY(call)                                                                     \
  do {                                                                                \
    const int status = (int)(call);                                                   \
    if (status != 0)                                                                  \
      return fprintf(stderr, "%s: %d: %s\n", #call, status, pidcomm_last_error()), 1; \
  } while (0)
#define WANT(condition)                                                                 \
  do {                                                                                  \
    if (!(condition)) return fprintf(stderr, "wrong result: %s\n", #condition), kWrong; \
  } while (0)

static int run_collectives(void) {
  pidcomm_options options = PIDCOMM_OPTIONS_INITIALIZER;
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  request.collective = PIDCOMM_ALLREDUCE, request.mask = "11", request.bytes = kBytes,
  request.dst = kDst;
  request.type = PIDCOMM_UINT64, request.op = PIDCOMM_SUM;
  static const int kTechniques[] = {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL,
                                    PIDCOMM_TECHNIQUE_PR_IM_CM};
  for (int i = 0; i < 3; ++i) {
    options.technique = kTechniques[i];
    options.threads = 2;
    options.scratch_offset = kScratch;
    memset(got, 0, sizeof got);
    TRY(pidcomm_write(cube, kDst, kBytes, got));
    TRY(pidcomm_irun(cube, &request, &options, &pending));
    TRY(pidcomm_wait(&pending, NULL));
    TRY(pidcomm_read(cube, kDst, kBytes, got));
    for (int pe = 0; pe < kPes; ++pe) WANT(memcmp(got[pe], sums, sizeof sums) == 0);
  }
  TRY(pidcomm_alltoall(cube, "10", kBytes, 0, kDst, PIDCOMM_UINT64));
  TRY(pidcomm_alltoall(cube, "10", kBytes, kDst, kGathered, PIDCOMM_UINT64));
  TRY(pidcomm_read(cube, kGathered, kBytes, got));
  WANT(memcmp(got, rows, sizeof rows) == 0);
  memset(got, 0, sizeof got);
  TRY(pidcomm_reduce(cube, "11", kBytes, 0, got, kBytes, PIDCOMM_UINT64, PIDCOMM_SUM));
  WANT(memcmp(got, sums, sizeof sums) == 0);
  return 0;
}

static int run(void) {
  const uint32_t axis_len[] = {8, 8}, bytes = kBytes;
  TRY(dpu_alloc(kPes, NULL, &set));
  TRY(dpu_load(set, CAMPAIGN_PE_PROGRAM, NULL));
  TRY(dpu_broadcast_to(set, "bytes", 0, &bytes, sizeof bytes, DPU_XFER_DEFAULT));
  TRY(pidcomm_hypercube_create(set, 2, axis_len, &cube));
  memset(sums, 0, sizeof sums);
  for (int pe = 0; pe < kPes; ++pe)
    for (int word = 0; word < kWords; ++word)
      rows[pe][word] = (uint64_t)(pe * 1009 + word * 13 + 1);
  TRY(pidcomm_write(cube, 0, kBytes, rows));
  TRY(dpu_launch(set, DPU_SYNCHRONOUS)); /* adds 1 to both halves of each word */
  for (int pe = 0; pe < kPes; ++pe)
    for (int word = 0; word < kWords; ++word) sums[word] += rows[pe][word] += 0x100000001u;
  TRY(pidcomm_read(cube, 0, kBytes, got));
  WANT(memcmp(got, rows, sizeof rows) == 0);
  return run_collectives();
}

static int attempt(void) {
  cube = NULL;
  memset(&set, 0, sizeof set);
  const int result = run();
  pidcomm_wait(&pending, NULL);
  pidcomm_hypercube_destroy(cube);
  if (set.list.nr_ranks != 0) dpu_free(set);
  return result;
}

int main(int argc, char **argv) {
  void (*arm)(void);
  *(void **)&arm = dlsym(RTLD_DEFAULT, "faults_arm");
  if (arm != NULL) arm();
  for (int more = argc > 1 ? atoi(argv[1]) : 0; more > 0; --more)
    if (attempt() != 0) return 5;
  int result = attempt();
  if (result == 0) return 0;
  if (result != kWrong) result = attempt();
  return result == 0 ? 3 : result == kWrong ? 4 : 5;
}
