// The forms of a plan. A form defines how the bytes travel.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/geometry.h"
#include "plan/fold.h"
#include "plan/sweep.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// PE-assisted reordering. A PE's window consists of parts of 2^k blocks. If the PE's lane has
/// index c, block j of an output part is block (c + j) mod 2^k of the input part, or block (c - j)
/// mod 2^k if `backwards`. If from == to, the PEs reorder in place, always backwards, so that
/// blocks are swapped in pairs.
struct Reorder {
  uint64_t from = 0, to = 0;  // absolute MRAM bytes
  uint64_t block_bytes = 0, parts = 0;
  uint32_t lane_mask = 0, k = 0;
  bool backwards = false;

  uint64_t bytes() const { return parts * block_bytes << k; }
};

/// The steps of the PID-Comm paper that a technique uses, and the work of the PEs before and after
/// the host pass.
struct PeSteps {
  int taken = 0;  // PIDCOMM_STEP bits
  std::optional<Reorder> before, after;
  uint64_t pass_src =
      0;  // absolute MRAM byte from which the host pass reads: the source, or PE scratch
  uint64_t scratch_bytes =
      0;  // bytes of the PE scratch, which starts at pass_src; 0 if the plan needs no scratch

  bool reorders() const { return before || after; }
};

/// The form of `tile`.
struct TileForm {
  static constexpr const char *kPath = "tile";
  Sweep sweep;
};

/// The form of the paper's techniques with in-register modulation.
struct PaperForm {
  static constexpr const char *kPath = "paper";
  PeSteps pes;
  Sweep sweep;
};

/// The common part of `ring` and `tree`, which send data from member to member. each_sweep makes
/// the sweeps of every round from MemberSteps: first the rounds between members of one entangled
/// group, then the rounds between entangled groups, for one loop over members after another.
struct MemberSteps {
  static constexpr const char *kPath = "member_steps";
  Split split;
  uint64_t slot_bytes = 0;  // for `ring`: bytes of a slot; for `tree`: bytes of a member's vector
  bool copies = false;      // the first round copies the source to the destination
  uint32_t rounds = 0;
  uint64_t lines_read = 0, lines_written = 0;

  uint64_t bytes_read() const { return lines_read * kLineBytes; }
  uint64_t bytes_written() const { return lines_written * kLineBytes; }
};

/// The PEs reorder each lane's vector into 2^k slots, as in the paper's techniques. From the last
/// slot down to slot 1, slot s moves to the next lane and is combined there with slot s - 1; at the
/// end, slot 0 is the lane's reduced block. Then the M entangled groups of the members exchange M
/// chunks of slot 0, in 2 (M - 1) rounds. In every round, each entangled group sends a chunk to the
/// next entangled group. The receiver combines the chunk with its own chunk (in the first M - 1
/// rounds) or copies the chunk (in the last M - 1 rounds). Finally, slot 0 of each lane moves to
/// all lanes of the group, from one lane to the next.
struct RingForm : MemberSteps {
  static constexpr const char *kTopology = "ring";
  PeSteps pes;
};

/// For each selected lane bit, lowest first, every lane with the bit set is combined into the lane
/// whose number differs only in this bit. Then, for t = 0, 1, ..., entangled group m + 2^t is
/// combined into entangled group m if 2^(t+1) divides m. At the end, the result is copied along the
/// same path in the opposite direction.
struct TreeForm : MemberSteps {
  static constexpr const char *kTopology = "tree";
};

/// The form of the messages of pidcomm_sendrecv: Plan::messages has the lines that move.
struct MessageForm {
  static constexpr const char *kPath = "messages";
};

/// The form of folds. A unit of work is a chunk of words of a set. A thread loads the lines of the
/// chunk into rows, batch by batch, combines the rows, and stores the result as lines.
struct FoldForm {
  static constexpr const char *kPath = "fold";
  std::vector<FoldSet> sets;
  uint32_t batch_egs = 0, groups = 0;  // the largest numbers of a batch and of a set
  uint32_t result_rows = 0;            // rows of results that a thread keeps
  uint32_t chunk_words = 0, chunks = 0;
};

/// The form of `conventional`, `baseline` and `pr`, which use transfers of the SDK. The SDK reads a
/// source row from every PE, the host works on the rows, and the SDK writes a result row to every
/// PE. If the input or output is in host rows and the collective does not reduce, `conventional`
/// needs only one transfer between the PEs and the caller's rows.
///
/// If PEs reorder blocks (`pr`), a row consists of slots. The host moves or combines slot s of the
/// lane with index c as slot s of the lane with index c + s (mod `lanes`), so PEs that have equal
/// results need a row for each lane index.
struct SdkForm {
  static constexpr const char *kPath = "sdk";
  PeSteps pes;
  bool broadcasts = false;  // if the hypercube has all PEs of the set, the SDK broadcasts one row
  bool has_host_work = false;         // if false, the later fields have their defaults
  bool is_scalar = false;             // the host combines with the instruction set `scalar`
  bool has_result_per_pe = false;     // if false, there are rows_per_group result rows per group
  uint32_t lane_mask = 0, lanes = 1;  // with PE reordering: as Sweep::lane_mask, and 2^k
  uint32_t rows_per_group = 1;
  uint32_t slots = 1;  // of a source row
  uint64_t result_row_bytes = 0;
  uint64_t source_bytes = 0,
           result_bytes = 0;   // total bytes of the source rows and of the result rows
  uint64_t partial_bytes = 0;  // of a fold: bytes of partial results of a thread
  uint64_t staged_bytes = 0;   // bytes of rows and partial results in the library's buffer
  uint64_t slot_bytes = 0, slot_pieces = 0;  // of a reduction: bytes and pieces of a slot
  uint64_t piece_bytes = 0;  // of a reduction: bytes that the host combines at a time
  uint64_t row_pieces =
      0;  // number of pieces of a source row; the host copies or combines one piece at a time
  uint64_t units = 0;  // number of units of work that threads share: a piece of a result row, a
                       // block of a result row that several PEs share, or a PE

  uint32_t low() const { return lanes - 1; }
};

/// `conventional` reduces rows in pieces of this many bytes, so that a piece stays in the cache of
/// a core.
inline constexpr uint64_t kPieceBytes = 16384;

using Form = std::variant<TileForm, PaperForm, RingForm, TreeForm, MessageForm, FoldForm, SdkForm>;

}  // namespace pidcomm
