// Pools: memory that hosts share.
#include "pool.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"

namespace core {

using namespace nanobind::literals;

namespace {

pidcomm_pool_settings values_of(const PoolSettings &settings) {
  const auto &[name, path, address, bytes, host, hosts, has_switch, coherence, timeout_s] =
      settings;
  pidcomm_pool_settings values{};
  if (name) values.name = name->c_str();
  if (path) values.path = path->c_str();
  if (address) values.memory = reinterpret_cast<void *>(*address);
  values.bytes = bytes;
  values.host = host;
  values.hosts = hosts;
  values.has_switch = has_switch ? 1 : 0;
  values.coherence = coherence;
  values.timeout_s = timeout_s;
  return values;
}

}  // namespace

Pool::Pool(const PoolSettings &settings, size_t switch_process) {
  const gil::Released released;
  pidcomm_pool_settings values = values_of(settings);
  hosts_ = values.hosts;
  values.switch_process = switch_process;
  pidcomm_pool *pool = nullptr;
  check(pidcomm_pool_open(&values, &pool));
  pool_.reset(pool, pidcomm_pool_close);
}

Pool::~Pool() { close(); }

void Pool::close() {
  const gil::Released released;
  pool_.reset();
}

pidcomm_pool *Pool::opened() const {
  if (!pool_) throw StatusError(PIDCOMM_ERR_SET, "the pool has been closed; open it again");
  return pool_.get();
}

Pool::View Pool::view(uint64_t offset, uint64_t bytes) const {
  const void *data = nullptr;
  check(pidcomm_pool_view(opened(), offset, bytes, &data));
  const nb::capsule owner(new std::shared_ptr<pidcomm_pool>(pool_), [](void *pool) noexcept {
    delete static_cast<std::shared_ptr<pidcomm_pool> *>(pool);
  });
  return View(data, {bytes}, owner);
}

void bind_pool(nb::module_ &m) {
  nb::class_<Pool>(m, "Pool")
      .def(nb::init<const PoolSettings &, size_t>(), "settings"_a, "switch_process"_a)
      .def(
          "allocate",
          [](const Pool &self, uint64_t bytes) {
            size_t offset = 0;
            check(pidcomm_pool_allocate(self.opened(), bytes, &offset));
            return offset;
          },
          "bytes"_a)
      .def(
          "write",
          [](const Pool &self, uint64_t offset, const Bytes &host,
             const std::optional<MutableBytes> &copy) {
            pidcomm_pool *const pool = self.opened();
            if (copy && copy->size() != host.size())
              throw StatusError(PIDCOMM_ERR_HOST_BUFFER,
                                "the copy has " + std::to_string(copy->size()) + " bytes, not " +
                                    std::to_string(host.size()));
            const gil::Released released;
            check(copy ? pidcomm_pool_write_and_copy(pool, offset, host.size(), host.data(),
                                                     copy->data())
                       : pidcomm_pool_write(pool, offset, host.size(), host.data()));
          },
          "offset"_a, "host"_a.noconvert(), "copy"_a.noconvert().none())
      .def(
          "read",
          [](const Pool &self, uint64_t offset, const MutableBytes &host) {
            pidcomm_pool *const pool = self.opened();
            const gil::Released released;
            check(pidcomm_pool_read(pool, offset, host.size(), host.data()));
          },
          "offset"_a, "host"_a.noconvert())
      .def("view", &Pool::view, "offset"_a, "bytes"_a)
      .def(
          "allgather",
          [](const Pool &self, uint64_t offset, uint64_t area_bytes, const Bytes &host,
             const MutableBytes &all) {
            pidcomm_pool *const pool = self.opened();
            if (all.size() != self.hosts() * host.size())
              throw StatusError(PIDCOMM_ERR_HOST_BUFFER,
                                "the result has " + std::to_string(all.size()) + " bytes, not " +
                                    std::to_string(self.hosts() * host.size()));
            const gil::Released released;
            check(pidcomm_pool_allgather(pool, offset, area_bytes, host.size(), host.data(),
                                         all.data()));
          },
          "offset"_a, "area_bytes"_a, "host"_a.noconvert(), "all"_a.noconvert())
      .def(
          "reduce",
          [](const Pool &self, int type, int op, uint32_t rows, uint64_t offset, uint64_t bytes,
             uint64_t stride) {
            const pidcomm_reduction reduction{type, op, rows, offset, bytes, stride};
            pidcomm_pool *const pool = self.opened();
            const gil::Released released;
            check(pidcomm_pool_reduce(pool, &reduction));
          },
          "type"_a, "op"_a, "rows"_a, "offset"_a, "bytes"_a, "stride"_a)
      .def("sync",
           [](const Pool &self) {
             pidcomm_pool *const pool = self.opened();
             const gil::Released released;
             check(pidcomm_pool_sync(pool));
           })
      .def("close", &Pool::close);
  m.def(
      "run_switch",
      [](const PoolSettings &settings) {
        const gil::Released released;
        const pidcomm_pool_settings values = values_of(settings);
        check(pidcomm_switch_run(&values));
      },
      "settings"_a);
}

}  // namespace core
