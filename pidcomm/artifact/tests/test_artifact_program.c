/* A program in the style of the published artifact. It uses every name of the artifact's header
 * with its arguments, and checks the results with plain loops. */
#include <pidcomm.h>

enum {
  X = 8,
  Y = 4,
  Z = 2,
  PES = X * Y * Z,
  BYTES = 256,
  WORDS = BYTES / 4,
  TARGET = 4096,
  BUFFER = 1 << 20
};

static int passed, failed;

static void check(int condition, const char *what) {
  if (condition) {
    ++passed;
  } else {
    ++failed;
    printf("FAILED %s\n", what);
  }
}

static void transfer(struct dpu_set_t dpu_set, dpu_xfer_t direction, uint32_t offset, int32_t *rows,
                     uint32_t words) {
  struct dpu_set_t dpu;
  uint32_t each_dpu;
  DPU_FOREACH_ENTANGLED_GROUP(dpu_set, dpu, each_dpu, PES) {
    DPU_ASSERT(dpu_prepare_xfer(dpu, rows + each_dpu * words));
  }
  DPU_ASSERT(dpu_push_xfer(dpu_set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset,
                           words * sizeof(int32_t), DPU_XFER_DEFAULT));
}

/* Word i of every PE's input, and its sum or maximum over the selected axes. */
static int32_t word(uint32_t pe, uint32_t i) {
  return (int32_t)((pe * WORDS + i) * UINT32_C(2654435761)) / 1024 - 3000000;
}

static int32_t reduced(uint32_t pe, uint32_t i, const char *comm, int is_max) {
  int32_t result = 0;
  int is_first = 1;
  for (uint32_t other = 0; other < PES; ++other) {
    if ((comm[0] == '0' && other % X != pe % X) ||
        (comm[1] == '0' && other / X % Y != pe / X % Y) ||
        (comm[2] == '0' && other / X / Y != pe / X / Y))
      continue;
    const int32_t value = word(other, i);
    result = is_first || (is_max && value > result) ? value : is_max ? result : result + value;
    is_first = 0;
  }
  return result;
}

int main(void) {
  static int32_t in[PES * WORDS], out[PES * WORDS];
  struct dpu_set_t dpu_set;
  uint32_t axis_len[3] = {X, Y, Z};
  int wrong;
  char comm[] = "100";
  Timer timer;
  resetTimer(&timer);
  startTimer(&timer, 0);

  DPU_ASSERT(dpu_alloc_comm(PES, NULL, &dpu_set, 1));
  hypercube_manager *hypercube_manager = init_hypercube_manager(dpu_set, 3, axis_len);
  check(hypercube_manager->dimension == 3 && hypercube_manager->axis_len[1] == Y &&
            hypercube_manager->dpu_set.kind == DPU_SET_RANKS,
        "the manager's fields");
  for (uint32_t pe = 0; pe < PES; ++pe)
    for (uint32_t i = 0; i < WORDS; ++i) in[pe * WORDS + i] = word(pe, i);

  for (int is_max = 0; is_max < 2; ++is_max) {
    transfer(dpu_set, DPU_XFER_TO_DPU, 0, in, WORDS);
    pidcomm_all_reduce(hypercube_manager, comm, BYTES, 0, 128, BUFFER, sizeof(int32_t), is_max);
    transfer(dpu_set, DPU_XFER_FROM_DPU, 128, out, WORDS);
    wrong = 0;
    for (uint32_t at = 0; at < PES * WORDS; ++at)
      wrong += out[at] != reduced(at / WORDS, at % WORDS, comm, is_max);
    check(wrong == 0, "all_reduce with partially overlapping windows");
  }
  transfer(dpu_set, DPU_XFER_TO_DPU, 0, in, WORDS);
  pidcomm_all_reduce(hypercube_manager, "011", BYTES, 0, 0, sizeof(int32_t), 0);
  transfer(dpu_set, DPU_XFER_FROM_DPU, 0, out, WORDS);
  wrong = 0;
  for (uint32_t at = 0; at < PES * WORDS; ++at)
    wrong += out[at] != reduced(at / WORDS, at % WORDS, "011", 0);
  check(wrong == 0, "all_reduce with 7 arguments");

  transfer(dpu_set, DPU_XFER_TO_DPU, 0, in, WORDS);
  pidcomm_reduce_scatter(hypercube_manager, "010", BYTES, 0, TARGET, BUFFER, sizeof(int32_t));
  transfer(dpu_set, DPU_XFER_FROM_DPU, TARGET, out, WORDS / Y);
  wrong = 0;
  for (uint32_t pe = 0; pe < PES; ++pe)
    for (uint32_t i = 0; i < WORDS / Y; ++i)
      wrong += out[pe * (WORDS / Y) + i] != reduced(pe, pe / X % Y * (WORDS / Y) + i, "010", 0);
  check(wrong == 0, "reduce_scatter");

  pidcomm_alltoall(hypercube_manager, "100", BYTES, 0, TARGET, BUFFER);
  transfer(dpu_set, DPU_XFER_FROM_DPU, TARGET, out, WORDS);
  wrong = 0;
  for (uint32_t pe = 0; pe < PES; ++pe)
    for (uint32_t i = 0; i < WORDS; ++i)
      wrong += out[pe * WORDS + i] !=
               word(pe / X * X + i / (WORDS / X), pe % X * (WORDS / X) + i % (WORDS / X));
  check(wrong == 0, "alltoall");

  pidcomm_allgather(hypercube_manager, "001", BYTES, 0, TARGET, BUFFER);
  transfer(dpu_set, DPU_XFER_FROM_DPU, TARGET, out, WORDS);
  wrong = 0;
  for (uint32_t pe = 0; pe < PES; ++pe)
    for (uint32_t i = 0; i < WORDS; ++i)
      wrong += out[pe * WORDS + i] != word(pe % (X * Y) + i / (WORDS / Z) * X * Y, i % (WORDS / Z));
  check(wrong == 0, "allgather");

  void *host[PES / 8];
  for (uint32_t group = 0; group < PES / 8; ++group) host[group] = out + group * 8 * WORDS;
  pidcomm_gather(hypercube_manager, "111", BYTES, 0, BUFFER, host);
  wrong = 0;
  for (uint32_t pe = 0; pe < PES; ++pe)
    for (uint32_t i = 0; i < WORDS; ++i)
      wrong += out[pe / 8 * 8 * WORDS + i / 2 * 16 + pe % 8 * 2 + i % 2] != word(pe, i);
  check(wrong == 0, "gather");
  pidcomm_scatter(hypercube_manager, "100", BYTES, TARGET, BUFFER, host);
  transfer(dpu_set, DPU_XFER_FROM_DPU, TARGET, out, WORDS);
  check(memcmp(out, in, sizeof in) == 0, "scatter");
  pidcomm_reduce(hypercube_manager, "010", BYTES, 0, BUFFER, sizeof(int32_t), host);
  wrong = 0;
  for (uint32_t group = 0; group < X * Z; ++group) /* coordinates x and z */
    for (uint32_t i = 0; i < WORDS; ++i)
      wrong += out[group / 8 * 8 * WORDS + i / 2 * 16 + group % 8 * 2 + i % 2] !=
               reduced(group % X + group / X * X * Y, i, "010", 0);
  check(wrong == 0, "reduce");
  pidcomm_broadcast(hypercube_manager, BYTES, TARGET, in);
  transfer(dpu_set, DPU_XFER_FROM_DPU, TARGET, out, WORDS);
  wrong = 0;
  for (uint32_t pe = 0; pe < PES; ++pe) wrong += memcmp(out + pe * WORDS, in, BYTES) != 0;
  check(wrong == 0, "broadcast");

  dpu_arguments_comm_t argument = {.each_dpu = 1, .no_rotate = true};
  check(sizeof argument == 40 && argument.each_dpu == 1, "the arguments of PE programs");
  stopTimer(&timer, 0);
  check(timer.time[0] > 0, "timers");
  free(hypercube_manager);
  DPU_ASSERT(dpu_free(dpu_set));
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
