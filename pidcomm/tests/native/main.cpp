#include <cstdio>
#include <cstdlib>

#include "harness.h"
#include "sdk_access.h"

int main(int argc, char **argv) {
  if (std::getenv("PIDCOMM_TEST_SDK_ACCESS") != nullptr && !is_over_sdk_access()) {
    std::puts("0 passed, 1 failed: libpidcomm does not have the SDK's rank access");
    return 1;
  }
  setenv("PIDCOMM_CHOICES", "", 1);  // no test depends on the user's choices
  return harness::run_all(argc, argv);
}

#ifdef __SANITIZE_THREAD__
/// libstdc++ counts the references to an exception by atomic operations that ThreadSanitizer does
/// not see.
extern "C" const char *__tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
