// The sweeps of `ring` and `tree`, which send data from one group member to another.
//
// Source of the two topologies: the PID-Comm paper (ISCA 2024, section VIII-H), which compares the
// hypercube with a ring and a tree.
#include <algorithm>
#include <array>
#include <bit>

#include "base/bits.h"
#include "plan/make_form.h"

namespace pidcomm {

namespace {

/// Makes a lane map: lane l receives the bytes of lane from(l).
template <class From>
uint64_t lane_map(const From &from) {
  uint64_t map = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) map |= uint64_t{from(lane)} << 8 * lane;
  return map;
}

/// Makes the sweeps of a plan and visits the sweeps, round after round.
class MemberStepSweeps {
 public:
  MemberStepSweeps(const Plan &plan, const MemberSteps &steps,
                   const std::function<void(const Sweep &)> &visit)
      : plan_(plan), steps_(steps), split_(steps.split), visit_(visit) {}

  /// Returns the number of rounds.
  uint32_t run(const auto &form) {
    if (plan_.bytes == 0) return 0;
    if (steps_.copies) move_lanes(kStay, plan_.src, plan_.dst);
    visit_steps(form);
    return round_;
  }

 private:
  void visit_steps(const RingForm &form) {
    const uint32_t slots = 1u << split_.k;
    const uint64_t work =
        split_.k == 0 ? plan_.dst : form.pes.pass_src;  // the window in which slots are reduced
    const uint64_t onwards = lane_map([&](uint32_t lane) {
      const uint32_t index = extract_bits(lane, split_.lane_mask);
      return (lane & ~split_.lane_mask) | deposit_bits((index - 1) & (slots - 1), split_.lane_mask);
    });
    for (uint32_t slot = slots - 1; slot > 0; --slot)
      reduce_lanes(onwards, {2, 0, steps_.slot_bytes}, work + (slot - 1) * steps_.slot_bytes,
                   work + (slot - 1) * steps_.slot_bytes);
    for (std::size_t loop = 0; loop < split_.members.size(); ++loop)
      for (uint32_t step = 0; step < 2 * (split_.members[loop].count - 1); ++step)
        ring_step(loop, step, work);
    if (split_.k == 0) return;
    move_lanes(kStay, work, plan_.dst);
    for (uint32_t slot = 1; slot < slots; ++slot)
      move_lanes(onwards, plan_.dst + (slot - 1) * steps_.slot_bytes,
                 plan_.dst + slot * steps_.slot_bytes);
  }

  /// Entangled group m sends chunk (m - step) mod M to group m + 1 (mod M), which combines the
  /// chunk with its own chunk in the first M - 1 steps and copies the chunk in later steps. All
  /// chunks have the same length, except that the last chunk that is not empty may be shorter.
  /// Between two cuts, all chunks have the same length, and the numbers of groups and chunks do not
  /// wrap around.
  void ring_step(std::size_t loop, uint32_t step, uint64_t work) {
    const auto [count, stride, index_stride] = split_.members[loop];
    const uint64_t words = steps_.slot_bytes / kWordBytes,
                   chunk_words = (words + count - 1) / count;
    const uint32_t full = static_cast<uint32_t>(words / chunk_words);
    const uint32_t shift = step % count;
    const bool reduces = step < count - 1;
    std::array<uint32_t, 6> cuts = {0,    count - 1 - shift,         count - shift,
                                    full, std::min(full + 1, count), count};
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const uint32_t first = cuts[i], chunks = cuts[i + 1] - first;
      const uint64_t sent_words = first < full    ? chunk_words
                                  : first == full ? words % chunk_words
                                                  : 0;
      if (chunks == 0 || sent_words == 0) continue;
      const uint32_t from = (first + shift) % count, to = (from + 1) % count;
      Sweep sweep = make_sweep(reduces, sent_words, kStay);
      sweep.in.offset = sweep.out.offset = work + first * chunk_words * kWordBytes;
      sweep.in.eg = (reduces ? std::min(from, to) : from) * stride;
      sweep.out.eg = to * stride;
      if (reduces) sweep.in.streams = {{2, (std::max(from, to) - std::min(from, to)) * stride, 0}};
      add_other_loops(sweep, loop);
      arrange(sweep);
      if (chunks > 1)
        sweep.outer.insert(
            sweep.outer.begin(),
            {"chunk", chunks, stride, stride, chunk_words * kWordBytes, chunk_words * kWordBytes});
      visit_(sweep);
    }
    ++round_;
  }

  void visit_steps(const TreeForm &) {
    const auto partner_map = [](uint32_t bit, bool up) {
      return lane_map([&](uint32_t lane) { return up ? lane | bit : lane & ~bit; });
    };
    uint64_t from = steps_.copies ? plan_.dst : plan_.src;  // the window that the first round reads
    for (uint32_t bit = 1; bit < kLanes; bit *= 2) {
      if ((split_.lane_mask & bit) == 0) continue;
      reduce_lanes(partner_map(bit, true), {1, 0, 0}, from, plan_.dst);
      from = plan_.dst;
    }
    for (std::size_t loop = 0; loop < split_.members.size(); ++loop)
      for (uint32_t reach = 1; reach < split_.members[loop].count; reach *= 2)
        tree_step(loop, reach, true);
    for (std::size_t loop = split_.members.size(); loop-- > 0;)
      for (uint32_t reach = std::bit_floor(split_.members[loop].count - 1); reach > 0; reach /= 2)
        tree_step(loop, reach, false);
    for (uint32_t bit = kLanes / 2; bit > 0; bit /= 2)
      if ((split_.lane_mask & bit) != 0) move_lanes(partner_map(bit, false), plan_.dst, plan_.dst);
  }

  /// Every entangled group m that is a multiple of 2 * reach combines the data of group m + reach
  /// into its own data (up), or sends the result to group m + reach (down).
  void tree_step(std::size_t loop, uint32_t reach, bool up) {
    const auto [count, stride, index_stride] = split_.members[loop];
    Sweep sweep = make_sweep(up, steps_.slot_bytes / kWordBytes, kStay);
    sweep.in.offset = sweep.out.offset = plan_.dst;
    if (up)
      sweep.in.streams = {{2, reach * stride, 0}};
    else
      sweep.out.eg = reach * stride;
    add_other_loops(sweep, loop);
    add_loops(sweep.outer, "subtree", {{(count + reach - 1) / (2 * reach), 2 * reach * stride, 1}},
              true, 0, true, 0);
    arrange(sweep);
    visit_(sweep);
    ++round_;
  }

  /// Moves the lanes in every entangled group: reads the lines at byte `from` (and further
  /// streams), and stores the result at byte `to`.
  void reduce_lanes(uint64_t map, const StreamLoop &streams, uint64_t from, uint64_t to) {
    sweep_lanes(true, map, streams, from, to);
  }
  void move_lanes(uint64_t map, uint64_t from, uint64_t to) {
    sweep_lanes(false, map, {1, 0, 0}, from, to);
  }
  void sweep_lanes(bool reduces, uint64_t map, const StreamLoop &streams, uint64_t from,
                   uint64_t to) {
    Sweep sweep = make_sweep(reduces, steps_.slot_bytes / kWordBytes, map);
    sweep.in.offset = from;
    sweep.out.offset = to;
    sweep.in.streams = {streams};
    sweep.outer = {{"entangled_group", plan_.cube.pes / kLanes, 1, 1, 0, 0}};
    arrange(sweep);
    visit_(sweep);
    ++round_;
  }

  Sweep make_sweep(bool reduces, uint64_t words, uint64_t map) const {
    Sweep sweep;
    sweep.pass = reduces ? Pass::member_step_reduce : Pass::member_step;
    sweep.host_order = reduces && !plan_.bytewise;
    sweep.split = split_;
    sweep.lane_mask = split_.lane_mask;
    sweep.k = split_.k;
    sweep.lane_map = map;
    sweep.round = round_;
    sweep.words = words;
    return sweep;
  }

  /// Adds loops over all entangled groups, without one loop over members.
  void add_other_loops(Sweep &sweep, std::size_t loop) const {
    std::vector<EgLoop> others = split_.members;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(loop));
    add_loops(sweep.outer, "set", split_.sets, true, 0, true, 0);
    add_loops(sweep.outer, "member", others, true, 0, true, 0);
  }

  static constexpr uint64_t kStay = 0x0706050403020100;

  const Plan &plan_;
  const MemberSteps &steps_;
  const Split &split_;
  const std::function<void(const Sweep &)> &visit_;
  uint32_t round_ = 0;
};

uint64_t lines_of(const Sweep &sweep, const Side &side) {
  return items_of(sweep) * sweep.words * streams_of(side);
}

/// Sets the fields that RingForm and TreeForm have in common.
template <class SteppedForm>
void set_steps(SteppedForm &form, const FormInputs &inputs, uint64_t slot_bytes) {
  form.split = inputs.split;
  form.slot_bytes = slot_bytes;
  form.copies = form.split.k == 0 && inputs.plan.src != inputs.plan.dst;
  form.rounds = each_member_step(inputs.plan, form, [&](const Sweep &sweep) {
    form.lines_read += lines_of(sweep, sweep.in);
    form.lines_written += lines_of(sweep, sweep.out);
  });
}

}  // namespace

Form make_ring(const FormInputs &inputs) {
  RingForm form;
  form.pes = make_pe_steps(inputs);
  set_steps(form, inputs, inputs.plan.block_bytes >> inputs.split.k);
  return form;
}

Form make_tree(const FormInputs &inputs) {
  TreeForm form;
  set_steps(form, inputs, inputs.plan.block_bytes);
  return form;
}

uint32_t each_member_step(const Plan &plan, const RingForm &form,
                          const std::function<void(const Sweep &)> &visit) {
  return MemberStepSweeps(plan, form, visit).run(form);
}
uint32_t each_member_step(const Plan &plan, const TreeForm &form,
                          const std::function<void(const Sweep &)> &visit) {
  return MemberStepSweeps(plan, form, visit).run(form);
}

}  // namespace pidcomm
