#include "stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pidcomm/recorder.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "bindings.h"
#include "gil.h"
#include "recorder.h"

using namespace nanobind::literals;

namespace core {

namespace {

constexpr double kShort_s = 0.001;  // a run without launches whose end Ctrl-C can wait for

/// The largest number of parts that divides `most`, with whole words and elements in each part.
uint32_t parts_of(const pidcomm_request &request, uint32_t most) {
  switch (request.collective) {
    case PIDCOMM_ALLREDUCE:
    case PIDCOMM_REDUCE:
    case PIDCOMM_BROADCAST: {
      const uint64_t element = request.operation != nullptr ? request.operation->element_bytes : 0;
      const uint64_t unit = std::lcm(uint64_t{PIDCOMM_WORD_BYTES}, std::max(element, uint64_t{1}));
      return request.bytes < unit
                 ? 1
                 : static_cast<uint32_t>(std::gcd(uint64_t{most}, request.bytes / unit));
    }
    default:
      return 1;
  }
}

nb::dict dict_of(const pidcomm_stream_trace &trace, const char *source) {
  nb::dict fields;
  fields["seconds_total"] = trace.seconds_total;
  fields["seconds_host"] = trace.seconds_host;
  fields["seconds_pes"] = trace.seconds_pes;
  fields["seconds_setup"] = trace.seconds_setup;
  fields["pieces"] = trace.pieces;
  fields["rank_groups"] = trace.rank_groups;
  fields["parts"] = trace.parts;
  fields["source"] = source;
  return fields;
}

}  // namespace

Stream::Stream(std::shared_ptr<Allocation> allocation, uint32_t rank_groups)
    : allocation_(std::move(allocation)) {
  const gil::Released released;
  stream_ = allocation_->add_stream(rank_groups);
}

Stream::~Stream() {
  const gil::Released released;
  allocation_->remove(stream_);
  allocation_.reset();
}

template <class Body>
void Stream::record(const Body &body) {
  allocation_->use([&](struct dpu_set_t) {
    const std::scoped_lock lock(mutex_);
    is_short_ = false;
    body();
  });
}

void Stream::launch(const std::vector<Access> &accesses, uint32_t parts,
                    const std::optional<std::string> &part_variable) {
  std::vector<pidcomm_access> values;
  for (const auto &[window, bytes, writes, is_cut] : accesses)
    values.push_back({window, bytes, writes ? 1 : 0, is_cut ? 1 : 0});
  record([&] {
    check(pidcomm_stream_launch(stream_, values.data(), values.size(), parts,
                                part_variable ? part_variable->c_str() : nullptr));
    has_launches_ = true;
  });
}

uint32_t Stream::run(const Cube &cube, const Request &request, const std::optional<Bytes> &host_in,
                     const std::optional<MutableBytes> &host_out, OptionCodes codes,
                     uint32_t parts) {
  const pidcomm_request value = Cube::value_of(request, host_in, host_out);
  const pidcomm_options options = options_of(codes);
  const uint32_t own_parts = parts_of(value, parts);
  std::list<Used> used(1);
  used.front().operation = request.operation;
  if (host_in) used.front().reads.push_back(*host_in);
  if (host_out) used.front().writes.push_back(*host_out);
  record([&] {
    check(pidcomm_stream_run(stream_, cube.get(), &value, &options, own_parts));
    used_.splice(used_.end(), used);
  });
  return own_parts;
}

void Stream::write(const std::string &name, const Bytes &data) {
  record([&] { check(pidcomm_stream_write(stream_, name.c_str(), data.data(), data.size())); });
}

void Stream::call(std::size_t number, const std::vector<Bytes> &reads,
                  const std::vector<MutableBytes> &writes) {
  std::vector<pidcomm_stream_host_access> ranges;
  for (const Bytes &array : reads) ranges.push_back({array.data(), array.size(), 0});
  for (const MutableBytes &array : writes) ranges.push_back({array.data(), array.size(), 1});
  std::list<Used> used;
  used.push_back({this, number, reads, writes, nullptr});
  record([&] {
    check(pidcomm_stream_call(stream_, run_function, &used.front(), ranges.data(), ranges.size()));
    used_.splice(used_.end(), used);
  });
}

int Stream::run_function(void *used) {
  const auto *const call = static_cast<const Used *>(used);
  Stream *const stream = call->stream;
  bool has_returned = false;
  const auto run = [&] {
    const gil::Held held;
    try {
      stream->functions_->at(call->number)();
      has_returned = true;
    } catch (nb::python_error &error) {
      stream->raised_.emplace(std::move(error));
    }
  };
  if (stream->caller_)
    stream->caller_->call(run);
  else
    run();
  return has_returned ? 0 : 1;
}

void Stream::execute(const Stop &stop, const ExplainFault &explain,
                     const std::vector<nb::callable> &functions) {
  raised_.reset();
  const Place place = place_of_caller(0);
  bool has_begun = false;
  std::optional<pidcomm_stream_trace> own;
  const auto end = [&](bool *begun) {
    if (!*begun) return;  // a refused run keeps the trace of the last one
    has_run_ = true;
    trace_ = own;
    is_short_ = own && !has_launches_ && own->seconds_total < kShort_s;
  };
  const std::unique_ptr<bool, decltype(end)> at_end(&has_begun, end);
  allocation_->use_alone([&](struct dpu_set_t set) {
    functions_ = &functions;
    const auto execute = [&] {
      pidcomm_recorder_place(place.file, place.line);
      has_begun = true;
      pidcomm_stream_trace trace = PIDCOMM_STREAM_TRACE_INITIALIZER;
      check(pidcomm_stream_execute(stream_, &trace));
      own = trace;
      return true;
    };
    try {
      const auto end_stream = [&] {
        pidcomm_stream_cancel(stream_);
        stop_launch(stop, set);
      };
      if (is_short_) return execute();
      caller_.emplace();
      const std::unique_ptr<std::optional<CallerThread>, void (*)(std::optional<CallerThread> *)>
          guard(&caller_, [](std::optional<CallerThread> *caller) { caller->reset(); });
      return caller_->run(end_stream, execute);
    } catch (const StatusError &error) {
      if (raised_) throw nb::python_error(std::move(*raised_));
      if (error.status() != PIDCOMM_ERR_DEVICE || !explain) throw;
      const gil::Held held;
      const auto fault = nb::cast<std::string>((*explain)(bytes_of(set)));
      throw StatusError(error.status(), error.what() + (fault.empty() ? "" : ": " + fault));
    }
  });
}

std::optional<nb::dict> Stream::trace() const {
  if (!trace_) return std::nullopt;
  return dict_of(*trace_, trace_->is_mixed != 0 ? "mixed" : "measured");
}

nb::dict Stream::plan() {
  pidcomm_stream_trace trace = PIDCOMM_STREAM_TRACE_INITIALIZER;
  record([&] { check(pidcomm_stream_plan(stream_, &trace)); });
  return dict_of(trace, "predicted");
}

std::vector<std::tuple<size_t, size_t, uint32_t, uint32_t, double, double, int>> Stream::timeline()
    const {
  std::vector<pidcomm_stream_piece> pieces;
  allocation_->use([&](struct dpu_set_t) {
    const std::scoped_lock lock(mutex_);
    std::size_t count = 0;
    check(pidcomm_stream_timeline(stream_, nullptr, 0, &count));
    pieces.resize(count);
    check(pidcomm_stream_timeline(stream_, pieces.data(), count, &count));
  });
  std::vector<std::tuple<size_t, size_t, uint32_t, uint32_t, double, double, int>> rows;
  for (const pidcomm_stream_piece &piece : pieces)
    rows.emplace_back(piece.step, piece.part, piece.first_rank, piece.ranks, piece.begin_s,
                      piece.end_s, piece.kind);
  return rows;
}

void bind_stream(nb::module_ &m) {
  nb::class_<Stream>(m, "Stream")
      .def("launch", &Stream::launch, "accesses"_a, "parts"_a, "part_variable"_a.none())
      .def("run", &Stream::run, "cube"_a, "request"_a, "host_in"_a.noconvert().none(),
           "host_out"_a.noconvert().none(), "options"_a, "parts"_a, nb::keep_alive<1, 2>())
      .def("write", &Stream::write, "name"_a, "data"_a.noconvert())
      .def("call", &Stream::call, "number"_a, "reads"_a, "writes"_a)
      .def("plan", &Stream::plan)
      .def("execute", &Stream::execute, "stop"_a.none(), "explain_fault"_a.none(), "functions"_a)
      .def_prop_ro("has_run", &Stream::has_run)
      .def("trace", &Stream::trace)
      .def("timeline", &Stream::timeline);
}

}  // namespace core
