// Shapes, techniques and cases of the collectives, and checks of their traces.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "every_collective.h"
#include "machine.h"

namespace collective_cases {

using machine::Axes;
using machine::Bytes;
using machine::Case;
using machine::DpuSet;
using machine::Grid;
using machine::Hypercube;
using verify::Fill;

/// Shapes for which `tile` transposes lanes in registers; together they select every number and
/// position of lane bits.
inline const std::vector<Axes> kFastShapes = {{8, 4},  {4, 8}, {2, 4, 4},  {2, 2, 2, 4},
                                              {16, 3}, {4, 6}, {8, 5},     {1, 8, 4},
                                              {64},    {24},   {2, 1, 12}, {2, 2, 6}};
/// Shapes without a lane split, some with a last entangled group of fewer than 8 PEs.
inline const std::vector<Axes> kGeneralShapes = {
    {3, 5}, {5, 7}, {12, 4}, {3, 8}, {6, 4}, {7}, {5, 3, 2}, {10, 10}, {12, 16}, {1}, {2, 3, 1}};

inline const std::vector<int> kBothPolicies = {machine::kDefaultCoherence,
                                               PIDCOMM_COHERENCE_HARDWARE};

/// A row of PIDCOMM_TECHNIQUES.
struct Technique {
  int code;
  std::string path;
  int steps;
  unsigned collectives;
  bool needs_lane_split;

  bool is_for(int collective) const { return (collectives >> collective & 1) != 0; }
};
inline const std::vector<Technique> kTechniques = {
#define TECHNIQUE_ROW(ENUM, code, name, path, steps, collectives, needs_lane_split, ...) \
  {code, #path, steps, collectives, needs_lane_split != 0},
    PIDCOMM_TECHNIQUES(TECHNIQUE_ROW)
#undef TECHNIQUE_ROW
};

inline const Technique &technique_of(int code) {
  return *std::find_if(kTechniques.begin(), kTechniques.end(),
                       [code](const Technique &technique) { return technique.code == code; });
}

/// All techniques except `left_out`.
inline std::vector<int> techniques_without(const std::set<int> &left_out) {
  std::vector<int> codes;
  for (const Technique &technique : kTechniques)
    if (!left_out.contains(technique.code)) codes.push_back(technique.code);
  return codes;
}

/// The techniques that run the collective on the shape.
inline std::vector<int> techniques_for(int collective, const Axes &axis_len) {
  std::vector<int> codes;
  for (const Technique &technique : kTechniques)
    if (technique.is_for(collective) && (machine::is_fast(axis_len) || !technique.needs_lane_split))
      codes.push_back(technique.code);
  return codes;
}

/// The steps of the paper that a technique takes in a collective.
inline int steps_taken(int technique, int collective) {
  return machine::row_of(collective).steps & technique_of(technique).steps;
}

/// Does the library run a host pass? Otherwise the SDK transfers everything.
inline bool has_host_pass(int technique, int collective) {
  const std::string &path = technique_of(technique).path;
  if (path == "sdk" || path == "baseline") return false;
  return technique_of(technique).steps == 0 || steps_taken(technique, collective) != 0;
}

/// Do the PEs reorder blocks? Only if a group has several PEs in one entangled group.
inline bool reorders(int technique, int collective, const Axes &axis_len, const std::string &mask) {
  if ((steps_taken(technique, collective) & PIDCOMM_STEP_PR) == 0) return false;
  std::uint32_t stride = 1;
  for (std::size_t axis = 0; axis < axis_len.size(); stride *= axis_len[axis++])
    if (mask[axis] == '1' && axis_len[axis] > 1 && stride < 8) return true;
  return false;
}

struct Element {
  int type, op;
};

/// Every element type with every operator that is defined for it.
inline std::vector<Element> elements() {
  std::vector<Element> all;
  std::vector<int> types;
#define TYPE_ROW(ENUM, code, ...) types.push_back(code);
  PIDCOMM_TYPES(TYPE_ROW)
#undef TYPE_ROW
#define OP_ROW(ENUM, code, ...) \
  for (int type : types)        \
    if (verify::is_defined(code, type)) all.push_back({type, code});
  PIDCOMM_OPS(OP_ROW)
#undef OP_ROW
  return all;
}

inline std::size_t pes_of(const Axes &axis_len) {
  std::size_t pes = 1;
  for (std::uint32_t len : axis_len) pes *= len;
  return pes;
}

inline std::uint32_t ranks_for(const Axes &axis_len) {
  return static_cast<std::uint32_t>((pes_of(axis_len) + 63) / 64);
}

inline bool can_be_in_place(int collective) {
  return machine::row_of(collective).can_be_in_place();
}

/// The `bytes` of a call whose blocks have `block_bytes`; a collective without blocks counts as one
/// block.
inline std::size_t bytes_for_blocks(int collective, std::uint32_t group_pes,
                                    std::size_t block_bytes) {
  return machine::row_of(collective).bytes_are_blocks() ? group_pes * block_bytes : block_bytes;
}

/// A case with the fill that suits its type and operator.
inline Case make_case(int collective, const Axes &axis_len, const std::string &mask,
                      std::size_t bytes, Element element, std::uint64_t seed) {
  Case c;
  c.problem = {collective, axis_len, mask, bytes, element.type, element.op};
  c.fill = verify::fill_for(c.takes_op(), element.type, element.op);
  c.seed = seed;
  return c;
}

inline bool is_cut_by_lanes(int collective) {
  const machine::Row row = machine::row_of(collective);
  return row.takes_op && !row.bytes_are_blocks();
}

/// Sets the technique. If PEs reorder blocks, sets the scratch and rounds a vector that they cut up
/// to whole blocks.
inline void use_technique(Case &c, int technique, std::size_t scratch_offset) {
  c.options.technique = technique;
  if (c.problem.bytes == 0 ||
      !reorders(technique, c.problem.collective, c.problem.axis_len, c.problem.mask))
    return;
  if (is_cut_by_lanes(c.problem.collective)) c.problem.bytes = (c.problem.bytes + 63) / 64 * 64;
  c.options.scratch_offset = scratch_offset;
}

/// Places the destination window: in place, or 1 to 11 words of 8 bytes behind the source window.
inline void place(Case &c, std::size_t src, bool is_in_place) {
  c.src = src;
  c.dst =
      is_in_place ? src : src + verify::rows_before(c.problem).row_bytes + 8 * (1 + c.seed % 11);
}

inline void check_number(const Case &c, const char *field, std::uint64_t got, std::uint64_t low,
                         std::uint64_t high) {
  if (got < low || got > high)
    machine::fail(std::string(field) + " is " + std::to_string(got) + ", not " +
                  std::to_string(low) + " [" + machine::describe(c) + "]");
}
inline void check_number(const Case &c, const char *field, std::uint64_t got, std::uint64_t want) {
  check_number(c, field, got, want, want);
}

/// Checks the audit counts of tile on a fast shape: every line of the windows once.
inline void check_lines(const Case &c, const pidcomm_trace &, const pidcomm_audit &audit) {
  const std::size_t egs = pes_of(c.problem.axis_len) / 8;
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  const std::uint64_t lines_in = in.at_pes ? egs * in.row_bytes / 8 : 0,
                      lines_out = out.at_pes ? egs * out.row_bytes / 8 : 0;
  check_number(c, "lines_loaded", audit.lines_loaded, lines_in);
  check_number(c, "distinct_lines_loaded", audit.distinct_lines_loaded, lines_in);
  check_number(c, "max_loads_of_a_line", audit.max_loads_of_a_line, lines_in != 0);
  check_number(c, "lines_stored", audit.lines_stored, lines_out);
  check_number(c, "distinct_lines_stored", audit.distinct_lines_stored, lines_out);
  check_number(c, "max_stores_of_a_line", audit.max_stores_of_a_line, lines_out != 0);
  check_number(c, "lines_outside", audit.lines_outside, 0);
  if (c.options.coherence != PIDCOMM_COHERENCE_HARDWARE)
    return check_number(c, "lines_flushed", audit.lines_flushed, 0);
  check_number(c, "loads_unflushed", audit.loads_unflushed, 0);
  check_number(c, "lines_flushed", audit.lines_flushed, lines_in, UINT64_MAX);
}

inline void check_bytes_moved(const Case &c, const pidcomm_trace &trace) {
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  check_number(c, "mram_bytes_read", trace.mram_bytes_read, in.at_pes ? in.bytes() : 0);
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, out.at_pes ? out.bytes() : 0);
  check_number(c, "host_bytes_read", trace.host_bytes_read, in.at_pes ? 0 : in.bytes());
  check_number(c, "host_bytes_written", trace.host_bytes_written, out.at_pes ? 0 : out.bytes());
}

/// Checks the audit counts of ring and tree, which load and store a line many times.
inline void check_member_step_lines(const Case &c, const pidcomm_trace &trace,
                                    const pidcomm_audit &audit) {
  check_number(c, "mram_bytes_read", trace.mram_bytes_read, 64 * audit.lines_loaded);
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, 64 * audit.lines_stored);
  check_number(c, "lines_outside", audit.lines_outside, 0);
  if (c.options.coherence == PIDCOMM_COHERENCE_HARDWARE)
    check_number(c, "loads_unflushed", audit.loads_unflushed, 0);
}

/// Checks the audit counts of tile on shapes without a lane split. Lines are stored once. Lines are
/// loaded once, or again from the second-level cache: with less than 1 MiB of other lines between
/// two loads. If the last entangled group has fewer than 8 PEs, its lines are loaded before they
/// are stored.
inline void check_section_lines(const Case &c, const pidcomm_trace &trace,
                                const pidcomm_audit &audit) {
  const verify::Rows out = verify::rows_after(c.problem);
  const std::uint64_t lines_out =
      out.at_pes ? (pes_of(c.problem.axis_len) + 7) / 8 * (out.row_bytes / 8) : 0;
  const bool is_in_place = c.src == c.dst && out.at_pes;
  check_number(c, "mram_bytes_read", trace.mram_bytes_read,
               64 * (is_in_place ? audit.lines_loaded : audit.distinct_lines_loaded));
  check_number(c, "mram_bytes_written", trace.mram_bytes_written, 64 * audit.lines_stored);
  if (c.options.threads == 1 && !is_in_place)
    check_number(c, "longest_reload", audit.longest_reload, 0, (1 << 20) / 64);
  check_number(c, "lines_outside", audit.lines_outside, 0);
  check_number(c, "lines_stored", audit.lines_stored, lines_out);
  check_number(c, "max_stores_of_a_line", audit.max_stores_of_a_line, lines_out != 0);
  if (c.options.coherence == PIDCOMM_COHERENCE_HARDWARE)
    check_number(c, "loads_unflushed", audit.loads_unflushed, 0);
}

/// Launches of a collective whose blocks PEs reorder: one before the host pass if it reads blocks,
/// one after it if it writes blocks.
inline int launches(int collective) {
  const machine::Row row = machine::row_of(collective);
  const bool before = row.blocks_before || row.takes_op;
  const bool after = row.at_pes_after && !(row.takes_op && row.blocks_before);
  return before + after;
}

/// Checks the trace and the audit counts of a case against the claims of its technique.
inline void check_claims(const Case &c, const pidcomm_trace &trace, const pidcomm_audit &audit) {
  const int technique = c.options.technique, collective = c.problem.collective;
  const bool has_launches =
      c.problem.bytes != 0 && reorders(technique, collective, c.problem.axis_len, c.problem.mask);
  check_number(c, "pe_launches", trace.pe_launches, has_launches ? launches(collective) : 0);
  check_number(c, "pe_cycles", trace.pe_cycles, has_launches, has_launches ? UINT64_MAX : 0);
  if ((trace.pe_seconds > 0) != has_launches) machine::fail("pe_seconds does not fit pe_cycles");
  if (!has_host_pass(technique, collective)) return;
  const std::string &path = technique_of(technique).path;
  const bool has_member_steps = path == "ring" || path == "tree";
  const bool is_general = !has_member_steps && !machine::is_fast(c.problem.axis_len);
  if (!has_member_steps && !is_general) check_bytes_moved(c, trace);
  if (c.options.isa == PIDCOMM_ISA_AUDIT)
    (has_member_steps ? check_member_step_lines
     : is_general     ? check_section_lines
                      : check_lines)(c, trace, audit);
}

}  // namespace collective_cases
