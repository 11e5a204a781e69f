// The forms of a plan, which define how the bytes travel. Each form has only the fields that it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/geometry.h"
#include "plan/sweep.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// PE-assisted reordering. A PE's window consists of parts of 2^k blocks. If the PE's lane has index c, block j of an output part is block
/// (c + j) mod 2^k of the input part, or block (c - j) mod 2^k if `backwards`. If from == to, the PEs reorder in place, always backwards,
/// so that blocks swap in pairs.
struct Reorder {
  uint64_t from = 0, to = 0;  // absolute MRAM bytes
  uint64_t block_bytes = 0, parts = 0;
  uint32_t lane_mask = 0, k = 0;
  bool backwards = false;

  uint64_t bytes() const { return parts * block_bytes << k; }
};

/// The steps of the PID-Comm paper that a technique uses, and the work of the PEs before and after the host pass.
struct PeSteps {
  int taken = 0;  // PIDCOMM_STEP bits
  std::optional<Reorder> before, after;
  uint64_t pass_src = 0;       // absolute MRAM byte from which the host pass reads: the source, or PE scratch
  uint64_t scratch_bytes = 0;  // size of the PE scratch, which starts at pass_src; 0: not needed

  bool reorders() const { return before || after; }
};

/// The form of `tile` on a shape with a lane split.
struct TileForm {
  static constexpr const char *kPath = "tile";
  Sweep sweep;
};

/// The form of `tile` on a shape without a lane split. Entangled groups that share groups form a cluster. For each chunk of words, a thread
/// loads every line of the cluster once and turns the lines into rows in host order, which form a slab. If the collective reduces, the
/// thread combines rows. Then it composes and stores complete destination lines. A slab has one row per PE, or one row per group if the
/// collective reduces. If the source has a block for each member, so does a row; else a row is one block.
struct GeneralForm {
  static constexpr const char *kPath = "general";
  uint32_t cluster_egs = 0;  // entangled groups of the largest cluster
  uint64_t chunk_words = 0;  // words of each block that a slab holds
  uint64_t slab_bytes = 0;   // bytes of a slab; each thread has one slab
};

/// The form of the paper's techniques. Without in-register modulation, the host first copies the input to host memory.
struct PaperForm {
  static constexpr const char *kPath = "paper";
  PeSteps pes;
  std::optional<Sweep> to_host_memory;
  Sweep sweep;
};

/// The common part of `ring` and `tree`, which send data from member to member. each_sweep makes the sweeps of every round from it: first
/// the rounds between members of one entangled group, then the rounds between entangled groups, one loop after the other.
struct MemberSteps {
  static constexpr const char *kPath = "member_steps";
  LaneSplit split;          // adjacent loops over members are joined
  uint64_t slot_bytes = 0;  // ring: bytes of a slot; tree: bytes of the vector
  bool copies = false;      // the first round copies the source to the destination
  uint32_t rounds = 0;
  uint64_t lines_read = 0, lines_written = 0;

  uint64_t bytes_read() const { return lines_read * kLineBytes; }
  uint64_t bytes_written() const { return lines_written * kLineBytes; }
};

/// The PEs reorder each lane's vector into 2^k slots, as in the paper's techniques. From the last slot down, slot s moves one lane on and
/// is combined with slot s - 1; at the end, slot 0 is the lane's reduced block. Then M entangled groups do the same with M chunks of slot
/// 0, in 2 (M - 1) rounds. In every round, each entangled group sends a chunk to the next group, which combines it (in the first M - 1
/// rounds) or copies it (in the others). Finally slot 0 moves around the lanes.
struct RingForm : MemberSteps {
  static constexpr const char *kTopology = "ring";
  PeSteps pes;
};

/// For each selected lane bit, lowest first, every lane with the bit set is combined into the lane without it. Then, for t = 0, 1, ...,
/// entangled group m + 2^t is combined into group m if 2^(t+1) divides m. The result is copied back along the same path.
struct TreeForm : MemberSteps {
  static constexpr const char *kTopology = "tree";
};

/// The form of `conventional`, which uses transfers of the SDK. The SDK reads a source row from every PE, the host works on the rows, and
/// the SDK writes a result row to every PE. If the input or output is in host rows and the collective does not reduce, one transfer between
/// the PEs and the caller's rows suffices.
struct SdkForm {
  static constexpr const char *kPath = "sdk";
  bool has_host_work = false;      // if false, the fields below are 0
  bool has_result_per_pe = false;  // if false, there is one result per group
  uint64_t result_row_bytes = 0;
  uint64_t source_bytes = 0, result_bytes = 0;  // bytes of all rows
  uint64_t staged_bytes = 0;                    // bytes of rows in the library's buffer
  uint64_t row_pieces = 0;                      // pieces of a source row; the host copies or combines one piece at a time
  uint64_t units = 0;                           // units of work that threads share: pieces of result rows, or PEs
};

/// `conventional` reduces in pieces of this size, which stay in a core's cache.
inline constexpr uint64_t kPieceBytes = 16384;

using Form = std::variant<TileForm, GeneralForm, PaperForm, RingForm, TreeForm, SdkForm>;

}  // namespace pidcomm
