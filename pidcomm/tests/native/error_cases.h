// Shared by the error tests: a hypercube with valid requests, and the check that an error changed
// nothing.
#pragma once

#include <cctype>
#include <string>
#include <vector>

#include "machine.h"

namespace error_cases {

using machine::Axes;
using machine::Bytes;
using machine::DpuSet;
using machine::Hypercube;

inline constexpr std::size_t kMiB = 1 << 20;
inline constexpr std::size_t kSrc = 4096, kDst = kMiB;
inline constexpr std::size_t kHuge = SIZE_MAX - 7;  // a multiple of 8 that overflows any sum
#define COLLECTIVE_ROW(...) +1
inline constexpr int kFirst = PIDCOMM_ALLTOALL, kLast = 0 PIDCOMM_COLLECTIVES(COLLECTIVE_ROW) - 1;
#undef COLLECTIVE_ROW

/// Checks that MRAM and the host buffer keep their bytes.
class Unchanged {
 public:
  Unchanged(const Hypercube &cube, Bytes &host) : cube_(cube), host_(host) {
    for (std::size_t offset : {std::size_t{0}, kSrc, kDst, machine::kMramBytes - 1024})
      mram_.cover(offset, 1024);
    mram_.poison(cube, 77);
    mram_.write(cube);
    verify::fill_distinct(78, host.size(), host);
    host_before_ = host;
  }
  void check() const {
    CHECK_EQ(mram_.read(cube_).difference(cube_, mram_), "");
    CHECK(host_ == host_before_);
  }

 private:
  const Hypercube &cube_;
  Bytes &host_;
  Bytes host_before_;
  machine::Picture mram_;
};

/// 64 PEs as 4 x 2 x 8; requests under mask "101": 2 groups of 32 PEs.
struct Fixture {
  static constexpr const char *kMask = "101";
  static constexpr std::size_t kBytes = 32 * 8 * 2;

  Fixture()
      : set((machine::power_up(1), DpuSet::of_ranks(1))),
        cube(set, {4, 2, 8}),
        host(2 * 32 * kBytes),
        unchanged(cube, host) {}

  /// A valid request; tests break one field.
  pidcomm_request good(int collective) {
    pidcomm_request r{};
    r.collective = collective;
    r.mask = kMask;
    r.bytes = kBytes;
    r.src = kSrc;
    r.dst = kDst;
    r.type = PIDCOMM_INT32;
    r.op = PIDCOMM_SUM;
    r.host = host.data();
    r.host_bytes = host_bytes(collective, r.bytes);
    return r;
  }
  static std::size_t host_bytes(int collective, std::size_t bytes) {
    const bool has_parts = collective == PIDCOMM_SCATTER || collective == PIDCOMM_GATHER;
    const bool has_host =
        has_parts || collective == PIDCOMM_REDUCE || collective == PIDCOMM_BROADCAST;
    return has_host ? 2 * (has_parts ? 32 : 1) * bytes : 0;
  }

  DpuSet set;
  Hypercube cube;
  Bytes host;
  Unchanged unchanged;
};

inline std::string status_text(int status) {
  return machine::name_or_code(pidcomm_name(PIDCOMM_TABLE_STATUS, status), status);
}

/// Fails unless `status` is one of `wanted` and the last error is a sentence with all of `words`.
inline void check_error(int status, const std::vector<int> &wanted,
                        const std::vector<std::string> &words, const std::string &what) {
  const std::string sentence = pidcomm_last_error();
  if (std::find(wanted.begin(), wanted.end(), status) == wanted.end())
    machine::fail(what + ": got " + status_text(status) + " (" + sentence + "), want " +
                  status_text(wanted[0]));
  if (sentence.size() < 10)
    machine::fail(what + ": the last error says nothing: \"" + sentence + "\"");
  std::string lower;  // so that PIDCOMM_INT32 contains int32
  for (char c : sentence) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string &word : words)
    if (lower.find(word) == std::string::npos)
      machine::fail(what + ": \"" + word + "\" is missing in \"" + sentence + "\"");
}

}  // namespace error_cases
