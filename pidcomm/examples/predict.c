/* Predicts the time of an allreduce on another machine, and the gain from more threads. No PE is
 * allocated.
 *
 * All times are modelled. The checks: phases add up to the total, auto is not slower than tile,
 * many threads are not slower than one. */
#include <pidcomm/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the sum of the phases, in table order. */
static double sum_of(const pidcomm_prediction *prediction) {
  double sum = 0;
#define ADD(name, meaning) sum += prediction->seconds.name;
  PIDCOMM_MODEL_PHASES(ADD)
#undef ADD
  return sum;
}

int main(void) {
  /* [machine] */
  const char *name;
  pidcomm_machine machine = PIDCOMM_MACHINE_INITIALIZER;
  for (size_t i = 0;; ++i) { /* ends at the machine; past the last machine the call fails */
    PIDCOMM_CHECK(pidcomm_machine_builtin(i, &name, &machine));
    if (strcmp(name, "isca24") == 0) break;
  }
  machine.ranks_channels = 8; /* the testbed of the paper has 4 */
  /* [end] */

  /* [predict] */
  const uint32_t axis_len[2] = {32, 32};
  pidcomm_request request = PIDCOMM_REQUEST_INITIALIZER;
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = "10";
  request.bytes = 1 << 20;
  request.dst = 1 << 20;
  request.type = PIDCOMM_INT32;
  request.op = PIDCOMM_SUM;
  pidcomm_options options = PIDCOMM_OPTIONS_INITIALIZER;
  options.technique = PIDCOMM_TECHNIQUE_AUTO;
  pidcomm_prediction best = PIDCOMM_PREDICTION_INITIALIZER;
  PIDCOMM_CHECK(pidcomm_predict(2, axis_len, &request, &options, &machine, &best));
  /* [end] */

  pidcomm_prediction tile = PIDCOMM_PREDICTION_INITIALIZER, alone = PIDCOMM_PREDICTION_INITIALIZER;
  options.technique = PIDCOMM_TECHNIQUE_TILE;
  PIDCOMM_CHECK(pidcomm_predict(2, axis_len, &request, &options, &machine, &tile));
  options.threads = 1;
  PIDCOMM_CHECK(pidcomm_predict(2, axis_len, &request, &options, &machine, &alone));

  const double rest = (sum_of(&best) - best.seconds_total) / best.seconds_total;
  int wrong = rest > 1e-9 || rest < -1e-9;
  wrong += best.seconds_total > tile.seconds_total;
  wrong += tile.seconds_total > alone.seconds_total;
  printf(
      "allreduce on %s with %g channels (modelled): %s, %.1f ms, of them %.1f ms on the bus; %d of "
      "3 checks wrong\n",
      name, machine.ranks_channels, pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, best.technique),
      1e3 * best.seconds_total, 1e3 * best.seconds.bus, wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
