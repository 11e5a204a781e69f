/// The oracle: the eight collectives, written from their definitions with plain loops.
///
/// It shares only the names and codes in <pidcomm/tables.h> with the library, so a mistake goes unseen only if both make it.
/// Vocabulary (PE, lane, entangled group EG, group, member, block, window) as in pidcomm.h.
///
/// Payloads are rows: row i starts at byte i * row_bytes. PE rows are in PE order (p = 8 * EG + lane), host rows in group order.
/// `rows_before` and `rows_after` return the number and size of a collective's rows on either side.
///
/// Floating point: results equal the documented order of the `tile` technique bit by bit (see `expected`): compile without -ffast-math and
/// with -ffp-contract=off. In reductions, NaNs compare equal whatever their payload; movement compares bits.
///
/// Threads: calls on large payloads use all CPUs; results do not depend on it. Functions throw std::invalid_argument for a problem or a
/// size that has no meaning.
#pragma once

#include <pidcomm/tables.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace verify {

/// Codes of tables.h: kALLTOALL, kREDUCE_SCATTER, ..., kINT32, ..., kSUM, ... (pasted, so that a macro called MIN does no harm).
#define VERIFY_ROW(ENUM, code, ...) k##ENUM = code,
enum Collective : int { PIDCOMM_COLLECTIVES(VERIFY_ROW) };
enum Type : int { PIDCOMM_TYPES(VERIFY_ROW) };
enum Op : int { PIDCOMM_OPS(VERIFY_ROW) };
#undef VERIFY_ROW

/// One collective on one hypercube.
struct Problem {
  int collective = 0;                   ///< code of PIDCOMM_COLLECTIVES
  std::vector<std::uint32_t> axis_len;  ///< first axis fastest
  std::string mask;                     ///< one '0' or '1' per axis
  std::size_t bytes = 0;                ///< per PE, as in pidcomm.h
  int type = 0;                         ///< code of PIDCOMM_TYPES
  int op = 0;                           ///< code of PIDCOMM_OPS; ignored by collectives that take none
};

/// Coordinates of PE `pe`: pe = x + len_x * (y + len_y * (z + ...)).
std::vector<std::uint32_t> coordinates(const std::vector<std::uint32_t> &axis_len, std::uint32_t pe);

/// The groups of PEs under an axis mask.
struct Groups {
  std::uint32_t pes = 0;              ///< product of the axis lengths
  std::uint32_t count = 0;            ///< number of groups
  std::uint32_t group_pes = 0;        ///< N
  std::vector<std::uint32_t> group;   ///< group of each PE: its unselected coordinates, first unselected axis fastest
  std::vector<std::uint32_t> member;  ///< member index of each PE: its selected coordinates, first selected axis fastest
  std::vector<std::uint32_t> pe_of;   ///< pe_of[group * N + member]

  std::span<const std::uint32_t> members(std::uint32_t of_group) const {
    return {pe_of.data() + std::size_t{of_group} * group_pes, group_pes};
  }
};
Groups groups_of(const std::vector<std::uint32_t> &axis_len, const std::string &mask);

struct Rows {
  std::size_t count = 0;
  std::size_t row_bytes = 0;
  bool at_pes = false;  ///< PE rows, else host rows
  std::size_t bytes() const { return count * row_bytes; }
};
Rows rows_before(const Problem &problem);
Rows rows_after(const Problem &problem);

/// Bytes of an element of a type code. Throws for unknown codes.
std::size_t element_bytes(int type);
bool is_float(int type);
/// Does the operator exist for the type? (and, or, xor: no floats.)
bool is_defined(int op, int type);

/// The result of `problem` on `before` (rows_before(problem).bytes() bytes).
///
/// Reductions combine a group's members lane by lane (lane = pe mod 8): within a lane the EGs (pe div 8) ascending, left to right; then
/// the group's lanes, ascending, pairwise: ((0+1)+(2+3))+((4+5)+(6+7)). Integers wrap. min and max propagate NaN and order -0 below +0.
std::vector<std::uint8_t> expected(const Problem &problem, std::span<const std::uint8_t> before);
/// The same into memory of the caller, rows_after(problem).bytes() bytes, not overlapping `before`.
void expected(const Problem &problem, std::span<const std::uint8_t> before, std::span<std::uint8_t> after);

/// Number of wrong elements and, if any, a sentence about the first in row order.
struct Verdict {
  std::uint64_t wrong = 0;
  std::string first;
};

/// expected() and compare() at once, without memory for the expected rows: for large payloads.
Verdict check(const Problem &problem, std::span<const std::uint8_t> before, std::span<const std::uint8_t> got);

/// Compares rows element by element. Bits must be equal, except that with nan_equal (reductions) NaNs of a floating-point type equal
/// each other. `row_name` is "PE", "host row" or another name of a row.
Verdict compare(int type, std::size_t row_bytes, std::span<const std::uint8_t> got, std::span<const std::uint8_t> want,
                bool nan_equal = false, const char *row_name = "PE");

}  // namespace verify
