// The sentence of the last error on the calling thread. The functions do not throw.
#pragma once

namespace pidcomm::last_error {

/// Returns the sentence, or "" after a call without an error. The next call of the library on this
/// thread may change the text.
const char *text();
void clear();
/// If there is no memory to copy the sentence, the text says so.
void set(const char *sentence);

}  // namespace pidcomm::last_error
