// Implements dpu_fifo.h and dpu_fifo_push_xfer. A FIFO is a structure in WRAM (runtime/wramfifo.h):
// its pointers, then addresses, then two sizes.
#include <dpu.h>
#include <dpu_management.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "base/explanation.h"
#include "base/guard.h"
#include "machine/job_queue.h"
#include "machine/machine.h"
#include "machine/symbols.h"
#include "transfer/transfer.h"

using namespace dpuemu;

namespace {

constexpr uint32_t kWramWordBytes = 4, kPointerBytes = 8, kSizesOffset = 24, kFifoBytes = 32;
constexpr uint32_t kMostPointerBits = 10, kRetries = 1000, kRetryMicroseconds = 10;

/// Moves bytes between WRAM and host buffers, also while PEs run.
dpu_error_t move_wram(Rank &rank, Move move, uint32_t offset, uint64_t bytes,
                      const PreparedBuffers &buffers) {
  for (uint32_t i = 0; i < kDpusPerRank; ++i)
    if (buffers.of_dpu[i] != nullptr && !rank.open_wram(i)) return DPU_ERR_SYSTEM;
  move_bytes({move, Memory::kWram, offset, bytes, {{&rank, buffers}}, true});
  return DPU_OK;
}

dpu_error_t move_wram_of(Rank &rank, uint32_t dpu, Move move, uint32_t offset, void *bytes,
                         uint64_t count) {
  PreparedBuffers buffers;
  buffers.of_dpu[dpu] = static_cast<uint8_t *>(bytes);
  return move_wram(rank, move, offset, count, buffers);
}

/// The FIFOs of one rank, and the DPUs of a transfer with their host buffers.
struct RankFifos {
  Rank *rank;
  dpu_fifo_rank_t *fifo;
  uint64_t dpus;
  PreparedBuffers buffers;

  uint64_t &read_pointer(uint32_t dpu) const { return fifo->dpu_fifo_pointers[2 * dpu]; }
  uint64_t &write_pointer(uint32_t dpu) const { return fifo->dpu_fifo_pointers[2 * dpu + 1]; }
  uint32_t address() const { return fifo->fifo_pointers_matrix.offset * kWramWordBytes; }
  uint32_t data_address() const { return fifo->dpu_fifo_address * kWramWordBytes; }
  uint64_t elements() const { return UINT64_C(1) << fifo->dpu_fifo_ptr_size; }

  dpu_error_t read_pointers() const {
    PreparedBuffers pointers;
    for_each_dpu(dpus, [&](uint32_t i) {
      pointers.of_dpu[i] = reinterpret_cast<uint8_t *>(&read_pointer(i));
    });
    return move_wram(*rank, Move::kRead, address(), 2 * kPointerBytes, pointers);
  }
};

/// Appends the element in the buffer of each DPU. Retries while a FIFO is full.
dpu_error_t push(RankFifos fifos) {
  dpu_error_t status = DPU_OK;
  for (uint32_t retries = 0;; ++retries) {
    if ((status = fifos.read_pointers()) != DPU_OK) return status;
    uint64_t full = 0;
    for_each_dpu(fifos.dpus, [&](uint32_t i) {
      uint64_t &end = fifos.write_pointer(i);
      if (end - fifos.read_pointer(i) >= fifos.elements()) {
        full |= UINT64_C(1) << i;
        return;
      }
      const uint32_t bytes = fifos.fifo->dpu_fifo_data_size;
      const auto place =
          fifos.data_address() + static_cast<uint32_t>(end % fifos.elements()) * bytes;
      ++end;
      for (const dpu_error_t own :
           {move_wram_of(*fifos.rank, i, Move::kWrite, place, fifos.buffers.of_dpu[i], bytes),
            move_wram_of(*fifos.rank, i, Move::kWrite, fifos.address() + kPointerBytes, &end,
                         kPointerBytes)})
        if (own != DPU_OK) status = own;
    });
    fifos.dpus = full;
    if (full == 0 || status != DPU_OK) return status;
    if (retries >= fifos.fifo->max_retries) return DPU_ERR_WRAM_FIFO_FULL;
    usleep(fifos.fifo->time_for_retry);
  }
}

/// Copies all elements to the buffer of each DPU, and removes them from the FIFOs.
dpu_error_t flush(const RankFifos &fifos) {
  dpu_error_t status = fifos.read_pointers();
  if (status != DPU_OK) return status;
  bool has_elements = false;
  for_each_dpu(fifos.dpus, [&](uint32_t i) {
    has_elements = has_elements || fifos.read_pointer(i) != fifos.write_pointer(i);
  });
  if (!has_elements) return DPU_OK;
  PreparedBuffers ends;
  for_each_dpu(fifos.dpus, [&](uint32_t i) {
    ends.of_dpu[i] = reinterpret_cast<uint8_t *>(&fifos.write_pointer(i));
  });
  status = move_wram(*fifos.rank, Move::kRead, fifos.data_address(),
                     fifos.elements() * fifos.fifo->dpu_fifo_data_size, fifos.buffers);
  return status == DPU_OK
             ? move_wram(*fifos.rank, Move::kWrite, fifos.address(), kPointerBytes, ends)
             : status;
}

constexpr uint32_t matrix_index(uint32_t dpu) { return dpu % kBanks * kChips + dpu / kBanks; }

dpu_error_t link(const dpu_set_t &dpu_set, dpu_fifo_link_t *link, dpu_fifo_direction_t direction,
                 const char *name) {
  return guarded([&] {
    PinnedSet set;
    dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (link == nullptr || name == nullptr) return DPU_ERR_INTERNAL;
    dpu_symbol_t fifo, data;
    if ((status = find_common_symbol(set, name, fifo)) != DPU_OK) return status;
    status = find_common_symbol(set, ("__" + std::string(name) + "_data").c_str(), data);
    if (status != DPU_OK) return status;
    if (fifo.size < kFifoBytes || uint64_t{fifo.address} + fifo.size > PE_WRAM_BYTES ||
        uint64_t{data.address} + data.size > PE_WRAM_BYTES)
      return DPU_ERR_INVALID_WRAM_ACCESS;
    for (size_t i = 0; i < set.ranks().size(); ++i)
      for (uint64_t rest = set.members(i); rest != 0; rest &= rest - 1)
        if (set.ranks()[i]->pes[std::countr_zero(rest)].program->code() != nullptr)
          return explained(DPU_ERR_ELF_INVALID_FILE,
                           "FIFOs of the host need a program of dpuemu's compiler");
    uint32_t sizes[2] = {};  // pointer bits, bytes of an element
    for (size_t i = set.ranks().size(); i-- > 0;)
      if (set.members(i) != 0)
        status =
            move_wram_of(*set.ranks()[i], static_cast<uint32_t>(std::countr_zero(set.members(i))),
                         Move::kRead, fifo.address + kSizesOffset, sizes, sizeof sizes);
    if (status != DPU_OK) return status;
    if (sizes[0] > kMostPointerBits || sizes[1] % kPointerBytes != 0 ||
        uint64_t{sizes[1]} << sizes[0] != data.size)
      return DPU_ERR_INVALID_WRAM_ACCESS;
    auto *const ranks =
        static_cast<dpu_fifo_rank_t *>(std::calloc(DPUEMU_MAX_RANKS, sizeof(dpu_fifo_rank_t)));
    if (ranks == nullptr) return DPU_ERR_SYSTEM;
    for (const Rank *rank : set.ranks()) {
      dpu_fifo_rank_t &own = ranks[rank->id()];
      own.dpu_fifo_ptr_size = static_cast<uint8_t>(sizes[0]);
      own.dpu_fifo_data_size = sizes[1];
      own.dpu_fifo_address = data.address / kWramWordBytes;
      own.fifo_pointers_matrix.offset = fifo.address / kWramWordBytes;
      own.max_retries = kRetries;
      own.time_for_retry = kRetryMicroseconds;
    }
    *link = {direction, fifo, ranks};
    return DPU_OK;
  });
}

/// Calls act(dpu_fifo_rank_t &, members) for each rank of the set that the link has.
template <class Act>
dpu_error_t for_each_rank(const dpu_set_t &dpu_set, dpu_fifo_link_t *link, Act act) {
  return guarded([&] {
    PinnedSet set;
    const dpu_error_t status = set.pin(dpu_set);
    if (status != DPU_OK) return status;
    if (link == nullptr || link->rank_fifos == nullptr) return DPU_ERR_INTERNAL;
    if (set.is_single_dpu() && set.members(0) == 0) return DPU_ERR_DPU_DISABLED;
    for (size_t i = 0; i < set.ranks().size(); ++i) {
      dpu_fifo_rank_t &fifo = link->rank_fifos[set.ranks()[i]->id()];
      if (fifo.dpu_fifo_data_size == 0) return DPU_ERR_INVALID_DPU_SET;  // not linked
    }
    for (size_t i = 0; i < set.ranks().size(); ++i)
      act(*set.ranks()[i], link->rank_fifos[set.ranks()[i]->id()], set.members(i));
    return DPU_OK;
  });
}

/// The FIFO of one DPU after the last transfer; `fifo` is nullptr if the link has no such DPU.
struct DpuFifo {
  dpu_fifo_rank_t *fifo = nullptr;
  uint64_t read_pointer = 0, elements = 0;
};

DpuFifo fifo_of(dpu_fifo_link_t *link, const dpu_set_t &dpu) {
  DpuFifo found;
  for_each_rank(dpu, link, [&](Rank &, dpu_fifo_rank_t &fifo, uint64_t members) {
    const auto *pointers = fifo.dpu_fifo_pointers + 2 * std::countr_zero(members);
    found = {&fifo, pointers[0], pointers[1] - pointers[0]};
  });
  return found;
}

}  // namespace

dpu_error_t dpu_link_input_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                char *fifo_name) {
  return link(dpu_set, fifo_link, DPU_INPUT_FIFO, fifo_name);
}

dpu_error_t dpu_link_output_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                 char *fifo_name) {
  return link(dpu_set, fifo_link, DPU_OUTPUT_FIFO, fifo_name);
}

dpu_error_t dpu_fifo_link_free(struct dpu_fifo_link_t *fifo_link) {
  if (fifo_link == nullptr) return DPU_ERR_INTERNAL;
  std::free(fifo_link->rank_fifos);
  fifo_link->rank_fifos = nullptr;
  return DPU_OK;
}

dpu_error_t dpu_fifo_prepare_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                  void *buffer) {
  return for_each_rank(dpu_set, fifo_link, [&](Rank &, dpu_fifo_rank_t &fifo, uint64_t members) {
    for_each_dpu(members, [&](uint32_t i) { fifo.transfer_matrix.ptr[matrix_index(i)] = buffer; });
  });
}

dpu_error_t dpu_fifo_push_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                               dpu_xfer_flags_t flags) {
  std::vector<QueuedWork> work;
  dpu_error_t result = DPU_OK;
  const dpu_error_t status =
      for_each_rank(dpu_set, fifo_link, [&](Rank &rank, dpu_fifo_rank_t &fifo, uint64_t members) {
        RankFifos fifos{&rank, &fifo, 0, {}};
        for_each_dpu(members, [&](uint32_t i) {
          void *&buffer = fifo.transfer_matrix.ptr[matrix_index(i)];
          fifos.buffers.of_dpu[i] = static_cast<uint8_t *>(buffer);
          if (buffer != nullptr) fifos.dpus |= UINT64_C(1) << i;
          if (!(flags & DPU_XFER_NO_RESET)) buffer = nullptr;
        });
        const bool is_input = fifo_link->direction == DPU_INPUT_FIFO;
        const auto transfer = [=] { return is_input ? push(fifos) : flush(fifos); };
        if (flags & DPU_XFER_ASYNC)
          work.push_back({&rank, transfer});
        else if (const dpu_error_t own = transfer(); own != DPU_OK && result == DPU_OK)
          result = own;
      });
  if (status != DPU_OK) return status;
  if (!work.empty())
    return guarded([&] {
      enqueue_all(std::move(work), true);
      return DPU_OK;
    });
  return result;
}

void dpu_fifo_set_push_max_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                   uint32_t max_retries) {
  for_each_rank(dpu_set, fifo_link,
                [&](Rank &, dpu_fifo_rank_t &fifo, uint64_t) { fifo.max_retries = max_retries; });
}

void dpu_fifo_set_time_for_push_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                        uint32_t time_us) {
  for_each_rank(dpu_set, fifo_link,
                [&](Rank &, dpu_fifo_rank_t &fifo, uint64_t) { fifo.time_for_retry = time_us; });
}

uint16_t get_fifo_size(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu) {
  return static_cast<uint16_t>(fifo_of(fifo_link, dpu).elements);
}

uint8_t *get_fifo_elem(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t *fifo_data,
                       uint8_t i) {
  const DpuFifo found = fifo_of(fifo_link, dpu);
  if (found.fifo == nullptr) return nullptr;
  const uint64_t elements = UINT64_C(1) << found.fifo->dpu_fifo_ptr_size;
  return fifo_data + (found.read_pointer + i) % elements * found.fifo->dpu_fifo_data_size;
}

struct dpu_fifo_rank_t *get_rank_fifo(struct dpu_fifo_link_t *fifo_link, struct dpu_rank_t *rank) {
  dpu_fifo_rank_t *found = nullptr;
  for_each_rank(dpu_set_from_rank(&rank), fifo_link,
                [&](Rank &, dpu_fifo_rank_t &fifo, uint64_t) { found = &fifo; });
  return found;
}

uint16_t get_fifo_max_size(struct dpu_rank_t *, struct dpu_fifo_rank_t *fifo) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < kDpusPerRank; ++i)
    most = std::max(most, fifo->dpu_fifo_pointers[2 * i + 1] - fifo->dpu_fifo_pointers[2 * i]);
  return static_cast<uint16_t>(most);
}
