#include "line_kernels/audit.h"

#include <algorithm>
#include <atomic>

namespace pidcomm {

namespace {

std::atomic<AuditRecord *> g_current{nullptr};
std::mutex g_scope_mutex;

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
      ++counts.loads;
      if (counts.flushes == 0 && counts.stores == 0) ++counts.loads_unflushed;  // stores go past the caches
      break;
    case LineEvent::store:
      ++counts.stores;
      break;
    case LineEvent::flush:
      ++counts.flushes;
      break;
    case LineEvent::prefetch:
      ++counts.prefetches;
      break;
  }
}

void AuditRecord::summarise(pidcomm_trace &trace) const {
  for (const auto &[line, counts] : lines_) {
    trace.lines_loaded += counts.loads;
    trace.lines_stored += counts.stores;
    trace.lines_flushed += counts.flushes;
    trace.lines_prefetched += counts.prefetches;
    trace.loads_unflushed += counts.loads_unflushed;
    trace.max_loads_of_a_line = std::max(trace.max_loads_of_a_line, counts.loads);
    trace.max_stores_of_a_line = std::max(trace.max_stores_of_a_line, counts.stores);
    trace.distinct_lines_loaded += counts.loads != 0;
    trace.distinct_lines_stored += counts.stores != 0;
  }
}

AuditRecord *current_audit() { return g_current.load(std::memory_order_acquire); }

AuditScope::AuditScope(AuditRecord &record) : lock_(g_scope_mutex) { g_current.store(&record, std::memory_order_release); }
AuditScope::~AuditScope() { g_current.store(nullptr, std::memory_order_release); }

}  // namespace pidcomm
