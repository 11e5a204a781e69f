// The ranks that the doctor checks, hypercubes on them, and payloads that the SDK moves.
#pragma once

#include <pidcomm/pidcomm.h>

extern "C" {
#include <dpu_management.h>
#include <dpu_program.h>
}

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verify/oracle.h"

namespace doctor {

using Axes = std::vector<uint32_t>;
using Bytes = std::vector<uint8_t>;
inline constexpr uint32_t kLanes = PIDCOMM_CHIPS_PER_RANK, kBanks = PIDCOMM_BANKS_PER_CHIP;
inline constexpr std::size_t kWordBytes = PIDCOMM_WORD_BYTES, kRunBytes = PIDCOMM_RUN_BYTES,
                             kMramBytes = PIDCOMM_MRAM_BYTES;

/// If the status is an error, throw Failed with the sentence of the SDK or of the library.
void check_sdk(dpu_error_t status, const std::string &doing);
void check_library(int status, const std::string &doing);

/// Some DPUs of a set. Rows are in the order of the DPUs; dpu_push_xfer copies the rows to and from
/// MRAM byte `address`.
class Dpus {
 public:
  Dpus(struct dpu_set_t set, std::vector<struct dpu_set_t> dpus)
      : set_(set), dpus_(std::move(dpus)) {}
  /// Selects all enabled DPUs of the set.
  explicit Dpus(struct dpu_set_t set);

  std::size_t count() const { return dpus_.size(); }
  struct dpu_set_t front() const { return dpus_.front(); }
  void write(std::size_t address, Bytes &rows) const { transfer(DPU_XFER_TO_DPU, address, rows); }
  Bytes read(std::size_t address, std::size_t row_bytes) const;

  /// Returns the other DPUs of the set.
  Dpus others() const;

 private:
  void transfer(dpu_xfer_t direction, std::size_t address, Bytes &rows) const;

  struct dpu_set_t set_;
  std::vector<struct dpu_set_t> dpus_;
};

/// The ranks that this process has allocated.
class Ranks {
 public:
  /// Allocates `count` ranks, or all free ranks if count is DPU_ALLOCATE_ALL. Throws Failed.
  Ranks(uint32_t count, const std::string &profile);
  ~Ranks();
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  struct dpu_set_t set() const { return set_; }
  uint32_t count() const { return set_.list.nr_ranks; }
  struct dpu_rank_t **rank(uint32_t index) const { return &set_.list.ranks[index]; }
  /// Return the number of complete entangled groups (all 8 PEs of a bank), of one rank or of all
  /// ranks.
  uint32_t whole_egs(uint32_t rank) const;
  uint32_t whole_egs() const;
  /// Returns text such as "2 ranks, 127 PEs, 120 of them in whole entangled groups; disabled: rank
  /// 0 chip 2 bank 5".
  std::string describe() const;

 private:
  struct dpu_set_t set_ = {};
};

class Cube {
 public:
  /// Throws Failed.
  Cube(struct dpu_set_t set, Axes axis_len);
  ~Cube() { pidcomm_hypercube_destroy(cube_); }
  Cube(const Cube &) = delete;
  Cube &operator=(const Cube &) = delete;

  pidcomm_hypercube *get() const { return cube_; }
  const Axes &axis_len() const { return axis_len_; }
  std::size_t pes() const { return dpus_->count(); }
  /// Returns the number of bytes of MRAM from offset 0 on.
  std::size_t room() const { return kMramBytes - heap_base(); }

  /// Copy rows in PE order: the functions `by_sdk` use dpu_push_xfer; the functions `by_library`
  /// use pidcomm_write and pidcomm_read.
  void write_by_sdk(std::size_t offset, Bytes &rows) const {
    dpus_->write(heap_base() + offset, rows);
  }
  Bytes read_by_sdk(std::size_t offset, std::size_t row_bytes) const {
    return dpus_->read(heap_base() + offset, row_bytes);
  }
  void write_by_library(std::size_t offset, const Bytes &rows) const;
  Bytes read_by_library(std::size_t offset, std::size_t row_bytes) const;
  /// Throws Failed if a row at `offset` differs; the sentence names the first such PE. The sentence
  /// begins with `what`, such as "round 3,
  /// ".
  void check_rows(const Bytes &got, const Bytes &want, std::size_t row_bytes, std::size_t offset,
                  const std::string &what) const;
  /// Returns the rows of the set's other DPUs at the same offset.
  Bytes read_others(std::size_t offset, std::size_t row_bytes) const {
    return others_->read(heap_base() + offset, row_bytes);
  }

 private:
  /// Returns the MRAM byte from which the library's offsets count: the start of the heap of the
  /// loaded program.
  std::size_t heap_base() const;

  Axes axis_len_;
  pidcomm_hypercube *cube_ = nullptr;
  std::optional<Dpus> dpus_, others_;
};

/// A collective on a new payload. The SDK writes the payload and reads the result.
struct Trial {
  verify::Problem problem;
  std::size_t src = 0, dst = 0;
  uint64_t seed = 1;
  pidcomm_options options = {sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_TILE, 0, 0, 0, 0};
};

/// Runs a trial. Throws Failed if the result is wrong, or if other data have changed: the source,
/// the words before and after the destination, or the destination window of the set's other DPUs.
pidcomm_trace run_trial(const Cube &cube, const Trial &trial);

/// Returns the `bytes` of a collective whose blocks have `block_words` words, for groups of
/// `group_pes` PEs.
std::size_t bytes_of_call(int collective, uint32_t group_pes, std::size_t block_words);
}  // namespace doctor
