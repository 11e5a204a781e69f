// Streams of work.
#pragma once

#include <nanobind/nanobind.h>
#include <pidcomm/stream.h>

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "allocation.h"
#include "cube.h"
#include "launching.h"

namespace core {

/// A pidcomm_stream, and what its steps use until the last `execute`, except hypercubes and buffers
/// in MRAM.
class Stream {
 public:
  Stream(std::shared_ptr<Allocation> allocation, uint32_t rank_groups);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  using Access = std::tuple<uint64_t, uint64_t, bool, bool>;  // as pidcomm_access

  void launch(const std::vector<Access> &accesses, uint32_t parts,
              const std::optional<std::string> &part_variable);
  /// Records a collective in the largest number of parts that divides `parts` and that its bytes
  /// allow; returns this number.
  uint32_t run(const Cube &cube, const Request &request, const std::optional<Bytes> &host_in,
               const std::optional<MutableBytes> &host_out, OptionCodes codes, uint32_t parts);
  void write(const std::string &name, const Bytes &data);
  /// Records a call of function `number` of the next execute, without arguments, on the thread that
  /// calls `execute`.
  void call(std::size_t number, const std::vector<Bytes> &reads,
            const std::vector<MutableBytes> &writes);
  /// functions: of calls. They are not kept: Python finds cycles between them and the stream.
  /// Throws the exception of a function as it is.
  void execute(const Stop &stop, const ExplainFault &explain,
               const std::vector<nb::callable> &functions);
  /// Whether an `execute` has begun.
  bool has_run() const { return has_run_; }
  /// The fields of the trace of the last `execute` that began, or nothing if it failed.
  std::optional<nb::dict> trace() const;
  nb::dict plan();
  /// The fields of each pidcomm_stream_piece.
  std::vector<std::tuple<size_t, size_t, uint32_t, uint32_t, double, double, int>> timeline() const;

 private:
  /// Memory that a step uses. number: of the function of a call.
  struct Used {
    Stream *stream = nullptr;
    std::size_t number = 0;
    std::vector<Bytes> reads;
    std::vector<MutableBytes> writes;
    std::shared_ptr<Operator> operation;
  };
  template <class Body>
  void record(const Body &body);
  static int run_function(void *used);

  std::shared_ptr<Allocation> allocation_;
  pidcomm_stream *stream_;
  mutable std::mutex mutex_;  // of threads that record, plan or read the timeline
  bool has_launches_ = false, has_run_ = false;
  bool is_short_ = false;  // the last execute, of the same steps; it runs on the calling thread
  std::optional<pidcomm_stream_trace> trace_;
  std::optional<CallerThread> caller_;                    // of an execute on another thread
  std::optional<nb::python_error> raised_;                // by a function
  const std::vector<nb::callable> *functions_ = nullptr;  // of the running execute
  std::list<Used> used_;                                  // by the recorded steps
};

}  // namespace core
