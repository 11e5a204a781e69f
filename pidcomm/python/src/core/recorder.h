// Notes the caller of a method for the recorder.
#pragma once

namespace core {

/// Sets the place of the records of later calls on this thread: the innermost Python frame outside
/// of the package. `inner` is a number of frames that most calls have inside the package; other
/// numbers take longer. Requires the GIL.
void note_caller(int inner);

}  // namespace core
