/* The call of the paper, from C11: reduce_scatter along y of a hypercube of 4 x 4 x 8 PEs, checked
 * by loops. */
#include <dpu.h>
#include <inttypes.h>
#include <pidcomm/isca24.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  X = 4,
  Y = 4,
  Z = 8,
  PES = X * Y * Z,
  BYTES = 8192,
  WORDS = BYTES / 4,
  BLOCK_WORDS = WORDS / Y,
  DST = 65536
};

static int passed, failed;

static int check(int condition, const char *what) {
  if (condition) {
    ++passed;
  } else {
    ++failed;
    printf("FAILED %s: %s\n", what, pidcomm_last_error());
  }
  return condition;
}

/* Word i of PE (x, y, z) before the call: different everywhere, and large enough to wrap in the
 * sum. */
static uint32_t word(uint32_t x, uint32_t y, uint32_t z, uint32_t i) {
  return (((z * Y + y) * X + x) * (uint32_t)WORDS + i) * UINT32_C(2654435761) + 12345;
}

static void fill(uint32_t *in) {
  for (uint32_t z = 0; z < Z; ++z)
    for (uint32_t y = 0; y < Y; ++y)
      for (uint32_t x = 0; x < X; ++x)
        for (uint32_t i = 0; i < WORDS; ++i) *in++ = word(x, y, z, i);
}

/* Number of words of the result that are not the sum over y of block y of the row. */
static int wrong_words(const uint32_t *out) {
  int wrong = 0;
  for (uint32_t z = 0; z < Z; ++z)
    for (uint32_t y = 0; y < Y; ++y)
      for (uint32_t x = 0; x < X; ++x)
        for (uint32_t i = 0; i < BLOCK_WORDS; ++i) {
          uint32_t sum = 0;
          for (uint32_t other = 0; other < Y; ++other)
            sum += word(x, other, z, y * BLOCK_WORDS + i);
          wrong += *out++ != sum;
        }
  return wrong;
}

/* Moves one row per PE; `row_words` words each. */
static int transfer(hypercube_manager *m, struct dpu_set_t set, dpu_xfer_t direction,
                    uint32_t offset, uint32_t *rows, size_t row_words) {
  struct dpu_set_t dpu;
  uint32_t pe;
  PIDCOMM_FOREACH_PE(m, dpu, pe) {
    if (dpu_prepare_xfer(dpu, rows + pe * row_words) != DPU_OK) return 0;
  }
  return dpu_push_xfer(set, direction, DPU_MRAM_HEAP_POINTER_NAME, offset,
                       row_words * sizeof(uint32_t), DPU_XFER_DEFAULT) == DPU_OK;
}

int main(void) {
  const uint32_t axis_len[3] = {X, Y, Z};
  uint32_t *in = malloc(sizeof(uint32_t) * PES * WORDS),
           *out = calloc((size_t)PES * BLOCK_WORDS, sizeof(uint32_t));
  struct dpu_set_t dpu_set;
  if (in == NULL || out == NULL || !check(dpu_alloc(PES, NULL, &dpu_set) == DPU_OK, "dpu_alloc"))
    return EXIT_FAILURE;
  fill(in);

  hypercube_manager *m = init_hypercube_manager(dpu_set, 3, axis_len);
  if (check(m != NULL, "init_hypercube_manager")) {
    check(pidcomm_pes(m) == PES, "pidcomm_pes");
    uint32_t rank, chip, bank;
    check(pidcomm_pe_location(m, 107, &rank, &chip, &bank) == PIDCOMM_OK && rank == 1 &&
              chip == 3 && bank == 5,
          "pidcomm_pe_location");
    const uint32_t lengths[2] = {8, 8};
    pidcomm_hypercube *second = NULL;
    check(pidcomm_hypercube_create_at(dpu_set, 64, 2, lengths, &second) == PIDCOMM_OK &&
              pidcomm_pe_location(second, 9, &rank, &chip, &bank) == PIDCOMM_OK && rank == 1 &&
              chip == 1 && bank == 1,
          "pidcomm_hypercube_create_at");
    check(pidcomm_fill_variables(second, NULL) == PIDCOMM_ERR_DEVICE, "variables of no program");
    pidcomm_hypercube_destroy(second);
    check(transfer(m, dpu_set, DPU_XFER_TO_DPU, 0, in, WORDS), "to the PEs");

    check(pidcomm_reduce_scatter(m, "010", 8192, 0, 0, sizeof(uint32_t), PIDCOMM_SUM) == PIDCOMM_OK,
          "the paper's call");
    check(transfer(m, dpu_set, DPU_XFER_FROM_DPU, 0, out, BLOCK_WORDS), "from the PEs");
    check(wrong_words(out) == 0, "reduce_scatter in place");

    check(pidcomm_write(m, 0, BYTES, in) == PIDCOMM_OK, "pidcomm_write");
    check(
        pidcomm_reduce_scatter(m, "010", BYTES, 0, DST, PIDCOMM_UINT32, PIDCOMM_SUM) == PIDCOMM_OK,
        "typed call");
    check(pidcomm_read(m, DST, BYTES / Y, out) == PIDCOMM_OK, "pidcomm_read");
    check(wrong_words(out) == 0, "reduce_scatter to another window");

    check(pidcomm_reduce_scatter(m, "010", BYTES, 0, DST, sizeof(uint32_t), PIDCOMM_MAX) ==
              PIDCOMM_ERR_TYPE,
          "max of a bare size");
    check(
        pidcomm_reduce_scatter(m, "010", BYTES, 0, DST, PIDCOMM_UINT32, PIDCOMM_MAX) == PIDCOMM_OK,
        "max of typed words");
    check((pidcomm_alltoall)(m, "010", BYTES, 0, DST, 4) == PIDCOMM_OK, "alltoall of a bare size");
    check(pidcomm_reduce_scatter(m, "01", 8192, 0, 0, sizeof(uint32_t), PIDCOMM_SUM) ==
              PIDCOMM_ERR_MASK,
          "mask too short");
    check(pidcomm_last_error()[0] != 0, "last error");
    pidcomm_hypercube_destroy(m);
  }
  check(dpu_free(dpu_set) == DPU_OK, "dpu_free");
  free(in);
  free(out);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
