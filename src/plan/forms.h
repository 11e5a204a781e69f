// The forms of a plan: how the bytes travel. Each holds what only it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/geometry.h"
#include "plan/sweep.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// PE-assisted reordering: in every part of 2^k blocks of a PE whose lane has index c, block j of the output is block (c + j) mod 2^k of
/// the input, or (c - j) mod 2^k if `backwards`. from == to: in place, always backwards, so that blocks change places in pairs.
struct Reorder {
  uint64_t from = 0, to = 0;  // absolute MRAM bytes
  uint64_t block_bytes = 0, parts = 0;
  uint32_t lane_mask = 0, k = 0;
  bool backwards = false;

  uint64_t bytes() const { return parts * block_bytes << k; }
};

/// The steps of the PID-Comm paper that a technique takes, and what PEs do for them before the host pass and after it.
struct PeSteps {
  int taken = 0;  // PIDCOMM_STEP bits
  std::optional<Reorder> before, after;
  uint64_t pass_src = 0;       // absolute MRAM byte that the host pass reads from: the source, or PE scratch
  uint64_t scratch_bytes = 0;  // PE scratch, at the start of which is pass_src; 0: none is needed

  bool reorders() const { return before || after; }
};

/// `tile` on a shape with a lane split.
struct TileForm {
  static constexpr const char *kPath = "tile";
  Sweep sweep;
};

/// `tile` on every other shape. Entangled groups that share groups form a cluster; for a chunk of words a thread loads every line of
/// the cluster once into host order (a slab of rows), combines if the collective reduces, and composes every destination line whole.
/// Rows are PEs (or groups, if the collective reduces); block `member` of a row if the source has blocks per member, else its only one.
struct GeneralForm {
  static constexpr const char *kPath = "general";
  uint32_t cluster_egs = 0;  // the largest cluster
  uint64_t chunk_words = 0;  // words of a block per slab
  uint64_t slab_bytes = 0;   // per thread
};

/// The paper's techniques. Without in-register modulation the input goes through host memory on its way.
struct PaperForm {
  static constexpr const char *kPath = "paper";
  PeSteps pes;
  std::optional<Sweep> to_host_memory;
  Sweep sweep;
};

/// What `ring` and `tree` share, which reduce by steps from member to member: what each_sweep makes the sweeps of every round from.
/// Members of one entangled group come first, then, one after the other, the loops over the members' entangled groups.
struct MemberSteps {
  static constexpr const char *kPath = "member_steps";
  LaneSplit split;          // neighbouring loops over members joined
  uint64_t slot_bytes = 0;  // ring: of a slot; tree: of the vector
  bool copies = false;      // the first round copies the source to the destination
  uint32_t rounds = 0;
  uint64_t lines_read = 0, lines_written = 0;

  uint64_t bytes_read() const { return lines_read * kLineBytes; }
  uint64_t bytes_written() const { return lines_written * kLineBytes; }
};

/// Each lane's vector is 2^k slots, reordered by the PEs as for the paper's techniques. A slot goes from lane to lane of the group and is
/// combined on the way: slot 0 ends as the block that is the lane's own. M entangled groups do the same with M chunks of it, in 2 (M - 1)
/// rounds: in each, every one sends a chunk to the next, which combines, and later copies it. Slot 0 then goes round the lanes.
struct RingForm : MemberSteps {
  static constexpr const char *kTopology = "ring";
  PeSteps pes;
};

/// Lanes with a bit set go into their partners without it, lowest bit first; then entangled group m + 2^t into m, for every m that 2^(t+1)
/// divides. The result goes back the same way.
struct TreeForm : MemberSteps {
  static constexpr const char *kTopology = "tree";
};

/// What goes through the SDK: its transfers of a source row from every PE, work of the host on the rows, transfers of results to every PE.
/// If either side is at the host and nothing is combined, one transfer between PEs and the caller's host rows is all.
struct SdkForm {
  static constexpr const char *kPath = "sdk";
  bool has_host_work = false;      // without it the fields below are 0
  bool has_result_per_pe = false;  // if not, there is one result per group
  uint64_t result_row_bytes = 0;
  uint64_t source_bytes = 0, result_bytes = 0;  // of all rows
  uint64_t staged_bytes = 0;                    // of the rows that are not the caller's
  uint64_t row_pieces = 0;                      // of a source row, each of them copied or combined by itself
  uint64_t units = 0;                           // that threads share: pieces of result rows, or PEs
};

/// What `conventional` reduces is cut into pieces that stay in a core's cache.
inline constexpr uint64_t kPieceBytes = 16384;

using Form = std::variant<TileForm, GeneralForm, PaperForm, RingForm, TreeForm, SdkForm>;

}  // namespace pidcomm
