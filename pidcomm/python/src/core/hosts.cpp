// Cubes over hosts, with transports that are objects of Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <pidcomm/hosts.h>

#include "bindings.h"
#include "cube.h"
#include "gil.h"
#include "pool.h"
#include "recorder.h"
#include "status.h"
#include "values.h"

namespace core {

using namespace nanobind::literals;

namespace {

/// Calls body() with the GIL. Returns null, or the text of the exception that body has raised.
template <class Body>
const char *with_gil(const Body &body) {
  thread_local std::string sentence;
  const gil::Held held;
  try {
    body();
    return nullptr;
  } catch (nb::python_error &error) {
    sentence = error.what();
  } catch (const std::exception &error) {
    sentence = error.what();
  }
  return sentence.c_str();
}

nb::handle object_of(void *pointer) { return nb::handle(static_cast<PyObject *>(pointer)); }
uint64_t address_of(const void *memory) { return reinterpret_cast<uintptr_t>(memory); }

/// The table of a transport in Python; see Transport in transports.py. Handles are Python objects.
/// Requires the GIL.
pidcomm_transport table_of(const nb::object &transport) {
  pidcomm_transport table{};
  table.context = nb::object(transport).release().ptr();
  table.host = nb::cast<uint32_t>(transport.attr("host"));
  table.hosts = nb::cast<uint32_t>(transport.attr("hosts"));
  table.allows_any_thread = nb::cast<bool>(transport.attr("allows_any_thread"));
  table.post = [](void *context, const pidcomm_message *message, void **posted) {
    return with_gil([&] {
      nb::object handle = object_of(context).attr("post")(message->host, message->is_send != 0,
                                                          address_of(message->base), message->rows,
                                                          message->bytes, message->stride);
      *posted = handle.release().ptr();
    });
  };
  table.test = [](void *context, void *posted, int *is_done) {
    return with_gil([&] {
      *is_done = nb::cast<bool>(object_of(context).attr("test")(object_of(posted)));
      if (*is_done) object_of(posted).dec_ref();
    });
  };
  table.abandon = [](void *context, void *posted) {
    with_gil([&] {
      const nb::object handle = nb::steal(object_of(posted));
      object_of(context).attr("abandon")(handle);
    });
  };
  table.allocate = [](void *context, std::size_t bytes) {
    void *memory = nullptr;
    with_gil([&] {
      memory =
          reinterpret_cast<void *>(nb::cast<uint64_t>(object_of(context).attr("allocate")(bytes)));
    });
    return memory;
  };
  table.release = [](void *context, void *memory) {
    with_gil([&] { object_of(context).attr("release")(address_of(memory)); });
  };
  table.close = [](void *context) {
    with_gil([&] {
      const nb::object own = nb::steal(object_of(context));
      own.attr("close")();
    });
  };
  return table;
}

/// A cube over hosts. Keeps the local hypercube alive.
class Hosts {
 public:
  Hosts(Cube &cube, const nb::object &transport, const HostsSettings &settings)
      : allocation_(cube.allocation()) {
    const pidcomm_hosts_settings values = settings_of(settings);
    pidcomm_transport table{};
    if (const Pool *pool = nullptr; nb::try_cast(transport, pool))
      check(pidcomm_pool_transport(pool->opened(), 0, &table));
    else
      table = table_of(transport);
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_hosts_connect(cube.get(), &table, &values, &hosts_));
    });
  }
  ~Hosts() {
    const gil::Released released;
    pidcomm_hosts_disconnect(hosts_);
    allocation_.reset();
  }
  Hosts(const Hosts &) = delete;
  Hosts &operator=(const Hosts &) = delete;

  pidcomm_trace run(const Request &request, uint32_t root, const std::optional<Bytes> &host_in,
                    const std::optional<MutableBytes> &host_out, const OptionCodes &codes) {
    note_caller(2);
    const pidcomm_request value = Cube::value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    pidcomm_trace trace = {};
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_hosts_run(connected(), &value, root, &options, &trace));
    });
    return trace;
  }

  std::unique_ptr<Pending> start(const Request &request, uint32_t root,
                                 std::optional<Bytes> host_in, std::optional<MutableBytes> host_out,
                                 const OptionCodes &codes) {
    note_caller(2);
    const pidcomm_request value = Cube::value_of(request, host_in, host_out);
    const pidcomm_options options = options_of(codes);
    auto pending = std::make_unique<Pending>(allocation_, std::move(host_in), std::move(host_out));
    pending->start([&](pidcomm_pending **call) {
      return pidcomm_hosts_irun(connected(), &value, root, &options, call);
    });
    return pending;
  }

  void validate(const Request &request, uint32_t root, const OptionCodes &codes) {
    const pidcomm_request value = request.value();
    const pidcomm_options options = options_of(codes);
    allocation_->use([&](struct dpu_set_t) {
      check(pidcomm_hosts_validate(connected(), &value, root, &options));
    });
  }

  void refuse(int status, const std::string &sentence) {
    const gil::Released released;
    check(pidcomm_hosts_refuse(connected(), status, sentence.c_str()));
  }

  void disconnect() {
    const gil::Released released;
    check(pidcomm_hosts_disconnect(hosts_));
    hosts_ = nullptr;
  }

 private:
  pidcomm_hosts *connected() const {
    if (hosts_ == nullptr)
      throw StatusError(PIDCOMM_ERR_SET,
                        "the connection between the hosts has been closed; connect again");
    return hosts_;
  }
  std::shared_ptr<Allocation> allocation_;
  pidcomm_hosts *hosts_ = nullptr;
};

}  // namespace

void bind_hosts(nb::module_ &m) {
  nb::class_<Hosts>(m, "Hosts")
      .def(nb::init<Cube &, const nb::object &, const HostsSettings &>(), "cube"_a, "transport"_a,
           "settings"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("start", &Hosts::start, "request"_a, "root"_a, "host_in"_a.noconvert().none(),
           "host_out"_a.noconvert().none(), "options"_a, nb::keep_alive<0, 1>())
      .def("run", &Hosts::run, "request"_a, "root"_a, "host_in"_a.noconvert().none(),
           "host_out"_a.noconvert().none(), "options"_a)
      .def("validate", &Hosts::validate, "request"_a, "root"_a, "options"_a)
      .def("refuse", &Hosts::refuse, "status"_a, "sentence"_a)
      .def("disconnect", &Hosts::disconnect);
}

}  // namespace core
