// Notes the caller of a method for the recorder.
#pragma once

namespace core {

/// A place of pidcomm_recorder_place.
struct Place {
  const char *file;
  int line;
};

/// The innermost Python frame outside of the package, or {nullptr, 0}. `inner` is a number of
/// frames that most calls have inside the package; other numbers take longer. Requires the GIL.
Place place_of_caller(int inner);

/// Sets the place of the records of later calls on this thread to place_of_caller(inner).
void note_caller(int inner);

}  // namespace core
