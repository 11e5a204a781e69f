// The functions of stream.h.
#include "capi/stream.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"

using namespace pidcomm;

namespace {

int traced(pidcomm_stream *stream, pidcomm_stream_trace *trace,
           pidcomm_stream_trace (Stream::*call)()) {
  return guarded([&] {
    require(stream, "stream");
    if (trace != nullptr) {
      check_size(trace, "trace", kLargestBytes);
      deliver(pidcomm_stream_trace{}, trace);
    }
    const pidcomm_stream_trace own = (stream->stream.*call)();
    if (trace != nullptr) deliver(own, trace);
  });
}

}  // namespace

int pidcomm_stream_create(struct dpu_set_t set, uint32_t rank_groups, pidcomm_stream **stream) {
  return guarded([&] {
    require(stream, "stream");
    *stream = nullptr;
    *stream = new pidcomm_stream{Stream(set, rank_groups)};
  });
}

void pidcomm_stream_destroy(pidcomm_stream *stream) { delete stream; }

int pidcomm_stream_launch(pidcomm_stream *stream, const pidcomm_access *accesses, size_t count,
                          uint32_t parts, const char *part_variable) {
  return guarded([&] {
    require(stream, "stream");
    if (count != 0) require(accesses, "accesses");
    stream->stream.launch({accesses, accesses + count}, parts, part_variable);
  });
}

int pidcomm_stream_run(pidcomm_stream *stream, pidcomm_hypercube *cube,
                       const pidcomm_request *request, const pidcomm_options *options,
                       uint32_t parts) {
  return guarded([&] {
    require(stream, "stream");
    require(cube, "cube");
    stream->stream.run(cube->executor, received(request, "request"), received_options(options),
                       parts);
  });
}

int pidcomm_stream_write(pidcomm_stream *stream, const char *name, const void *data, size_t bytes) {
  return guarded([&] {
    require(stream, "stream");
    require(name, "name");
    if (bytes != 0) require(data, "data");
    stream->stream.write(name, data, bytes);
  });
}

int pidcomm_stream_call(pidcomm_stream *stream, int (*function)(void *context), void *context,
                        const pidcomm_stream_host_access *ranges, size_t count) {
  return guarded([&] {
    require(stream, "stream");
    if (function == nullptr) fail(PIDCOMM_ERR_ARGUMENT, "function is null");
    if (count != 0) require(ranges, "ranges");
    stream->stream.call(function, context, {ranges, ranges + count});
  });
}

int pidcomm_stream_execute(pidcomm_stream *stream, pidcomm_stream_trace *trace) {
  return traced(stream, trace, &Stream::execute);
}

void pidcomm_stream_cancel(pidcomm_stream *stream) { stream->stream.cancel(); }

int pidcomm_stream_plan(pidcomm_stream *stream, pidcomm_stream_trace *trace) {
  return traced(stream, trace, &Stream::plan);
}

int pidcomm_stream_timeline(const pidcomm_stream *stream, pidcomm_stream_piece *pieces,
                            size_t capacity, size_t *count) {
  return guarded([&] {
    require(stream, "stream");
    require(count, "count");
    if (capacity != 0) require(pieces, "pieces");
    const std::vector<pidcomm_stream_piece> &own = stream->stream.timeline();
    std::copy_n(own.begin(), std::min(capacity, own.size()), pieces);
    *count = own.size();
  });
}
