#include "exec/mram_blocks.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/geometry.h"

namespace pidcomm {

/// The blocks of the process, by descending place.
struct MramBlock::Blocks {
  std::mutex mutex;
  std::list<const MramBlock *> blocks;
};

MramBlock::Blocks &MramBlock::all_blocks() {
  static auto *const blocks = new Blocks;  // outlives static objects of the program
  return *blocks;
}

uint64_t MramBlock::end() const {
  return begin_ + (bytes_ + kWordBytes - 1) / kWordBytes * kWordBytes;
}

bool MramBlock::shares_rank(const MramBlock &other) const {
  auto own = ranks_.begin();
  for (struct dpu_rank_t *rank : other.ranks_) {
    own = std::lower_bound(own, ranks_.end(), rank);
    if (own == ranks_.end()) return false;
    if (*own == rank) return true;
  }
  return false;
}

MramBlock::MramBlock(std::vector<struct dpu_rank_t *> ranks, std::string name, uint64_t bytes,
                     uint64_t heap_base)
    : ranks_(std::move(ranks)), name_(std::move(name)), bytes_(bytes) {
  std::sort(ranks_.begin(), ranks_.end());
  Blocks &all = all_blocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const uint64_t padded = end();
  uint64_t limit = kMramBytes, largest = 0;  // the gap behind the next block ends at `limit`
  std::ostringstream used;
  const auto fits = [&](uint64_t gap_begin) {
    const uint64_t gap = limit - std::min(limit, std::max(gap_begin, heap_base));
    largest = std::max(largest, gap);
    return bytes_ <= kMramBytes && padded <= gap;
  };
  auto place = all.blocks.begin();
  for (; place != all.blocks.end(); ++place) {
    const MramBlock &block = **place;
    if (!shares_rank(block)) continue;
    if (fits(block.end())) break;
    limit = std::min(limit, block.begin());
    used << ", " << block.name() << " has " << block.bytes();
  }
  if (place == all.blocks.end() && !fits(0))
    fail(PIDCOMM_ERR_MEMORY, "buffer ", name_, " needs ", bytes_,
         " bytes of MRAM per PE; the largest free part has ", largest, " of the ", kMramBytes,
         " bytes: the loaded program has ", heap_base, used.str());
  begin_ = limit - padded;
  all.blocks.insert(std::find_if(all.blocks.begin(), all.blocks.end(),
                                 [&](const MramBlock *block) { return block->begin() < begin_; }),
                    this);
}

MramBlock::~MramBlock() {
  Blocks &all = all_blocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks.remove(this);
}

}  // namespace pidcomm
