// The C API of pools.
#include "pidcomm/pool.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/sized.h"
#include "capi/guarded.h"
#include "pool/pool.h"

struct pidcomm_pool {
  pidcomm::Pool pool;
};

namespace {

using namespace pidcomm;

/// The context of the transport: an allocation in the pool.
struct Allocation {
  Pool &pool;
  uint64_t offset, bytes;
};

/// Calls body(allocation). Returns null, or the sentence of its error.
template <class Body>
const char *sentence_of(void *context, const Body &body) {
  thread_local std::string sentence;
  try {
    body(*static_cast<Allocation *>(context));
    return nullptr;
  } catch (const std::exception &error) {
    sentence = error.what();
  }
  return sentence.c_str();
}

void require_apart(const void *to, size_t to_bytes, const char *name, const void *host,
                   size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(to), from = reinterpret_cast<uintptr_t>(host);
  if (from < begin + to_bytes && begin < from + bytes)
    fail(PIDCOMM_ERR_ARGUMENT, name, " (", to_bytes, " bytes at ", to, ") and host (", bytes,
         " bytes at ", host, ") overlap");
}

}  // namespace

size_t pidcomm_pool_own_bytes(uint32_t hosts) { return Pool::own_bytes(hosts); }

int pidcomm_pool_open(const pidcomm_pool_settings *settings, pidcomm_pool **pool) {
  return guarded([&] {
    require(pool, "pool");
    *pool = nullptr;
    *pool = new pidcomm_pool{Pool(received(settings, "settings"), Pool::Role::host)};
  });
}

int pidcomm_pool_close(pidcomm_pool *pool) {
  return guarded([&] { delete pool; });
}

int pidcomm_pool_allocate(pidcomm_pool *pool, size_t bytes, size_t *offset) {
  return guarded([&] {
    require(pool, "pool");
    require(offset, "offset");
    *offset = pool->pool.allocate(bytes);
  });
}

int pidcomm_pool_write(pidcomm_pool *pool, size_t offset, size_t bytes, const void *host) {
  return guarded([&] {
    require(pool, "pool");
    if (bytes != 0) require(host, "host");
    pool->pool.write(offset, bytes, host, nullptr);
  });
}

int pidcomm_pool_allgather(pidcomm_pool *pool, size_t offset, size_t area_bytes, size_t bytes,
                           const void *host, void *all) {
  return guarded([&] {
    require(pool, "pool");
    if (bytes != 0) require(host, "host");
    if (bytes != 0) require(all, "all");
    const uint32_t hosts = pool->pool.hosts();
    if (bytes > SIZE_MAX / hosts)
      fail(PIDCOMM_ERR_ARGUMENT, bytes, " bytes of ", hosts, " hosts are too many");
    require_apart(all, bytes * hosts, "all", host, bytes);
    pool->pool.allgather(offset, area_bytes, bytes, host, all);
  });
}

int pidcomm_pool_write_and_copy(pidcomm_pool *pool, size_t offset, size_t bytes, const void *host,
                                void *copy) {
  return guarded([&] {
    require(pool, "pool");
    if (bytes != 0) require(host, "host");
    if (bytes != 0) require(copy, "copy");
    require_apart(copy, bytes, "copy", host, bytes);
    pool->pool.write(offset, bytes, host, copy);
  });
}

int pidcomm_pool_read(pidcomm_pool *pool, size_t offset, size_t bytes, void *host) {
  return guarded([&] {
    require(pool, "pool");
    if (bytes != 0) require(host, "host");
    pool->pool.read(offset, bytes, host);
  });
}

int pidcomm_pool_view(pidcomm_pool *pool, size_t offset, size_t bytes, const void **view) {
  return guarded([&] {
    require(pool, "pool");
    require(view, "view");
    *view = pool->pool.view(offset, bytes);
  });
}

int pidcomm_pool_sync(pidcomm_pool *pool) {
  return guarded([&] {
    require(pool, "pool");
    pool->pool.sync();
  });
}

int pidcomm_pool_reduce(pidcomm_pool *pool, const pidcomm_reduction *reduction) {
  return guarded([&] {
    require(pool, "pool");
    require(reduction, "reduction");
    pool->pool.reduce(*reduction);
  });
}

int pidcomm_pool_transport(pidcomm_pool *pool, size_t bytes, pidcomm_transport *transport) {
  return guarded([&] {
    require(pool, "pool");
    require(transport, "transport");
    Pool &own = pool->pool;
    const size_t size = bytes == 0 ? own.free_bytes() : bytes;
    auto allocation = std::make_unique<Allocation>(Allocation{own, own.allocate(size), size});
    pidcomm_transport table{};
    table.host = own.host();
    table.hosts = own.hosts();
    table.allows_any_thread = 1;
    table.shared = own.data() + allocation->offset;
    table.shared_bytes = size;
    table.coherence = own.coherence();
    table.sync = [](void *context, double timeout_s) {
      return sentence_of(context, [&](const Allocation &used) { used.pool.sync(timeout_s); });
    };
    if (own.has_switch())
      table.reduce = [](void *context, const pidcomm_reduction *reduction, double timeout_s) {
        return sentence_of(context, [&](const Allocation &used) {
          pidcomm_reduction moved = *reduction;
          moved.offset += used.offset;
          used.pool.reduce(moved, timeout_s);
        });
      };
    table.allocate = [](void *, size_t wanted) { return std::malloc(wanted); };
    table.release = [](void *, void *memory) { std::free(memory); };
    table.close = [](void *context) {
      const std::unique_ptr<Allocation> used(static_cast<Allocation *>(context));
      used->pool.free_last(used->offset, used->bytes);
    };
    table.context = allocation.release();
    *transport = table;
  });
}

int pidcomm_switch_run(const pidcomm_pool_settings *settings) {
  return guarded([&] { Pool(received(settings, "settings"), Pool::Role::network_switch).serve(); });
}
