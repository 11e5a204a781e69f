// The functions of tuning.h.
#include "pidcomm/tuning.h"

#include "base/sized.h"
#include "capi/guarded.h"
#include "line_kernels/tuning.h"

using namespace pidcomm;

const char *pidcomm_tuning_source(void) { return tuning_source().c_str(); }
const char *pidcomm_tuning_path(void) { return tuning_path().c_str(); }
const char *pidcomm_tuning_cpu(void) { return tuning_cpu().c_str(); }

int pidcomm_tuned_pass(size_t index, const char **pass, pidcomm_tuning *tuning,
                       uint32_t *least_step_words, uint32_t *most_step_words) {
  return guarded([&] {
    require(pass, "pass");
    check_size(tuning, "tuning");
    require(least_step_words, "least_step_words");
    require(most_step_words, "most_step_words");
    const std::vector<TunedPass> &passes = tuned_passes();
    if (index >= passes.size())
      fail(PIDCOMM_ERR_ARGUMENT, "tuned pass ", index, " does not exist; there are ",
           passes.size());
    const PassTuning values = tuning_of(passes[index]);
    *pass = passes[index].name;
#define PIDCOMM_ROW(key, ...) tuning->key = values.key;
    PIDCOMM_TUNING(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    *least_step_words = passes[index].least_step_words;
    *most_step_words = passes[index].most_step_words;
  });
}

int pidcomm_tune(const char *pass, const pidcomm_tuning *tuning) {
  return guarded([&] {
    require(pass, "pass");
    check_size(tuning, "tuning");
    set_tuning(tuned_pass(pass), *tuning);
  });
}
