#include "cpu.h"

#include <omp.h>

#include <vector>

namespace pidcomm_apps {

// A function-local static, because the Parts of other files may be constructed first.
static std::vector<void (*)(nb::module_ &)> &parts() {
  static std::vector<void (*)(nb::module_ &)> all;
  return all;
}

Part::Part(void (*add)(nb::module_ &)) { parts().push_back(add); }

}  // namespace pidcomm_apps

NB_MODULE(_apps, module) {
  module.doc() = "CPU references of the applications, for checks and as a baseline for times.";
  module.def(
      "set_threads",
      [](int count) {
        const int before = omp_get_max_threads();
        omp_set_num_threads(count);
        return before;
      },
      pidcomm_apps::nb::arg("count"));
  for (auto add : pidcomm_apps::parts()) add(module);
}
