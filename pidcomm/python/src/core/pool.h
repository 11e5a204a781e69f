// A pool in Python.
#pragma once

#include <pidcomm/pool.h>

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
  Pool(const PoolSettings &settings, size_t switch_process);
  ~Pool();
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;

  void close();
  /// Throws StatusError if the pool has been closed.
  pidcomm_pool *opened() const;
  uint32_t hosts() const { return hosts_; }

 private:
  uint32_t hosts_;
  pidcomm_pool *pool_ = nullptr;
};

}  // namespace core
