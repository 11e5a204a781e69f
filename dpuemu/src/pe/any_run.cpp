#include "pe/any_run.h"

#include "machine/machine.h"

namespace dpuemu {

std::string AnyRun::endless_reason() {
  return "the PE ran for longer than DPUEMU_PATIENCE (" +
         std::to_string(Machine::instance().patience_seconds()) +
         " s of this computer): an endless loop, or a long program";
}

}  // namespace dpuemu
