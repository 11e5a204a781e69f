// The C API: every function is a thin call into the library, with errors turned into a status and a sentence.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "capi/guarded.h"
#include "exec/executor.h"
#include "line_kernels/kernels.h"
#include "model/machine.h"
#include "model/price.h"
#include "pidcomm/request.hpp"
#include "plan/planner.h"
#include "rank_access/rank_access.h"

namespace pidcomm {
namespace {

/// The machine whose prices count: the one of pidcomm_use_machine, else the built-in one for the DIMMs of this SDK.
pidcomm_machine current_machine() { return machine_in_use(ranks_are_coherent() ? "emulated-host" : "isca24"); }

/// Lets PIDCOMM_TECHNIQUE_AUTO be the technique of the lowest price.
class CheapestPlanner : public Planner {
 public:
  uint64_t version() const override { return machine_version(); }
  Plan plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base) const override {
    return plan_on(current_machine, cube, request, options, heap_base, true);
  }
};
const CheapestPlanner kPlanner;

}  // namespace
}  // namespace pidcomm

struct pidcomm_hypercube {
  pidcomm::Executor executor;
  std::atomic<uint32_t> pending = 0;  // calls that have not been waited for
};

struct pidcomm_pending {
  hypercube_manager *manager;
  std::future<pidcomm_trace> end;
};

std::string &pidcomm::last_error() {
  thread_local std::string sentence;
  return sentence;
}

namespace {

using namespace pidcomm;

std::vector<uint32_t> lengths_of(uint32_t axes, const uint32_t *axis_len) {
  require(axis_len, "axis_len");
  if (axes > kMaxAxes) fail(PIDCOMM_ERR_SHAPE, "a hypercube has 1 to ", kMaxAxes, " axes, not ", axes);
  return {axis_len, axis_len + axes};
}

void require_pe(const hypercube_manager *manager, uint32_t pe) {
  require(manager, "manager");
  const uint32_t pes = manager->executor.cube().pes;
  if (pe >= pes)
    fail(PIDCOMM_ERR_ARGUMENT, "PE ", pe, " is out of range; the hypercube ", manager->executor.cube().to_string(), " has ", pes);
}

/// The axis mask that selects no axis.
struct NoAxis {
  char mask[kMaxAxes + 1] = {};
  explicit NoAxis(const hypercube_manager *manager) {
    if (manager != nullptr) std::memset(mask, '0', manager->executor.cube().axes.size());
  }
};

int run(hypercube_manager *manager, const pidcomm_request &request, const pidcomm_options *options) {
  return pidcomm_run(manager, &request, options, nullptr);
}

int irun(hypercube_manager *manager, const pidcomm_request &request, pidcomm_pending **pending) {
  return pidcomm_irun(manager, &request, nullptr, pending);
}

/// Releases a call when its end is known.
pidcomm_trace end_of(pidcomm_pending **pending) {
  const std::unique_ptr<pidcomm_pending> call(std::exchange(*pending, nullptr));
  if (call == nullptr) return {};
  call->end.wait();
  --call->manager->pending;
  return call->end.get();
}

}  // namespace

extern "C" {

#define PIDCOMM_STRING(x) PIDCOMM_STRING_(x)
#define PIDCOMM_STRING_(x) #x
const char *pidcomm_version(void) {
  return PIDCOMM_STRING(PIDCOMM_VERSION_MAJOR) "." PIDCOMM_STRING(PIDCOMM_VERSION_MINOR) "." PIDCOMM_STRING(PIDCOMM_VERSION_PATCH);
}

const char *pidcomm_last_error(void) { return last_error().c_str(); }

const char *pidcomm_status_name(int status) { return name_of_status(status); }
const char *pidcomm_collective_name(int collective) { return name_of_collective(collective); }
const char *pidcomm_type_name(int type) { return name_of_type(type); }
const char *pidcomm_op_name(int op) { return name_of_op(op); }
const char *pidcomm_technique_name(int technique) { return name_of_technique(technique); }
const char *pidcomm_isa_name(int isa) { return name_of_isa(isa); }
const char *pidcomm_coherence_name(int coherence) { return name_of_coherence(coherence); }
const char *pidcomm_copy_order_name(int copy_order) { return name_of_copy_order(copy_order); }
int pidcomm_isa_available(int isa) { return isa_available(isa) ? 1 : 0; }

int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len, hypercube_manager **manager) {
  return guarded([&] {
    require(manager, "manager");
    *manager = nullptr;
    *manager = new pidcomm_hypercube{Executor(set, lengths_of(axes, axis_len), kPlanner)};
  });
}

hypercube_manager *init_hypercube_manager(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len) {
  hypercube_manager *manager = nullptr;
  pidcomm_hypercube_create(set, axes, axis_len, &manager);
  return manager;
}

int pidcomm_hypercube_destroy(hypercube_manager *manager) {
  return guarded([&] {
    if (manager != nullptr && manager->pending != 0)
      fail(PIDCOMM_ERR_BUSY, "the hypercube ", manager->executor.cube().to_string(),
           " has non-blocking calls that have not been waited for: ", manager->pending,
           "; pidcomm_wait comes before pidcomm_hypercube_destroy");
    delete manager;
  });
}

uint32_t pidcomm_pes(const hypercube_manager *manager) { return manager == nullptr ? 0 : manager->executor.cube().pes; }

struct dpu_set_t pidcomm_pe_set(const hypercube_manager *manager, uint32_t pe) {
  struct dpu_set_t set = {};
  guarded([&] {
    require_pe(manager, pe);
    set = dpu_set_from_dpu(manager->executor.placement().dpus[pe]);
  });
  return set;
}

int pidcomm_pe_location(const hypercube_manager *manager, uint32_t pe, uint32_t *rank, uint32_t *chip, uint32_t *bank) {
  return guarded([&] {
    require_pe(manager, pe);
    require(rank, "rank");
    require(chip, "chip");
    require(bank, "bank");
    const PlacedEg &eg = manager->executor.placement().egs[pe / kLanes];
    *rank = eg.rank;
    *chip = pe % kLanes;
    *bank = eg.bank;
  });
}

int pidcomm_coords(const hypercube_manager *manager, uint32_t pe, uint32_t *coords) {
  return guarded([&] {
    require_pe(manager, pe);
    require(coords, "coords");
    const Hypercube &cube = manager->executor.cube();
    for (uint32_t axis = 0; axis < cube.axes.size(); ++axis) coords[axis] = cube.coordinate(pe, axis);
  });
}

int pidcomm_group_of(const hypercube_manager *manager, const char *mask, uint32_t pe, uint32_t *group) {
  return guarded([&] {
    require_pe(manager, pe);
    require(group, "group");
    *group = Grouping::of(manager->executor.cube(), mask).group_of(pe);
  });
}

int pidcomm_member_of(const hypercube_manager *manager, const char *mask, uint32_t pe, uint32_t *member) {
  return guarded([&] {
    require_pe(manager, pe);
    require(member, "member");
    *member = Grouping::of(manager->executor.cube(), mask).member_of(pe);
  });
}

int pidcomm_groups(const hypercube_manager *manager, const char *mask, uint32_t *groups, uint32_t *group_pes) {
  return guarded([&] {
    require(manager, "manager");
    require(groups, "groups");
    require(group_pes, "group_pes");
    const Grouping grouping = Grouping::of(manager->executor.cube(), mask);
    *groups = grouping.groups;
    *group_pes = grouping.group_pes;
  });
}

// Writing and reading rows by PE is scatter and gather with every PE a group of its own.
int pidcomm_write(hypercube_manager *manager, size_t offset, size_t bytes, const void *host) {
  return pidcomm_scatter(manager, NoAxis(manager).mask, bytes, host, bytes * pidcomm_pes(manager), offset, 1);
}

int pidcomm_read(hypercube_manager *manager, size_t offset, size_t bytes, void *host) {
  return pidcomm_gather(manager, NoAxis(manager).mask, bytes, offset, host, bytes * pidcomm_pes(manager), 1);
}

int pidcomm_alltoall_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                        const pidcomm_options *options) {
  return run(manager, request::alltoall(mask, bytes, src, dst, type), options);
}
int pidcomm_reduce_scatter_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                              const pidcomm_options *options) {
  return run(manager, request::reduce_scatter(mask, bytes, src, dst, type, op), options);
}
int pidcomm_allreduce_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                         const pidcomm_options *options) {
  return run(manager, request::allreduce(mask, bytes, src, dst, type, op), options);
}
int pidcomm_allgather_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                         const pidcomm_options *options) {
  return run(manager, request::allgather(mask, bytes, src, dst, type), options);
}
int pidcomm_scatter_ex(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst,
                       int type, const pidcomm_options *options) {
  return run(manager, request::scatter(mask, bytes, host, host_bytes, dst, type), options);
}
int pidcomm_gather_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type,
                      const pidcomm_options *options) {
  return run(manager, request::gather(mask, bytes, src, host, host_bytes, type), options);
}
int pidcomm_reduce_ex(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type,
                      int op, const pidcomm_options *options) {
  return run(manager, request::reduce(mask, bytes, src, host, host_bytes, type, op), options);
}
int pidcomm_broadcast_ex(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst,
                         int type, const pidcomm_options *options) {
  return run(manager, request::broadcast(mask, bytes, host, host_bytes, dst, type), options);
}

int pidcomm_alltoall(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type) {
  return pidcomm_alltoall_ex(manager, mask, bytes, src, dst, type, nullptr);
}
int pidcomm_reduce_scatter(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op) {
  return pidcomm_reduce_scatter_ex(manager, mask, bytes, src, dst, type, op, nullptr);
}
int pidcomm_allreduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op) {
  return pidcomm_allreduce_ex(manager, mask, bytes, src, dst, type, op, nullptr);
}
int pidcomm_allgather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type) {
  return pidcomm_allgather_ex(manager, mask, bytes, src, dst, type, nullptr);
}
int pidcomm_scatter(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst, int type) {
  return pidcomm_scatter_ex(manager, mask, bytes, host, host_bytes, dst, type, nullptr);
}
int pidcomm_gather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type) {
  return pidcomm_gather_ex(manager, mask, bytes, src, host, host_bytes, type, nullptr);
}
int pidcomm_reduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type,
                   int op) {
  return pidcomm_reduce_ex(manager, mask, bytes, src, host, host_bytes, type, op, nullptr);
}
int pidcomm_broadcast(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst,
                      int type) {
  return pidcomm_broadcast_ex(manager, mask, bytes, host, host_bytes, dst, type, nullptr);
}

int pidcomm_run(hypercube_manager *manager, const pidcomm_request *request, const pidcomm_options *options, pidcomm_trace *trace) {
  return guarded([&] {
    pidcomm_trace own;
    if (trace != nullptr) *trace = {};
    require(manager, "manager");
    require(request, "request");
    manager->executor.run(*request, options, trace == nullptr ? own : *trace);
  });
}

int pidcomm_irun(hypercube_manager *manager, const pidcomm_request *request, const pidcomm_options *options, pidcomm_pending **pending) {
  return guarded([&] {
    require(pending, "pending");
    *pending = nullptr;
    require(manager, "manager");
    require(request, "request");
    auto call = std::make_unique<pidcomm_pending>(pidcomm_pending{manager, {}});
    call->end = manager->executor.start(*request, options);
    ++manager->pending;
    *pending = call.release();
  });
}

int pidcomm_ialltoall(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                      pidcomm_pending **pending) {
  return irun(manager, request::alltoall(mask, bytes, src, dst, type), pending);
}
int pidcomm_ireduce_scatter(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                            pidcomm_pending **pending) {
  return irun(manager, request::reduce_scatter(mask, bytes, src, dst, type, op), pending);
}
int pidcomm_iallreduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type, int op,
                       pidcomm_pending **pending) {
  return irun(manager, request::allreduce(mask, bytes, src, dst, type, op), pending);
}
int pidcomm_iallgather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, size_t dst, int type,
                       pidcomm_pending **pending) {
  return irun(manager, request::allgather(mask, bytes, src, dst, type), pending);
}
int pidcomm_iscatter(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst, int type,
                     pidcomm_pending **pending) {
  return irun(manager, request::scatter(mask, bytes, host, host_bytes, dst, type), pending);
}
int pidcomm_igather(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type,
                    pidcomm_pending **pending) {
  return irun(manager, request::gather(mask, bytes, src, host, host_bytes, type), pending);
}
int pidcomm_ireduce(hypercube_manager *manager, const char *mask, size_t bytes, size_t src, void *host, size_t host_bytes, int type, int op,
                    pidcomm_pending **pending) {
  return irun(manager, request::reduce(mask, bytes, src, host, host_bytes, type, op), pending);
}
int pidcomm_ibroadcast(hypercube_manager *manager, const char *mask, size_t bytes, const void *host, size_t host_bytes, size_t dst,
                       int type, pidcomm_pending **pending) {
  return irun(manager, request::broadcast(mask, bytes, host, host_bytes, dst, type), pending);
}

int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace) {
  return guarded([&] {
    if (trace != nullptr) *trace = {};
    require(pending, "pending");
    const pidcomm_trace done = end_of(pending);
    if (trace != nullptr) *trace = done;
  });
}

int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace) {
  return guarded([&] {
    if (trace != nullptr) *trace = {};
    require(pending, "pending");
    require(is_done, "is_done");
    *is_done = *pending == nullptr || (*pending)->end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    if (!*is_done) return;
    const pidcomm_trace done = end_of(pending);
    if (trace != nullptr) *trace = done;
  });
}

int pidcomm_plan_json(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options, int expand,
                      char *json, size_t capacity, size_t *length) {
  return guarded([&] {
    require(request, "request");
    require(length, "length");
    if (capacity != 0) require(json, "json");
    const Hypercube cube = Hypercube::of(lengths_of(axes, axis_len));
    const std::string text = to_json(plan_on(current_machine, cube, *request, resolve(options), 0, false), expand != 0);
    *length = text.size();
    if (capacity == 0) return;
    const std::size_t copied = std::min(text.size(), capacity - 1);
    std::memcpy(json, text.data(), copied);
    json[copied] = '\0';
  });
}

int pidcomm_machine_builtin(size_t index, const char **name, pidcomm_machine *machine) {
  return guarded([&] {
    require(name, "name");
    require(machine, "machine");
    std::tie(*name, *machine) = builtin_machine(index);
  });
}

int pidcomm_predict(uint32_t axes, const uint32_t *axis_len, const pidcomm_request *request, const pidcomm_options *options,
                    const pidcomm_machine *machine, pidcomm_prediction *prediction) {
  return guarded([&] {
    require(request, "request");
    require(prediction, "prediction");
    const pidcomm_machine on = machine == nullptr ? current_machine() : *machine;
    if (machine != nullptr) check_machine(on);
    const Hypercube cube = Hypercube::of(lengths_of(axes, axis_len));
    *prediction = price(plan_on([&] { return on; }, cube, *request, resolve_for(on, options), 0, false), on);
  });
}

int pidcomm_use_machine(const pidcomm_machine *machine) {
  return guarded([&] { use_machine(machine); });
}

int pidcomm_stream_limit(hypercube_manager *manager, int copy_order, size_t bytes_read, size_t bytes_written, size_t src, size_t dst,
                         const pidcomm_options *options, double *seconds, uint64_t *bytes_moved) {
  return guarded([&] {
    require(manager, "manager");
    require(seconds, "seconds");
    require(bytes_moved, "bytes_moved");
    *seconds = manager->executor.stream_limit(copy_order, bytes_read, bytes_written, src, dst, options);
    *bytes_moved = uint64_t{bytes_read + bytes_written} * (manager->executor.cube().pes / kLanes * kLanes);
  });
}

}  // extern "C"
