// Sets of PEs, and the programs that PEs run.
#include <pidcomm/pidcomm.h>

extern "C" {
#include <dpu_log.h>
#include <dpu_management.h>
}

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "cube.h"
#include "gil.h"
#include "launching.h"
#include "stream.h"

using namespace nanobind::literals;

namespace core {

namespace {

/// The PEs of a set as sets of one PE, in the order of rows. PEs of the largest possible hypercube
/// come first, in the order of the hypercube. PEs of incomplete entangled groups, which no
/// hypercube can use, follow in the order of DPU_FOREACH.
std::vector<struct dpu_set_t> rows_of(struct dpu_set_t set) {
  uint32_t count = 0;
  check(pidcomm_usable_pes(set, nullptr, 0, &count));
  std::vector<pidcomm_usable_pe> usable(count);
  check(pidcomm_usable_pes(set, usable.data(), count, &count));
  std::vector<struct dpu_set_t> rows;
  std::vector<struct dpu_t *> placed;
  for (const pidcomm_usable_pe &pe : usable) {
    rows.push_back(pe.dpu);
    placed.push_back(dpu_from_set(pe.dpu));
  }
  std::sort(placed.begin(), placed.end());
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) {
    if (!std::binary_search(placed.begin(), placed.end(), dpu_from_set(dpu))) rows.push_back(dpu);
  }
  return rows;
}

/// The names of the techniques: "pr, pr+im, ...".
std::string techniques_with_pe_program() {
  std::string names;
#define PIDCOMM_ROW(ENUM, code, name, path, steps, ...) \
  if ((steps & PIDCOMM_STEP_PR) != 0) names += names.empty() ? name : ", " name;
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return names;
}

/// Throws if a collective with PE reordering has replaced the caller's program. Launches and
/// symbols would use the wrong program.
void require_own_program(struct dpu_set_t set) {
  int is_replaced = 0;
  check(pidcomm_program_replaced(set, &is_replaced));
  if (is_replaced != 0)
    throw StatusError(PIDCOMM_ERR_DEVICE,
                      "a collective has replaced the program of these PEs by its program that "
                      "reorders blocks (one of the techniques " +
                          techniques_with_pe_program() + "); load yours again");
}

using SymbolPlace = std::pair<uint32_t, uint32_t>;  // address, size in bytes

class Set {
 public:
  /// Allocates `pes` PEs or `ranks` ranks. At least one number must be 0; if both are 0, allocates
  /// all free PEs.
  Set(uint32_t pes, uint32_t ranks, const std::optional<std::string> &profile) {
    const gil::Released released;
    const char *text = profile ? profile->c_str() : nullptr;
    struct dpu_set_t set;
    const bool by_rank = ranks != 0;
    const std::string what = by_rank    ? "allocating " + std::to_string(ranks) + " ranks"
                             : pes != 0 ? "allocating " + std::to_string(pes) + " PEs"
                                        : "allocating all PEs";
    const dpu_error_t error = by_rank ? dpu_alloc_ranks(ranks, text, &set)
                                      : dpu_alloc(pes != 0 ? pes : DPU_ALLOCATE_ALL, text, &set);
    check_device(error, what,
                 error == DPU_ERR_INVALID_PROFILE ? PIDCOMM_ERR_ARGUMENT : PIDCOMM_ERR_DEVICE);
    allocation_ = std::make_shared<Allocation>(set);
    check_device(dpu_get_nr_dpus(set, &pes_), "counting the PEs");
    check_device(dpu_get_nr_ranks(set, &ranks_), "counting the ranks");
  }

  ~Set() {
    const gil::Released released;
    allocation_.reset();
  }
  Set(const Set &) = delete;
  Set &operator=(const Set &) = delete;

  std::unique_ptr<Cube> hypercube(const std::vector<uint32_t> &lengths, uint32_t order,
                                  uint32_t first) const {
    const gil::Released released;
    return std::make_unique<Cube>(allocation_, lengths, order, first);
  }
  std::unique_ptr<Stream> stream(uint32_t rank_groups) const {
    return std::make_unique<Stream>(allocation_, rank_groups);
  }
  void free() {
    const gil::Released released;
    allocation_->free();
  }
  bool is_freed() const { return allocation_->is_freed(); }
  uint32_t pes() const { return pes_; }
  uint32_t ranks() const { return ranks_; }
  uint32_t usable_pes() const {
    uint32_t count = 0;
    allocation_->use(
        [&](struct dpu_set_t set) { check(pidcomm_usable_pes(set, nullptr, 0, &count)); });
    return count;
  }
  nb::bytes dpu_set() const {
    struct dpu_set_t copy;
    allocation_->use([&](struct dpu_set_t set) { copy = set; });
    return bytes_of(copy);
  }
  uint64_t loads() const { return loads_; }

  // --- PE programs. Rows are PEs in the order of rows_of.

  void load(const std::string &path) {
    allocation_->use_sdk([&](struct dpu_set_t set) {
      struct dpu_program_t *program = nullptr;
      const dpu_error_t error = dpu_load(set, path.c_str(), &program);
      check_device(error, "loading " + path, status_of(error));
      program_ = program;
      ++loads_;
    });
  }

  void launch(bool waits, const Stop &stop, const ExplainFault &explain) {
    allocation_->use([&](struct dpu_set_t set) {
      const auto launch = [=, this] {
        allocation_->wait_for_calls();
        require_own_program(set);
        ++launches_;
        return dpu_launch(set, waits ? DPU_SYNCHRONOUS : DPU_ASYNCHRONOUS);
      };
      const auto end_launch = [&] { stop_launch(stop, set); };
      check_run(
          waits || allocation_->pending() != 0 ? CallerThread().run(end_launch, launch) : launch(),
          set, explain);
    });
  }
  void sync(const Stop &stop, const ExplainFault &explain) {
    if (launches_ == 0 && !allocation_->is_freed())
      throw StatusError(PIDCOMM_ERR_DEVICE, "no program has been launched on these PEs");
    allocation_->use([&](struct dpu_set_t set) {
      const auto wait = [=, this] {
        allocation_->wait_for_calls();
        return dpu_sync(set);
      };
      check_run(CallerThread().run([&] { stop_launch(stop, set); }, wait), set, explain);
    });
  }

  SymbolPlace symbol(const std::string &name) const {
    return allocation_->use([&](struct dpu_set_t) {
      struct dpu_symbol_t symbol = {};
      const dpu_error_t error = dpu_get_symbol(program_, name.c_str(), &symbol);
      check_device(error, "symbol '" + name + "'", status_of(error));
      return SymbolPlace(symbol.address, symbol.size);
    });
  }

  void write_rows(SymbolPlace symbol, uint32_t offset, Bytes rows) {
    move_rows(DPU_XFER_TO_DPU, symbol, offset, const_cast<uint8_t *>(rows.data()), rows.size());
  }
  void read_rows(SymbolPlace symbol, uint32_t offset, MutableBytes rows) {
    move_rows(DPU_XFER_FROM_DPU, symbol, offset, rows.data(), rows.size());
  }
  void write_same(SymbolPlace symbol, uint32_t offset, Bytes bytes) {
    allocation_->use_sdk([&](struct dpu_set_t set) {
      if (!is_in_mram(symbol)) require_own_program(set);
      check_access(dpu_broadcast_to_symbol(set, {symbol.first, symbol.second}, offset, bytes.data(),
                                           bytes.size(), DPU_XFER_DEFAULT));
    });
  }

  void write_pe(uint32_t pe, SymbolPlace symbol, uint32_t offset, Bytes bytes) {
    use_pe(symbol, pe, [&](struct dpu_set_t dpu, struct dpu_symbol_t place) {
      return dpu_copy_to_symbol(dpu, place, offset, bytes.data(), bytes.size());
    });
  }
  void read_pe(uint32_t pe, SymbolPlace symbol, uint32_t offset, MutableBytes bytes) {
    use_pe(symbol, pe, [&](struct dpu_set_t dpu, struct dpu_symbol_t place) {
      return dpu_copy_from_symbol(dpu, place, offset, bytes.data(), bytes.size());
    });
  }

  /// The output of the PE since the last call, and whether the output had more bytes than the log
  /// holds.
  std::pair<nb::bytes, bool> log(uint32_t pe) {
    std::string text;
    bool is_cut = false;
    allocation_->use_sdk([&](struct dpu_set_t set) {
      if (program_ == nullptr)
        throw StatusError(PIDCOMM_ERR_DEVICE, "reading a log: no program is loaded");
      char *characters = nullptr;
      std::size_t count = 0;
      FILE *stream = open_memstream(&characters, &count);
      if (stream == nullptr) throw StatusError(PIDCOMM_ERR_MEMORY, "no memory for a log");
      const dpu_error_t error = dpu_log_read(rows(set).at(pe), stream);
      const bool is_closed = std::fclose(stream) == 0;
      if (is_closed) text.assign(characters, count);
      std::free(characters);
      if (!is_closed) throw StatusError(PIDCOMM_ERR_MEMORY, "no memory for a log");
      is_cut = error == DPU_ERR_LOG_BUFFER_TOO_SMALL;
      const bool prints_nothing = error == DPU_ERR_LOG_CONTEXT_MISSING;
      if (!is_cut && !prints_nothing)
        check_device(error, "reading the log of PE " + std::to_string(pe));
    });
    return {nb::bytes(text.data(), text.size()), is_cut};
  }

 private:
  const std::vector<struct dpu_set_t> &rows(struct dpu_set_t set) {
    const std::scoped_lock lock(rows_mutex_);
    if (rows_.empty()) rows_ = rows_of(set);
    return rows_;
  }

  /// Throws if PEs faulted, with a sentence about one of them: on emulated DIMMs about the PE that
  /// the sentence about the set names, on DIMMs about the first in the order of rows. The emulator
  /// prefers a PE that it has not stopped because of another PE.
  void check_run(dpu_error_t error, struct dpu_set_t set, const ExplainFault &explain) {
    if (error != DPU_ERR_DPU_FAULT) return check_device(error, "running the PE program");
    const std::string cause = explain ? sentence_about(set, explain) : "";
    std::string named;
    uint32_t faulted = 0;
    for (uint32_t pe = 0; pe < rows(set).size(); ++pe) {
      bool is_done = false, is_faulted = false;
      check_device(dpu_status(rows_[pe], &is_done, &is_faulted), "reading the status of a PE");
      if (!is_faulted) continue;
      const std::string sentence = sentence_about(rows_[pe], explain);
      if (faulted++ == 0 || sentence == cause) named = "PE " + std::to_string(pe) + ", " + sentence;
    }
    const std::string others =
        faulted > 1 ? " (one of " + std::to_string(faulted) + " PEs in fault)" : "";
    throw StatusError(PIDCOMM_ERR_DEVICE, "the PE program is in fault: " + named + others);
  }

  static std::string sentence_about(struct dpu_set_t pes, const ExplainFault &explain) {
    if (!explain) {
      struct dpu_t *const dpu = dpu_from_set(pes);
      return "chip " + std::to_string(dpu_get_slice_id(dpu)) + ", bank " +
             std::to_string(dpu_get_member_id(dpu)) + " of rank " +
             std::to_string(dpu_get_rank_id(dpu_get_rank(dpu)));
    }
    const gil::Held held;
    return nb::cast<std::string>((*explain)(bytes_of(pes)));
  }

  static void check_access(dpu_error_t error) {
    const char *hint = error == DPU_ERR_INVALID_WRAM_ACCESS
                           ? " (the host reaches WRAM in whole words of 4 bytes)"
                           : "";
    check_device(error, std::string("accessing a symbol") + hint, status_of(error));
  }

  void move_rows(dpu_xfer_t direction, SymbolPlace symbol, uint32_t offset, uint8_t *bytes,
                 std::size_t size) {
    allocation_->use_sdk([&](struct dpu_set_t set) {
      if (size % pes_ != 0)
        throw StatusError(PIDCOMM_ERR_HOST_BUFFER,
                          "the rows do not have the same size for every PE");
      if (!is_in_mram(symbol)) require_own_program(set);
      const std::size_t row_bytes = size / pes_;
      const std::vector<struct dpu_set_t> &all = rows(set);
      const std::scoped_lock lock(allocation_->transfers());
      for (std::size_t pe = 0; pe < all.size(); ++pe)
        check_device(dpu_prepare_xfer(all[pe], bytes + pe * row_bytes), "preparing a transfer");
      const dpu_error_t error = dpu_push_xfer_symbol(set, direction, {symbol.first, symbol.second},
                                                     offset, row_bytes, DPU_XFER_DEFAULT);
      if (error != DPU_OK)
        dpu_prepare_xfer(set, nullptr);  // otherwise the set keeps pointers to the caller's memory
      check_access(error);
    });
  }

  /// Copies between the host and a symbol of one PE.
  template <class Copy>
  void use_pe(SymbolPlace symbol, uint32_t pe, const Copy &copy) {
    allocation_->use_sdk([&](struct dpu_set_t set) {
      if (!is_in_mram(symbol)) require_own_program(set);
      check_access(copy(rows(set).at(pe), dpu_symbol_t{symbol.first, symbol.second}));
    });
  }

  static bool is_in_mram(SymbolPlace symbol) {
    constexpr uint32_t kIramAddress = 0x80000000;
    return symbol.first >= PIDCOMM_MRAM_ADDRESS && symbol.first < kIramAddress;
  }

  std::shared_ptr<Allocation> allocation_;
  uint32_t pes_ = 0, ranks_ = 0;
  std::atomic<struct dpu_program_t *> program_ = nullptr;  // exists as long as the process
  std::atomic<uint64_t> loads_ = 0, launches_ = 0;
  std::mutex rows_mutex_;
  std::vector<struct dpu_set_t> rows_;  // made once
};

}  // namespace

void bind_set(nb::module_ &m) {
  nb::class_<Set>(m, "Set")
      .def(nb::init<uint32_t, uint32_t, const std::optional<std::string> &>(), "pes"_a, "ranks"_a,
           "profile"_a.none())
      .def("hypercube", &Set::hypercube, "axis_len"_a, "order"_a, "first"_a)
      .def("stream", &Set::stream, "rank_groups"_a)
      .def("free", &Set::free)
      .def("load", &Set::load, "path"_a)
      .def("launch", &Set::launch, "waits"_a, "stop"_a.none(), "explain_fault"_a.none())
      .def("sync", &Set::sync, "stop"_a.none(), "explain_fault"_a.none())
      .def("symbol", &Set::symbol, "name"_a)
      .def("write_rows", &Set::write_rows, "symbol"_a, "offset"_a, "rows"_a.noconvert())
      .def("read_rows", &Set::read_rows, "symbol"_a, "offset"_a, "rows"_a.noconvert())
      .def("write_same", &Set::write_same, "symbol"_a, "offset"_a, "bytes"_a.noconvert())
      .def("write_pe", &Set::write_pe, "pe"_a, "symbol"_a, "offset"_a, "bytes"_a.noconvert())
      .def("read_pe", &Set::read_pe, "pe"_a, "symbol"_a, "offset"_a, "bytes"_a.noconvert())
      .def("log", &Set::log, "pe"_a)
      .def_prop_ro("is_freed", &Set::is_freed)
      .def_prop_ro("pes", &Set::pes)
      .def_prop_ro("ranks", &Set::ranks)
      .def_prop_ro("usable_pes", &Set::usable_pes)
      .def_prop_ro("dpu_set", &Set::dpu_set)
      .def_prop_ro("loads", &Set::loads);
}

}  // namespace core
