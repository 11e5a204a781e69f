// Rank access on real DIMMs. This file uses only public functions of an unmodified UPMEM SDK.
//
// The SDK maps a rank's region into the process but does not report the address of the region. This
// file therefore tests every candidate mapping. It lets the SDK write tags to every enabled PE of
// the rank, at MRAM words that exercise all bits of the address map. Exactly one mapping must show
// all tags at the addresses of the address map. Then the code restores the words. This test runs
// when the program creates the first hypercube on a rank. The found mapping is valid while a
// hypercube on the rank exists, because the ranks of a hypercube must not be freed.
//
// All transfers use dpu_copy_to_mrams and dpu_copy_from_mrams, which carry out each rank's part of
// dpu_push_xfer. The buffers are an argument of these functions, so the caller's prepared buffers
// stay prepared. The functions lock the rank, so that threads may share it. A transfer for every
// enabled PE switches the MRAM of the complete rank to the host if necessary; a launch returns the
// MRAM to the PEs.
#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/geometry.h"
#include "pidcomm/sdk_error.hpp"
#include "rank_access/rank_access.h"
#include "rank_access/region_mappings.h"

namespace pidcomm {

namespace {

/// A word for each PE of a rank, indexed by 8 * bank + lane.
template <class Value>
using PerPe = std::array<Value, kBanks * kLanes>;
using Words = PerPe<uint64_t>;

/// MRAM bytes of the words that receive tags: the address with all bits 0, an address for each bit
/// that the map moves to another place, and the address with all bits 1.
constexpr std::array<uint32_t, 7> kProbes = {
    0, 1 << 13, 1 << 14, 1 << 15, 1 << 21, 1 << 22, static_cast<uint32_t>(kMramBytes - kWordBytes)};
using ProbeWords = std::array<Words, kProbes.size()>;

/// The bytes from the first line of a region to the end of the last line.
constexpr uint64_t kRegionBytes =
    bank_offset(kBanks - 1) + word_offset(kMramBytes / kWordBytes - 1) + kLineBytes;

/// A rank and its PEs. The pointer of a disabled PE is null.
struct RankPes {
  explicit RankPes(struct dpu_rank_t *of) : rank(of) {
    for (uint32_t pe = 0; pe < dpus.size(); ++pe) {
      struct dpu_t *const dpu = dpu_get(rank, static_cast<dpu_slice_id_t>(pe % kLanes),
                                        static_cast<dpu_member_id_t>(pe / kLanes));
      dpus[pe] = dpu != nullptr && dpu_is_enabled(dpu) ? dpu : nullptr;
    }
  }
  struct dpu_rank_t *rank;
  PerPe<struct dpu_t *> dpus;
};

/// Transfers the word at MRAM byte `offset` of every enabled PE. After the transfer, the host owns
/// the rank's MRAM.
template <dpu_error_t (*Copy)(struct dpu_rank_t *, struct dpu_transfer_matrix *)>
dpu_error_t copy_words(const RankPes &pes, uint32_t offset, Words &words) {
  struct dpu_transfer_matrix matrix = {};
  dpu_transfer_matrix_clear_all(pes.rank, &matrix);
  for (uint32_t pe = 0; pe < words.size(); ++pe)
    if (pes.dpus[pe] != nullptr) dpu_transfer_matrix_add_dpu(pes.dpus[pe], &matrix, &words[pe]);
  matrix.offset = offset;
  matrix.size = kWordBytes;
  return Copy(pes.rank, &matrix);
}

/// Continues after an error, and returns the first error at the end.
template <dpu_error_t (*Copy)(struct dpu_rank_t *, struct dpu_transfer_matrix *)>
dpu_error_t copy_probes(const RankPes &pes, ProbeWords &words) {
  dpu_error_t first = DPU_OK;
  for (std::size_t p = 0; p < kProbes.size(); ++p) {
    const dpu_error_t status = copy_words<Copy>(pes, kProbes[p], words[p]);
    if (first == DPU_OK) first = status;
  }
  return first;
}

/// Whether a region at `base` shows the words of the enabled PEs of one bank at MRAM byte `offset`.
/// The region may belong to another rank, to which other threads store.
__attribute__((no_sanitize("thread"))) bool shows_line(const std::byte *base, const RankPes &pes,
                                                       uint32_t bank, uint32_t offset,
                                                       const Words &words) {
  const auto *line = reinterpret_cast<const uint64_t *>(base + bank_offset(bank) +
                                                        word_offset(offset / kWordBytes));
  _mm_mfence();
  _mm_clflush(line);  // the caches do not see the stores of the PEs and the SDK
  _mm_mfence();
  std::array<uint64_t, kWordBytes> beats;
  for (uint32_t byte = 0; byte < kWordBytes; ++byte)
    beats[byte] = static_cast<const volatile uint64_t *>(line)[byte];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint64_t shown = 0;
    for (uint32_t byte = 0; byte < kWordBytes; ++byte)
      shown |= (beats[byte] >> 8 * lane & 0xFF) << 8 * byte;
    const uint32_t pe = bank * kLanes + lane;
    if (pes.dpus[pe] != nullptr && shown != words[pe]) return false;
  }
  return true;
}

/// Returns at the first line that differs, because the region may belong to another rank, whose PEs
/// may run.
bool shows(const RegionMapping &mapping, const RankPes &pes, const ProbeWords &tags) {
  for (std::size_t p = 0; p < kProbes.size(); ++p)
    for (uint32_t bank = 0; bank < kBanks; ++bank)
      if (!shows_line(mapping.begin, pes, bank, kProbes[p], tags[p])) return false;
  return true;
}

/// Returns random words, which almost certainly differ from each other and from all words in MRAM.
ProbeWords unique_tags() {
  static std::mutex mutex;
  static std::mt19937_64 generator{std::random_device()()};
  const std::lock_guard<std::mutex> lock(mutex);
  ProbeWords tags;
  for (Words &words : tags)
    for (uint64_t &word : words) word = generator();
  return tags;
}

std::string describe(const std::vector<RegionMapping> &mappings) {
  if (mappings.empty()) return "none";
  std::ostringstream text;
  for (const RegionMapping &mapping : mappings)
    text << (&mapping == mappings.data() ? "" : ", ") << mapping.bytes << " bytes at "
         << mapping.begin << " (" << mapping.source << ")";
  return text.str();
}

constexpr const char *kAdvice =
    "allocate the ranks in the region mode perf (profile \"regionMode=perf\", or "
    "UPMEM_PROFILE_BASE=regionMode=perf), on a machine whose "
    "address map the SDK calls xeon_sp";

/// Waits for queued work and running PEs. Errors: those of the SDK, DPU_ERR_DPU_FAULT.
dpu_error_t wait_until_idle(struct dpu_rank_t *rank) {
  const struct dpu_set_t set = dpu_set_from_rank(&rank);
  const dpu_error_t status = dpu_sync(set);
  if (status != DPU_OK) return status;
  bool is_done = false, is_faulted = false;
  const dpu_error_t asking = dpu_status(set, &is_done, &is_faulted);
  if (asking != DPU_OK) return asking;
  if (is_faulted) return DPU_ERR_DPU_FAULT;
  return is_done ? DPU_OK : DPU_ERR_MRAM_BUSY;
}

/// For each probe: whether the words of the probe may differ from their values before the test.
using LostProbes = std::array<bool, kProbes.size()>;

/// Writes the saved words back and reads them again; after an error, tries once more. Does not
/// throw. Returns the first error that remains.
dpu_error_t restore(const RankPes &pes, ProbeWords &saved, LostProbes &lost) {
  dpu_error_t first = copy_probes<dpu_copy_to_mrams>(pes, saved);
  if (first != DPU_OK) {  // another thread may have launched PEs
    wait_until_idle(pes.rank);
    first = copy_probes<dpu_copy_to_mrams>(pes, saved);
  }
  for (std::size_t p = 0; p < kProbes.size(); ++p) {
    Words now{};  // 0 for disabled PEs, as in `saved`
    const dpu_error_t status = copy_words<dpu_copy_from_mrams>(pes, kProbes[p], now);
    lost[p] = status != DPU_OK || now != saved[p];
    if (first == DPU_OK) first = status;
  }
  return first;
}

/// Finds the region among `all` mappings; tries mappings that other ranks hold (`held`) last.
/// Changes words of MRAM and restores these words; if the restoration fails, the error sentence
/// names the words. Errors: those of the SDK; DPU_ERR_DRIVER with a sentence.
dpu_error_t prove(const RankPes &pes, const std::vector<RegionMapping> &all,
                  const std::vector<RegionMapping> &held, RegionMapping *found, std::string *why) {
  std::vector<RegionMapping> candidates, matches;
  for (const RegionMapping &mapping : all)
    if (mapping.bytes >= kRegionBytes) candidates.push_back(mapping);
  const auto first_held = std::stable_partition(
      candidates.begin(), candidates.end(), [&](const RegionMapping &candidate) {
        return std::find(held.begin(), held.end(), candidate) == held.end();
      });
  std::ostringstream sentence;
  if (candidates.empty()) {
    sentence << "the process has no readable and writable shared mapping of /dev/dax* or /dev/dpu* "
                "with the "
             << kRegionBytes
             << " bytes of a rank's region; mappings of such devices: " << describe(all) << "; "
             << kAdvice;
    *why = sentence.str();
    return DPU_ERR_DRIVER;
  }
  if (std::all_of(pes.dpus.begin(), pes.dpus.end(),
                  [](const struct dpu_t *dpu) { return dpu == nullptr; })) {
    *why = "it has no enabled PE, so its mapping cannot be found";
    return DPU_ERR_DRIVER;
  }

  ProbeWords saved{}, tags = unique_tags();
  matches.reserve(candidates.size());  // so that push_back cannot throw while MRAM holds tags
  dpu_error_t status = copy_probes<dpu_copy_from_mrams>(pes, saved);
  if (status != DPU_OK) return status;
  status = copy_probes<dpu_copy_to_mrams>(pes, tags);
  const auto try_each = [&](auto first, auto last) {
    for (; first != last; ++first)
      if (shows(*first, pes, tags)) matches.push_back(std::move(*first));
  };
  if (status == DPU_OK) try_each(candidates.begin(), first_held);
  if (status == DPU_OK && matches.empty()) try_each(first_held, candidates.end());
  LostProbes lost;
  const dpu_error_t restoring = restore(pes, saved, lost);
  if (status == DPU_OK) status = restoring;
  const bool is_restored = std::find(lost.begin(), lost.end(), true) == lost.end();
  if (is_restored && status != DPU_OK) return status;

  if (!is_restored) {
    sentence << "the words at MRAM bytes";
    for (std::size_t p = 0; p < kProbes.size(); ++p)
      if (lost[p]) sentence << " " << kProbes[p];
    sentence << " of its PEs could not be restored and are undefined now: ";
    if (status != DPU_OK) {
      *why = sentence.str() + sdk_error_text(status);
      return status;
    }
    sentence << "the words read back differ from those that the SDK wrote";
  } else if (matches.empty()) {
    sentence << "none of " << candidates.size()
             << " mappings that may be its region shows the words that the SDK wrote to the PEs: "
             << describe(all) << "; " << kAdvice;
  } else if (matches.size() > 1) {
    sentence << "several mappings show the words that the SDK wrote to the PEs: "
             << describe(matches)
             << "; a second mapping of a region cannot be distinguished from the SDK's";
  } else {
    *found = std::move(matches.front());
    return DPU_OK;
  }
  *why = sentence.str();
  return DPU_ERR_DRIVER;
}

struct OpenRank {
  RegionMapping region;          // empty until found
  uint32_t holders = 0;          // number of opens that have not been closed
  uint32_t acquired = 0;         // number of acquires that have not been released
  bool is_being_proved = false;  // while this is true, no thread acquires the rank
};

// Never destroyed: the worker of a non-blocking call may use them while the process exits.
auto &mutex = *new std::mutex;
auto &changed = *new std::condition_variable;
auto &open_ranks = *new std::map<struct dpu_rank_t *, OpenRank>;

void forget_holder_locked(struct dpu_rank_t *rank) {
  const auto found = open_ranks.find(rank);
  if (found != open_ranks.end() && --found->second.holders == 0) open_ranks.erase(found);
}

/// The part of rank_access_open that may throw.
dpu_error_t find_region(struct dpu_rank_t *rank, OpenRank &open, std::unique_lock<std::mutex> &lock,
                        std::string *why) {
  changed.wait(lock, [&] { return !open.is_being_proved; });
  const std::vector<RegionMapping> all = region_mappings();
  for (const RegionMapping &mapping : all)
    if (mapping == open.region)
      return DPU_OK;  // the region was found for another hypercube, which still exists
  changed.wait(lock, [&] { return !open.is_being_proved && open.acquired == 0; });
  open.is_being_proved = true;
  RegionMapping region;
  dpu_error_t status;
  try {
    std::vector<RegionMapping> held;
    for (const auto &[other, state] : open_ranks)
      if (other != rank && !state.is_being_proved) held.push_back(state.region);
    lock.unlock();
    status = wait_until_idle(rank);
    if (status == DPU_OK) status = prove(RankPes(rank), all, held, &region, why);
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    open.is_being_proved = false;
    changed.notify_all();
    throw;
  }
  lock.lock();
  open.is_being_proved = false;
  open.region = std::move(region);
  changed.notify_all();
  return status;
}

}  // namespace

bool ranks_are_coherent() { return false; }
bool rank_queues_block_later_work() { return false; }
std::optional<uint64_t> program_changes() { return std::nullopt; }
bool launches_are_modelled() { return false; }
double modelled_launch_seconds(struct dpu_set_t) {
  fail(PIDCOMM_ERR_INTERNAL, "real DIMMs have no modelled time");
}

dpu_error_t rank_access_open(struct dpu_rank_t *rank, std::string *why) {
  std::unique_lock<std::mutex> lock(mutex);
  OpenRank &open = open_ranks[rank];
  ++open.holders;
  try {
    const dpu_error_t status = find_region(rank, open, lock, why);
    if (status != DPU_OK) forget_holder_locked(rank);
    return status;
  } catch (...) {
    forget_holder_locked(rank);
    throw;
  }
}

void rank_access_close(struct dpu_rank_t *rank) {
  const std::lock_guard<std::mutex> lock(mutex);
  forget_holder_locked(rank);
}

dpu_error_t rank_access_acquire(struct dpu_rank_t *rank, std::byte **base) {
  {
    std::unique_lock<std::mutex> lock(mutex);
    const auto found = open_ranks.find(rank);
    if (found == open_ranks.end()) return DPU_ERR_INTERNAL;
    OpenRank &open = found->second;
    changed.wait(lock, [&] { return !open.is_being_proved; });
    if (open.region.begin == nullptr) return DPU_ERR_INTERNAL;
    ++open.acquired;
    *base = open.region.begin;
  }
  dpu_error_t status = wait_until_idle(rank);
  Words words;
  if (status == DPU_OK) status = copy_words<dpu_copy_from_mrams>(RankPes(rank), 0, words);
  if (status != DPU_OK) rank_access_release(rank);
  return status;
}

void rank_access_release(struct dpu_rank_t *rank) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = open_ranks.find(rank);
  if (found == open_ranks.end()) return;
  --found->second.acquired;
  changed.notify_all();
}

}  // namespace pidcomm
