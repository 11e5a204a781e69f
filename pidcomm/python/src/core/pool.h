// A pool in Python.
#pragma once

#include <pidcomm/pool.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "gil.h"
#include "values.h"

namespace core {

using PoolSettings =
    std::tuple<std::optional<std::string>, std::optional<std::string>, std::optional<uint64_t>,
               uint64_t, uint32_t, uint32_t, bool, int,
               double>;  // name, path, address, bytes, host, hosts, switch, coherence, timeout_s

class Pool {
 public:
  using View = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

  Pool(const PoolSettings &settings, size_t switch_process);
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  /// Closes the pool, or lets the last view close it.
  void close();
  /// Throws StatusError if the pool has been closed.
  pidcomm_pool *opened() const;
  View view(uint64_t offset, uint64_t bytes) const;
  uint32_t hosts() const { return hosts_; }

 private:
  uint32_t hosts_ = 0;
  std::shared_ptr<pidcomm_pool> pool_;  // views are owners, too
};

}  // namespace core
