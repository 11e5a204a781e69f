// pidcomm._core: the C APIs of pidcomm and dpuemu and the oracle, as they are, for Python. No policy: names, defaults, shapes and dtypes
// are the business of the package around it.
//
// Memory comes as one-dimensional contiguous arrays of bytes. Nothing that waits or moves bytes holds the interpreter's lock.
#include <dpu_management.h>
#include <dpu_program.h>
#include <dpuemu.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <pe/reorder.h>
#include <pidcomm/model.h>
#include <pidcomm/pidcomm.h>
#include <verify/fill.h>
#include <verify/oracle.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <pidcomm/sdk_error.hpp>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A status other than OK, on its way to pidcomm.errors.make_error.
class StatusError : public std::runtime_error {
 public:
  StatusError(int status, const std::string &sentence) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

const char *status_name(int status) {
  switch (status) {
#define PIDCOMM_ROW(ENUM, code, text) \
  case code:                          \
    return #ENUM;
    PIDCOMM_STATUSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
    default:
      return "ERR_INTERNAL";
  }
}

void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const StatusError &error) {
    try {
      const nb::object exception = nb::module_::import_("pidcomm.errors").attr("make_error")(status_name(error.status()), error.what());
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    } catch (nb::python_error &raised) {  // Ctrl-C while Python makes the exception
      raised.restore();
    }
  }
}

void check(int status) {
  if (status != PIDCOMM_OK) throw StatusError(status, pidcomm_last_error());
}

/// `status`: what an error of the device API is taken for.
void check_device(dpu_error_t error, const std::string &what, int status = PIDCOMM_ERR_DEVICE) {
  if (error == DPU_OK) return;
  const std::string sentence = what + ": " + pidcomm::sdk_error_text(error);
  throw StatusError(error == DPU_ERR_SYSTEM ? static_cast<int>(PIDCOMM_ERR_MEMORY) : status, sentence);
}

/// What an error about a program or a symbol is taken for: the caller's argument, or the machine.
int status_of(dpu_error_t error) {
  switch (error) {
    case DPU_ERR_ELF_NO_SUCH_FILE:
    case DPU_ERR_ELF_INVALID_FILE:
    case DPU_ERR_TOO_MANY_TASKLETS:
    case DPU_ERR_UNKNOWN_SYMBOL:
    case DPU_ERR_INVALID_SYMBOL_ACCESS:
    case DPU_ERR_INVALID_WRAM_ACCESS:
    case DPU_ERR_INVALID_IRAM_ACCESS:
    case DPU_ERR_INVALID_MRAM_ACCESS:
      return PIDCOMM_ERR_ARGUMENT;
    default:
      return PIDCOMM_ERR_DEVICE;
  }
}

struct Request {
  int collective;
  std::string mask;
  uint64_t bytes, src, dst;
  int type, op;

  pidcomm_request value() const {
    if (mask.find('\0') != std::string::npos) throw StatusError(PIDCOMM_ERR_MASK, "the axis mask contains a null character");
    return {collective, mask.c_str(), bytes, src, dst, nullptr, 0, type, op};
  }
};

using OptionCodes = std::tuple<int, int, int, int, uint64_t>;  // technique, isa, threads, coherence, scratch_offset

pidcomm_options options_of(const OptionCodes &codes) {
  const auto [technique, isa, threads, coherence, scratch_offset] = codes;
  return {technique, isa, threads, coherence, scratch_offset};
}

nb::dict dict_of(const pidcomm_trace &trace) {
  nb::dict dict;
  dict["technique"] = pidcomm_technique_name(trace.technique);
  dict["isa"] = pidcomm_isa_name(trace.isa);
  dict["threads"] = trace.threads;
  dict["coherence"] = pidcomm_coherence_name(trace.coherence);
#define PIDCOMM_FIELD(name) dict[#name] = trace.name;
  PIDCOMM_FIELD(seconds_total)
  PIDCOMM_FIELD(seconds_plan)
  PIDCOMM_FIELD(seconds_acquire)
  PIDCOMM_FIELD(seconds_pass)
  PIDCOMM_FIELD(seconds_from_pes)
  PIDCOMM_FIELD(seconds_host)
  PIDCOMM_FIELD(seconds_to_pes)
  PIDCOMM_FIELD(seconds_load)
  PIDCOMM_FIELD(seconds_reorder)
  PIDCOMM_FIELD(seconds_launch)
  PIDCOMM_FIELD(pe_loads)
  PIDCOMM_FIELD(pe_launches)
  PIDCOMM_FIELD(pe_cycles)
  PIDCOMM_FIELD(pe_bytes)
  PIDCOMM_FIELD(mram_bytes_read)
  PIDCOMM_FIELD(mram_bytes_written)
  PIDCOMM_FIELD(host_bytes_read)
  PIDCOMM_FIELD(host_bytes_written)
  PIDCOMM_FIELD(bytes_staged)
  PIDCOMM_FIELD(lines_loaded)
  PIDCOMM_FIELD(lines_stored)
  PIDCOMM_FIELD(lines_flushed)
  PIDCOMM_FIELD(lines_prefetched)
  PIDCOMM_FIELD(max_loads_of_a_line)
  PIDCOMM_FIELD(max_stores_of_a_line)
  PIDCOMM_FIELD(distinct_lines_loaded)
  PIDCOMM_FIELD(distinct_lines_stored)
  PIDCOMM_FIELD(lines_outside)
  PIDCOMM_FIELD(loads_unflushed)
#undef PIDCOMM_FIELD
  return dict;
}

/// An allocation and the managers on it. Users of a manager hold the lock shared; freeing lets new ones wait, waits for the others, and
/// ends the managers first. Whoever waits for the lock does not hold the interpreter's: who has it may want that.
class Allocation {
 public:
  explicit Allocation(struct dpu_set_t set) : set_(set) {}
  ~Allocation() {
    try {
      free();
    } catch (const StatusError &) {  // nobody is left to tell
    }
  }
  Allocation(const Allocation &) = delete;
  Allocation &operator=(const Allocation &) = delete;

  void free() {
    require_no_pending();
    const std::scoped_lock entry(entry_);  // newcomers wait for what becomes of the set
    const std::unique_lock lock(mutex_);
    if (is_freed_) return;
    require_no_pending();  // a call may have been under way to the lock
    is_freed_ = true;
    for (hypercube_manager *manager : managers_) pidcomm_hypercube_destroy(manager);
    managers_.clear();
    check_device(dpu_free(set_), "freeing the PE set");
  }

  bool is_freed() const { return is_freed_; }

  hypercube_manager *add(const std::vector<uint32_t> &lengths) {
    const std::unique_lock lock(mutex_);
    require_allocated();
    hypercube_manager *manager = nullptr;
    check(pidcomm_hypercube_create(set_, static_cast<uint32_t>(lengths.size()), lengths.data(), &manager));
    managers_.push_back(manager);
    return manager;
  }

  void remove(hypercube_manager *manager) {
    const std::unique_lock lock(mutex_);
    const auto found = std::find(managers_.begin(), managers_.end(), manager);
    if (found == managers_.end()) return;
    managers_.erase(found);
    pidcomm_hypercube_destroy(manager);
  }

  /// Counts the non-blocking calls that have not been waited for.
  std::atomic<uint32_t> &pending() { return pending_; }

  /// Held from preparing the buffers of a transfer until it has ended: a set has one list of them.
  std::mutex &transfers() const { return transfers_; }

  /// Calls body(set) without the interpreter's lock while nobody can free the set.
  template <class Body>
  auto use(const Body &body) const {
    const nb::gil_scoped_release released;
    const std::shared_lock lock = enter();
    require_allocated();
    return body(set_);
  }

 private:
  std::shared_lock<std::shared_mutex> enter() const {
    const std::scoped_lock entry(entry_);
    return std::shared_lock(mutex_);
  }
  void require_no_pending() const {
    if (pending_ != 0)
      throw StatusError(PIDCOMM_ERR_BUSY, "the PE set has non-blocking calls that have not been waited for: " + std::to_string(pending_) +
                                              "; wait for their requests before you free it");
  }
  void require_allocated() const {
    if (is_freed_) throw StatusError(PIDCOMM_ERR_SET, "the PE set has been freed; allocate a new one and make the hypercube again");
  }
  struct dpu_set_t set_;
  mutable std::mutex entry_;  // held while somebody waits for the other, so that nobody overtakes who frees
  mutable std::shared_mutex mutex_;
  mutable std::mutex transfers_;
  std::vector<hypercube_manager *> managers_;
  std::atomic<bool> is_freed_ = false;
  std::atomic<uint32_t> pending_ = 0;
};

/// A non-blocking call with the memory that it uses. Destroyed, it is waited for. Whoever makes it keeps its hypercube alive.
class Pending {
 public:
  /// Nothing is under way before `start`.
  Pending(std::shared_ptr<Allocation> allocation, std::optional<Bytes> in, std::optional<MutableBytes> out)
      : allocation_(std::move(allocation)), in_(std::move(in)), out_(std::move(out)) {}
  ~Pending() {
    const nb::gil_scoped_release released;
    if (!is_over_) {
      pidcomm_wait(&call_, nullptr);
      --allocation_->pending();
    }
    allocation_.reset();
  }
  Pending(const Pending &) = delete;
  Pending &operator=(const Pending &) = delete;

  void start(hypercube_manager *manager, const pidcomm_request &request, const pidcomm_options &options) {
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_irun(manager, &request, &options, &call_));
      ++allocation_->pending();
      is_over_ = false;
    });
  }

  /// What was done; the second time as well.
  nb::dict wait() {
    {
      const nb::gil_scoped_release released;
      const std::scoped_lock lock(mutex_);
      if (!is_over_) end(pidcomm_wait(&call_, &trace_));
    }
    return result();
  }

  std::optional<nb::dict> test() {
    {
      const nb::gil_scoped_release released;
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock.owns_lock()) return std::nullopt;  // another thread waits
      int is_done = 0;
      const int status = is_over_ ? status_ : pidcomm_test(&call_, &is_done, &trace_);
      if (!is_over_ && !is_done && status == PIDCOMM_OK) return std::nullopt;
      if (!is_over_) end(status);
    }
    return result();
  }

 private:
  void end(int status) {
    status_ = status;
    sentence_ = pidcomm_last_error();
    is_over_ = true;
    --allocation_->pending();
  }
  nb::dict result() const {
    if (status_ != PIDCOMM_OK) throw StatusError(status_, sentence_);
    return dict_of(trace_);
  }

  std::shared_ptr<Allocation> allocation_;
  std::mutex mutex_;
  pidcomm_pending *call_ = nullptr;
  bool is_over_ = true;
  int status_ = PIDCOMM_OK;
  std::string sentence_;
  pidcomm_trace trace_ = {};
  std::optional<Bytes> in_;
  std::optional<MutableBytes> out_;
};

class Cube {
 public:
  Cube(std::shared_ptr<Allocation> allocation, const std::vector<uint32_t> &lengths)
      : allocation_(std::move(allocation)), manager_(allocation_->add(lengths)), axes_(lengths.size()) {}
  ~Cube() {
    const nb::gil_scoped_release released;
    allocation_->remove(manager_);
    allocation_.reset();
  }
  Cube(const Cube &) = delete;
  Cube &operator=(const Cube &) = delete;

  nb::dict run(const Request &request, const std::optional<Bytes> &host_in, const std::optional<MutableBytes> &host_out,
               OptionCodes codes) {
    const pidcomm_request value = value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    pidcomm_trace trace = {};
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_run(manager_, &value, &options, &trace)); });
    return dict_of(trace);
  }

  std::unique_ptr<Pending> start(const Request &request, std::optional<Bytes> host_in, std::optional<MutableBytes> host_out,
                                 OptionCodes codes) {
    const pidcomm_request value = value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    auto pending = std::make_unique<Pending>(allocation_, std::move(host_in), std::move(host_out));
    pending->start(manager_, value, options);
    return pending;
  }

  std::vector<uint32_t> coords(uint32_t pe) const {
    std::vector<uint32_t> coords(axes_);
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_coords(manager_, pe, coords.data())); });
    return coords;
  }

  uint32_t group_of(const std::string &mask, uint32_t pe) const { return index(pidcomm_group_of, mask, pe); }
  uint32_t member_of(const std::string &mask, uint32_t pe) const { return index(pidcomm_member_of, mask, pe); }

  std::pair<uint32_t, uint32_t> groups(const std::string &mask) const {
    std::pair<uint32_t, uint32_t> counts;
    allocation_->use([&](struct dpu_set_t) { check(pidcomm_groups(manager_, mask.c_str(), &counts.first, &counts.second)); });
    return counts;
  }

  std::pair<double, uint64_t> stream_limit(int copy_order, uint64_t bytes_read, uint64_t bytes_written, uint64_t src, uint64_t dst,
                                           OptionCodes codes) {
    const pidcomm_options options = options_of(codes);
    std::pair<double, uint64_t> result;
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_stream_limit(manager_, copy_order, bytes_read, bytes_written, src, dst, &options, &result.first, &result.second));
    });
    return result;
  }

  /// Seconds of one dpu_push_xfer between rows (row = PE) and the PEs at `offset`.
  double push_xfer(bool to_pes, uint64_t offset, MutableBytes rows) {
    return allocation_->use([&](struct dpu_set_t set) {
      const uint32_t pes = pidcomm_pes(manager_);
      if (rows.size() % pes != 0) throw StatusError(PIDCOMM_ERR_HOST_BUFFER, "the rows do not have the same size for every PE");
      if (offset > DPUEMU_MRAM_BYTES) throw StatusError(PIDCOMM_ERR_WINDOW, "the offset is past the end of MRAM");
      const std::size_t row_bytes = rows.size() / pes;
      const std::scoped_lock lock(allocation_->transfers());
      struct dpu_set_t dpu;
      uint32_t pe;
      PIDCOMM_FOREACH_PE(manager_, dpu, pe) check_device(dpu_prepare_xfer(dpu, rows.data() + pe * row_bytes), "preparing a transfer");
      const double begin = now_s();
      check_device(dpu_push_xfer(set, to_pes ? DPU_XFER_TO_DPU : DPU_XFER_FROM_DPU, DPU_MRAM_HEAP_POINTER_NAME,
                                 static_cast<uint32_t>(offset), row_bytes, DPU_XFER_DEFAULT),
                   "dpu_push_xfer");
      return now_s() - begin;
    });
  }

 private:
  static pidcomm_request value_of(const Request &request, const std::optional<Bytes> &host_in,
                                  const std::optional<MutableBytes> &host_out) {
    pidcomm_request value = request.value();
    if (host_in) {
      value.host = const_cast<uint8_t *>(host_in->data());
      value.host_bytes = host_in->size();
    } else if (host_out) {
      value.host = host_out->data();
      value.host_bytes = host_out->size();
    }
    return value;
  }
  template <class Function>
  uint32_t index(const Function &function, const std::string &mask, uint32_t pe) const {
    uint32_t result = 0;
    allocation_->use([&](struct dpu_set_t) { check(function(manager_, mask.c_str(), pe, &result)); });
    return result;
  }
  std::shared_ptr<Allocation> allocation_;
  hypercube_manager *manager_;
  std::size_t axes_;
};

/// The PEs of a set as sets of one, in the order of its rows: as the largest hypercube that the set allows numbers them, then those that no
/// hypercube can use, of entangled groups that lack lanes, in the order of DPU_FOREACH.
std::vector<struct dpu_set_t> rows_of(struct dpu_set_t set) {
  uint32_t pes = 0;
  check_device(dpu_get_nr_dpus(set, &pes), "counting the PEs");
  const auto numbered = [&](uint32_t count, std::vector<struct dpu_set_t> &rows) {
    hypercube_manager *manager = nullptr;
    const int status = pidcomm_hypercube_create(set, 1, &count, &manager);
    if (status == PIDCOMM_ERR_SHAPE) return false;
    check(status);
    rows.clear();
    struct dpu_set_t dpu;
    uint32_t pe;
    PIDCOMM_FOREACH_PE(manager, dpu, pe) rows.push_back(dpu);
    pidcomm_hypercube_destroy(manager);
    return true;
  };
  std::vector<struct dpu_set_t> rows;
  if (numbered(pes, rows)) return rows;
  for (uint32_t low = 0, high = pes; high - low > 1;) {  // `low` PEs make a hypercube (or are none), `high` do not
    const uint32_t middle = low + (high - low) / 2;
    (numbered(middle, rows) ? low : high) = middle;
  }
  std::vector<struct dpu_t *> placed;
  for (const struct dpu_set_t &row : rows) placed.push_back(dpu_from_set(row));
  std::sort(placed.begin(), placed.end());
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) {
    if (!std::binary_search(placed.begin(), placed.end(), dpu_from_set(dpu))) rows.push_back(dpu);
  }
  return rows;
}

/// Waits for `run`, and for Ctrl-C meanwhile: then the PEs are stopped, and KeyboardInterrupt follows their end. Requires a released GIL.
template <class Run>
dpu_error_t run_interruptibly(struct dpu_set_t set, Run run) {
  constexpr std::chrono::milliseconds kPeriod{50};
  std::future<dpu_error_t> end = std::async(std::launch::async, run);
  bool is_interrupted = false;
  while (end.wait_for(kPeriod) != std::future_status::ready) {
    if (!is_interrupted) {
      const nb::gil_scoped_acquire held;
      is_interrupted = PyErr_CheckSignals() != 0;
    }
    if (is_interrupted) dpuemu_stop(set);
  }
  const dpu_error_t error = end.get();
  if (is_interrupted) {
    const nb::gil_scoped_acquire held;
    throw nb::python_error();
  }
  return error;
}

using SymbolPlace = std::pair<uint32_t, uint32_t>;  // address, size in bytes

class Set {
 public:
  /// Exactly one of pes and ranks is not 0, or both are: everything that is free.
  Set(uint32_t pes, uint32_t ranks, const std::optional<std::string> &profile) {
    const nb::gil_scoped_release released;
    const char *text = profile ? profile->c_str() : nullptr;
    struct dpu_set_t set;
    const bool by_rank = ranks != 0;
    const std::string what = by_rank    ? "allocating " + std::to_string(ranks) + " ranks"
                             : pes != 0 ? "allocating " + std::to_string(pes) + " PEs"
                                        : "allocating all PEs";
    const dpu_error_t error = by_rank ? dpu_alloc_ranks(ranks, text, &set) : dpu_alloc(pes != 0 ? pes : DPU_ALLOCATE_ALL, text, &set);
    check_device(error, what, error == DPU_ERR_INVALID_PROFILE ? PIDCOMM_ERR_ARGUMENT : PIDCOMM_ERR_DEVICE);
    allocation_ = std::make_shared<Allocation>(set);
    check_device(dpu_get_nr_dpus(set, &pes_), "counting the PEs");
    check_device(dpu_get_nr_ranks(set, &ranks_), "counting the ranks");
  }

  ~Set() {
    const nb::gil_scoped_release released;
    allocation_.reset();
  }
  Set(const Set &) = delete;
  Set &operator=(const Set &) = delete;

  std::unique_ptr<Cube> hypercube(const std::vector<uint32_t> &lengths) const {
    const nb::gil_scoped_release released;
    return std::make_unique<Cube>(allocation_, lengths);
  }
  void free() {
    const nb::gil_scoped_release released;
    allocation_->free();
  }
  bool is_freed() const { return allocation_->is_freed(); }
  uint32_t pes() const { return pes_; }
  uint32_t ranks() const { return ranks_; }

  // --- PE programs. Rows are PEs in the order of rows_of.

  void load(const std::string &path) {
    allocation_->use([&](struct dpu_set_t set) {
      struct dpu_program_t *program = nullptr;
      const dpu_error_t error = dpu_load(set, path.c_str(), &program);
      check_device(error, "loading " + path, status_of(error));
      program_ = program;
    });
  }

  void launch(bool waits) {
    allocation_->use([&](struct dpu_set_t set) {
      require_own_program(set);
      const auto launch = [=] { return dpu_launch(set, waits ? DPU_SYNCHRONOUS : DPU_ASYNCHRONOUS); };
      check_run(waits ? run_interruptibly(set, launch) : launch(), set);
    });
  }
  void sync() {
    allocation_->use([&](struct dpu_set_t set) { check_run(run_interruptibly(set, [=] { return dpu_sync(set); }), set); });
  }

  nb::dict report() {
    dpuemu_report_t report = {};
    allocation_->use([&](struct dpu_set_t set) {
      const dpu_error_t error = dpuemu_get_report(set, &report);
      if (error == DPU_ERR_NO_PROGRAM_LOADED) throw StatusError(PIDCOMM_ERR_DEVICE, "no program has been launched on these PEs");
      check_device(error, "reading the report of a launch");
    });
    nb::dict dict;
#define PIDCOMM_FIELD(name) dict[#name] = report.name;
    PIDCOMM_FIELD(pes)
    PIDCOMM_FIELD(faulted_pes)
    PIDCOMM_FIELD(dma_reads)
    PIDCOMM_FIELD(dma_read_bytes)
    PIDCOMM_FIELD(dma_writes)
    PIDCOMM_FIELD(dma_write_bytes)
    PIDCOMM_FIELD(masked_addresses)
    PIDCOMM_FIELD(masked_sizes)
    PIDCOMM_FIELD(wrapped_addresses)
    PIDCOMM_FIELD(direct_pages)
    PIDCOMM_FIELD(instructions)
    PIDCOMM_FIELD(cycles_max)
    PIDCOMM_FIELD(cycles_sum)
    PIDCOMM_FIELD(host_seconds)
#undef PIDCOMM_FIELD
    return dict;
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
    allocation_->use([&](struct dpu_set_t set) {
      if (!is_in_mram(symbol)) require_own_program(set);
      check_access(dpu_broadcast_to_symbol(set, {symbol.first, symbol.second}, offset, bytes.data(), bytes.size(), DPU_XFER_DEFAULT));
    });
  }

  /// What the PE has printed since it was last asked, and whether it printed more than its log holds.
  std::pair<nb::bytes, bool> log(uint32_t pe) {
    std::string text;
    bool is_cut = false;
    allocation_->use([&](struct dpu_set_t set) {
      if (program_ == nullptr) throw StatusError(PIDCOMM_ERR_DEVICE, "reading a log: no program is loaded");
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
      if (!is_cut && !prints_nothing) check_device(error, "reading the log of PE " + std::to_string(pe));
    });
    return {nb::bytes(text.data(), text.size()), is_cut};
  }

 private:
  const std::vector<struct dpu_set_t> &rows(struct dpu_set_t set) {
    const std::scoped_lock lock(rows_mutex_);
    if (rows_.empty()) rows_ = rows_of(set);
    return rows_;
  }

  /// Turns a fault into a sentence about the first PE, in the order of rows, that is in fault.
  void check_run(dpu_error_t error, struct dpu_set_t set) {
    if (error != DPU_ERR_DPU_FAULT) return check_device(error, "running the PE program");
    std::string first;
    uint32_t faulted = 0;
    for (uint32_t pe = 0; pe < rows(set).size(); ++pe) {
      char sentence[1024];
      check_device(dpuemu_get_fault(rows_[pe], sentence, sizeof sentence), "reading a fault");
      if (*sentence == '\0') continue;
      if (faulted++ == 0) first = "PE " + std::to_string(pe) + ", " + sentence;
    }
    const std::string others = faulted > 1 ? " (the first of " + std::to_string(faulted) + " PEs in fault)" : "";
    throw StatusError(PIDCOMM_ERR_DEVICE, "the PE program is in fault: " + first + others);
  }

  static void check_access(dpu_error_t error) {
    const char *hint = error == DPU_ERR_INVALID_WRAM_ACCESS ? " (the host reaches WRAM in whole words of 4 bytes)" : "";
    check_device(error, std::string("accessing a symbol") + hint, status_of(error));
  }

  void move_rows(dpu_xfer_t direction, SymbolPlace symbol, uint32_t offset, uint8_t *bytes, std::size_t size) {
    allocation_->use([&](struct dpu_set_t set) {
      if (size % pes_ != 0) throw StatusError(PIDCOMM_ERR_HOST_BUFFER, "the rows do not have the same size for every PE");
      if (!is_in_mram(symbol)) require_own_program(set);
      const std::size_t row_bytes = size / pes_;
      const std::vector<struct dpu_set_t> &all = rows(set);
      const std::scoped_lock lock(allocation_->transfers());
      for (std::size_t pe = 0; pe < all.size(); ++pe)
        check_device(dpu_prepare_xfer(all[pe], bytes + pe * row_bytes), "preparing a transfer");
      const dpu_error_t error = dpu_push_xfer_symbol(set, direction, {symbol.first, symbol.second}, offset, row_bytes, DPU_XFER_DEFAULT);
      if (error != DPU_OK) dpu_prepare_xfer(set, nullptr);  // a refused transfer would keep the caller's memory
      check_access(error);
    });
  }

  static bool is_in_mram(SymbolPlace symbol) {
    constexpr uint32_t kMramAddress = 0x08000000, kIramAddress = 0x80000000;
    return symbol.first >= kMramAddress && symbol.first < kIramAddress;
  }

  /// Collectives that let PEs reorder blocks replace the program; nobody is to launch theirs, or to take its variables for the caller's.
  static void require_own_program(struct dpu_set_t set) {
    struct dpu_set_t dpu;
    bool is_replaced = false;
    DPU_FOREACH(set, dpu) {
      struct dpu_program_t *const program = dpu_get_program(dpu_from_set(dpu));
      struct dpu_symbol_t symbol;
      is_replaced |= program != nullptr && dpu_get_symbol(program, PIDCOMM_REORDER_JOB, &symbol) == DPU_OK;
    }
    if (is_replaced)
      throw StatusError(
          PIDCOMM_ERR_DEVICE,
          "a collective has replaced the program of these PEs by the one with which they reorder blocks (techniques pr, pr+im, "
          "pr+im+cm and ring); load yours again");
  }

  std::shared_ptr<Allocation> allocation_;
  uint32_t pes_ = 0, ranks_ = 0;
  std::atomic<struct dpu_program_t *> program_ = nullptr;  // lives as long as the process
  std::mutex rows_mutex_;
  std::vector<struct dpu_set_t> rows_;  // once made they stay
};

nb::dict tables() {
  nb::list collectives, types, ops, techniques, isas, coherences, copy_orders, statuses;
#define PIDCOMM_ROW(ENUM, code, name, takes_op, pes_before, pes_after, blocks_before, blocks_after, steps) \
  collectives.append(                                                                                      \
      nb::make_tuple(#name, code, takes_op != 0, pes_before != 0, pes_after != 0, blocks_before != 0, blocks_after != 0, steps));
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, ctype) types.append(nb::make_tuple(#name, code, sizeof(ctype), std::is_floating_point_v<ctype>));
  PIDCOMM_TYPES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, kind) ops.append(nb::make_tuple(name, code, #kind));
  PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, steps, collectives) techniques.append(nb::make_tuple(name, code, steps, collectives));
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, rank) isas.append(nb::make_tuple(name, code, rank, pidcomm_isa_available(code) != 0));
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name) coherences.append(nb::make_tuple(name, code));
  PIDCOMM_COHERENCES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, name, ...) copy_orders.append(nb::make_tuple(name, code));
  PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(ENUM, code, text) statuses.append(nb::make_tuple(#ENUM, code, text));
  PIDCOMM_STATUSES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::dict dict;
  dict["collectives"] = collectives;
  dict["types"] = types;
  dict["ops"] = ops;
  dict["techniques"] = techniques;
  dict["isas"] = isas;
  dict["coherences"] = coherences;
  dict["copy_orders"] = copy_orders;
  dict["statuses"] = statuses;
  return dict;
}

std::string plan_json(const std::vector<uint32_t> &lengths, const Request &request, OptionCodes codes, bool expand) {
  const pidcomm_request value = request.value();
  const pidcomm_options options = options_of(codes);
  const nb::gil_scoped_release released;
  std::string json(std::size_t{1} << 12, '\0');
  for (;;) {
    std::size_t length = 0;
    check(pidcomm_plan_json(static_cast<uint32_t>(lengths.size()), lengths.data(), &value, &options, expand ? 1 : 0, json.data(),
                            json.size(), &length));
    const bool is_whole = length < json.size();
    json.resize(is_whole ? length : length + 1);
    if (is_whole) return json;
  }
}

/// The rows of model.h, in the order of the doubles of a pidcomm_machine and of a pidcomm_prediction.
nb::dict model_tables() {
  nb::list constants, line_costs, phases;
#define PIDCOMM_ROW(section, key, unit, meaning) constants.append(nb::make_tuple(#section, #key, unit, meaning));
  PIDCOMM_MACHINE_CONSTANTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(key, meaning) line_costs.append(nb::make_tuple(#key "_ns", meaning));
  PIDCOMM_LINE_COSTS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
#define PIDCOMM_ROW(name, meaning) phases.append(nb::make_tuple(#name, meaning));
  PIDCOMM_MODEL_PHASES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  nb::dict dict;
  dict["constants"] = constants;
  dict["line_costs"] = line_costs;
  dict["phases"] = phases;
  return dict;
}

constexpr std::size_t kMachineNumbers = sizeof(pidcomm_machine) / sizeof(double);

pidcomm_machine machine_of(const std::vector<double> &numbers) {
  pidcomm_machine machine;
  if (numbers.size() != kMachineNumbers) throw nb::value_error("a machine has another number of constants");
  std::memcpy(&machine, numbers.data(), sizeof machine);
  return machine;
}

nb::dict builtin_machines() {
  nb::dict dict;
  const char *name;
  pidcomm_machine machine;
  for (std::size_t index = 0; pidcomm_machine_builtin(index, &name, &machine) == PIDCOMM_OK; ++index) {
    std::vector<double> numbers(kMachineNumbers);
    std::memcpy(numbers.data(), &machine, sizeof machine);
    dict[name] = numbers;
  }
  return dict;
}

void use_machine(const std::optional<std::vector<double>> &numbers) {
  const std::optional<pidcomm_machine> machine = numbers ? std::optional(machine_of(*numbers)) : std::nullopt;
  check(pidcomm_use_machine(machine ? &*machine : nullptr));
}

/// Technique, instruction set, threads and coherence; seconds, and those of the phases.
using Predicted = std::tuple<std::string, std::string, int, std::string, double, std::vector<double>>;

Predicted predict(const std::vector<uint32_t> &lengths, const Request &request, OptionCodes codes, const std::vector<double> &numbers) {
  const pidcomm_request value = request.value();
  const pidcomm_options options = options_of(codes);
  const pidcomm_machine machine = machine_of(numbers);
  pidcomm_prediction it;
  check(pidcomm_predict(static_cast<uint32_t>(lengths.size()), lengths.data(), &value, &options, &machine, &it));
  std::vector<double> seconds(sizeof it.seconds / sizeof(double));
  std::memcpy(seconds.data(), &it.seconds, sizeof it.seconds);
  return Predicted(pidcomm_technique_name(it.technique), pidcomm_isa_name(it.isa), it.threads, pidcomm_coherence_name(it.coherence),
                   it.seconds_total, seconds);
}

nb::dict get_machine() {
  dpuemu_machine_t machine;
  check_device(dpuemu_get_machine(&machine), "reading the emulated machine", PIDCOMM_ERR_ARGUMENT);
  nb::dict dict;
  dict["ranks"] = machine.ranks;
  dict["channels"] = machine.channels;
  dict["ranks_per_channel"] = machine.ranks_per_channel;
  dict["threads"] = machine.threads;
  dict["hugepages"] = machine.hugepages == 1;
  dict["flush"] = machine.flush;
  dict["strict"] = machine.strict == 1;
  dict["patience_seconds"] = machine.patience_seconds;
  return dict;
}

/// fields: those of dpuemu_machine_t, in its order.
void configure_machine(const std::array<uint32_t, 8> &fields, const std::vector<uint32_t> &disabled) {
  const auto [ranks, channels, ranks_per_channel, threads, hugepages, flush, strict, patience] = fields;
  const dpuemu_machine_t machine = {
      ranks,   channels, ranks_per_channel, threads, static_cast<int>(hugepages), static_cast<int>(flush), static_cast<int>(strict),
      patience};
  const dpu_error_t error =
      dpuemu_configure(&machine, disabled.empty() ? nullptr : disabled.data(), static_cast<uint32_t>(disabled.size()));
  if (error == DPU_ERR_ALLOCATION)
    throw StatusError(PIDCOMM_ERR_DEVICE, "configuring the emulated machine: free every PE set first; some rank is allocated");
  check_device(error, "configuring the emulated machine", PIDCOMM_ERR_ARGUMENT);
}

uint64_t resident_bytes() {
  uint64_t bytes = 0;
  check_device(dpuemu_resident_bytes(&bytes), "counting resident bytes");
  return bytes;
}

/// Seconds of an ordinary copy of contiguous memory by `threads` threads, their start and end apart.
double host_copy(MutableBytes destination, Bytes source, uint32_t threads) {
  if (destination.size() != source.size() || threads == 0)
    throw StatusError(PIDCOMM_ERR_ARGUMENT, "a copy needs two arrays of the same size and at least one thread");
  const nb::gil_scoped_release released;
  std::latch ready(threads), done(threads);
  std::vector<double> begin(threads);
  const auto share = [&](uint32_t thread) { return source.size() / threads * thread; };
  const auto copy = [&](uint32_t thread) {
    ready.arrive_and_wait();
    begin[thread] = now_s();
    const std::size_t end = thread + 1 == threads ? source.size() : share(thread + 1);
    std::memcpy(destination.data() + share(thread), source.data() + share(thread), end - share(thread));
    done.arrive_and_wait();
  };
  std::vector<std::jthread> others;
  try {
    for (uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(copy, thread);
  } catch (...) {  // those that have started wait for all
    const auto missing = static_cast<std::ptrdiff_t>(threads - others.size());
    ready.count_down(missing);
    done.count_down(missing);
    throw;
  }
  copy(0);
  return now_s() - *std::min_element(begin.begin(), begin.end());
}

void bind_oracle(nb::module_ m) {
  using verify::Fill;
  using verify::Problem;
  nb::class_<Problem>(m, "Problem")
      .def(
          "__init__",
          [](Problem *self, int collective, std::vector<uint32_t> axis_len, std::string mask, uint64_t bytes, int type, int op) {
            new (self) Problem{collective, std::move(axis_len), std::move(mask), bytes, type, op};
          },
          "collective"_a, "axis_len"_a, "mask"_a, "bytes"_a, "type"_a, "op"_a)
      .def("rows_before",
           [](const Problem &self) {
             const auto rows = verify::rows_before(self);
             return std::tuple(rows.count, rows.row_bytes, rows.at_pes);
           })
      .def("rows_after",
           [](const Problem &self) {
             const auto rows = verify::rows_after(self);
             return std::tuple(rows.count, rows.row_bytes, rows.at_pes);
           })
      .def(
          "expected",
          [](const Problem &self, Bytes before, MutableBytes after) {
            const nb::gil_scoped_release released;
            verify::expected(self, {before.data(), before.size()}, {after.data(), after.size()});
          },
          "before"_a.noconvert(), "after"_a.noconvert())
      .def(
          "check",
          [](const Problem &self, Bytes before, Bytes got) {
            verify::Verdict verdict;
            {
              const nb::gil_scoped_release released;
              verdict = verify::check(self, {before.data(), before.size()}, {got.data(), got.size()});
            }
            return std::pair(verdict.wrong, verdict.first);
          },
          "before"_a.noconvert(), "got"_a.noconvert());
  m.def(
      "compare",
      [](int type, uint64_t row_bytes, Bytes got, Bytes want, bool nan_equal) {
        verify::Verdict verdict;
        {
          const nb::gil_scoped_release released;
          verdict = verify::compare(type, row_bytes, {got.data(), got.size()}, {want.data(), want.size()}, nan_equal);
        }
        return std::pair(verdict.wrong, verdict.first);
      },
      "type"_a, "row_bytes"_a, "got"_a.noconvert(), "want"_a.noconvert(), "nan_equal"_a);
  nb::enum_<Fill>(m, "Fill")
      .value("distinct", Fill::kDistinct)
      .value("exact", Fill::kExact)
      .value("special", Fill::kSpecial)
      .value("rounding", Fill::kRounding);
  m.def("fill_for", verify::fill_for, "takes_op"_a, "type"_a, "op"_a);
  m.def(
      "fill",
      [](Fill kind, int type, int op, uint64_t seed, uint64_t row_bytes, MutableBytes rows) {
        const nb::gil_scoped_release released;
        verify::fill(kind, type, op, seed, row_bytes, {rows.data(), rows.size()});
      },
      "kind"_a, "type"_a, "op"_a, "seed"_a, "row_bytes"_a, "rows"_a.noconvert());
  m.def("is_defined", verify::is_defined, "op"_a, "type"_a);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);

  m.def("version", [] { return std::string(pidcomm_version()); });
  m.def("tables", tables);
  m.attr("MRAM_BYTES") = DPUEMU_MRAM_BYTES;
  m.attr("PES_PER_RANK") = DPUEMU_DPUS_PER_RANK;
  m.attr("MAX_RANKS") = DPUEMU_MAX_RANKS;
  m.attr("CYCLES_PER_SECOND") = DPUEMU_CYCLES_PER_SECOND;
  m.attr("HEAP_NAME") = DPU_MRAM_HEAP_POINTER_NAME;

  nb::class_<Request>(m, "Request")
      .def(
          "__init__",
          [](Request *self, int collective, std::string mask, uint64_t bytes, uint64_t src, uint64_t dst, int type, int op) {
            new (self) Request{collective, std::move(mask), bytes, src, dst, type, op};
          },
          "collective"_a, "mask"_a, "bytes"_a, "src"_a, "dst"_a, "type"_a, "op"_a);
  m.def("plan_json", plan_json, "axis_len"_a, "request"_a, "options"_a, "expand"_a);

  m.def("model_tables", model_tables);
  m.def("builtin_machines", builtin_machines);
  m.def("use_machine", use_machine, "numbers"_a.none());
  m.def("predict", predict, "axis_len"_a, "request"_a, "options"_a, "numbers"_a);

  nb::class_<Set>(m, "Set")
      .def(nb::init<uint32_t, uint32_t, const std::optional<std::string> &>(), "pes"_a, "ranks"_a, "profile"_a.none())
      .def("hypercube", &Set::hypercube, "axis_len"_a)
      .def("free", &Set::free)
      .def("load", &Set::load, "path"_a)
      .def("launch", &Set::launch, "waits"_a)
      .def("sync", &Set::sync)
      .def("report", &Set::report)
      .def("symbol", &Set::symbol, "name"_a)
      .def("write_rows", &Set::write_rows, "symbol"_a, "offset"_a, "rows"_a.noconvert())
      .def("read_rows", &Set::read_rows, "symbol"_a, "offset"_a, "rows"_a.noconvert())
      .def("write_same", &Set::write_same, "symbol"_a, "offset"_a, "bytes"_a.noconvert())
      .def("log", &Set::log, "pe"_a)
      .def_prop_ro("is_freed", &Set::is_freed)
      .def_prop_ro("pes", &Set::pes)
      .def_prop_ro("ranks", &Set::ranks);

  nb::class_<Pending>(m, "Pending").def("wait", &Pending::wait).def("test", &Pending::test);

  nb::class_<Cube>(m, "Cube")
      .def("start", &Cube::start, "request"_a, "host_in"_a.noconvert().none(), "host_out"_a.noconvert().none(), "options"_a,
           nb::keep_alive<0, 1>())
      .def("run", &Cube::run, "request"_a, "host_in"_a.noconvert().none(), "host_out"_a.noconvert().none(), "options"_a)
      .def("coords", &Cube::coords, "pe"_a)
      .def("group_of", &Cube::group_of, "mask"_a, "pe"_a)
      .def("member_of", &Cube::member_of, "mask"_a, "pe"_a)
      .def("groups", &Cube::groups, "mask"_a)
      .def("stream_limit", &Cube::stream_limit, "copy_order"_a, "bytes_read"_a, "bytes_written"_a, "src"_a, "dst"_a, "options"_a)
      .def("push_xfer", &Cube::push_xfer, "to_pes"_a, "offset"_a, "rows"_a.noconvert());

  m.def("get_machine", get_machine);
  m.def("configure_machine", configure_machine, "fields"_a, "disabled"_a);
  m.def(
      "set_transfer",
      [](uint32_t threads, int flush) {
        check_device(dpuemu_set_transfer(threads, flush), "changing the transfer settings of the emulated machine", PIDCOMM_ERR_ARGUMENT);
      },
      "threads"_a, "flush"_a);
  m.def("resident_bytes", resident_bytes);
  m.def("host_copy", host_copy, "destination"_a.noconvert(), "source"_a.noconvert(), "threads"_a);

  bind_oracle(
      m.def_submodule("oracle", "What the eight collectives mean, written from their definitions; shares no code with the library."));
}
