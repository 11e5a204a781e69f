// The general path, which works for every shape. The general path turns the lines of a cluster of entangled groups into rows in host order,
// and turns these rows into complete destination lines.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "base/geometry.h"
#include "exec/host_buffer.h"
#include "exec/host_pass.h"
#include "exec/parallel.h"

namespace pidcomm {

namespace {

/// The place of a PE in its group and in the slab.
struct Place {
  uint32_t group, member;
  uint32_t row;   // index of the PE in its cluster; if the collective reduces, index of the PE's group in the cluster
  bool is_first;  // whether the PE is the first PE of its group in the order of the bank pairs
};

/// The two entangled groups of a bank pair, which the pass visits in lockstep; or a single entangled group (then count is 1, and egs
/// contains the group twice).
struct BankPairEgs {
  std::array<uint32_t, 2> egs;
  uint32_t count;
};

struct Places {
  std::vector<Place> of_pe;
  std::vector<uint32_t> row_of;  // [group * N + member]
  std::vector<std::vector<BankPairEgs>>
      clusters;  // entangled groups that share groups; if the plan needs no slab, each cluster is one bank pair
};

/// Returns the bank pairs, ordered by their first entangled group. An entangled group with fewer than 8 PEs gets no pair, because its
/// stores must not change the bytes of the lanes without a PE.
std::vector<BankPairEgs> pairs_of(const HostPass &pass, const std::vector<uint32_t> &cluster_of) {
  const uint32_t egs = static_cast<uint32_t>(cluster_of.size());
  const auto are_pair = [&](uint32_t a, uint32_t b) {
    return cluster_of[a] == cluster_of[b] && (b + 1) * kLanes <= pass.plan.cube.pes &&
           pass.eg_base[b] - pass.eg_base[a] == static_cast<std::ptrdiff_t>(kLineBytes);
  };
  std::vector<BankPairEgs> pairs;
  std::vector<bool> is_taken(egs, false);
  for (uint32_t a = 0; a < egs; ++a) {
    if (is_taken[a]) continue;
    pairs.push_back({{a, a}, 1});
    for (uint32_t b = a + 1; b < std::min(a + 8, egs) && pairs.back().count == 1; ++b) {
      if (is_taken[b] || !are_pair(a, b)) continue;
      pairs.back() = {{a, b}, 2};
      is_taken[b] = true;
    }
  }
  return pairs;
}

Places places_of(const HostPass &pass, const GeneralForm &form) {
  const Plan &plan = pass.plan;
  const bool uses_slab = form.slab_bytes != 0;
  const uint32_t egs = (plan.cube.pes + kLanes - 1) / kLanes;
  const std::vector<uint32_t> cluster_of = uses_slab ? clusters_of(plan.cube, plan.grouping) : std::vector<uint32_t>(egs, 0);
  Places places;
  std::vector<std::size_t> cluster_index(egs);
  for (const BankPairEgs &pair : pairs_of(pass, cluster_of)) {
    const uint32_t first = cluster_of[pair.egs[0]];
    if (!uses_slab || pair.egs[0] == first) {
      cluster_index[first] = places.clusters.size();
      places.clusters.emplace_back();
    }
    places.clusters[cluster_index[first]].push_back(pair);
  }
  places.of_pe.resize(plan.cube.pes);
  places.row_of.resize(plan.cube.pes);
  constexpr uint32_t kNoRow = ~0u;
  std::vector<uint32_t> row_of_group(plan.grouping.groups, kNoRow);
  for (const std::vector<BankPairEgs> &cluster : places.clusters) {
    uint32_t next_row = 0;
    for (const BankPairEgs &pair : cluster) {
      for (uint32_t i = 0; i < pair.count; ++i) {
        for (uint32_t pe = pair.egs[i] * kLanes; pe < std::min(plan.cube.pes, (pair.egs[i] + 1) * kLanes); ++pe) {
          const uint32_t group = plan.grouping.group_of(pe), member = plan.grouping.member_of(pe);
          const bool is_first = row_of_group[group] == kNoRow;
          if (is_first || !plan.reduces) row_of_group[group] = next_row++;
          places.of_pe[pe] = {group, member, row_of_group[group], is_first};
          places.row_of[group * plan.grouping.group_pes + member] = row_of_group[group];
        }
      }
    }
  }
  return places;
}

class GeneralWorker {
 public:
  GeneralWorker(const HostPass &pass, const GeneralForm &form, const Places &places)
      : pass_(pass),
        plan_(pass.plan),
        form_(form),
        places_(places),
        in_blocks_(plan_.in.per_member ? plan_.grouping.group_pes : 1),
        out_blocks_(plan_.out.per_member ? plan_.grouping.group_pes : 1),
        item_buffers_(kCallBufferBytes),
        slab_(form_.slab_bytes),
        incoming_(plan_.reduces ? 2 * kLanes * form_.chunk_words * kWordBytes : 0) {}

  /// Processes words [word, word + words) of every block of the cluster.
  void run(const std::vector<BankPairEgs> &cluster, uint64_t word, uint64_t words) {
    word_ = word;
    words_ = words;
    if (plan_.in.space == Space::mram)
      for (const BankPairEgs &pair : cluster)
        for (uint32_t block = 0; block < in_blocks_; ++block) load(pair, block);
    if (plan_.out.space == Space::mram)
      for (const BankPairEgs &pair : cluster)
        for (uint32_t block = 0; block < out_blocks_; ++block) store(pair, block);
    else if (plan_.reduces)
      for (const BankPairEgs &pair : cluster) each_pe(pair, [this](uint32_t, uint32_t, const Place &place) { give_to_host(place); });
  }

  /// Returns the number of bytes of host memory that the worker holds.
  uint64_t bytes_staged() const { return item_buffers_.size() + slab_.size() + incoming_.size(); }

 private:
  /// The host-order rows of a pair, by entangled group and lane; null if there is no PE.
  template <class Pointer>
  using Rows = std::array<std::array<Pointer, kLanes>, 2>;

  /// Calls visit(index in the pair, lane, place) for every PE.
  template <class Visit>
  void each_pe(const BankPairEgs &pair, const Visit &visit) const {
    for (uint32_t i = 0; i < pair.count; ++i)
      for (uint32_t lane = 0; lane < lanes_of(pair.egs[i]); ++lane) visit(i, lane, places_.of_pe[pair.egs[i] * kLanes + lane]);
  }

  uint32_t lanes_of(uint32_t eg) const { return std::min(kLanes, plan_.cube.pes - eg * kLanes); }
  std::byte *row(uint32_t row, uint32_t block) const {
    return slab_.data() + (uint64_t{row} * in_blocks_ + block) * form_.chunk_words * kWordBytes;
  }

  /// Returns the address in a host row for a PE: the PE's part of the group's row, or the complete row if all members share the row.
  std::byte *host_row(const Place &place, const Extent &extent, uint64_t row_bytes) const {
    return pass_.host + place.group * row_bytes + (extent.per_member ? place.member * plan_.block_bytes : 0) + word_ * kWordBytes;
  }

  void load(const BankPairEgs &pair, uint32_t block) {
    Rows<std::byte *> to{};
    each_pe(pair, [&](uint32_t i, uint32_t lane, const Place &place) {
      if (plan_.reduces && !place.is_first)
        to[i][lane] = incoming_.data() + (i * kLanes + lane) * form_.chunk_words * kWordBytes;
      else
        to[i][lane] =
            plan_.out.space == Space::host && !plan_.reduces ? host_row(place, plan_.out, plan_.out_row_bytes) : row(place.row, block);
    });
    SweepCall call{};
    call.non_temporal_rows = stores_rows_non_temporally(plan_) && !plan_.reduces;
    each_run(pair, plan_.src, block, [&](const std::array<std::byte *, 2> &lines, uint32_t words, uint32_t run_words, uint64_t done) {
      const std::array<const std::byte *, 2> in = {lines[0], lines[1]};
      const Rows<std::byte *> out = moved(to, done);
      const std::array<SweepItem, 2> items = {{{&in[0], out[0].data()}, {&in[1], out[1].data()}}};
      call.prefetch_end = run_words;
      step_through(Pass::to_host, pair, items, out[0][0], words, call);
    });
    if (!plan_.reduces) return;
    const Reducer *reducer = reducer_of(pass_.kernels, plan_);
    each_pe(pair, [&](uint32_t i, uint32_t lane, const Place &place) {
      if (!place.is_first) reducer->combine(row(place.row, block), to[i][lane], words_ * kWordBytes);
    });
  }

  void store(const BankPairEgs &pair, uint32_t block) {
    Rows<const std::byte *> from{};
    each_pe(pair, [&](uint32_t i, uint32_t lane, const Place &place) {
      if (plan_.in.space == Space::host)
        from[i][lane] = host_row(place, plan_.in, plan_.in_row_bytes);
      else
        from[i][lane] = row(plan_.reduces ? place.row : places_.row_of[place.group * plan_.grouping.group_pes + block],
                            in_blocks_ > 1 ? place.member : 0);
    });
    SweepCall call{};
    call.out_count = 1;
    call.keep_lanes = 0xFFu << lanes_of(pair.egs[0]) & 0xFFu;
    each_run(pair, plan_.dst, block, [&](const std::array<std::byte *, 2> &lines, uint32_t words, uint32_t, uint64_t done) {
      const Rows<const std::byte *> in = moved(from, done);
      const std::array<SweepItem, 2> items = {{{in[0].data(), &lines[0]}, {in[1].data(), &lines[1]}}};
      step_through(Pass::from_host, pair, items, in[0][0], words, call);
    });
  }

  void give_to_host(const Place &place) {
    if (place.is_first) std::memcpy(host_row(place, plan_.out, plan_.out_row_bytes), row(place.row, 0), words_ * kWordBytes);
  }

  template <class Pointer>
  static Rows<Pointer> moved(Rows<Pointer> rows, uint64_t words) {
    for (auto &lanes : rows)
      for (Pointer &pointer : lanes)
        if (pointer != nullptr) pointer += words * kWordBytes;
    return rows;
  }

  /// Visits the lines of the chunk in a block's streams, run by run.
  template <class Visit>
  void each_run(const BankPairEgs &pair, uint64_t window, uint32_t block, const Visit &visit) const {
    for (uint64_t done = 0; done < words_;) {
      const uint64_t left = plan_.block_bytes / kWordBytes - word_ - done;
      const uint64_t word = (window + block * plan_.block_bytes) / kWordBytes + word_ + done;
      const LinePosition first = position_of(pass_.eg_base[pair.egs[0]], word), second = position_of(pass_.eg_base[pair.egs[1]], word);
      const uint32_t words = static_cast<uint32_t>(std::min<uint64_t>(first.run_words, words_ - done));
      visit({first.line, second.line}, words, static_cast<uint32_t>(std::min<uint64_t>(first.run_words, left)), done);
      done += words;
    }
  }

  /// Runs a pass between the lines of a bank pair and the rows of the pair. `row` is the first of these rows.
  void step_through(Pass which, const BankPairEgs &pair, const std::array<SweepItem, 2> &items, const void *row, uint32_t words,
                    SweepCall call) const {
    call.items = items.data();
    call.item_count = pair.count;
    call.item_buffers = item_buffers_.data();
    call.words = words;
    call.first_words = words_to_line(row);
    pass_.kernels.pass[static_cast<int>(which)](call);
  }

  const HostPass &pass_;
  const Plan &plan_;
  const GeneralForm &form_;
  const Places &places_;
  const uint32_t in_blocks_, out_blocks_;
  HostBuffer item_buffers_, slab_, incoming_;
  uint64_t word_ = 0, words_ = 0;
};

}  // namespace

uint64_t run_general(const HostPass &pass, const GeneralForm &form) {
  const Places places = places_of(pass, form);
  const uint64_t block_words = pass.plan.block_bytes / kWordBytes;
  const uint64_t chunks = (block_words + form.chunk_words - 1) / form.chunk_words;
  // Allocate all memory before the first byte moves.
  const uint64_t units = places.clusters.size() * chunks;
  const int threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), units));
  std::vector<std::unique_ptr<GeneralWorker>> workers;
  for (int thread = 0; thread < threads; ++thread) workers.push_back(std::make_unique<GeneralWorker>(pass, form, places));
  WorkQueue queue(units, threads);
  run_threads(threads, [&](int thread) {
    GeneralWorker &worker = *workers[static_cast<std::size_t>(thread)];
    queue.each(thread, [&](uint64_t unit) {
      const uint64_t word = unit % chunks * form.chunk_words;
      worker.run(places.clusters[unit / chunks], word, std::min(form.chunk_words, block_words - word));
    });
    pass.kernels.fence();
  });
  return workers.front()->bytes_staged() * workers.size();
}

}  // namespace pidcomm
