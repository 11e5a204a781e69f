// The published artifact's collectives, carried out by the C API of pidcomm. Every call creates a
// hypercube on the manager's set, so no state outlives the set or the manager.
#include <pidcomm_artifact.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <pidcomm/request.hpp>
#include <pidcomm/sdk_error.hpp>
#include <string>
#include <vector>

#include "geometry.h"
#include "guarded.h"
#include "sdk.h"

std::string &pidcomm_artifact::last_error() {
  thread_local std::string sentence;
  return sentence;
}

namespace {

using namespace pidcomm_artifact;

constexpr std::size_t kWord = kWordBytes;
constexpr int kWordType = PIDCOMM_INT64;
constexpr std::size_t kStagingBytes = std::size_t{32} << 20;

/// Throws an error with the status that a function of the C API returned; `place` precedes the
/// error sentence.
void check(int status, const std::string &place = "") {
  if (status != PIDCOMM_OK)
    throw Error(static_cast<pidcomm_status>(status), place + pidcomm_last_error());
}

/// Throws ERR_SET or ERR_DEVICE unless error is DPU_OK. The sentence contains `doing` and the SDK's
/// sentence.
template <class... Parts>
void check_sdk(dpu_error_t error, const Parts &...doing) {
  if (error != DPU_OK)
    fail(error == DPU_ERR_INVALID_DPU_SET ? PIDCOMM_ERR_SET : PIDCOMM_ERR_DEVICE, doing..., ": ",
         pidcomm::sdk_error_text(error));
}

/// Returns the MRAM byte of offset 0 at a PE with this program: the end of the program's variables.
uint64_t heap_base_of(struct dpu_program_t *program) {
  if (program == nullptr) return 0;
  struct dpu_symbol_t heap;
  check_sdk(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap),
            "reading the MRAM heap base");
  return heap.address - kMramAddress;
}

/// Returns the MRAM byte of offset 0. Errors: ERR_DEVICE if PEs of the set have different values.
uint64_t heap_base_in(struct dpu_set_t set) {
  struct dpu_program_t *program = nullptr;
  uint64_t base = 0;
  uint32_t pes = 0;
  struct dpu_set_t dpu;
  DPU_FOREACH(set, dpu) {
    struct dpu_program_t *const own = dpu_get_program(dpu_from_set(dpu));
    if (pes++ != 0 && own == program) continue;
    const uint64_t own_base = heap_base_of(own);
    if (pes != 1 && own_base != base)
      fail(PIDCOMM_ERR_DEVICE, "the PEs disagree about the MRAM heap base: PE 0 says ", base,
           ", PE ", pes - 1, " says ", own_base,
           "; load the same program on every rank of the set");
    program = own;
    base = own_base;
  }
  return base;
}

/// The hypercube of one call, and its groups under the call's axis mask.
class Cube {
 public:
  Cube(const pidcomm_artifact_manager *manager, const char *comm) {
    require(manager, "manager");
    pidcomm_hypercube *made = nullptr;
    check(pidcomm_hypercube_create(manager->dpu_set, manager->dimension, manager->axis_len, &made));
    cube_.reset(made);
    check(pidcomm_groups(made, comm, &groups_, &group_pes_));
    mask_ = comm;
    x_ = manager->axis_len[0];
  }

  pidcomm_hypercube *get() const { return cube_.get(); }
  std::size_t pes() const { return pidcomm_pes(cube_.get()); }
  uint64_t heap_base() const { return heap_base_in(pidcomm_pe_set(get(), 0)); }
  uint32_t groups() const { return groups_; }
  uint32_t group_pes() const { return group_pes_; }
  bool selects_x() const { return mask_[0] == '1'; }
  const char *mask() const { return mask_.c_str(); }
  std::string mask_of_none() const { return std::string(mask_.size(), '0'); }

  uint32_t group_of(uint32_t pe) const {
    uint32_t group = 0;
    check(pidcomm_group_of(get(), mask(), pe, &group));
    return group;
  }
  uint32_t member_of(uint32_t pe) const {
    uint32_t member = 0;
    check(pidcomm_member_of(get(), mask(), pe, &member));
    return member;
  }

  void run(pidcomm_request request, const std::string &place = "") const {
    check(pidcomm_run(get(), &request, nullptr, nullptr), place);
  }

  void require_whole_egs() const {
    if (pes() % kLanes != 0)
      fail(PIDCOMM_ERR_SHAPE, "each host buffer is for 8 PEs; the number of PEs (", pes(),
           ") must be a multiple of 8");
  }
  void require_egs_along_x() const {
    if (x_ % kLanes != 0)
      fail(PIDCOMM_ERR_SHAPE, "each host buffer is for 8 PEs; the length of the first axis (", x_,
           ") must be a multiple of 8");
  }

 private:
  struct Destroy {
    void operator()(pidcomm_hypercube *cube) const { pidcomm_hypercube_destroy(cube); }
  };
  std::unique_ptr<pidcomm_hypercube, Destroy> cube_;
  uint32_t groups_ = 0, group_pes_ = 0, x_ = 0;
  std::string mask_;
};

int type_of(uint32_t size) {
  switch (size) {
    case 1:
      return PIDCOMM_INT8;
    case 2:
      return PIDCOMM_INT16;
    case 4:
      return PIDCOMM_INT32;
    case 8:
      return PIDCOMM_INT64;
    default:
      fail(PIDCOMM_ERR_TYPE, "size (", size,
           ") must be 1, 2, 4 or 8, the bytes of a signed integer");
  }
}

int op_of(uint32_t reduce_type) {
  constexpr std::array<int, 2> kOps = {PIDCOMM_SUM, PIDCOMM_MAX};
  if (reduce_type >= kOps.size())
    fail(PIDCOMM_ERR_OP, "reduce_type (", reduce_type, ") must be 0, the sum, or 1, the maximum");
  return kOps[reduce_type];
}

struct Window {
  std::size_t offset, bytes;

  bool overlaps(const Window &other) const {
    return offset <= other.offset ? other.offset - offset < bytes && other.bytes != 0
                                  : other.overlaps(*this);
  }
};

std::ostream &operator<<(std::ostream &out, const Window &window) {
  return out << '[' << window.offset << ", " << window.offset + window.bytes << ')';
}

/// Errors: ERR_WINDOW unless offset is a multiple of 8 and the window ends within MRAM. The error
/// sentence contains name (of the collective) and side (of the window). heap_base: MRAM byte of
/// offset 0.
void check_window(const char *name, const char *side, const Window &window, uint64_t heap_base) {
  const auto [offset, bytes] = window;
  if (offset % kWord != 0)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " offset ", offset, " is not a multiple of ", kWord);
  if (offset > kMramBytes || bytes > kMramBytes || heap_base + offset + bytes > kMramBytes)
    fail(PIDCOMM_ERR_WINDOW, name, ": ", side, " window of ", bytes, " bytes at offset ", offset,
         " from heap base ", heap_base, " ends past the ", kMramBytes, " bytes of MRAM");
}

/// Checks a window whose pieces are passed to the library one by one.
void require_window(int collective, const char *side, const Window &window, uint64_t heap_base) {
  const char *name = pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, collective);
  if (window.bytes % kWord != 0)
    fail(PIDCOMM_ERR_SIZE, name, ": bytes (", window.bytes, ") must be a multiple of ", kWord);
  check_window(name, side, window, heap_base);
}

/// Runs a collective from MRAM to MRAM. `buffer`: see pidcomm_artifact.h.
void move(const pidcomm_artifact_manager *manager, const char *comm, pidcomm_request request,
          std::optional<std::size_t> buffer) {
  const Cube cube(manager, comm);
  request.mask = cube.mask();
  const std::size_t block = request.bytes / cube.group_pes();
  const Window in{request.src, request.collective == PIDCOMM_ALLGATHER ? block : request.bytes};
  const Window out{request.dst,
                   request.collective == PIDCOMM_REDUCE_SCATTER ? block : request.bytes};
  if (in.offset == out.offset || !in.overlaps(out)) {
    cube.run(request);
    return;
  }
  if (!buffer)
    fail(PIDCOMM_ERR_WINDOW, "input ", in, " and output ", out, " overlap, and there is no buffer");
  // The artifact computes offsets in 32 bits: if start + buffer exceeds 2^32, or if buffer is
  // negative, the buffer is below start.
  if (const auto high = *buffer >> 32; high != 0 && high != UINT32_MAX)
    fail(PIDCOMM_ERR_WINDOW, "buffer (", *buffer, ") must be a number of 32 bits");
  const Window middle{static_cast<uint32_t>(in.offset + *buffer), out.bytes};
  if (middle.overlaps(in) || middle.overlaps(out))
    fail(PIDCOMM_ERR_WINDOW, "input ", in, " and output ", out, " overlap, so the buffer, start + ",
         *buffer, " = ", middle, ", must not overlap them");
  const char *name = pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, request.collective);
  const uint64_t heap_base = cube.heap_base();
  check_window(name, "buffer", middle, heap_base);
  check_window(name, "destination", out, heap_base);
  request.dst = middle.offset;
  cube.run(request);
  const std::string none = cube.mask_of_none();
  cube.run(
      pidcomm::request::alltoall(none.c_str(), out.bytes, middle.offset, out.offset, kWordType),
      "from the buffer to the output: ");
}

using Bytes = std::vector<uint8_t>;

void require_buffers(void *const *host, std::size_t count) {
  require(host, "host");
  for (std::size_t i = 0; i < count; ++i)
    if (host[i] == nullptr)
      fail(PIDCOMM_ERR_HOST_BUFFER, "host buffer ", i, " of ", count, " is null");
}

/// Calls body(first byte, bytes, staging) for each piece of rows of `bytes` bytes; staging has room
/// for this piece of every row. The last piece comes first: it ends at the end of the window, so
/// the library has checked the window's end before any byte moves.
template <class Body>
void in_pieces(std::size_t bytes, std::size_t rows, const Body &body) {
  const std::size_t piece = std::max(kWord, kStagingBytes / rows / kWord * kWord);
  Bytes staging(std::min(bytes, piece) * rows);
  std::size_t end = bytes;
  do {
    const std::size_t first = end <= piece ? 0 : (end - 1) / piece * piece;
    body(first, end - first, staging.data());
    end = first;
  } while (end != 0);
}

/// Copies words between rows of `row_bytes` bytes in staging and host buffers in which 8 lanes are
/// interleaved. Row r is lane r % 8 of buffer(r / 8), from byte `first` on.
template <class Buffer, class Copy>
void interleave(std::size_t rows, std::size_t first, std::size_t row_bytes, uint8_t *staging,
                const Buffer &buffer, const Copy &copy) {
  for (std::size_t row = 0; row < rows; ++row) {
    uint8_t *host =
        static_cast<uint8_t *>(buffer(row / kLanes)) + first * kLanes + row % kLanes * kWord;
    for (std::size_t byte = 0; byte < row_bytes; byte += kWord)
      copy(host + byte * kLanes, staging + row * row_bytes + byte);
  }
}

void copy_to_host(uint8_t *host, uint8_t *staging) { std::memcpy(host, staging, kWord); }
void copy_from_host(uint8_t *host, uint8_t *staging) { std::memcpy(staging, host, kWord); }

}  // namespace

extern "C" {

const char *pidcomm_artifact_last_error(void) { return last_error().c_str(); }

pidcomm_artifact_manager *pidcomm_artifact_init(struct dpu_set_t dpu_set, uint32_t dimension,
                                                const uint32_t *axis_len) {
  pidcomm_artifact_manager *made = nullptr;
  guarded([&] {
    pidcomm_hypercube *cube = nullptr;
    check(pidcomm_hypercube_create(dpu_set, dimension, axis_len,
                                   &cube));  // only to check the arguments
    pidcomm_hypercube_destroy(cube);
    made = static_cast<pidcomm_artifact_manager *>(
        std::malloc(sizeof *made + dimension * sizeof *axis_len));
    if (made == nullptr) throw std::bad_alloc();
    *made = {dpu_set, dimension, reinterpret_cast<uint32_t *>(made + 1)};
    std::copy_n(axis_len, dimension, made->axis_len);
  });
  return made;
}

int pidcomm_artifact_broadcast(const pidcomm_artifact_manager *manager, size_t total, size_t target,
                               const void *data) {
  return guarded([&] {
    require(manager, "manager");
    require(data, "data");
    struct dpu_set_t set = manager->dpu_set;
    require_window(PIDCOMM_BROADCAST, "destination", {target, total}, heap_base_in(set));
    if (total == 0) return;
    check_sdk(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, static_cast<uint32_t>(target), data,
                               total, DPU_XFER_DEFAULT),
              "broadcasting ", total, " bytes to offset ", target, " of every PE");
  });
}

int pidcomm_artifact_alltoall(const pidcomm_artifact_manager *manager, const char *comm,
                              size_t total, size_t start, size_t target, size_t buffer) {
  return guarded([&] {
    move(manager, comm, pidcomm::request::alltoall(comm, total, start, target, kWordType), buffer);
  });
}

int pidcomm_artifact_reduce_scatter(const pidcomm_artifact_manager *manager, const char *comm,
                                    size_t total, size_t start, size_t target, size_t buffer,
                                    uint32_t size) {
  return guarded([&] {
    move(manager, comm,
         pidcomm::request::reduce_scatter(comm, total, start, target, type_of(size), PIDCOMM_SUM),
         buffer);
  });
}

int pidcomm_artifact_all_reduce(const pidcomm_artifact_manager *manager, const char *comm,
                                size_t total, size_t start, size_t target, size_t buffer,
                                uint32_t size, uint32_t reduce_type) {
  return guarded([&] {
    move(manager, comm,
         pidcomm::request::allreduce(comm, total, start, target, type_of(size), op_of(reduce_type)),
         buffer);
  });
}

int pidcomm_artifact_all_reduce_unbuffered(const pidcomm_artifact_manager *manager,
                                           const char *comm, size_t total, size_t start,
                                           size_t target, uint32_t size, uint32_t reduce_type) {
  return guarded([&] {
    move(manager, comm,
         pidcomm::request::allreduce(comm, total, start, target, type_of(size), op_of(reduce_type)),
         std::nullopt);
  });
}

int pidcomm_artifact_allgather(const pidcomm_artifact_manager *manager, const char *comm,
                               size_t total, size_t start, size_t target, size_t buffer) {
  return guarded([&] {
    move(manager, comm, pidcomm::request::allgather(comm, total, start, target, kWordType), buffer);
  });
}

int pidcomm_artifact_gather(const pidcomm_artifact_manager *manager, const char *comm, size_t total,
                            size_t start, size_t, void **host) {
  return guarded([&] {
    const Cube cube(manager, comm);
    cube.require_whole_egs();
    require_window(PIDCOMM_GATHER, "source", {start, total}, cube.heap_base());
    require_buffers(host, cube.pes() / kLanes);
    const std::string none = cube.mask_of_none();
    in_pieces(total, cube.pes(), [&](std::size_t first, std::size_t bytes, uint8_t *rows) {
      cube.run(pidcomm::request::gather(none.c_str(), bytes, start + first, rows,
                                        cube.pes() * bytes, kWordType));
      interleave(
          cube.pes(), first, bytes, rows, [&](std::size_t eg) { return host[eg]; }, copy_to_host);
    });
  });
}

int pidcomm_artifact_scatter(const pidcomm_artifact_manager *manager, const char *comm,
                             size_t total, size_t start, size_t, void **host) {
  return guarded([&] {
    const Cube cube(manager, comm);
    cube.require_egs_along_x();
    require_window(PIDCOMM_SCATTER, "destination", {start, total}, cube.heap_base());
    require_buffers(host, cube.pes() / kLanes);
    // the index in `host` of each entangled group; its PEs share all coordinates except x
    std::vector<std::size_t> index(cube.pes() / kLanes);
    for (uint32_t eg = 0; eg < index.size(); ++eg) {
      const std::size_t group = cube.group_of(eg * kLanes), member = cube.member_of(eg * kLanes);
      index[eg] = cube.selects_x() ? group * (cube.group_pes() / kLanes) + member / kLanes
                                   : group / kLanes * cube.group_pes() + member;
    }
    const std::string none = cube.mask_of_none();
    in_pieces(total, cube.pes(), [&](std::size_t first, std::size_t bytes, uint8_t *rows) {
      interleave(
          cube.pes(), first, bytes, rows, [&](std::size_t eg) { return host[index[eg]]; },
          copy_from_host);
      cube.run(pidcomm::request::scatter(none.c_str(), bytes, rows, cube.pes() * bytes,
                                         start + first, kWordType));
    });
  });
}

int pidcomm_artifact_reduce(const pidcomm_artifact_manager *manager, const char *comm, size_t total,
                            size_t start, size_t, uint32_t size, void **host) {
  return guarded([&] {
    const Cube cube(manager, comm);
    const int type = type_of(size);
    cube.require_egs_along_x();
    require_window(PIDCOMM_REDUCE, "source", {start, total}, cube.heap_base());
    if (cube.selects_x() && total % (cube.group_pes() * kWord) != 0)
      fail(PIDCOMM_ERR_SIZE, "bytes (", total, ") must be a multiple of 8 for each of the ",
           cube.group_pes(), " PEs of a group");
    require_buffers(host, cube.selects_x() ? cube.groups() : cube.groups() / kLanes);
    const std::size_t block = std::max(kWord, total / cube.group_pes());
    in_pieces(total, cube.groups(), [&](std::size_t first, std::size_t bytes, uint8_t *rows) {
      cube.run(pidcomm::request::reduce(cube.mask(), bytes, start + first, rows,
                                        cube.groups() * bytes, type, PIDCOMM_SUM));
      if (!cube.selects_x()) {
        interleave(
            cube.groups(), first, bytes, rows, [&](std::size_t eg) { return host[eg]; },
            copy_to_host);
        return;
      }
      for (std::size_t group = 0; group < cube.groups(); ++group) {
        for (std::size_t byte = 0; byte < bytes; byte += kWord) {
          const std::size_t number = (first + byte) / block, inside = (first + byte) % block;
          const std::size_t to =
              number / kLanes * kLanes * block + inside * kLanes + number % kLanes * kWord;
          std::memcpy(static_cast<uint8_t *>(host[group]) + to, rows + group * bytes + byte, kWord);
        }
      }
    });
  });
}

}  // extern "C"
