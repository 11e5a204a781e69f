#include "exec/mram_blocks.h"

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/geometry.h"
#include "exec/rank_locks.h"

namespace pidcomm {

/// The blocks of the process.
struct MramBlock::Blocks {
  std::mutex mutex;
  std::list<const MramBlock *> blocks;
};

MramBlock::Blocks &MramBlock::all_blocks() {
  static Blocks *const blocks = [] {
    auto made = std::make_unique<Blocks>();
    const int status =
        pthread_atfork([] { all_blocks().mutex.lock(); }, [] { all_blocks().mutex.unlock(); },
                       [] { all_blocks().mutex.unlock(); });
    if (status != 0) throw std::bad_alloc();
    return made.release();  // never destroyed: static objects of the program may have buffers
  }();
  return *blocks;
}

uint64_t MramBlock::end() const {
  return begin_ + (bytes_ + kWordBytes - 1) / kWordBytes * kWordBytes;
}

MramBlock::MramBlock(std::vector<struct dpu_rank_t *> ranks, std::string name, uint64_t bytes,
                     uint64_t heap_base)
    : ranks_(std::move(ranks)), name_(std::move(name)), bytes_(bytes) {
  std::sort(ranks_.begin(), ranks_.end(), std::less<>());
  const uint64_t padded = end();
  Blocks &all = all_blocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<const MramBlock *> used;
  for (const MramBlock *block : all.blocks)
    if (share_a_rank(ranks_, block->ranks_)) used.push_back(block);
  // Blocks of different ranks may overlap, so the order of their ends is decisive.
  std::sort(used.begin(), used.end(),
            [](const MramBlock *a, const MramBlock *b) { return a->end() > b->end(); });
  uint64_t limit = kMramBytes, largest = 0;  // the next gap ends at `limit`
  const auto fits = [&](uint64_t gap_begin) {
    const uint64_t begin = std::max(gap_begin, heap_base);
    largest = std::max(largest, limit - std::min(limit, begin));
    return bytes_ <= kMramBytes && begin + padded <= limit;
  };
  const bool is_placed = std::any_of(used.begin(), used.end(), [&](const MramBlock *block) {
    if (fits(block->end())) return true;
    limit = std::min(limit, block->begin());
    return false;
  });
  if (!is_placed && !fits(0)) {
    std::ostringstream blocks;
    for (const MramBlock *block : used)
      blocks << ", " << block->name() << " has " << block->bytes();
    fail(PIDCOMM_ERR_MEMORY, "buffer ", name_, " needs ", bytes_,
         " bytes of MRAM per PE; the largest free part has ", largest, " of the ", kMramBytes,
         " bytes: the variables of the loaded program end at byte ", heap_base, blocks.str());
  }
  begin_ = limit - padded;
  all.blocks.push_back(this);
}

MramBlock::~MramBlock() {
  Blocks &all = all_blocks();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks.remove(this);
}

void MramBlock::require_kept(uint64_t heap_base) const {
  if (heap_base > begin_) overwritten_to_ = heap_base;
  if (const uint64_t end = overwritten_to_; end != 0)
    fail(PIDCOMM_ERR_WINDOW, "buffer ", name_, " begins at MRAM byte ", begin_,
         ", but the variables of a loaded program end at ", end,
         ": the program has overwritten the buffer");
}

}  // namespace pidcomm
