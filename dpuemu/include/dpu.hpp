/// dpu.hpp: the C++11 API of the UPMEM SDK, over dpu.h. Include it as `<dpu>`.
///
/// All functions throw dpu::DpuError with the status of the C call. Buffers of asynchronous
/// operations must exist until sync().
#ifndef DPU_HPP
#define DPU_HPP

#include <dpu.h>
#include <dpu_log_internals.h>
#include <dpu_management.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace dpu {

/// Allocates all free DPUs or ranks.
const unsigned ALLOCATE_ALL = DPU_ALLOCATE_ALL;

class DpuError : public std::exception {
 public:
  explicit DpuError(dpu_error_t status) : status_(status) {
    char *sentence = dpu_error_to_string(status);
    if (sentence != nullptr) sentence_ = sentence;
    std::free(sentence);
  }
  const char *what() const noexcept override { return sentence_.c_str(); }
  /// The status of the C API. Not in the SDK.
  dpu_error_t status() const noexcept { return status_; }

  static void throwOnErr(dpu_error_t status) {
    if (status != DPU_OK) throw DpuError(status);
  }

 private:
  dpu_error_t status_;
  std::string sentence_;
};

/// A variable of a program: its address and its size in bytes.
class DpuSymbol {
 public:
  DpuSymbol(unsigned address, unsigned size) : symbol_() {
    symbol_.address = address;
    symbol_.size = size;
  }
  const dpu_symbol_t &symbol() const { return symbol_; }

 private:
  dpu_symbol_t symbol_;
};

class DpuProgram {
 public:
  DpuSymbol get(const std::string &name) const {
    dpu_symbol_t symbol;
    DpuError::throwOnErr(dpu_get_symbol(program_, name.c_str(), &symbol));
    return DpuSymbol(symbol.address, symbol.size);
  }

 private:
  friend class DpuSet;
  dpu_program_t *program_ = nullptr;
};

class DpuSet;
class DpuSetAsync;

/// The argument of DpuSetAsync::call: a function of a rank (or of the set) and its index.
using CallbackFn = std::function<void(DpuSet &, unsigned)>;

namespace internals {

/// A symbol or its name. It refers to the caller's string, so it must not outlive the call.
class SymbolOrName {
 public:
  SymbolOrName(const char *name) : name_(name), symbol_() {}
  SymbolOrName(const std::string &name) : name_(name.c_str()), symbol_() {}
  SymbolOrName(const DpuSymbol &symbol) : name_(nullptr), symbol_(symbol.symbol()) {}

  const char *name() const { return name_; }
  const dpu_symbol_t &symbol() const { return symbol_; }

 private:
  const char *name_;
  dpu_symbol_t symbol_;
};

template <class F>
bool get_block(sg_block_info *out, uint32_t dpu, uint32_t block, void *function) {
  return (*static_cast<F *>(function))(out, dpu, block);
}

}  // namespace internals

/// Operations that a DpuSet runs at once and a DpuSetAsync queues. Sizes and offsets are in bytes;
/// the default size is the size of a buffer, and buffers of several DPUs must then have equal sizes
/// (else DPU_ERR_INVALID_MEMORY_TRANSFER). Buffer i belongs to DPU i of the set.
class DpuSetOps {
  using Symbol = internals::SymbolOrName;

 public:
  /// Copy the same data to all DPUs.
  template <class T>
  void copy(const Symbol &to, unsigned offset, const std::vector<T> &from, unsigned size) {
    const dpu_xfer_flags_t flags = xfer_flags();
    DpuError::throwOnErr(
        to.name() != nullptr
            ? dpu_broadcast_to(set_, to.name(), offset, from.data(), size, flags)
            : dpu_broadcast_to_symbol(set_, to.symbol(), offset, from.data(), size, flags));
  }
  template <class T>
  void copy(const Symbol &to, unsigned offset, const std::vector<T> &from) {
    copy(to, offset, from, bytes_of(from));
  }
  template <class T>
  void copy(const Symbol &to, const std::vector<T> &from, unsigned size) {
    copy(to, 0, from, size);
  }
  template <class T>
  void copy(const Symbol &to, const std::vector<T> &from) {
    copy(to, 0, from, bytes_of(from));
  }

  /// Copy one buffer to each DPU.
  template <class T>
  void copy(const Symbol &to, unsigned offset, const std::vector<std::vector<T>> &from,
            unsigned size) {
    push(DPU_XFER_TO_DPU, to, offset, from, size);
  }
  template <class T>
  void copy(const Symbol &to, unsigned offset, const std::vector<std::vector<T>> &from) {
    push(DPU_XFER_TO_DPU, to, offset, from, bytes_of_each(from));
  }
  template <class T>
  void copy(const Symbol &to, const std::vector<std::vector<T>> &from, unsigned size) {
    push(DPU_XFER_TO_DPU, to, 0, from, size);
  }
  template <class T>
  void copy(const Symbol &to, const std::vector<std::vector<T>> &from) {
    push(DPU_XFER_TO_DPU, to, 0, from, bytes_of_each(from));
  }

  /// Copy from each DPU to its buffer.
  template <class T>
  void copy(std::vector<std::vector<T>> &to, unsigned size, const Symbol &from,
            unsigned offset = 0) {
    push(DPU_XFER_FROM_DPU, from, offset, to, size);
  }
  template <class T>
  void copy(std::vector<std::vector<T>> &to, const Symbol &from, unsigned offset = 0) {
    push(DPU_XFER_FROM_DPU, from, offset, to, bytes_of_each(to));
  }

  /// Gather the blocks of each DPU (dpu_push_sg_xfer). The function object F is bool(sg_block_info
  /// *out, uint32_t dpu, uint32_t block); an asynchronous call copies its bytes.
  void copyScatterGather(const Symbol &to, unsigned offset, get_block_t &blocks, unsigned size,
                         bool length_check = true) {
    push_blocks(DPU_XFER_TO_DPU, to, offset, blocks, size, length_check);
  }
  void copyScatterGather(const Symbol &to, get_block_t &blocks, unsigned size,
                         bool length_check = true) {
    push_blocks(DPU_XFER_TO_DPU, to, 0, blocks, size, length_check);
  }
  template <class F>
  void copyScatterGather(const Symbol &to, unsigned offset, F function, unsigned size,
                         bool length_check = true) {
    get_block_t blocks = blocks_of(function);
    push_blocks(DPU_XFER_TO_DPU, to, offset, blocks, size, length_check);
  }
  template <class F>
  void copyScatterGather(const Symbol &to, F function, unsigned size, bool length_check = true) {
    copyScatterGather(to, 0u, function, size, length_check);
  }

  /// Scatter the data of each DPU to its blocks.
  void copyScatterGather(get_block_t &blocks, unsigned size, const Symbol &from, unsigned offset,
                         bool length_check = true) {
    push_blocks(DPU_XFER_FROM_DPU, from, offset, blocks, size, length_check);
  }
  void copyScatterGather(get_block_t &blocks, unsigned size, const Symbol &from,
                         bool length_check = true) {
    push_blocks(DPU_XFER_FROM_DPU, from, 0, blocks, size, length_check);
  }
  template <class F>
  void copyScatterGather(F function, unsigned size, const Symbol &from, unsigned offset,
                         bool length_check = true) {
    get_block_t blocks = blocks_of(function);
    push_blocks(DPU_XFER_FROM_DPU, from, offset, blocks, size, length_check);
  }
  template <class F>
  void copyScatterGather(F function, unsigned size, const Symbol &from, bool length_check = true) {
    copyScatterGather(function, size, from, 0u, length_check);
  }

  /// Runs the loaded program.
  void exec() {
    DpuError::throwOnErr(dpu_launch(set_, is_async_ ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS));
  }

 protected:
  DpuSetOps(const dpu_set_t &set, bool is_async) : set_(set), is_async_(is_async) {}
  dpu_set_t set_;

 private:
  template <class T>
  static unsigned bytes_of(const std::vector<T> &buffer) {
    return static_cast<unsigned>(buffer.size() * sizeof(T));
  }
  template <class T>
  static unsigned bytes_of_each(const std::vector<std::vector<T>> &buffers) {
    if (buffers.empty()) throw DpuError(DPU_ERR_INVALID_MEMORY_TRANSFER);
    for (const std::vector<T> &buffer : buffers)
      if (buffer.size() != buffers[0].size()) throw DpuError(DPU_ERR_INVALID_MEMORY_TRANSFER);
    return bytes_of(buffers[0]);
  }
  template <class F>
  static get_block_t blocks_of(F &function) {
    get_block_t blocks = {internals::get_block<F>, &function, sizeof(F)};
    return blocks;
  }

  dpu_xfer_flags_t xfer_flags() const { return is_async_ ? DPU_XFER_ASYNC : DPU_XFER_DEFAULT; }

  template <class T>
  void push(dpu_xfer_t direction, const Symbol &symbol, unsigned offset,
            const std::vector<std::vector<T>> &buffers, unsigned size) {
    uint32_t dpus = 0;
    DpuError::throwOnErr(dpu_get_nr_dpus(set_, &dpus));
    if (buffers.size() < dpus) throw DpuError(DPU_ERR_INVALID_MEMORY_TRANSFER);
    for (uint32_t i = 0; i < dpus; ++i)
      if (bytes_of(buffers[i]) < size) throw DpuError(DPU_ERR_INVALID_MEMORY_TRANSFER);
    dpu_set_t dpu;
    uint32_t i;
    DPU_FOREACH(set_, dpu, i)
    DpuError::throwOnErr(dpu_prepare_xfer(dpu, const_cast<T *>(buffers[i].data())));
    DpuError::throwOnErr(
        symbol.name() != nullptr
            ? dpu_push_xfer(set_, direction, symbol.name(), offset, size, xfer_flags())
            : dpu_push_xfer_symbol(set_, direction, symbol.symbol(), offset, size, xfer_flags()));
  }

  void push_blocks(dpu_xfer_t direction, const Symbol &symbol, unsigned offset, get_block_t &blocks,
                   unsigned size, bool length_check) {
    const auto flags = static_cast<dpu_sg_xfer_flags_t>(
        (is_async_ ? DPU_SG_XFER_ASYNC : DPU_SG_XFER_DEFAULT) |
        (length_check ? DPU_SG_XFER_DEFAULT : DPU_SG_XFER_DISABLE_LENGTH_CHECK));
    DpuError::throwOnErr(
        symbol.name() != nullptr
            ? dpu_push_sg_xfer(set_, direction, symbol.name(), offset, size, &blocks, flags)
            : dpu_push_sg_xfer_symbol(set_, direction, symbol.symbol(), offset, size, &blocks,
                                      flags));
  }

  bool is_async_;
};

/// A set of DPUs. The object that allocate() or allocateRanks() returns frees the DPUs at its end;
/// copies, and the members of dpus() and ranks(), must not be used after that.
class DpuSet : public DpuSetOps {
 public:
  static DpuSet allocate(unsigned dpus = ALLOCATE_ALL, const std::string &profile = "") {
    dpu_set_t set;
    DpuError::throwOnErr(dpu_alloc(dpus, profile.c_str(), &set));
    return DpuSet(set, true);
  }
  static DpuSet allocateRanks(unsigned ranks = ALLOCATE_ALL, const std::string &profile = "") {
    dpu_set_t set;
    DpuError::throwOnErr(dpu_alloc_ranks(ranks, profile.c_str(), &set));
    return DpuSet(set, true);
  }

  /// The DPUs and the ranks of the set, each as a set.
  std::vector<DpuSet *> &dpus() { return dpus_; }
  std::vector<DpuSet *> &ranks() { return ranks_; }

  DpuProgram load(const std::string &path) {
    DpuProgram program;
    DpuError::throwOnErr(dpu_load(set_, path.c_str(), &program.program_));
    return program;
  }

  /// Writes the output of each DPU, after a line with its number.
  void log(std::ostream &stream) {
    for (DpuSet *dpu : dpus_) {
      dpu_t *const handle = dpu_from_set(dpu->set_);
      DpuError::throwOnErr(
          print(&stream, DPU_LOG_FORMAT_HEADER, static_cast<unsigned>(dpu_get_id(handle))));
      DpuError::throwOnErr(dpulog_read_for_dpu_(handle, print, &stream));
    }
  }

  DpuSetAsync async();

 private:
  friend class DpuSetAsync;

  /// Frees the set, and owns the objects of its ranks and DPUs.
  struct Owner {
    explicit Owner(const dpu_set_t &own, bool frees_set) : set(own), frees(frees_set) {}
    ~Owner() {
      if (frees) dpu_free(set);
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    dpu_set_t set;
    bool frees;
    std::vector<std::unique_ptr<DpuSet>> members;
  };

  explicit DpuSet(const dpu_set_t &set) : DpuSetOps(set, false) {}
  DpuSet(const dpu_set_t &set, bool frees_set)
      : DpuSetOps(set, false), owner_(std::make_shared<Owner>(set, frees_set)) {
    dpu_set_t rank, dpu;
    DPU_RANK_FOREACH(set_, rank) {
      DpuSet *const own_rank = add(rank);
      ranks_.push_back(own_rank);
      own_rank->ranks_.push_back(own_rank);
      DPU_FOREACH(rank, dpu) {
        DpuSet *const own_dpu = add(dpu);
        own_dpu->dpus_.push_back(own_dpu);
        own_dpu->ranks_.push_back(own_rank);
        own_rank->dpus_.push_back(own_dpu);
        dpus_.push_back(own_dpu);
      }
    }
  }
  DpuSet *add(const dpu_set_t &member) {
    owner_->members.emplace_back(new DpuSet(member));
    return owner_->members.back().get();
  }

  static dpu_error_t print(void *stream, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, arguments);
    va_end(arguments);
    std::vector<char> text(static_cast<size_t>(length < 0 ? 0 : length) + 1);
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    static_cast<std::ostream *>(stream)->write(text.data(), length < 0 ? 0 : length);
    return length < 0 ? DPU_ERR_SYSTEM : DPU_OK;
  }

  std::shared_ptr<Owner> owner_;  // the last copy frees the set
  std::vector<DpuSet *> dpus_, ranks_;
};

/// The asynchronous operations of a set, which must exist longer.
class DpuSetAsync : public DpuSetOps {
 public:
  /// Queues a callback of each rank, or of the set (is_single_call). If is_blocking, later
  /// operations of the rank wait for it. A DpuError of the callback is an error of sync().
  void call(const CallbackFn &callback, bool is_blocking, bool is_single_call) {
    unsigned flags = DPU_CALLBACK_ASYNC;
    if (!is_blocking) flags |= DPU_CALLBACK_NONBLOCKING;
    if (is_single_call) flags |= DPU_CALLBACK_SINGLE_CALL;
    uint32_t ranks = 0;
    DpuError::throwOnErr(dpu_get_nr_ranks(set_, &ranks));
    auto *const context =
        new Context{callback, {is_single_call || set_.kind == DPU_SET_DPU ? 1u : ranks}};
    const dpu_error_t status =
        dpu_callback(set_, run, context, static_cast<dpu_callback_flags_t>(flags));
    if (status == DPU_OK) return;
    delete context;
    throw DpuError(status);
  }
  void call(const CallbackFn &callback) { call(callback, true, false); }

  /// Waits for the queued operations. Throws the first error of them.
  void sync() { DpuError::throwOnErr(dpu_sync(set_)); }

 private:
  friend class DpuSet;
  struct Context {
    CallbackFn callback;
    std::atomic<uint32_t> calls_left;
  };

  explicit DpuSetAsync(const dpu_set_t &set) : DpuSetOps(set, true) {}

  static dpu_error_t run(dpu_set_t set, uint32_t index, void *argument) {
    auto *const context = static_cast<Context *>(argument);
    dpu_error_t status = DPU_OK;
    try {
      DpuSet part(set, false);
      context->callback(part, index);
    } catch (const DpuError &error) {
      status = error.status();
    }
    if (--context->calls_left == 0) delete context;
    return status;
  }
};

inline DpuSetAsync DpuSet::async() { return DpuSetAsync(set_); }

}  // namespace dpu

#endif  // DPU_HPP
