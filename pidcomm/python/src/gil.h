// The GIL (the lock of the Python interpreter) around C++ code.
//
// When the interpreter exits, CPython 3.13 and older end every thread that asks for the GIL: they
// unwind its stack. The unwinding cannot pass a destructor, so the process would abort. With these
// classes, such a thread sleeps until the process ends, as in CPython 3.14.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace gil {

/// Calls take(), which takes the GIL. Does not return when the interpreter has begun to exit.
template <class Take>
auto take_or_sleep(const Take &take) noexcept {
  try {
    return take();
  } catch (abi::__forced_unwind &) {
    for (;;) pause();  // the handler must not end
  }
}

/// Releases the GIL until the end of the scope. Requires: the thread holds the GIL.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    take_or_sleep([this] { PyEval_RestoreThread(state_); });
  }
  Released(const Released &) = delete;
  Released &operator=(const Released &) = delete;

 private:
  PyThreadState *state_;
};

/// Holds the GIL until the end of the scope.
class Held {
 public:
  Held() : state_(take_or_sleep([] { return PyGILState_Ensure(); })) {}
  ~Held() { PyGILState_Release(state_); }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace gil
