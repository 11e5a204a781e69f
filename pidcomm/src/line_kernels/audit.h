// The record in which the audit instruction set counts its accesses to each line of MRAM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "pidcomm/audit.h"

namespace pidcomm {

enum class LineEvent { load, store, flush, prefetch };

/// Thread-safe.
class AuditRecord {
 public:
  /// Excludes lines in [begin, end) from the record: use it for host memory that passes access like
  /// lines of MRAM.
  void ignore(const std::byte *begin, const std::byte *end);

  /// Records an event on the 64-byte line at `line`.
  void note(LineEvent event, const std::byte *line);

  /// Returns all counts except lines_outside.
  pidcomm_audit counts() const;

  /// Calls visit(line) for each line that has an event.
  template <class Visit>
  void each_line(const Visit &visit) const {
    for (const auto &[line, counts] : lines_) visit(reinterpret_cast<const std::byte *>(line));
  }

 private:
  struct Counts {
    uint64_t loads, stores, flushes, prefetches, loads_unflushed, loads_prefetched;
    uint64_t last_load;       // number of the last load
    uint64_t first_prefetch;  // number of the load that follows the first prefetch
  };
  /// Returns the number of lines whose last load has at most this number.
  uint64_t lines_up_to(uint64_t load) const;
  void note_load(Counts &counts);

  const std::byte *ignored_begin_ = nullptr, *ignored_end_ = nullptr;
  // A Fenwick tree over the numbers of loads, from 1: element n is 1 if load n is the last load of
  // its line, else 0.
  std::vector<int64_t> last_loads_{0};
  uint64_t longest_reload_ = 0;
  std::mutex mutex_;
  std::unordered_map<uintptr_t, Counts> lines_;
};

/// Returns the record to which the audit kernels write on the calling thread, or null outside an
/// AuditScope.
AuditRecord *current_audit();

/// Makes `record` the record of the calling thread until the scope is destroyed. Pooled threads
/// that run tasks of this thread have the same record; other threads of the process do not.
class AuditScope {
 public:
  explicit AuditScope(AuditRecord *record);
  ~AuditScope();
  AuditScope(const AuditScope &) = delete;
  AuditScope &operator=(const AuditScope &) = delete;

 private:
  AuditRecord *const before_;
};

}  // namespace pidcomm
