// The PE program of the check list, compiled by the dpu-upmem-dpurte-clang in PATH.
#pragma once

#include <string>

namespace doctor {

/// A compiled program in a temporary folder; the destructor removes it. The program adds 1 to each
/// of the first kWords 8-byte words of the MRAM heap.
class PeProgram {
 public:
  static constexpr unsigned kWords = 256;

  /// Throws Failed if the compiler is missing or fails. On emulated DIMMs, throws Skipped if the
  /// compiler is missing.
  explicit PeProgram(bool is_emulated);
  ~PeProgram();
  PeProgram(const PeProgram &) = delete;
  PeProgram &operator=(const PeProgram &) = delete;
  const std::string &path() const { return path_; }

 private:
  void remove() const;
  std::string folder_, path_;
  int lock_ = -1;  // the opened and locked folder
};

}  // namespace doctor
