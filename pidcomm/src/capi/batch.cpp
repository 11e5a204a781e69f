// The function of batch.h.
#include "pidcomm/batch.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"

namespace {

using namespace pidcomm;

/// Copies an array of structs that all have the size of the first.
template <class T>
std::vector<T> received_array(const T *given, size_t count, const char *name) {
  std::vector<T> own;
  if (count == 0) return own;
  require(given, name);
  const auto *at = reinterpret_cast<const char *>(given);
  for (size_t i = 0; i < count; ++i, at += given->size) {
    size_t size;
    std::memcpy(&size, at, sizeof size);
    if (size != given->size || size % alignof(T) != 0)
      fail(PIDCOMM_ERR_ARGUMENT, name, "[", i, "].size is ", size, "; ", name, "[0].size is ",
           given->size, ", which must be a multiple of ", alignof(T));
    own.push_back(received(reinterpret_cast<const T *>(at), name));
  }
  return own;
}

}  // namespace

int pidcomm_batch(pidcomm_hypercube *cube, const pidcomm_request *requests, size_t count,
                  const pidcomm_options *options, pidcomm_trace *trace) {
  return guarded([&] {
    deliver_trace(trace, [&] {
      require(cube, "cube");
      pidcomm_trace done;
      cube->executor.run_batch(received_array(requests, count, "requests"),
                               options == nullptr ? std::vector<pidcomm_options>(count)
                                                  : received_array(options, count, "options"),
                               done);
      return done;
    });
  });
}
