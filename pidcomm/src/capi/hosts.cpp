// The functions of hosts.h.
#include "hosts/hosts.h"

#include <atomic>
#include <memory>

#include "base/sized.h"
#include "capi/guarded.h"
#include "capi/hypercube.h"
#include "capi/pending.h"
#include "capi/plans.h"
#include "exec/default_options.h"
#include "model/machine.h"
#include "model/price.h"
#include "pidcomm/hosts.h"

struct pidcomm_hosts {
  pidcomm::HostsCube cube;
  std::atomic<uint32_t> pending = 0;  // as in pidcomm_hypercube
};

namespace {

using namespace pidcomm;

struct Call {
  pidcomm_options options;
  pidcomm_request request;
};

/// Returns the call that the caller asks for. If its structs are wrong, the other hosts get the
/// error in their next call.
Call received_call(pidcomm_hosts *hosts, const pidcomm_request *request,
                   const pidcomm_options *options) {
  try {
    return {received_options(options), received(request, "request")};
  } catch (const Error &error) {
    hosts->cube.refuse(error.status(), error.what());
    throw;
  }
}

void check_functions(const pidcomm_transport &transport) {
  if (transport.shared != nullptr) {
    require(reinterpret_cast<const void *>(transport.sync), "transport.sync");
  } else {
    require(reinterpret_cast<const void *>(transport.post), "transport.post");
    require(reinterpret_cast<const void *>(transport.test), "transport.test");
    require(reinterpret_cast<const void *>(transport.abandon), "transport.abandon");
  }
  require(reinterpret_cast<const void *>(transport.allocate), "transport.allocate");
  require(reinterpret_cast<const void *>(transport.release), "transport.release");
}

pidcomm_hosts_settings received_settings(const pidcomm_hosts_settings *settings) {
  return settings == nullptr ? pidcomm_hosts_settings{} : received(settings, "settings");
}

}  // namespace

int pidcomm_hosts_connect(pidcomm_hypercube *cube, const pidcomm_transport *transport,
                          const pidcomm_hosts_settings *settings, pidcomm_hosts **hosts) {
  return guarded([&] {
    require(hosts, "hosts");
    *hosts = nullptr;
    require(cube, "cube");
    const pidcomm_transport own = received(transport, "transport");
    check_functions(own);
    *hosts = new pidcomm_hosts{
        HostsCube(cube->executor, own, received_settings(settings), machine_in_use)};
  });
}

int pidcomm_hosts_disconnect(pidcomm_hosts *hosts) {
  return guarded([&] {
    if (hosts != nullptr && hosts->pending != 0)
      fail(PIDCOMM_ERR_BUSY,
           "the cube over hosts has non-blocking calls that have not been waited for: ",
           hosts->pending, "; call pidcomm_wait before pidcomm_hosts_disconnect");
    delete hosts;
  });
}

int pidcomm_hosts_run(pidcomm_hosts *hosts, const pidcomm_request *request, uint32_t root,
                      const pidcomm_options *options, pidcomm_trace *trace) {
  return guarded([&] {
    deliver_trace(trace, [&] {
      require(hosts, "hosts");
      const Call call = received_call(hosts, request, options);
      return hosts->cube.run(call.request, root, &call.options);
    });
  });
}

int pidcomm_hosts_validate(pidcomm_hosts *hosts, const pidcomm_request *request, uint32_t root,
                           const pidcomm_options *options) {
  return guarded([&] {
    require(hosts, "hosts");
    const Call call = received_call(hosts, request, options);
    hosts->cube.validate(call.request, root, &call.options);
  });
}

int pidcomm_hosts_irun(pidcomm_hosts *hosts, const pidcomm_request *request, uint32_t root,
                       const pidcomm_options *options, pidcomm_pending **pending) {
  return guarded([&] {
    require(pending, "pending");
    *pending = nullptr;
    require(hosts, "hosts");
    const Call call = received_call(hosts, request, options);
    auto started =
        std::make_unique<pidcomm_pending>(pidcomm_pending{&hosts->pending, {}, getpid()});
    started->end = hosts->cube.start(call.request, root, &call.options);
    ++hosts->pending;
    *pending = started.release();
  });
}

int pidcomm_hosts_refuse(pidcomm_hosts *hosts, int status, const char *sentence) {
  return guarded([&] {
    require(hosts, "hosts");
    require(sentence, "sentence");
    if (status == PIDCOMM_OK || name_of_status(status) == nullptr)
      fail(PIDCOMM_ERR_ARGUMENT, "status (", status, ") must be the code of an error");
    hosts->cube.refuse(static_cast<pidcomm_status>(status), sentence);
  });
}

int pidcomm_hosts_plan_json(uint32_t axes, const uint32_t *axis_len, uint32_t host,
                            const pidcomm_request *request, uint32_t root,
                            const pidcomm_options *options, const pidcomm_hosts_settings *settings,
                            const pidcomm_machine *machine, char *json, size_t capacity,
                            size_t *length) {
  return guarded([&] {
    require_text(json, "json", capacity, length);
    const Hypercube whole = cube_of(axes, axis_len);
    if (whole.axes.size() < 2)
      fail(PIDCOMM_ERR_SHAPE, "a cube over hosts has at least 2 axes, not ", whole.axes.size(),
           "; the last is the axis of the hosts");
    const uint32_t count = whole.axes.back().length;
    if (host >= count)
      fail(PIDCOMM_ERR_ARGUMENT, "host (", host, ") must be below the number of hosts (", count,
           ")");
    if (machine != nullptr) {
      check_size(machine, "machine");
      check_machine(*machine);
    }
    const pidcomm_machine on = machine == nullptr ? machine_in_use() : *machine;
    const pidcomm_options given = received_options(options);
    deliver_text(hosts_plan_json(cube_of(axes - 1, axis_len), count, host,
                                 received(request, "request"), root, resolve_for(on, &given),
                                 HostsSettings::of(received_settings(settings)), on),
                 json, capacity, length);
  });
}
