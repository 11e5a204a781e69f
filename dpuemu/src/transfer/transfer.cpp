// A transfer is divided into units. A unit is a few consecutive runs of a bank pair of one rank.
// Threads process the units one by one. A unit has a few slices for the line kernels.
#include "transfer/transfer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/explanation.h"
#include "base/line_kernels.h"
#include "base/worker_pool.h"
#include "check/pe_check.h"
#include "check/settings.h"
#include "machine/checked_memory.h"
#include "machine/machine.h"
#include "machine/machine_settings.h"
#include "trace/trace.h"

namespace dpuemu {
namespace {

constexpr uint64_t kUnitBytes = 8 * kRunBytes;  // bytes per DPU in a unit: 1 MiB of the region
constexpr uint64_t kSerialBytes =
    UINT64_C(256) << 10;  // below this size, waking other threads costs more time than it saves
constexpr uint64_t kStreamBytes =
    UINT64_C(16) << 20;  // from this size on, the caches cannot hold the read bytes

/// A bank pair of one rank, and the complete words of its DPUs in host memory.
struct PairWork {
  uint8_t *region;
  uint32_t bank;
  RunSlice slice;  // host, lanes
};

class WordMover {
 public:
  explicit WordMover(const Transfer &transfer)
      : move_(transfer.move),
        begin_(transfer.offset),
        end_(transfer.offset + transfer.length),
        flush_(Machine::instance().flush()),
        kernels_(line_kernels()) {
    uint64_t buffers = 0;
    for (const RankBuffers &rank : transfer.ranks)
      for (uint32_t bank = 0; bank < kBankPairs; ++bank) {
        PairWork pair{rank.rank->region().base(), bank, {}};
        for (uint32_t half = 0; half < 2; ++half)
          for (uint32_t chip = 0; chip < kChips; ++chip) {
            uint8_t *buffer = rank.buffers.of_dpu[dpu_index(chip, bank + half * kBankPairs)];
            if (buffer == nullptr) continue;
            pair.slice.host[half][chip] = buffer;
            pair.slice.lanes[half] |= static_cast<uint8_t>(1 << chip);
            ++buffers;
          }
        if ((pair.slice.lanes[0] | pair.slice.lanes[1]) != 0) pairs_.push_back(pair);
      }
    total_bytes_ = buffers * transfer.length;
  }

  void run() const {
    const uint64_t first_unit = begin_ / kUnitBytes;
    const uint64_t units_per_pair = (end_ - 1) / kUnitBytes - first_unit + 1;
    const uint32_t threads = total_bytes_ < kSerialBytes ? 1 : Machine::instance().threads();
    parallel_for(pairs_.size() * units_per_pair, threads, [&](uint64_t i) {
      const uint64_t unit_begin = (first_unit + i % units_per_pair) * kUnitBytes;
      move_unit(pairs_[i / units_per_pair], std::max(begin_, unit_begin),
                std::min(end_, unit_begin + kUnitBytes));
    });
  }

 private:
  void move_unit(const PairWork &pair, uint64_t begin, uint64_t end) const {
    // Reads write every lane; lanes that do not take part write here.
    alignas(kLineBytes) uint8_t waste[kRunBytes + kLineBytes];
    for (uint64_t run_end; begin < end; begin = run_end) {
      run_end = std::min(end, (begin / kRunBytes + 1) * kRunBytes);
      RunSlice slice = pair.slice;
      slice.lines = pair.region + line_offset(pair.bank, begin);
      slice.words = static_cast<uint32_t>((run_end - begin) / kWordBytes);
      const uint64_t misalignment = place_host_pointers(slice, begin - begin_, waste);
      move_run(slice, misalignment);
    }
    fence_stores();
  }

  /// Advances the host pointers to the run, and gives lanes without a buffer a substitute. If all
  /// pointers have the same offset from a 64-byte boundary, and this offset is a multiple of 8,
  /// returns this offset; else returns kMixed.
  uint64_t place_host_pointers(RunSlice &slice, uint64_t advance, uint8_t *waste) const {
    uint64_t offsets_seen = 0;  // bit i is set if a pointer is i bytes after a boundary
    uint8_t *any = nullptr;
    for (auto &bank : slice.host)
      for (uint8_t *&pointer : bank) {
        if (pointer == nullptr) continue;
        pointer += advance;
        any = pointer;
        offsets_seen |= UINT64_C(1) << reinterpret_cast<uintptr_t>(pointer) % kLineBytes;
      }
    const auto first_seen = static_cast<uint64_t>(std::countr_zero(offsets_seen));
    const uint64_t misalignment =
        std::has_single_bit(offsets_seen) && first_seen % kWordBytes == 0 ? first_seen : kMixed;
    uint8_t *const substitute =
        move_ == Move::kRead ? waste + (misalignment != kMixed ? misalignment : 0) : any;
    for (auto &bank : slice.host)
      for (uint8_t *&pointer : bank)
        if (pointer == nullptr) pointer = substitute;
    return misalignment;
  }

  void move_run(RunSlice slice, uint64_t misalignment) const {
    const bool keeps_bytes = (slice.lanes[0] != 0 && slice.lanes[0] != 0xFF) ||
                             (slice.lanes[1] != 0 && slice.lanes[1] != 0xFF);
    if (flush_ != kOff && (move_ == Move::kRead || keeps_bytes))
      flush_lines(slice.lines, slice.words);
    const uint8_t *const lines = slice.lines;
    const uint32_t words = slice.words;

    const bool streams =
        move_ == Move::kRead && misalignment != kMixed && total_bytes_ >= kStreamBytes;
    const uint64_t words_to_boundary =
        streams ? (kLineBytes - misalignment) % kLineBytes / kWordBytes : 0;
    const uint32_t head = std::min(words, static_cast<uint32_t>(words_to_boundary));
    const uint32_t body = (words - head) / kernels_.words_per_step * kernels_.words_per_step;
    move_words(kPortableKernels, slice, head, false);
    move_words(kernels_, slice, body, streams);
    move_words(kPortableKernels, slice, words - head - body, false);

    if (flush_ == kOn && move_ == Move::kRead) flush_lines(lines, words);
  }

  /// Moves the first `words` words of the slice and advances the slice past these words.
  void move_words(const LineKernels &kernels, RunSlice &slice, uint32_t words, bool streams) const {
    if (words == 0) return;
    RunSlice part = slice;
    part.words = words;
    switch (move_) {
      case Move::kWrite:
        kernels.write(part);
        break;
      case Move::kBroadcast:
        kernels.broadcast(part);
        break;
      case Move::kRead:
        kernels.read(part, streams);
        break;
    }
    slice.lines += words * kLineStride;
    for (auto &bank : slice.host)
      for (uint8_t *&pointer : bank) pointer += words * kWordBytes;
  }

  static constexpr uint64_t kMixed = UINT64_MAX;

  Move move_;
  uint64_t begin_, end_;  // MRAM offsets, multiples of 8
  int flush_;
  const LineKernels &kernels_;
  uint64_t total_bytes_ = 0;
  std::vector<PairWork> pairs_;
};

void move_wram_bytes(const Transfer &transfer) {
  for (const RankBuffers &rank : transfer.ranks)
    for (uint32_t i = 0; i < kDpusPerRank; ++i) {
      uint8_t *const buffer = rank.buffers.of_dpu[i];
      if (buffer == nullptr) continue;
      const WramUse use(rank.rank->places, i, Machine::instance().is_strict());
      std::unique_lock<std::mutex> lock;
      if (check_settings().is_on)
        lock = std::unique_lock(checked_memory(rank.rank->pes[i]).host_mutex);
      uint8_t *const wram = rank.rank->places.of(i).wram + transfer.offset;
      transfer.move == Move::kRead ? std::copy_n(wram, transfer.length, buffer)
                                   : std::copy_n(buffer, transfer.length, wram);
    }
}

/// Tells the checks of the PEs which memory the host accesses.
void note_transfer(const Transfer &transfer) {
  for (const RankBuffers &rank : transfer.ranks)
    for (uint32_t i = 0; i < kDpusPerRank; ++i) {
      if (rank.buffers.of_dpu[i] == nullptr) continue;
      CheckedMemory &memory = checked_memory(rank.rank->pes[i]);
      const bool writes = transfer.move != Move::kRead;
      if (transfer.memory == Memory::kMram) {
        if (writes)
          memory.define_mram(transfer.offset, transfer.length);
        else
          PeCheck::note_host_read(rank.rank->pes[i], rank.rank->id(), i, transfer.offset,
                                  transfer.length);
      } else if (!transfer.is_of_fifo) {
        memory.note_host({static_cast<uint32_t>(transfer.offset),
                          static_cast<uint32_t>(transfer.length), writes},
                         !transfer.is_beside_queues || CallbackScope::contains(rank.rank));
      }
    }
}

/// Returns the name of the transfer in a trace.
const char *trace_name(const Transfer &transfer) {
  const bool is_mram = transfer.memory == Memory::kMram;
  switch (transfer.move) {
    case Move::kWrite:
      return is_mram ? "write MRAM" : "write WRAM";
    case Move::kBroadcast:
      return is_mram ? "broadcast to MRAM" : "broadcast to WRAM";
    case Move::kRead:
      break;
  }
  return is_mram ? "read MRAM" : "read WRAM";
}

void add_sizes(const Transfer &transfer, HostSpan &span) {
  uint64_t pes = 0;
  for (const RankBuffers &rank : transfer.ranks)
    for (const uint8_t *const buffer : rank.buffers.of_dpu) pes += buffer != nullptr;
  span.add("pes", static_cast<double>(pes));
  span.add("bytes", static_cast<double>(pes * transfer.length));
}

}  // namespace

void move_bytes(const Transfer &transfer) {
  if (check_settings().is_on) note_transfer(transfer);
  HostSpan span(trace_is_on() && !transfer.is_of_fifo ? trace_name(transfer) : nullptr, true);
  if (span.is_on()) add_sizes(transfer, span);
  if (transfer.memory == Memory::kWram) return move_wram_bytes(transfer);
  if (transfer.length > 0) WordMover(transfer).run();
}

namespace {

std::atomic<uint64_t> rounded_transfers{0}, first_offset{0}, first_length{0};

void print_rounded_transfers() {
  std::fprintf(stderr,
               "dpuemu: transfers whose MRAM offset or length is not a multiple of 8: %llu (the "
               "first: offset %llu, length %llu). They moved only length / 8 words, as in the SDK. "
               "DPUEMU_STRICT=1 makes this an error.\n",
               static_cast<unsigned long long>(rounded_transfers),
               static_cast<unsigned long long>(first_offset),
               static_cast<unsigned long long>(first_length));
}

}  // namespace

dpu_error_t round_to_words(uint64_t &offset, uint64_t &length) {
  if ((offset | length) % kWordBytes == 0) return DPU_OK;
  if (Machine::instance().is_strict())
    return explained(DPU_ERR_INVALID_MRAM_ACCESS, "MRAM offset " + std::to_string(offset) +
                                                      " and length " + std::to_string(length) +
                                                      " must be multiples of 8");
  if (rounded_transfers++ == 0) {
    first_offset = offset;
    first_length = length;
    std::atexit(print_rounded_transfers);
  }
  offset -= offset % kWordBytes;
  length -= length % kWordBytes;
  return DPU_OK;
}

}  // namespace dpuemu
