#include "line_kernels/audit.h"

#include <algorithm>
#include <utility>

namespace pidcomm {

namespace {

thread_local AuditRecord *t_current = nullptr;

}  // namespace

void AuditRecord::ignore(const std::byte *begin, const std::byte *end) {
  ignored_begin_ = begin;
  ignored_end_ = end;
}

void AuditRecord::note(LineEvent event, const std::byte *line) {
  if (line >= ignored_begin_ && line < ignored_end_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Counts &counts = lines_[reinterpret_cast<uintptr_t>(line)];
  switch (event) {
    case LineEvent::load:
      if (counts.prefetches != 0 && counts.first_prefetch < last_loads_.size())
        ++counts.loads_prefetched;
      note_load(counts);
      if (counts.flushes == 0 && counts.stores == 0)
        ++counts.loads_unflushed;  // stored lines do not stay in the caches
      break;
    case LineEvent::store:
      ++counts.stores;
      break;
    case LineEvent::flush:
      ++counts.flushes;
      break;
    case LineEvent::prefetch:
      if (counts.prefetches++ == 0) counts.first_prefetch = last_loads_.size();
      break;
  }
}

uint64_t AuditRecord::lines_up_to(uint64_t load) const {
  int64_t lines = 0;
  for (; load != 0; load &= load - 1) lines += last_loads_[load];
  return static_cast<uint64_t>(lines);
}

void AuditRecord::note_load(Counts &counts) {
  const uint64_t load = last_loads_.size();
  if (counts.loads++ != 0) {
    longest_reload_ =
        std::max(longest_reload_, lines_up_to(load - 1) - lines_up_to(counts.last_load));
    for (uint64_t n = counts.last_load; n < load; n += n & -n) --last_loads_[n];
  }
  counts.last_load = load;
  last_loads_.push_back(
      static_cast<int64_t>(1 + lines_up_to(load - 1) - lines_up_to(load & (load - 1))));
}

pidcomm_audit AuditRecord::counts() const {
  pidcomm_audit all{};
  all.longest_reload = longest_reload_;
  for (const auto &[line, counts] : lines_) {
    all.lines_loaded += counts.loads;
    all.lines_stored += counts.stores;
    all.lines_flushed += counts.flushes;
    all.lines_prefetched += counts.prefetches;
    all.loads_prefetched += counts.loads_prefetched;
    all.loads_unflushed += counts.loads_unflushed;
    all.max_loads_of_a_line = std::max(all.max_loads_of_a_line, counts.loads);
    all.max_stores_of_a_line = std::max(all.max_stores_of_a_line, counts.stores);
    all.distinct_lines_loaded += counts.loads != 0;
    all.distinct_lines_stored += counts.stores != 0;
  }
  return all;
}

AuditRecord *current_audit() { return t_current; }

AuditScope::AuditScope(AuditRecord *record) : before_(std::exchange(t_current, record)) {}
AuditScope::~AuditScope() { t_current = before_; }

}  // namespace pidcomm
