// Implements dpu.h, dpu_memory.h, dpu_transfer_matrix.h: transfers. A transfer makes all checks
// before it copies the first byte.
#include "transfer/transfer.h"

#include <dpu.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_transfer_matrix.h>

#include <memory>

#include "base/guard.h"
#include "machine/host_ownership.h"
#include "machine/job_queue.h"
#include "machine/machine.h"
#include "machine/symbols.h"

using namespace dpuemu;

namespace {

constexpr uint64_t kWramWordBytes = 4;

dpu_error_t run_transfer(const Transfer &transfer) {
  HostOwnership ownership;
  for (const RankBuffers &entry : transfer.ranks)
    if (const dpu_error_t status = ownership.take(*entry.rank); status != DPU_OK) return status;
  move_bytes(transfer);
  return DPU_OK;
}

/// Adds each rank's part to the queue of the rank.
void queue_transfer(const Transfer &transfer, bool is_parallel) {
  std::vector<QueuedWork> work;
  for (const RankBuffers &entry : transfer.ranks) {
    auto part = std::make_shared<const Transfer>(
        Transfer{transfer.move, transfer.memory, transfer.offset, transfer.length, {entry}});
    work.push_back({entry.rank, [part, is_parallel] {
                      if (!is_parallel) return run_transfer(*part);
                      move_bytes(*part);
                      return DPU_OK;
                    }});
  }
  enqueue_all(std::move(work), is_parallel);
}

/// The target of a transfer: a part of a symbol.
struct Target {
  dpu_symbol_t symbol;
  uint64_t offset;
  uint64_t length;
};

/// Finds the memory of the target, and the offset of the target in this memory.
dpu_error_t locate(const Target &target, Memory &memory, uint64_t &offset) {
  if (target.length > target.symbol.size || target.offset > target.symbol.size - target.length)
    return DPU_ERR_INVALID_SYMBOL_ACCESS;
  const uint64_t address = target.symbol.address + target.offset;
  if (target.symbol.address & kIramAddress) return DPU_ERR_INVALID_IRAM_ACCESS;
  if (target.symbol.address & kMramAddress) {
    memory = Memory::kMram;
    offset = address - kMramAddress;
    return offset + target.length <= kMramBytes ? DPU_OK : DPU_ERR_INVALID_MRAM_ACCESS;
  }
  memory = Memory::kWram;
  offset = address;
  const bool is_whole_words = address % kWramWordBytes == 0 && target.length % kWramWordBytes == 0;
  return is_whole_words && address + target.length <= PE_WRAM_BYTES ? DPU_OK
                                                                    : DPU_ERR_INVALID_WRAM_ACCESS;
}

/// Makes the WRAM of every PE that takes part accessible.
dpu_error_t open_wrams(const std::vector<RankBuffers> &ranks) {
  for (const RankBuffers &entry : ranks)
    for (uint32_t i = 0; i < kDpusPerRank; ++i)
      if (entry.buffers.of_dpu[i] != nullptr && !entry.rank->open_wram(i)) return DPU_ERR_SYSTEM;
  return DPU_OK;
}

dpu_error_t start(Transfer &&transfer, dpu_xfer_flags_t flags) {
  const bool is_parallel = flags & DPU_XFER_PARALLEL;
  if (transfer.memory == Memory::kWram) {
    const dpu_error_t status = open_wrams(transfer.ranks);
    if (status != DPU_OK) return status;
  }
  if (flags & DPU_XFER_ASYNC) {
    queue_transfer(transfer, is_parallel);
    return DPU_OK;
  }
  if (!is_parallel) return run_transfer(transfer);
  transfer.is_beside_queues = true;
  move_bytes(transfer);
  return DPU_OK;
}

/// Makes all checks that do not wait for ranks, then transfers the buffers that buffers_of()
/// returns.
template <class BuffersOf>
dpu_error_t transfer_set(const PinnedSet &set, Move move, const Target &target,
                         dpu_xfer_flags_t flags, BuffersOf buffers_of) {
  Transfer transfer{move, Memory::kMram, 0, target.length, {}};
  dpu_error_t status = locate(target, transfer.memory, transfer.offset);
  if (status != DPU_OK) return status;
  if ((flags & DPU_XFER_PARALLEL) && transfer.memory == Memory::kMram)
    return DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER;
  if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
  if (transfer.memory == Memory::kMram) status = round_to_words(transfer.offset, transfer.length);
  if (status != DPU_OK) return status;
  const std::vector<PreparedBuffers> buffers = buffers_of();
  for (size_t i = 0; i < set.ranks().size(); ++i)
    transfer.ranks.push_back({set.ranks()[i], buffers[i]});
  return start(std::move(transfer), flags);
}

/// Returns the same buffer for all members of each rank.
std::vector<PreparedBuffers> same_buffer(const PinnedSet &set, uint8_t *buffer) {
  std::vector<PreparedBuffers> all(set.ranks().size());
  for (size_t i = 0; i < all.size(); ++i)
    for_each_dpu(set.members(i), [&](uint32_t dpu) { all[i].of_dpu[dpu] = buffer; });
  return all;
}

uint8_t *writable_bytes(const void *source) {
  return static_cast<uint8_t *>(const_cast<void *>(source));
}

/// Calls transfer(symbol) if the set has a symbol with this name.
template <class TransferSymbol>
dpu_error_t with_symbol(const dpu_set_t &dpu_set, const char *symbol_name,
                        TransferSymbol transfer) {
  dpu_symbol_t symbol;
  const dpu_error_t status = guarded([&] {
    PinnedSet set;
    const dpu_error_t own = set.pin(dpu_set);
    return own == DPU_OK ? find_common_symbol(set, symbol_name, symbol) : own;
  });
  return status == DPU_OK ? transfer(symbol) : status;
}

constexpr dpu_symbol_t kWholeMram = {kMramAddress, static_cast<dpu_mem_max_size_t>(kMramBytes)};

dpu_symbol_t whole_wram() { return {PE_WRAM_ORIGIN, Machine::instance().chip().wram_bytes}; }

/// dpu_memory.h has no symbols, so an access past the end of the symbol has the status of an access
/// past the end of the memory.
dpu_error_t as_mram_error(dpu_error_t status) {
  return status == DPU_ERR_INVALID_SYMBOL_ACCESS ? DPU_ERR_INVALID_MRAM_ACCESS : status;
}
dpu_error_t as_wram_error(dpu_error_t status) {
  return status == DPU_ERR_INVALID_SYMBOL_ACCESS ? DPU_ERR_INVALID_WRAM_ACCESS : status;
}

dpu_error_t copy_one(const dpu_set_t &dpu_set, Move move, const Target &target, uint8_t *buffer,
                     dpu_xfer_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (!set.is_single_dpu()) return DPU_ERR_INVALID_DPU_SET;
    if (buffer == nullptr) return DPU_ERR_INTERNAL;
    return transfer_set(set, move, target, flags, [&] { return same_buffer(set, buffer); });
  });
}

}  // namespace

dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
    Machine::instance().prepare(set, static_cast<uint8_t *>(buffer));
    return DPU_OK;
  });
}

dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                 struct dpu_symbol_t symbol, uint32_t symbol_offset, size_t length,
                                 dpu_xfer_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (xfer != DPU_XFER_TO_DPU && xfer != DPU_XFER_FROM_DPU)
      return DPU_ERR_INVALID_MEMORY_TRANSFER;
    const Move move = xfer == DPU_XFER_TO_DPU ? Move::kWrite : Move::kRead;
    status = transfer_set(set, move, {symbol, symbol_offset, length}, flags,
                          [&] { return Machine::instance().prepared(set); });
    if (status == DPU_OK && !(flags & DPU_XFER_NO_RESET)) Machine::instance().prepare(set, nullptr);
    return status;
  });
}

dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags) {
  return with_symbol(dpu_set, symbol_name, [&](const dpu_symbol_t &symbol) {
    return dpu_push_xfer_symbol(dpu_set, xfer, symbol, symbol_offset, length, flags);
  });
}

dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, const void *src, size_t length,
                                    dpu_xfer_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (src == nullptr) return DPU_ERR_INTERNAL;
    return transfer_set(set, Move::kBroadcast, {symbol, symbol_offset, length}, flags,
                        [&] { return same_buffer(set, writable_bytes(src)); });
  });
}

dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name,
                             uint32_t symbol_offset, const void *src, size_t length,
                             dpu_xfer_flags_t flags) {
  return with_symbol(dpu_set, symbol_name, [&](const dpu_symbol_t &symbol) {
    return dpu_broadcast_to_symbol(dpu_set, symbol, symbol_offset, src, length, flags);
  });
}

dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                        const void *src, size_t length) {
  return dpu_broadcast_to(dpu_set, symbol_name, symbol_offset, src, length, DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                               uint32_t symbol_offset, const void *src, size_t length) {
  return dpu_broadcast_to_symbol(dpu_set, symbol, symbol_offset, src, length, DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, void *dst, size_t length) {
  return copy_one(dpu_set, Move::kRead, {symbol, symbol_offset, length},
                  static_cast<uint8_t *>(dst), DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                          void *dst, size_t length) {
  return with_symbol(dpu_set, symbol_name, [&](const dpu_symbol_t &symbol) {
    return dpu_copy_from_symbol(dpu_set, symbol, symbol_offset, dst, length);
  });
}

dpu_error_t dpu_copy_to_mram(struct dpu_t *dpu, mram_addr_t mram_byte_offset, const uint8_t *source,
                             mram_size_t nb_of_bytes) {
  return as_mram_error(copy_one(dpu_set_from_dpu(dpu), Move::kWrite,
                                {kWholeMram, mram_byte_offset, nb_of_bytes}, writable_bytes(source),
                                DPU_XFER_DEFAULT));
}

dpu_error_t dpu_copy_from_mram(struct dpu_t *dpu, uint8_t *destination,
                               mram_addr_t mram_byte_offset, mram_size_t nb_of_bytes) {
  return as_mram_error(copy_one(dpu_set_from_dpu(dpu), Move::kRead,
                                {kWholeMram, mram_byte_offset, nb_of_bytes}, destination,
                                DPU_XFER_DEFAULT));
}

namespace {

/// Copies of WRAM words run immediately, also while PEs run.
constexpr dpu_xfer_flags_t kOfWords = DPU_XFER_PARALLEL;

/// A part of WRAM.
Target words(uint64_t offset, uint64_t count) {
  return {whole_wram(), offset * kWramWordBytes, count * kWramWordBytes};
}

constexpr uint32_t matrix_index(uint32_t chip, uint32_t bank) { return bank * kChips + chip; }

/// unit_bytes: the unit of the matrix's offset and size.
dpu_error_t copy_matrix(dpu_rank_t *rank, Move move, const dpu_transfer_matrix *matrix,
                        const dpu_symbol_t &memory, uint64_t unit_bytes, dpu_xfer_flags_t flags) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set_from_rank(&rank));
    if (status != DPU_OK) return status;
    if (matrix == nullptr) return DPU_ERR_INTERNAL;
    if (matrix->type != DPU_DEFAULT_XFER_MATRIX) return DPU_ERR_SG_NOT_ACTIVATED;
    const Target target = {memory, matrix->offset * unit_bytes, matrix->size * unit_bytes};
    return transfer_set(set, move, target, flags, [&] {
      std::vector<PreparedBuffers> buffers(1);
      for (uint32_t chip = 0; chip < kChips; ++chip)
        for (uint32_t bank = 0; bank < kBanks; ++bank) {
          const uint32_t index = dpu_index(chip, bank);
          if (set.members(0) >> index & 1)
            buffers[0].of_dpu[index] =
                static_cast<uint8_t *>(matrix->ptr[matrix_index(chip, bank)]);
        }
      return buffers;
    });
  });
}

/// Returns the DPU's entry in the matrix, or a dummy entry if the DPU is not allocated.
void *&matrix_entry(dpu_t *dpu, dpu_transfer_matrix &matrix) {
  __attribute__((tls_model("initial-exec"))) thread_local void *nowhere;
  nowhere = nullptr;
  dpu_rank_t *rank;
  dpu_t found;
  return Machine::instance().find(dpu, rank, found)
             ? matrix.ptr[matrix_index(found.chip, found.bank)]
             : nowhere;
}

}  // namespace

dpu_error_t dpu_copy_to_mrams(struct dpu_rank_t *rank,
                              struct dpu_transfer_matrix *transfer_matrix) {
  return as_mram_error(
      copy_matrix(rank, Move::kWrite, transfer_matrix, kWholeMram, 1, DPU_XFER_DEFAULT));
}

dpu_error_t dpu_copy_from_mrams(struct dpu_rank_t *rank,
                                struct dpu_transfer_matrix *transfer_matrix) {
  return as_mram_error(
      copy_matrix(rank, Move::kRead, transfer_matrix, kWholeMram, 1, DPU_XFER_DEFAULT));
}

dpu_error_t dpu_copy_to_wram_for_dpu(struct dpu_t *dpu, wram_addr_t wram_word_offset,
                                     const dpuword_t *source, wram_size_t nb_of_words) {
  return as_wram_error(copy_one(dpu_set_from_dpu(dpu), Move::kWrite,
                                words(wram_word_offset, nb_of_words), writable_bytes(source),
                                kOfWords));
}

dpu_error_t dpu_copy_from_wram_for_dpu(struct dpu_t *dpu, dpuword_t *destination,
                                       wram_addr_t wram_word_offset, wram_size_t nb_of_words) {
  return as_wram_error(copy_one(dpu_set_from_dpu(dpu), Move::kRead,
                                words(wram_word_offset, nb_of_words),
                                reinterpret_cast<uint8_t *>(destination), kOfWords));
}

dpu_error_t dpu_copy_to_wram_for_rank(struct dpu_rank_t *rank, wram_addr_t wram_word_offset,
                                      const dpuword_t *source, wram_size_t nb_of_words) {
  const dpu_symbol_t wram = whole_wram();
  if (wram_word_offset > wram.size / kWramWordBytes) return DPU_ERR_INVALID_WRAM_ACCESS;
  return as_wram_error(dpu_broadcast_to_symbol(
      dpu_set_from_rank(&rank), wram, static_cast<uint32_t>(wram_word_offset * kWramWordBytes),
      source, nb_of_words * kWramWordBytes, kOfWords));
}

dpu_error_t dpu_copy_to_wram_for_matrix(struct dpu_rank_t *rank,
                                        struct dpu_transfer_matrix *transfer_matrix) {
  return as_wram_error(
      copy_matrix(rank, Move::kWrite, transfer_matrix, whole_wram(), kWramWordBytes, kOfWords));
}

dpu_error_t dpu_copy_from_wram_for_matrix(struct dpu_rank_t *rank,
                                          struct dpu_transfer_matrix *transfer_matrix) {
  return as_wram_error(
      copy_matrix(rank, Move::kRead, transfer_matrix, whole_wram(), kWramWordBytes, kOfWords));
}

void dpu_transfer_matrix_add_dpu(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix,
                                 void *buffer) {
  matrix_entry(dpu, *transfer_matrix) = buffer;
}

void dpu_transfer_matrix_set_all(struct dpu_rank_t *rank,
                                 struct dpu_transfer_matrix *transfer_matrix, void *buffer) {
  for (uint32_t i = 0; (i = Machine::instance().next_enabled(rank, i)) < kDpusPerRank; ++i)
    dpu_transfer_matrix_add_dpu(rank->dpus + i, transfer_matrix, buffer);
}

void dpu_transfer_matrix_clear_dpu(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix) {
  dpu_transfer_matrix_add_dpu(dpu, transfer_matrix, nullptr);
}

void dpu_transfer_matrix_clear_all(struct dpu_rank_t *,
                                   struct dpu_transfer_matrix *transfer_matrix) {
  *transfer_matrix = {};
}

void dpu_transfer_matrix_copy(struct dpu_transfer_matrix *dst, struct dpu_transfer_matrix *src) {
  *dst = *src;
}

void *dpu_transfer_matrix_get_ptr(struct dpu_t *dpu, struct dpu_transfer_matrix *transfer_matrix) {
  return matrix_entry(dpu, *transfer_matrix);
}
