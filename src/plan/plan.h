// A plan: what a collective will do, as a value. Immutable once made, printable, of a size that depends on the number of axes only.
//
// On a shape with a lane split the host pass is one sweep (`tile`, and the paper's techniques with in-register modulation) or two (`pr`):
// affine loop nests over items. An item reads some streams of lines (or host rows) and writes some; a stream starts at (entangled group,
// byte) = start of its side + sum over loops of step * index + its own place in the side's stream nest, and is `words` words long. The
// pass says what happens between load and store. The paper's techniques let the PEs reorder blocks before the host pass and after it.
// `ring` and `tree` are many small sweeps, made on the fly: see MemberSteps.
// `tile` on every other shape takes the general path: see GeneralForm. What goes through the SDK needs the grouping only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/options.h"
#include "plan/passes.h"
#include "plan/request.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// Where a side is. host: host rows. host_lines: lines in host order, in host memory of the library's own.
enum class Space { mram, host, host_lines };

/// One side of a collective, as its definition has it.
struct Extent {
  Space space;
  bool per_member;  // N blocks, else one
};

/// A nest of parallel streams of one item: stream (i0, i1, ...) starts egs * i and bytes * i further. Slowest first.
struct StreamLoop {
  uint32_t count, egs;
  uint64_t bytes;
};

struct Side {
  Space space = Space::mram;
  uint64_t offset = 0;              // mram: absolute MRAM byte; host: byte of the buffer; host_lines: byte of the window
  uint32_t eg = 0;                  // entangled group of the first item
  std::vector<StreamLoop> streams;  // slowest first
  uint32_t pair_banks = 1;          // output: 2 if the fastest loop is over the banks of a bank pair
};

/// A loop over items: one step moves the input by (in_egs, in_bytes) and the output by (out_egs, out_bytes).
struct Loop {
  std::string name;
  uint32_t count;
  uint32_t in_egs, out_egs;
  uint64_t in_bytes, out_bytes;
};

/// The affine form. Threads share `outer` x words; each runs `ordered` one after another on its words; `lockstep` loops run inside every
/// chunk of words, so that the banks of a pair, whose lines are neighbours, are visited together.
struct Sweep {
  Pass pass{};
  bool rotates = false;     // PEs have reordered, or will
  bool host_order = false;  // between load and store lines are in host order, else in PIM order
  uint32_t lane_mask = 0, k = 0;
  uint64_t lane_map = 0;                       // member_step, member_step_reduce: byte l is the lane that lane l takes from
  uint32_t round = 0;                          // path member_steps: sweeps of one round do not depend on each other
  std::vector<Loop> outer, ordered, lockstep;  // slowest first
  Side in, out;
  uint64_t words = 0;              // of every stream
  bool exchange = false;           // in-place alltoall: items (a, b) and (b, a) are one
  bool ordered_downwards = false;  // in-place allgather: item 0 goes last

  bool is_in_place() const { return in.space == Space::mram && out.space == Space::mram && in.offset == out.offset; }
};

/// Steps of a nest of loops, items of a sweep, and streams that an item has on one side.
uint64_t steps_of(const std::vector<Loop> &loops);
uint64_t items_of(const Sweep &sweep);
uint32_t streams_of(const Side &side);

/// PE-assisted reordering: in every part of 2^k blocks of a PE whose lane has index c, block j of the output is block (c + j) mod 2^k of
/// the input, or (c - j) mod 2^k if `backwards`. from == to: in place, always backwards, so that blocks change places in pairs.
struct Reorder {
  uint64_t from = 0, to = 0;  // absolute MRAM bytes
  uint64_t block_bytes = 0, parts = 0;
  uint32_t lane_mask = 0, k = 0;
  bool backwards = false;

  uint64_t bytes() const { return parts * block_bytes << k; }
};

/// The form for every other shape. Entangled groups that share groups form a cluster; for a chunk of words a thread loads every line of
/// the cluster once into host order (a slab of rows), combines if the collective reduces, and composes every destination line whole.
/// Rows are PEs (or groups, if the collective reduces); block `member` of a row if the source has blocks per member, else its only one.
struct GeneralForm {
  uint32_t cluster_egs = 0;  // the largest cluster
  uint64_t chunk_words = 0;  // words of a block per slab
  uint64_t slab_bytes = 0;   // per thread
};

/// The form of `ring` and `tree`, which reduce by steps from member to member: what each_sweep makes the sweeps of every round from.
/// Members of one entangled group come first, then, one after the other, the loops over the members' entangled groups.
///   ring   Each lane's vector is 2^k slots, reordered by the PEs as for the paper's techniques. A slot goes from lane to lane of the group
///          and is combined on the way: slot 0 ends as the block that is the lane's own. M entangled groups do the same with M chunks of
///          it, in 2 (M - 1) rounds: in each, every one sends a chunk to the next, which combines, and later copies it. Slot 0 then goes
///          round the lanes.
///   tree   Lanes with a bit set go into their partners without it, lowest bit first; then entangled group m + 2^t into m, for every m that
///          2^(t+1) divides. The result goes back the same way.
struct MemberSteps {
  bool is_ring = false;
  LaneSplit split;          // neighbouring loops over members joined
  uint64_t slot_bytes = 0;  // ring: of a slot; tree: of the vector
  bool copies = false;      // the first round copies the source to the destination
  uint32_t rounds = 0;
  uint64_t lines_read = 0, lines_written = 0;

  uint64_t bytes_read() const { return lines_read * kLanes * kWordBytes; }
  uint64_t bytes_written() const { return lines_written * kLanes * kWordBytes; }
};

/// How the bytes travel.
///   tile     one sweep of `tile`
///   general  `tile` on a shape without a lane split
///   paper    the paper's steps
///   sdk      the SDK's transfers, and work on host memory between them
///   member_steps   rounds of steps from member to member
enum class Path { tile, general, paper, sdk, member_steps };

struct Plan {
  int collective = 0, op = 0;
  ElementType type{};
  Options options{};
  Hypercube cube;
  std::string mask;
  Grouping grouping;
  Extent in{}, out{};
  bool reduces = false, bytewise = false;
  uint64_t bytes = 0, block_bytes = 0;
  uint64_t src = 0, dst = 0;                     // absolute MRAM bytes
  uint64_t in_pe_bytes = 0, out_pe_bytes = 0;    // in MRAM, per PE; 0 on the host side
  uint64_t in_row_bytes = 0, out_row_bytes = 0;  // host rows, per group; 0 on the MRAM side
  Path path{};
  int steps = 0;                            // PIDCOMM_STEP bits taken, paths paper and member_steps
  std::vector<Sweep> sweeps;                // paths tile and paper, one after another
  std::optional<GeneralForm> general;       // path general
  std::optional<MemberSteps> member_steps;  // path member_steps
  std::optional<Reorder> before, after;     // paths paper and member_steps
  uint64_t pass_src = 0;                    // absolute MRAM byte that the host pass reads from: src, or PE scratch
  uint64_t scratch_bytes = 0;               // PE scratch, at the start of which is pass_src; 0: none is needed
  bool via_host_memory = false;             // the host pass keeps the whole input in host memory on its way
};

/// One collective: its row of PIDCOMM_COLLECTIVES, and its affine form.
struct CollectiveRule {
  int code;
  bool reduces;
  Extent in, out;
  int steps;  // PIDCOMM_STEP bits that apply
  void (*sweep)(const Plan &plan, const LaneSplit &split, Sweep &sweep);

  /// `bytes` is N blocks, else one block.
  bool bytes_are_blocks() const { return (in.space == Space::mram && in.per_member) || (out.space == Space::mram && out.per_member); }
};

/// The affine form of each collective: pass, loops and streams, given where both sides are and whether the sweep rotates. One file of
/// src/plan/collectives each.
#define PIDCOMM_ROW(ENUM, code, name, ...) void sweep_##name(const Plan &plan, const LaneSplit &split, Sweep &sweep);
PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW

/// Errors: ERR_ARGUMENT if the code is unknown.
const CollectiveRule &rule_of(int collective);

/// heap_base: MRAM byte that offset 0 of the request stands for. needs_host: false to plan without host buffers.
/// Errors: every one that pidcomm.h lists for a collective, except those of the devices. Cost: O(axes^2), and O(PEs) on the general path,
/// O(rounds) for member steps.
Plan make_plan(const Hypercube &cube, const pidcomm_request &request, const Options &options, uint64_t heap_base, bool needs_host);

/// visit(sweep) for every sweep of the host pass in order: those of the plan, or those of every round of its member steps.
void each_sweep(const Plan &plan, const std::function<void(const Sweep &)> &visit);

/// Pieces that threads cut the words of a sweep into, where its outer loops alone do not share evenly; of kShareWords words or more.
inline constexpr uint64_t kShareWords = 64;
uint64_t pieces_of(const Sweep &sweep, int threads);

/// What `conventional` reduces is cut into pieces that stay in a core's cache.
inline constexpr uint64_t kPieceBytes = 16384;

/// The member steps of a plan whose sides, steps and reorders are known. bytes may be 0: then there are no rounds.
MemberSteps make_member_steps(const Plan &plan, const LaneSplit &split);

/// The entangled groups of a shape without a lane split, by connected groups. cluster_of[e] is the first entangled group of e's cluster.
std::vector<uint32_t> clusters_of(const Hypercube &cube, const Grouping &grouping);

/// The plan as JSON; expand lists the items of the affine form.
std::string to_json(const Plan &plan, bool expand);

// What the collectives build their affine form with.

/// Brings the loops of a sweep into the order in which memory likes to be visited.
void arrange(Sweep &sweep);

/// Appends a nest over entangled groups; a step of the counted index moves the sides by in_bytes and out_bytes, and a step in entangled
/// groups moves those sides that are true.
void add_loops(std::vector<Loop> &loops, const char *name, const std::vector<EgLoop> &egs, bool in_moves, uint64_t in_bytes, bool out_moves,
               uint64_t out_bytes);

/// Cuts the words of a sweep into the 2^k slots of a vector of so many bytes; the slots are streams of the side.
void add_slots(Sweep &sweep, Side &side, const LaneSplit &split, uint64_t vector_bytes);

/// Stream nest over the members' entangled groups.
void add_streams(Side &side, const std::vector<EgLoop> &egs);

/// Stream nest over the 8 lanes on the host side: a step of the member index is member_bytes, of the group index group_bytes.
void add_lane_streams(Side &side, const LaneSplit &split, uint64_t member_bytes, uint64_t group_bytes);

}  // namespace pidcomm
