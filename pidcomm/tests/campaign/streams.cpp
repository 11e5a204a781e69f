// Random streams have the bytes of their steps one after another, also after faults of PEs and
// errors of functions.
#include "../native/stream_cases.h"
#include "campaign.h"

int main(int argc, char **argv) {
  campaign::Run run(argc, argv);
  stream_cases::Setting setting;
  for (std::uint64_t number = run.only; !run.is_over(); ++number) {
    run.count();
    try {
      stream_cases::run_random(setting, verify::mix(run.seed) ^ number);
    } catch (const std::exception &error) {
      run.find(number, true, error.what());
      setting.load();
    }
    if (run.only_one) break;
  }
  return run.finish();
}
