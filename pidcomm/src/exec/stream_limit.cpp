// The streaming limit as a call: checks its windows, acquires the ranks and times the copy.
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/geometry.h"
#include "exec/acquired_ranks.h"
#include "exec/clock.h"
#include "exec/default_options.h"
#include "exec/device.h"
#include "exec/executor.h"
#include "exec/flush.h"
#include "exec/limit_copy.h"
#include "exec/useful_threads.h"
#include "line_kernels/audit.h"

namespace pidcomm {

namespace {

// "; use one of plain (1) sequential (2)" and the remaining orders.
#define PIDCOMM_ROW(ENUM, code, name, ...) " " name " (" #code ")"
constexpr const char *kCopyOrderChoices = "; use one of" PIDCOMM_COPY_ORDERS(PIDCOMM_ROW);
#undef PIDCOMM_ROW

}  // namespace

double Executor::stream_limit(int copy_order, uint64_t bytes_read, uint64_t bytes_written,
                              uint64_t src, uint64_t dst, const pidcomm_options *options) {
  const RankLocks::Ticket ticket = calls_.lock(RankLocks::Mode::exclusive);
  wait_for_set(set_, placement_);
  const Options resolved = resolve(options);
  const CopyOrder *const order = copy_order_of(copy_order);
  if (order == nullptr)
    fail(PIDCOMM_ERR_OPTION, "stream limit: copy order code ", copy_order, " is unknown",
         kCopyOrderChoices);
  const uint64_t base = heap_base_of(placement_);
  for (const auto &[offset, bytes] : {std::pair{src, bytes_read}, std::pair{dst, bytes_written}})
    if (bytes % kWordBytes != 0 || offset % kWordBytes != 0 || bytes > kMramBytes ||
        offset > kMramBytes || base + offset + bytes > kMramBytes)
      fail(PIDCOMM_ERR_WINDOW, "stream limit: window of ", bytes, " bytes at offset ", offset,
           " must be multiples of ", kWordBytes, " and end within the ", kMramBytes,
           " bytes of MRAM");
  const AcquiredRanks ranks(placement_, mapped_);
  std::vector<std::byte *> whole_egs = ranks.eg_base();
  whole_egs.resize(
      cube_.pes /
      kLanes);  // without a last group of fewer than 8 PEs, which has lanes outside the hypercube
  AuditRecord record;
  std::optional<AuditScope> scope;
  if (resolved.isa == PIDCOMM_ISA_AUDIT) scope.emplace(&record);
  const std::vector<BankPair> bank_pairs = bank_pairs_of(std::move(whole_egs));
  const Kernels &kernels = kernels_of(resolved.isa);
  const int threads = useful_threads((bytes_read + bytes_written) * cube_.pes, resolved.threads);
  const Stopwatch pass;
  if (resolved.coherence == PIDCOMM_COHERENCE_HARDWARE)
    flush_window(kernels, bank_pairs, base + src, bytes_read, threads);
  run_limit_copy(kernels, *order, bank_pairs, base + src, bytes_read, base + dst, bytes_written,
                 threads);
  return pass.seconds();
}

}  // namespace pidcomm
