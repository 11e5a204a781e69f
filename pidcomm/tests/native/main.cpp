#include "harness.h"

int main(int argc, char **argv) { return harness::run_all(argc, argv); }

#ifdef __SANITIZE_THREAD__
/// libstdc++ counts the references to an exception by atomic operations that ThreadSanitizer does
/// not see.
extern "C" const char *__tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif
