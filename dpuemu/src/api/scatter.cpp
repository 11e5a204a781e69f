// Implements dpu.h: scatter-gather transfers. The words go through a staging buffer per DPU, of at
// most kStagedBytes, so a transfer has the layout and the ownership rules of dpu_push_xfer.
#include <dpu.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/explanation.h"
#include "base/guard.h"
#include "machine/host_ownership.h"
#include "machine/job_queue.h"
#include "machine/machine.h"
#include "machine/symbols.h"
#include "transfer/transfer.h"

using namespace dpuemu;

namespace {

constexpr uint64_t kStagedBytes = UINT64_C(16) << 10;

/// A transfer as the caller describes it. `arguments` holds a copy of the argument of an
/// asynchronous transfer's function.
struct Request {
  Move move;
  uint64_t offset, length;
  uint64_t moved_bytes;  // of the length
  get_block_t blocks;
  bool must_fill;
  uint32_t max_blocks;
  std::shared_ptr<std::vector<std::max_align_t>> arguments;
};

/// The blocks of one DPU, and the position of the next byte.
struct Cursor {
  std::vector<sg_block_info> blocks;
  size_t block = 0;
  uint64_t position = 0;

  /// Calls act(address, bytes, offset in the chunk) for the pieces of the next `bytes` bytes.
  template <class Act>
  void advance(uint64_t bytes, Act act) {
    for (uint64_t done = 0; done < bytes && block < blocks.size();) {
      const uint64_t piece = std::min<uint64_t>(bytes - done, blocks[block].length - position);
      act(blocks[block].addr + position, piece, done);
      done += piece;
      position += piece;
      if (position == blocks[block].length) ++block, position = 0;
    }
  }
};

/// The DPUs of one rank that take part; first: index in the set of the rank's first DPU.
struct Part {
  Rank *rank;
  uint64_t members;
  uint32_t first;
  std::vector<Cursor> cursors;  // one per member, in ascending order
};

dpu_error_t collect_blocks(const Request &request, uint32_t dpu, Cursor &cursor) {
  uint64_t bytes = 0;
  sg_block_info info = {};
  for (uint32_t block = 0; request.blocks.f(&info, dpu, block, request.blocks.args); ++block) {
    const std::string place = "block " + std::to_string(block) + " of DPU " + std::to_string(dpu);
    if (block == request.max_blocks)
      return explained(DPU_ERR_SG_TOO_MANY_BLOCKS,
                       "DPU " + std::to_string(dpu) + " has more than " +
                           std::to_string(request.max_blocks) +
                           " blocks; the profile's sgXferMaxBlocksPerDpu sets the limit");
    if (info.addr == nullptr && info.length != 0)
      return explained(DPU_ERR_INTERNAL, "the address of " + place + " is NULL");
    bytes += info.length;
    if (info.length != 0) cursor.blocks.push_back(info);
    info = {};
  }
  if (bytes == request.length || (bytes < request.length && !request.must_fill)) return DPU_OK;
  return explained(DPU_ERR_SG_LENGTH_MISMATCH, "the blocks of DPU " + std::to_string(dpu) +
                                                   " have " + std::to_string(bytes) +
                                                   " bytes in all; the length of the transfer is " +
                                                   std::to_string(request.length));
}

dpu_error_t collect_blocks(const Request &request, std::vector<Part> &parts) {
  for (Part &part : parts) {
    part.cursors.assign(static_cast<size_t>(std::popcount(part.members)), {});
    for (uint32_t i = 0; i < part.cursors.size(); ++i)
      if (const dpu_error_t status = collect_blocks(request, part.first + i, part.cursors[i]);
          status != DPU_OK)
        return status;
  }
  return DPU_OK;
}

/// Moves the bytes of all parts chunk by chunk. Requires collected blocks and the ownership of all
/// ranks.
void move_blocks(const Request &request, std::vector<Part> &parts) {
  size_t dpus = 0;
  for (const Part &part : parts) dpus += part.cursors.size();
  const uint64_t most = std::min(request.moved_bytes, kStagedBytes);
  std::vector<uint8_t> staging(dpus * most);
  for (uint64_t done = 0; done < request.moved_bytes; done += most) {
    const uint64_t bytes = std::min(most, request.moved_bytes - done);
    Transfer chunk{request.move, Memory::kMram, request.offset + done, bytes, {}};
    uint8_t *staged = staging.data();
    for (Part &part : parts) {
      chunk.ranks.push_back({part.rank, {}});
      size_t member = 0;
      for_each_dpu(part.members, [&](uint32_t dpu) {
        chunk.ranks.back().buffers.of_dpu[dpu] = staged;
        if (request.move == Move::kWrite) {
          std::memset(staged, 0, bytes);  // the bytes that no block fills
          part.cursors[member].advance(bytes, [&](const uint8_t *from, uint64_t n, uint64_t at) {
            std::memcpy(staged + at, from, n);
          });
        }
        ++member;
        staged += most;
      });
    }
    move_bytes(chunk);
    if (request.move == Move::kWrite) continue;
    staged = staging.data();
    for (Part &part : parts)
      for (Cursor &cursor : part.cursors) {
        cursor.advance(
            bytes, [&](uint8_t *to, uint64_t n, uint64_t at) { std::memcpy(to, staged + at, n); });
        staged += most;
      }
  }
}

dpu_error_t run(const Request &request, std::vector<Part> parts) {
  const dpu_error_t status = collect_blocks(request, parts);
  if (status != DPU_OK) return status;
  HostOwnership ownership;
  for (const Part &part : parts)
    if (const dpu_error_t own = ownership.take(*part.rank); own != DPU_OK) return own;
  move_blocks(request, parts);
  return DPU_OK;
}

/// Queues the transfer of each rank. Each rank's job asks for the blocks when it runs.
void queue(Request request, const std::vector<Part> &parts) {
  if (request.blocks.args_size != 0 && request.blocks.args != nullptr) {
    const size_t units =
        (request.blocks.args_size + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
    request.arguments = std::make_shared<std::vector<std::max_align_t>>(units);
    std::memcpy(request.arguments->data(), request.blocks.args, request.blocks.args_size);
    request.blocks.args = request.arguments->data();
  }
  std::vector<QueuedWork> work;
  for (const Part &part : parts)
    work.push_back(
        {part.rank, [request, part] { return guarded([&] { return run(request, {part}); }); }});
  enqueue_all(std::move(work), false);
}

dpu_error_t push(const dpu_set_t &dpu_set, const char *name, const dpu_symbol_t *given,
                 dpu_xfer_t xfer, uint32_t offset, size_t length, const get_block_t *blocks,
                 dpu_sg_xfer_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    dpu_symbol_t symbol;
    if (given != nullptr)
      symbol = *given;
    else if (status = find_common_symbol(set, name, symbol); status != DPU_OK)
      return status;
    if (xfer != DPU_XFER_TO_DPU && xfer != DPU_XFER_FROM_DPU)
      return DPU_ERR_INVALID_MEMORY_TRANSFER;
    if (blocks == nullptr || blocks->f == nullptr) return DPU_ERR_INTERNAL;
    if (!(symbol.address & kMramAddress)) return DPU_ERR_SG_NOT_MRAM_SYMBOL;
    if (length > symbol.size || offset > symbol.size - length) return DPU_ERR_INVALID_SYMBOL_ACCESS;
    uint64_t begin = uint64_t{symbol.address} - kMramAddress + offset, moved_bytes = length;
    if (begin + length > kMramBytes) return DPU_ERR_INVALID_MRAM_ACCESS;
    if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;

    uint32_t max_blocks = UINT32_MAX;
    uint32_t dpus = 0;
    std::vector<Part> parts;
    for (size_t i = 0; i < set.ranks().size(); ++i) {
      max_blocks = std::min(max_blocks, set.ranks()[i]->sg_max_blocks.load());
      parts.push_back({set.ranks()[i], set.members(i), dpus, {}});
      dpus += static_cast<uint32_t>(std::popcount(set.members(i)));
    }
    if (max_blocks == 0)
      return explained(DPU_ERR_SG_NOT_ACTIVATED,
                       "the profile of dpu_alloc needs sgXferEnable=true");
    if (status = round_to_words(begin, moved_bytes); status != DPU_OK) return status;
    const Move move = xfer == DPU_XFER_TO_DPU ? Move::kWrite : Move::kRead;
    const Request request{move,        begin,   length,
                          moved_bytes, *blocks, !(flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK),
                          max_blocks,  nullptr};
    if (!(flags & DPU_SG_XFER_ASYNC)) return run(request, std::move(parts));
    queue(request, parts);
    return DPU_OK;
  });
}

}  // namespace

dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                             dpu_sg_xfer_flags_t flags) {
  return push(dpu_set, symbol_name, nullptr, xfer, symbol_offset, length, get_block_info, flags);
}

dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                    struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags) {
  return push(dpu_set, nullptr, &symbol, xfer, symbol_offset, length, get_block_info, flags);
}
