// An emulated machine, a DPU set and a hypercube on it, for tests of the C API from outside.
//
// MRAM is written and read through dpu.h alone (dpu_prepare_xfer, dpu_push_xfer), never through the
// library under test. Checks include the memory that a collective must not change: zones around the
// windows, windows it only reads, PEs of the set outside the hypercube. One file, because
// the run of a case needs all of these.
#pragma once

#include <dpu.h>
#include <dpu_management.h>
#include <dpuemu.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <pidcomm/request.hpp>
#include <string>
#include <vector>

#include "../../verify/fill.h"
#include "../../verify/oracle.h"
#include "effort.h"
#include "harness.h"
#include "pidcomm/audit.h"
#include "sdk_access.h"

namespace machine {

using Axes = std::vector<std::uint32_t>;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMramBytes = DPUEMU_MRAM_BYTES;
constexpr std::size_t kGuardBytes = 64;

/// The default coherence policy. The SDK's rank access treats emulated DIMMs as real ones and
/// refuses `none`.
inline const int kDefaultCoherence =
    is_over_sdk_access() ? PIDCOMM_COHERENCE_HARDWARE : PIDCOMM_COHERENCE_NONE;

[[noreturn]] inline void fail(const std::string &what) { throw harness::Failure(what); }

/// Checks that a call returned an error, and that the error sentence contains `part`.
inline void check_refused(int got, int status, const std::string &part) {
  CHECK_EQ(got, status);
  if (std::string(pidcomm_last_error()).find(part) == std::string::npos)
    fail("the error does not contain '" + part + "': " + pidcomm_last_error());
}

inline void dpu_ok(dpu_error_t error, const char *call) {
  if (error != DPU_OK) fail(std::string(call) + ": dpu error " + std::to_string(error));
}
#define DPU_OK_OR_FAIL(call) ::machine::dpu_ok((call), #call)

/// Runs all cases of a grid, or the first and a sample of the others. Fails at the end with the
/// first few failures, so that one wrong case does not hide the pattern of the others.
class Grid {
 public:
  explicit Grid(std::string name) : name_(std::move(name)) {}

  template <class Body>
  void run(const Body &body) {
    const std::uint64_t number = cases_++;
    if (effort::is_small() && number != 0 && verify::mix(number) % effort::kSmallPart != 0) return;
    ++ran_;
    try {
      body();
    } catch (const std::exception &error) {
      if (++failures_ <= 5) report_ += std::string("\n    ") + error.what();
    }
  }

  void finish() const {
    if (ran_ == 0) fail(name_ + ": no case ran");
    if (failures_ != 0)
      fail(name_ + ": " + std::to_string(failures_) + " of " + std::to_string(ran_) +
           " cases failed:" + report_);
  }

 private:
  std::string name_, report_;
  std::uint64_t cases_ = 0, ran_ = 0, failures_ = 0;
};

struct Place {
  std::uint32_t rank, chip, bank;
};

/// Replaces the machine by one of `ranks` ranks whose DPUs at `disabled` are disabled. No set may
/// be allocated.
inline void power_up(std::uint32_t ranks, const std::vector<Place> &disabled = {}) {
  dpuemu_machine_t description{};
  description.ranks = ranks;
  description.channels = ranks;
  description.ranks_per_channel = 1;
  description.hugepages = 2;  // small windows far apart: do not back them with 2 MiB each
  std::vector<std::uint32_t> list;
  for (const Place &place : disabled) list.push_back(place.rank * 64 + place.chip * 8 + place.bank);
  DPU_OK_OR_FAIL(
      dpuemu_configure(&description, list.data(), static_cast<std::uint32_t>(list.size())));
}

/// An allocated DPU set, freed at the end.
class DpuSet {
 public:
  static DpuSet of_ranks(std::uint32_t ranks) {
    DpuSet set;
    DPU_OK_OR_FAIL(dpu_alloc_ranks(ranks, nullptr, &set.set_));
    set.is_allocated_ = true;
    return set;
  }
  static DpuSet of_dpus(std::uint32_t dpus) {
    DpuSet set;
    DPU_OK_OR_FAIL(dpu_alloc(dpus, nullptr, &set.set_));
    set.is_allocated_ = true;
    return set;
  }
  DpuSet(DpuSet &&other) noexcept : set_(other.set_), is_allocated_(other.is_allocated_) {
    other.is_allocated_ = false;
  }
  DpuSet &operator=(DpuSet &&) = delete;
  ~DpuSet() {
    if (is_allocated_) dpu_free(set_);
  }
  void free() {
    DPU_OK_OR_FAIL(dpu_free(set_));
    is_allocated_ = false;
  }
  struct dpu_set_t get() const { return set_; }
  struct dpu_rank_t *rank(std::uint32_t index) const { return set_.list.ranks[index]; }

 private:
  DpuSet() = default;
  struct dpu_set_t set_{};
  bool is_allocated_ = false;
};

/// The MRAM of some DPUs of a set, one row each. The set must outlive it.
class Rows {
 public:
  Rows(struct dpu_set_t set, std::vector<struct dpu_set_t> dpus)
      : set_(set), dpus_(std::move(dpus)) {}

  std::size_t rows() const { return dpus_.size(); }
  struct dpu_set_t dpu(std::size_t row) const { return dpus_[row]; }

  void write(std::size_t offset, std::size_t row_bytes, Bytes &rows) const {
    transfer(DPU_XFER_TO_DPU, offset, row_bytes, rows);
  }
  Bytes read(std::size_t offset, std::size_t row_bytes) const {
    Bytes rows(row_bytes * this->rows());
    transfer(DPU_XFER_FROM_DPU, offset, row_bytes, rows);
    return rows;
  }

 protected:
  struct dpu_set_t set_;
  std::vector<struct dpu_set_t> dpus_;

 private:
  void transfer(dpu_xfer_t direction, std::size_t offset, std::size_t row_bytes,
                Bytes &rows) const {
    if (row_bytes == 0) return;
    for (std::size_t row = 0; row < dpus_.size(); ++row)
      DPU_OK_OR_FAIL(dpu_prepare_xfer(dpus_[row], rows.data() + row * row_bytes));
    DPU_OK_OR_FAIL(dpu_push_xfer(set_, direction, DPU_MRAM_HEAP_POINTER_NAME,
                                 static_cast<std::uint32_t>(offset), row_bytes, DPU_XFER_DEFAULT));
  }
};

/// A hypercube on a set, which must outlive it. Rows: the PEs in PE order, then the set's other
/// enabled DPUs.
class Hypercube : public Rows {
 public:
  /// order: 0 or PIDCOMM_FOREACH_ORDER.
  Hypercube(const DpuSet &set, Axes axis_len, std::uint32_t first = 0, std::uint32_t order = 0)
      : Rows(set.get(), {}), axis_len_(std::move(axis_len)) {
    const int status = pidcomm_hypercube_create_at(
        set_, first, static_cast<std::uint32_t>(axis_len_.size()) | order, axis_len_.data(),
        &cube_);
    if (status != PIDCOMM_OK)
      fail(std::string("pidcomm_hypercube_create_at: ") + pidcomm_last_error());
    struct dpu_set_t dpu;
    std::uint32_t pe;
    PIDCOMM_FOREACH_PE(cube_, dpu, pe) dpus_.push_back(dpu);
    pes_ = dpus_.size();
    DPU_FOREACH(set_, dpu) {
      const auto is_same = [&dpu](const struct dpu_set_t &other) {
        return dpu_from_set(other) == dpu_from_set(dpu);
      };
      if (std::none_of(dpus_.begin(), dpus_.begin() + static_cast<std::ptrdiff_t>(pes_), is_same))
        dpus_.push_back(dpu);
    }
  }
  Hypercube(const Hypercube &) = delete;
  Hypercube &operator=(const Hypercube &) = delete;
  ~Hypercube() { pidcomm_hypercube_destroy(cube_); }

  pidcomm_hypercube *get() const { return cube_; }
  const Axes &axis_len() const { return axis_len_; }
  std::size_t pes() const { return pes_; }

 private:
  Axes axis_len_;
  pidcomm_hypercube *cube_ = nullptr;
  std::size_t pes_ = 0;
};

/// A part of the MRAM of all rows of a hypercube.
struct Segment {
  std::size_t offset, row_bytes;
  Bytes rows;

  std::uint8_t *at(std::size_t row, std::size_t mram_offset) {
    return rows.data() + row * row_bytes + (mram_offset - offset);
  }
  bool holds(std::size_t mram_offset, std::size_t bytes) const {
    return offset <= mram_offset && mram_offset + bytes <= offset + row_bytes;
  }
};

/// The MRAM in and around some windows, as read or as expected.
class Picture {
 public:
  /// Adds the window and the guard zones on both sides of it; windows close to each other become
  /// one segment.
  void cover(std::size_t offset, std::size_t bytes) {
    std::size_t begin = offset - std::min(offset, kGuardBytes);
    std::size_t end = std::min(kMramBytes, offset + bytes + kGuardBytes);
    std::vector<Segment> rest;
    for (const Segment &segment : segments_) {
      if (end < segment.offset || segment.offset + segment.row_bytes < begin) {
        rest.push_back(segment);
        continue;
      }
      begin = std::min(begin, segment.offset);
      end = std::max(end, segment.offset + segment.row_bytes);
    }
    rest.push_back({begin, end - begin, {}});
    segments_ = std::move(rest);
  }

  void poison(const Hypercube &cube, std::uint64_t seed) {
    for (Segment &segment : segments_) {
      segment.rows.resize(segment.row_bytes * cube.rows());
      verify::fill_distinct(seed ^ segment.offset, segment.row_bytes, segment.rows);
    }
  }

  /// Rows of a window for the PEs of the hypercube.
  void put(const Hypercube &cube, std::size_t offset, std::size_t row_bytes, const Bytes &rows) {
    if (row_bytes == 0) return;
    Segment &segment = holder(offset, row_bytes);
    for (std::size_t pe = 0; pe < cube.pes(); ++pe)
      std::memcpy(segment.at(pe, offset), &rows[pe * row_bytes], row_bytes);
  }
  Bytes get(const Hypercube &cube, std::size_t offset, std::size_t row_bytes) {
    Bytes rows(cube.pes() * row_bytes);
    if (row_bytes == 0) return rows;
    Segment &segment = holder(offset, row_bytes);
    for (std::size_t pe = 0; pe < cube.pes(); ++pe)
      std::memcpy(&rows[pe * row_bytes], segment.at(pe, offset), row_bytes);
    return rows;
  }

  void write(const Hypercube &cube) {
    for (Segment &segment : segments_) cube.write(segment.offset, segment.row_bytes, segment.rows);
  }
  Picture read(const Hypercube &cube) const {
    Picture now;
    for (const Segment &segment : segments_)
      now.segments_.push_back(
          {segment.offset, segment.row_bytes, cube.read(segment.offset, segment.row_bytes)});
    return now;
  }

  /// "" or a sentence about the first byte that differs from `want`.
  std::string difference(const Hypercube &cube, const Picture &want) const {
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment &mine = segments_[i], &other = want.segments_[i];
      if (mine.rows == other.rows) continue;  // sanitizers make the loop over bytes slow
      const auto [a, b] = std::mismatch(mine.rows.begin(), mine.rows.end(), other.rows.begin());
      const std::size_t at = static_cast<std::size_t>(a - mine.rows.begin()),
                        row = at / mine.row_bytes;
      return "MRAM byte " + std::to_string(mine.offset + at % mine.row_bytes) + " of " +
             (row < cube.pes()
                  ? "PE " + std::to_string(row)
                  : "DPU " + std::to_string(row - cube.pes()) + " outside the hypercube") +
             " changed from " + std::to_string(*b) + " to " + std::to_string(*a);
    }
    return "";
  }

 private:
  Segment &holder(std::size_t offset, std::size_t bytes) {
    for (Segment &segment : segments_)
      if (segment.holds(offset, bytes)) return segment;
    fail("the test uses a window that it did not cover");
  }
  std::vector<Segment> segments_;
};

/// A row of PIDCOMM_COLLECTIVES.
struct Row {
  int code;
  bool takes_op, at_pes_before, at_pes_after, blocks_before, blocks_after;
  int steps;

  bool can_be_in_place() const { return at_pes_before && at_pes_after; }
  /// Is `bytes` of a call N blocks? Otherwise it is one.
  bool bytes_are_blocks() const {
    return (at_pes_before && blocks_before) || (at_pes_after && blocks_after);
  }
};

/// The row of an unknown code: every column is false.
inline Row row_of(int collective) {
#define MACHINE_ROW(ENUM, code, name, op, before, after, blocks_before, blocks_after, steps, ...) \
  if (collective == code)                                                                         \
    return {code, op != 0, before != 0, after != 0, blocks_before != 0, blocks_after != 0, steps};
  PIDCOMM_COLLECTIVES(MACHINE_ROW)
#undef MACHINE_ROW
  return {};
}

/// One collective with everything that decides its result.
struct Case {
  verify::Problem problem;
  std::size_t src = 0, dst = 0;
  pidcomm_options options = {sizeof(pidcomm_options), PIDCOMM_TECHNIQUE_TILE, 0, 0, 0, 0};
  verify::Fill fill = verify::Fill::kDistinct;
  std::uint64_t seed = 1;
  bool names_mram_bytes = false;  // whether the request has windows at MRAM bytes, as of buffers

  bool takes_op() const { return row_of(problem.collective).takes_op; }
  std::size_t window(std::size_t offset) const {
    return names_mram_bytes ? PIDCOMM_MRAM_WINDOW + offset : offset;
  }
};

inline std::string name_or_code(const char *name, int code) {
  return name != nullptr ? name : std::to_string(code);
}

inline std::string describe(const Case &c) {
  std::string text = name_or_code(pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, c.problem.collective),
                                  c.problem.collective) +
                     " {";
  for (std::uint32_t len : c.problem.axis_len) {
    if (text.back() != '{') text += ',';
    text += std::to_string(len);
  }
  text += "} mask " + c.problem.mask + " bytes " + std::to_string(c.problem.bytes) + " src " +
          std::to_string(c.src) + " dst " + std::to_string(c.dst) +
          (c.names_mram_bytes ? " as MRAM bytes" : "") + " type " +
          name_or_code(pidcomm_name(PIDCOMM_TABLE_TYPE, c.problem.type), c.problem.type) + " op " +
          name_or_code(pidcomm_name(PIDCOMM_TABLE_OP, c.problem.op), c.problem.op) + " technique " +
          name_or_code(pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, c.options.technique),
                       c.options.technique) +
          " isa " + name_or_code(pidcomm_name(PIDCOMM_TABLE_ISA, c.options.isa), c.options.isa) +
          " threads " + std::to_string(c.options.threads) + " coherence " +
          name_or_code(pidcomm_name(PIDCOMM_TABLE_COHERENCE, c.options.coherence),
                       c.options.coherence) +
          " fill " + std::to_string(static_cast<int>(c.fill)) + " seed " + std::to_string(c.seed);
  return text;
}

/// A host buffer of exactly `bytes` bytes, aligned to the element only, between guards.
class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, std::size_t element_bytes, std::uint64_t seed)
      : bytes_(bytes),
        begin_(kGuardBytes + element_bytes * (seed % 8)),
        memory_(bytes + 3 * kGuardBytes) {
    verify::fill_distinct(seed, memory_.size(), memory_);
    before_ = memory_;
  }
  std::uint8_t *data() { return memory_.data() + begin_; }
  std::size_t size() const { return bytes_; }
  void put(const Bytes &content) {
    std::copy(content.begin(), content.end(), data());
    before_ = memory_;
  }
  Bytes content() const { return {memory_.data() + begin_, memory_.data() + begin_ + bytes_}; }
  bool is_unchanged() const { return memory_ == before_; }
  bool is_unchanged_around() const {
    return std::equal(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_),
                      before_.begin()) &&
           std::equal(memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_), memory_.end(),
                      before_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_));
  }

 private:
  std::size_t bytes_, begin_;
  Bytes memory_, before_;
};

inline pidcomm_request request_of(const Case &c, HostBuffer &host) {
  return {.size = sizeof(pidcomm_request),
          .collective = c.problem.collective,
          .mask = c.problem.mask.c_str(),
          .bytes = c.problem.bytes,
          .src = c.window(c.src),
          .dst = c.window(c.dst),
          .host = host.data(),
          .host_bytes = host.size(),
          .type = c.problem.type,
          .op = c.problem.op};
}

/// The function that runs a case: pidcomm_run or an equivalent.
using Run = int (*)(pidcomm_hypercube *, const pidcomm_request *, const pidcomm_options *,
                    pidcomm_trace *);

/// Runs the case on new data. Fails unless the result is right and no other byte has changed.
/// Returns the trace.
inline pidcomm_trace run_case(const Hypercube &cube, const Case &c, Run run = pidcomm_run) {
  const auto check = [&c](bool is_right, const std::string &what) {
    if (!is_right) fail(what + " [" + describe(c) + "]");
  };
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  Bytes before(in.bytes());
  if (c.takes_op())
    verify::fill(c.fill, c.problem.type, c.problem.op, c.seed, in.row_bytes, before);
  else
    verify::fill_distinct(c.seed, in.row_bytes, before);

  const std::size_t scratch = c.options.scratch_offset;
  const bool can_change_scratch =
      scratch != 0 && scratch % 8 == 0 && scratch + in.row_bytes <= kMramBytes;
  Picture mram;
  if (in.at_pes) mram.cover(c.src, in.row_bytes);
  if (out.at_pes) mram.cover(c.dst, out.row_bytes);
  if (can_change_scratch) mram.cover(scratch, in.row_bytes);
  mram.poison(cube, ~c.seed);
  if (in.at_pes) mram.put(cube, c.src, in.row_bytes, before);
  mram.write(cube);
  HostBuffer host(in.at_pes ? (out.at_pes ? 0 : out.bytes()) : in.bytes(),
                  verify::element_bytes(c.problem.type), c.seed);
  if (!in.at_pes) host.put(before);

  const pidcomm_request request = request_of(c, host);
  pidcomm_trace trace{};
  const int status = run(cube.get(), &request, &c.options, &trace);
  check(status == PIDCOMM_OK, std::string("status ") +
                                  name_or_code(pidcomm_name(PIDCOMM_TABLE_STATUS, status), status) +
                                  ": " + pidcomm_last_error());
  check(pidcomm_last_error()[0] == 0, "last_error is not empty after success");

  Picture after = mram.read(cube);
  const Bytes got = out.at_pes ? after.get(cube, c.dst, out.row_bytes) : host.content();
  const verify::Verdict verdict = verify::check(c.problem, before, got);
  check(verdict.wrong == 0,
        std::to_string(verdict.wrong) + " wrong elements, first: " + verdict.first);
  if (out.at_pes) mram.put(cube, c.dst, out.row_bytes, got);
  if (can_change_scratch)  // but no byte beside it
    mram.put(cube, scratch, in.row_bytes, after.get(cube, scratch, in.row_bytes));
  const std::string difference = after.difference(cube, mram);
  check(difference.empty(), difference);
  check(out.at_pes ? host.is_unchanged() : host.is_unchanged_around(),
        "host memory outside the result changed");

  const int technique = c.options.technique;
  const bool chooses =
      technique == PIDCOMM_TECHNIQUE_AUTO || technique == PIDCOMM_TECHNIQUE_DEFAULT;
  check(chooses ? trace.technique != 0 : trace.technique == technique, "trace.technique");
  const bool is_scalar = c.options.technique == PIDCOMM_TECHNIQUE_BASELINE &&
                         row_of(c.problem.collective).takes_op && c.problem.bytes != 0 &&
                         pidcomm_isa_available(PIDCOMM_ISA_SCALAR);
  const int isa = is_scalar ? +PIDCOMM_ISA_SCALAR : c.options.isa;
  check(isa == PIDCOMM_ISA_DEFAULT ? trace.isa != 0 : trace.isa == isa,
        "trace.isa " + std::to_string(trace.isa));
  check(trace.threads >= 1 && (c.options.threads == 0 || trace.threads <= c.options.threads),
        "trace.threads " + std::to_string(trace.threads));
  check(trace.coherence == (c.options.coherence ? c.options.coherence : kDefaultCoherence),
        "trace.coherence");
  return trace;
}

/// The same as pidcomm_run through a non-blocking call, which a thread waits for or polls.
inline int start_and_wait(pidcomm_hypercube *cube, const pidcomm_request *request,
                          const pidcomm_options *options, pidcomm_trace *trace) {
  pidcomm_pending *pending = nullptr;
  const int status = pidcomm_irun(cube, request, options, &pending);
  return status == PIDCOMM_OK ? pidcomm_wait(&pending, trace) : status;
}

inline int start_and_poll(pidcomm_hypercube *cube, const pidcomm_request *request,
                          const pidcomm_options *options, pidcomm_trace *trace) {
  pidcomm_pending *pending = nullptr;
  int status = pidcomm_irun(cube, request, options, &pending);
  for (int is_done = 0; status == PIDCOMM_OK && !is_done;)
    status = pidcomm_test(&pending, &is_done, trace);
  return pending == nullptr ? status : +PIDCOMM_ERR_INTERNAL;
}

/// pidcomm_run without a trace.
inline int run(const Hypercube &cube, const pidcomm_request &request,
               const pidcomm_options &options) {
  return pidcomm_run(cube.get(), &request, &options, nullptr);
}

/// The audit counts of the last call.
inline pidcomm_audit audit_of(const Hypercube &cube) {
  pidcomm_audit audit{};
  if (pidcomm_audit_of(cube.get(), &audit) != PIDCOMM_OK) fail(pidcomm_last_error());
  return audit;
}

/// Every mask of a number of axes: "00", "10", "01", "11".
inline std::vector<std::string> masks_of(std::size_t axes) {
  std::vector<std::string> masks;
  for (std::size_t bits = 0; bits < (std::size_t{1} << axes); ++bits) {
    std::string mask;
    for (std::size_t axis = 0; axis < axes; ++axis) mask += bits >> axis & 1 ? '1' : '0';
    masks.push_back(mask);
  }
  return masks;
}

/// The instruction sets that this machine runs, audit included.
inline std::vector<int> available_isas() {
  std::vector<int> isas;
#define MACHINE_ROW(ENUM, code, ...) \
  if (pidcomm_isa_available(code)) isas.push_back(code);
  PIDCOMM_ISAS(MACHINE_ROW)
#undef MACHINE_ROW
  return isas;
}

/// Are the lanes of a group bits of the PE number (all axes except the last powers of two, whole
/// EGs)?
inline bool is_fast(const Axes &axis_len) {
  std::uint64_t pes = axis_len.back();
  for (std::size_t axis = 0; axis + 1 < axis_len.size(); ++axis) {
    if ((axis_len[axis] & (axis_len[axis] - 1)) != 0) return false;
    pes *= axis_len[axis];
  }
  return pes % 8 == 0;
}

}  // namespace machine
