// audit: computes like the instruction set `scalar`, and records every access to a line of the
// region.
#include "line_kernels/audit.h"

#include "base/bits.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "line_kernels/line.h"

namespace pidcomm {
namespace {

#include "line_kernels/isa/scalar_ops.inl"

struct Isa : ScalarOps {
  static constexpr bool kHasUnprefetchedVisits = true;  // to test what they load
  static void note(LineEvent event, const std::byte *line) {
    if (AuditRecord *record = current_audit()) record->note(event, line);
  }
  static Line load_line(const std::byte *from) {
    note(LineEvent::load, from);
    return *reinterpret_cast<const Line *>(from);
  }
  static void store_line(std::byte *to, Line line) {
    note(LineEvent::store, to);
    *reinterpret_cast<Line *>(to) = line;
  }
  static void store_words_non_temporal(std::byte *to, Line words) {
    *reinterpret_cast<Line *>(to) = words;
  }
  static void flush_line(const std::byte *line) { note(LineEvent::flush, line); }
  static void prefetch_line(const std::byte *line) { note(LineEvent::prefetch, line); }
  static void prefetch_far(const std::byte *line) { prefetch_line(line); }
};

#include "line_kernels/passes.inl"

}  // namespace

PIDCOMM_REDUCERS(AUDIT)
PIDCOMM_KERNELS(AUDIT, "audit", AUDIT)

}  // namespace pidcomm
