// The functions of pidcomm.h, except pidcomm_plan_json, and of audit.h.
#include "capi/hypercube.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "base/sized.h"
#include "capi/environment.h"
#include "capi/guarded.h"
#include "capi/pending.h"
#include "capi/plans.h"
#include "exec/default_options.h"
#include "exec/device.h"
#include "exec/pe_reorder.h"
#include "exec/placement.h"
#include "line_kernels/kernels.h"
#include "pidcomm/audit.h"
#include "pidcomm/request.hpp"
#include "rank_access/rank_access.h"

namespace {

using namespace pidcomm;

void require_pe(const pidcomm_hypercube *cube, uint32_t pe) {
  require(cube, "cube");
  const uint32_t pes = cube->executor.cube().pes;
  if (pe >= pes)
    fail(PIDCOMM_ERR_ARGUMENT, "PE ", pe, " is out of range; the hypercube ",
         cube->executor.cube().to_string(), " has ", pes);
}

/// Returns the axis mask that selects no axis.
struct NoAxis {
  char mask[kMaxAxes + 1] = {};
  explicit NoAxis(const pidcomm_hypercube *cube) {
    if (cube != nullptr) std::memset(mask, '0', cube->executor.cube().axes.size());
  }
};

/// Refuses a non-blocking call that another process started before fork: the threads that end the
/// call are in that process.
void require_own_call(pidcomm_pending *const *pending) {
  require(pending, "pending");
  if (*pending != nullptr && (*pending)->process != getpid())
    fail(PIDCOMM_ERR_BUSY, "process ", getpid(), " cannot wait for a call that process ",
         (*pending)->process, " started before fork");
}

/// Releases a non-blocking call after the call has ended.
pidcomm_trace end_of(pidcomm_pending **pending) {
  const std::unique_ptr<pidcomm_pending> call(std::exchange(*pending, nullptr));
  if (call == nullptr) return {};
  call->end.wait();
  --*call->pending;
  return call->end.get();
}

}  // namespace

#define PIDCOMM_STRING(x) PIDCOMM_STRING_(x)
#define PIDCOMM_STRING_(x) #x
const char *pidcomm_version(void) {
  return PIDCOMM_STRING(PIDCOMM_VERSION_MAJOR) "." PIDCOMM_STRING(
      PIDCOMM_VERSION_MINOR) "." PIDCOMM_STRING(PIDCOMM_VERSION_PATCH);
}

const char *pidcomm_last_error(void) { return last_error::text(); }

const char *pidcomm_name(pidcomm_table table, int code) {
  constexpr const char *(*kNames[])(int) = {name_of_status,    name_of_collective, name_of_type,
                                            name_of_op,        name_of_technique,  name_of_isa,
                                            name_of_coherence, name_of_copy_order};
  static_assert(std::size(kNames) == PIDCOMM_TABLE_COPY_ORDER + 1);
  const std::size_t index = static_cast<std::size_t>(table);
  return index < std::size(kNames) ? kNames[index](code) : nullptr;
}

int pidcomm_isa_available(int isa) { return isa_available(isa) ? 1 : 0; }

int pidcomm_default_threads(int *is_ignored) {
  const DefaultThreads found = default_threads();
  if (is_ignored != nullptr) *is_ignored = found.is_variable_ignored ? 1 : 0;
  return found.threads;
}

int pidcomm_usable_pes(struct dpu_set_t set, pidcomm_usable_pe *pes, uint32_t capacity,
                       uint32_t *count) {
  return guarded([&] {
    require(count, "count");
    if (capacity != 0) require(pes, "pes");
    const Placement placement = Placement::largest(set);
    const auto usable = static_cast<uint32_t>(placement.dpus.size());
    for (uint32_t pe = 0; pe < std::min(capacity, usable); ++pe) {
      const PlacedEg eg = placement.eg_of(pe);
      pes[pe] = {dpu_set_from_dpu(placement.dpus[pe]), eg.rank, placement.lane_of(pe), eg.bank};
    }
    *count = usable;
  });
}

int pidcomm_program_replaced(struct dpu_set_t set, int *is_replaced) {
  return guarded([&] {
    require(is_replaced, "is_replaced");
    uint32_t pes = 0;
    check_device(dpu_get_nr_dpus(set, &pes), "reading the DPU set");
    bool is_found = false;
    struct dpu_set_t dpu;
    DPU_FOREACH(set, dpu) is_found = is_found || has_reorder_program(dpu_from_set(dpu));
    *is_replaced = is_found ? 1 : 0;
  });
}

int pidcomm_hypercube_create(struct dpu_set_t set, uint32_t axes, const uint32_t *axis_len,
                             pidcomm_hypercube **cube) {
  return pidcomm_hypercube_create_at(set, 0, axes, axis_len, cube);
}

int pidcomm_hypercube_create_at(struct dpu_set_t set, uint32_t first, uint32_t axes,
                                const uint32_t *axis_len, pidcomm_hypercube **cube) {
  return guarded([&] {
    require(cube, "cube");
    *cube = nullptr;
    apply_environment();
    *cube = new pidcomm_hypercube{Executor(set, first, cube_of(axes, axis_len), planner())};
  });
}

int pidcomm_hypercube_destroy(pidcomm_hypercube *cube) {
  return guarded([&] {
    if (cube != nullptr && cube->pending != 0)
      fail(PIDCOMM_ERR_BUSY, "the hypercube ", cube->executor.cube().to_string(),
           " has non-blocking calls that have not been waited for: ", cube->pending,
           "; call pidcomm_wait before pidcomm_hypercube_destroy");
    delete cube;
  });
}

uint32_t pidcomm_pes(const pidcomm_hypercube *cube) {
  return cube == nullptr ? 0 : cube->executor.cube().pes;
}

struct dpu_set_t pidcomm_pe_set(const pidcomm_hypercube *cube, uint32_t pe) {
  struct dpu_set_t set = {};
  guarded([&] {
    require_pe(cube, pe);
    set = dpu_set_from_dpu(cube->executor.placement().dpus[pe]);
  });
  return set;
}

int pidcomm_pe_location(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *rank, uint32_t *chip,
                        uint32_t *bank) {
  return guarded([&] {
    require_pe(cube, pe);
    require(rank, "rank");
    require(chip, "chip");
    require(bank, "bank");
    const Placement &placement = cube->executor.placement();
    const PlacedEg eg = placement.eg_of(pe);
    *rank = eg.rank;
    *chip = placement.lane_of(pe);
    *bank = eg.bank;
  });
}

int pidcomm_coords(const pidcomm_hypercube *cube, uint32_t pe, uint32_t *coords) {
  return guarded([&] {
    require_pe(cube, pe);
    require(coords, "coords");
    const Hypercube &shape = cube->executor.cube();
    for (uint32_t axis = 0; axis < shape.axes.size(); ++axis)
      coords[axis] = shape.coordinate(pe, axis);
  });
}

int pidcomm_group_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe,
                     uint32_t *group) {
  return guarded([&] {
    require_pe(cube, pe);
    require(group, "group");
    *group = Grouping::of(cube->executor.cube(), mask).group_of(pe);
  });
}

int pidcomm_member_of(const pidcomm_hypercube *cube, const char *mask, uint32_t pe,
                      uint32_t *member) {
  return guarded([&] {
    require_pe(cube, pe);
    require(member, "member");
    *member = Grouping::of(cube->executor.cube(), mask).member_of(pe);
  });
}

int pidcomm_groups(const pidcomm_hypercube *cube, const char *mask, uint32_t *groups,
                   uint32_t *group_pes) {
  return guarded([&] {
    require(cube, "cube");
    require(groups, "groups");
    require(group_pes, "group_pes");
    const Grouping grouping = Grouping::of(cube->executor.cube(), mask);
    *groups = grouping.groups;
    *group_pes = grouping.group_pes;
  });
}

// If the mask selects no axis, every PE is a group: scatter writes one row per PE, and gather reads
// one row per PE.
int pidcomm_write(pidcomm_hypercube *cube, size_t offset, size_t bytes, const void *host) {
  return pidcomm_scatter(cube, NoAxis(cube).mask, bytes, host, bytes * pidcomm_pes(cube), offset,
                         PIDCOMM_UINT8);
}

int pidcomm_read(pidcomm_hypercube *cube, size_t offset, size_t bytes, void *host) {
  return pidcomm_gather(cube, NoAxis(cube).mask, bytes, offset, host, bytes * pidcomm_pes(cube),
                        PIDCOMM_UINT8);
}

#define PIDCOMM_ROW(ENUM, code, name, op, before, after, ...)                           \
  int pidcomm_##name(pidcomm_hypercube *cube, PIDCOMM_PARAMETERS_##op##before##after) { \
    const pidcomm_request asked = request::name(PIDCOMM_ARGUMENTS_##op##before##after); \
    return pidcomm_run(cube, &asked, nullptr, nullptr);                                 \
  }
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

int pidcomm_run(pidcomm_hypercube *cube, const pidcomm_request *request,
                const pidcomm_options *options, pidcomm_trace *trace) {
  return guarded([&] {
    deliver_trace(trace, [&] {
      require(cube, "cube");
      const pidcomm_options given = received_options(options);
      pidcomm_trace done;
      cube->executor.run(received(request, "request"), &given, done);
      return done;
    });
  });
}

int pidcomm_symbol_window(pidcomm_hypercube *cube, const char *name, size_t offset, size_t bytes,
                          size_t *window) {
  return guarded([&] {
    require(cube, "cube");
    require(name, "name");
    require(window, "window");
    const struct dpu_symbol_t symbol = cube->executor.mram_variable(name);
    if (offset > symbol.size || bytes > symbol.size - offset)
      fail(PIDCOMM_ERR_WINDOW, "a window of ", bytes, " bytes at offset ", offset,
           " passes the end of variable ", name, ", which has ", symbol.size, " bytes");
    const uint64_t begin = symbol.address - kMramAddress + offset;
    if (begin % kWordBytes != 0)
      fail(PIDCOMM_ERR_WINDOW, "offset ", offset, " of variable ", name, " is MRAM byte ", begin,
           ", which is not a multiple of ", kWordBytes);
    *window = PIDCOMM_MRAM_WINDOW | begin;
  });
}

int pidcomm_fill_variables(pidcomm_hypercube *cube, const char *const *axis_names) {
  return guarded([&] {
    require(cube, "cube");
    constexpr const char *kNames[] = {PIDCOMM_AXIS_NAMES};
    static_assert(std::size(kNames) == kMaxAxes);
    std::vector<std::string> names;
    for (std::size_t axis = 0; axis < cube->executor.cube().axes.size(); ++axis) {
      const char *const name = (axis_names == nullptr ? kNames : axis_names)[axis];
      require(name, "a name in axis_names");
      if (std::find(names.begin(), names.end(), name) != names.end())
        fail(PIDCOMM_ERR_ARGUMENT, "two axes have the name ", name);
      names.push_back(name);
    }
    cube->executor.fill_variables(names);
  });
}

int pidcomm_validate(pidcomm_hypercube *cube, const pidcomm_request *request,
                     const pidcomm_options *options) {
  return guarded([&] {
    require(cube, "cube");
    const pidcomm_options given = received_options(options);
    cube->executor.validate(received(request, "request"), &given);
  });
}

int pidcomm_audit_of(pidcomm_hypercube *cube, pidcomm_audit *audit) {
  return guarded([&] {
    require(cube, "cube");
    require(audit, "audit");
    *audit = cube->executor.audit();
  });
}

int pidcomm_irun(pidcomm_hypercube *cube, const pidcomm_request *request,
                 const pidcomm_options *options, pidcomm_pending **pending) {
  return guarded([&] {
    require(pending, "pending");
    *pending = nullptr;
    require(cube, "cube");
    const pidcomm_options given = received_options(options);
    auto call = std::make_unique<pidcomm_pending>(pidcomm_pending{&cube->pending, {}, getpid()});
    call->end = cube->executor.start(received(request, "request"), &given);
    ++cube->pending;
    *pending = call.release();
  });
}

int pidcomm_wait(pidcomm_pending **pending, pidcomm_trace *trace) {
  return guarded([&] {
    deliver_trace(trace, [&] {
      require_own_call(pending);
      return end_of(pending);
    });
  });
}

int pidcomm_test(pidcomm_pending **pending, int *is_done, pidcomm_trace *trace) {
  return guarded([&] {
    deliver_trace(trace, [&] {
      require_own_call(pending);
      require(is_done, "is_done");
      *is_done = *pending == nullptr ||
                 (*pending)->end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      return *is_done ? end_of(pending) : pidcomm_trace{};
    });
  });
}

int pidcomm_sync(pidcomm_hypercube *cube) {
  return guarded([&] {
    require(cube, "cube");
    cube->executor.wait_for_calls();
  });
}

int pidcomm_stream_limit(pidcomm_hypercube *cube, int copy_order, size_t bytes_read,
                         size_t bytes_written, size_t src, size_t dst,
                         const pidcomm_options *options, double *seconds, uint64_t *bytes_moved) {
  return guarded([&] {
    require(cube, "cube");
    require(seconds, "seconds");
    require(bytes_moved, "bytes_moved");
    const pidcomm_options given = received_options(options);
    *seconds = cube->executor.stream_limit(copy_order, bytes_read, bytes_written, src, dst, &given);
    *bytes_moved =
        uint64_t{bytes_read + bytes_written} * (cube->executor.cube().pes / kLanes * kLanes);
  });
}
