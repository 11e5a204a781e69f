// The staged form of a plan, for every shape: lines of a cluster of entangled groups -> rows in host order -> whole lines.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "exec/host_pass.h"
#include "exec/parallel.h"
#include "exec/scratch.h"
#include "hostpass/address_map.h"

namespace pidcomm {

namespace {

/// Entangled groups that share groups of PEs, and where each of their PEs is in its group.
struct Place {
  uint32_t group, member;
  uint32_t row;  // of the slab: the PE's index in its cluster, or its group's if the collective reduces
};
struct Cluster {
  std::vector<uint32_t> egs;
};

struct Places {
  std::vector<Place> of_pe;
  std::vector<uint32_t> row_of;  // [group * N + member]
  std::vector<Cluster> clusters;
};

Places places_of(const Plan &plan, bool by_cluster) {
  Places places;
  places.of_pe.resize(plan.cube.pes);
  places.row_of.resize(plan.cube.pes);
  const uint32_t egs = (plan.cube.pes + kLanes - 1) / kLanes;
  std::vector<uint32_t> cluster_index(egs);
  if (by_cluster) {
    const std::vector<uint32_t> cluster_of = clusters_of(plan.cube, plan.grouping);
    for (uint32_t e = 0; e < egs; ++e) {
      if (cluster_of[e] == e) {
        cluster_index[e] = static_cast<uint32_t>(places.clusters.size());
        places.clusters.emplace_back();
      }
      cluster_index[e] = cluster_index[cluster_of[e]];
      places.clusters[cluster_index[e]].egs.push_back(e);
    }
  } else {
    for (uint32_t e = 0; e < egs; ++e) places.clusters.push_back({{e}});
  }
  std::vector<uint32_t> next_row(places.clusters.size(), 0);
  std::vector<uint32_t> row_of_group(plan.grouping.groups);
  for (uint32_t pe = 0; pe < plan.cube.pes; ++pe) {
    Place &place = places.of_pe[pe];
    place.group = plan.grouping.group_of(pe);
    place.member = plan.grouping.member_of(pe);
    uint32_t &next = next_row[cluster_index[pe / kLanes]];
    if (!plan.reduces)
      place.row = next++;
    else  // member 0 has the lowest number of its group, so the row exists when the others come
      place.row = place.member == 0 ? row_of_group[place.group] = next++ : row_of_group[place.group];
    places.row_of[place.group * plan.grouping.group_pes + place.member] = place.row;
  }
  return places;
}

class StagedWorker {
 public:
  StagedWorker(const HostPass &pass, const Places &places)
      : pass_(pass),
        plan_(pass.plan),
        staged_(*pass.plan.staged),
        places_(places),
        in_blocks_(plan_.in.per_member ? plan_.grouping.group_pes : 1),
        out_blocks_(plan_.out.per_member ? plan_.grouping.group_pes : 1),
        scratch_(kScratchBytes),
        slab_(staged_.slab_bytes),
        incoming_(plan_.reduces ? kLanes * staged_.chunk_words * kWordBytes : 0) {}

  /// Words [word, word + words) of every block of the cluster.
  void run(const Cluster &cluster, uint64_t word, uint64_t words) {
    word_ = word;
    words_ = words;
    if (plan_.in.space == Space::mram)
      for (uint32_t eg : cluster.egs)
        for (uint32_t block = 0; block < in_blocks_; ++block) load(eg, block);
    if (plan_.out.space == Space::mram)
      for (uint32_t eg : cluster.egs)
        for (uint32_t block = 0; block < out_blocks_; ++block) store(eg, block);
    else if (plan_.reduces)
      for (uint32_t eg : cluster.egs) give_to_host(eg);
  }

 private:
  uint32_t lanes_of(uint32_t eg) const { return std::min(kLanes, plan_.cube.pes - eg * kLanes); }
  const Place &place(uint32_t eg, uint32_t lane) const { return places_.of_pe[eg * kLanes + lane]; }
  std::byte *row(uint32_t row, uint32_t block) const {
    return slab_.data() + (uint64_t{row} * in_blocks_ + block) * staged_.chunk_words * kWordBytes;
  }
  uint64_t chunk_offset() const { return word_ * kWordBytes; }

  /// Host row address of a PE: its part of the group's row, or the row if all members share it.
  std::byte *host_row(const Place &place, const Extent &extent, uint64_t row_bytes) const {
    return pass_.host + place.group * row_bytes + (extent.per_member ? place.member * plan_.block_bytes : 0) + chunk_offset();
  }

  void load(uint32_t eg, uint32_t block) {
    std::array<std::byte *, kLanes> to{};
    for (uint32_t lane = 0; lane < lanes_of(eg); ++lane) {
      const Place &p = place(eg, lane);
      if (plan_.reduces && p.member != 0)
        to[lane] = incoming_.data() + lane * staged_.chunk_words * kWordBytes;
      else
        to[lane] = plan_.out.space == Space::host && !plan_.reduces ? host_row(p, plan_.out, plan_.out_row_bytes) : row(p.row, block);
    }
    each_run(eg, plan_.src, block, [&](std::byte *line, uint32_t words, uint32_t run_words, uint64_t done) {
      const std::byte *in = line;
      std::array<std::byte *, kLanes> out = to;
      for (std::byte *&pointer : out)
        if (pointer != nullptr) pointer += done * kWordBytes;
      const TileItem item = {&in, out.data()};
      TileCall call{};
      call.prefetch_end = pass_.flushes ? 0 : run_words;
      call.streams_rows = streams_rows(plan_) && !plan_.reduces;
      if (pass_.flushes) flush(line, words);
      step_through(Pass::to_host, item, words, call);
      if (pass_.flushes) flush(line, words);
    });
    if (!plan_.reduces) return;
    const Reducer *reducer = pass_.reducer();
    for (uint32_t lane = 0; lane < lanes_of(eg); ++lane) {
      const Place &p = place(eg, lane);
      if (p.member != 0) reducer->combine(row(p.row, block), to[lane], words_ * kWordBytes);
    }
  }

  void store(uint32_t eg, uint32_t block) {
    std::array<const std::byte *, kLanes> from{};
    for (uint32_t lane = 0; lane < lanes_of(eg); ++lane) {
      const Place &p = place(eg, lane);
      if (plan_.in.space == Space::host)
        from[lane] = host_row(p, plan_.in, plan_.in_row_bytes);
      else if (plan_.reduces)
        from[lane] = row(p.row, in_blocks_ > 1 ? p.member : 0);
      else
        from[lane] = row(places_.row_of[p.group * plan_.grouping.group_pes + block], in_blocks_ > 1 ? p.member : 0);
    }
    const uint32_t keep_lanes = 0xFFu << lanes_of(eg) & 0xFFu;
    const bool flushes = pass_.flushes && keep_lanes != 0;
    each_run(eg, plan_.dst, block, [&](std::byte *line, uint32_t words, uint32_t, uint64_t done) {
      std::array<const std::byte *, kLanes> in = from;
      for (const std::byte *&pointer : in)
        if (pointer != nullptr) pointer += done * kWordBytes;
      const TileItem item = {in.data(), &line};
      TileCall call{};
      call.out_count = 1;
      call.keep_lanes = keep_lanes;
      if (flushes) flush(line, words);
      step_through(Pass::from_host, item, words, call);
      if (flushes) flush(line, words);
    });
  }

  void give_to_host(uint32_t eg) {
    for (uint32_t lane = 0; lane < lanes_of(eg); ++lane) {
      const Place &p = place(eg, lane);
      if (p.member == 0) std::memcpy(host_row(p, plan_.out, plan_.out_row_bytes), row(p.row, 0), words_ * kWordBytes);
    }
  }

  /// Visits the lines of the chunk in a block's stream, run by run.
  template <class Visit>
  void each_run(uint32_t eg, uint64_t window, uint32_t block, const Visit &visit) const {
    for (uint64_t done = 0; done < words_;) {
      const uint64_t left = plan_.block_bytes / kWordBytes - word_ - done;
      const LinePosition at = position_of(pass_.eg_base[eg], (window + block * plan_.block_bytes) / kWordBytes + word_ + done);
      const uint32_t words = static_cast<uint32_t>(std::min<uint64_t>(at.run_words, words_ - done));
      visit(at.line, words, static_cast<uint32_t>(std::min<uint64_t>(at.run_words, left)), done);
      done += words;
    }
  }

  /// Runs a pass between lines of one entangled group and its 8 rows.
  void step_through(Pass which, const TileItem &item, uint32_t words, TileCall call) const {
    call.items = &item;
    call.scratch = scratch_.data();
    call.item_count = 1;
    const void *const row = which == Pass::to_host ? static_cast<const void *>(item.out[0]) : item.in[0];
    uint32_t step = words_to_line(row);
    for (call.word = 0; call.word < words; call.word += call.words, step = kStepWords) {
      call.words = std::min(step, words - call.word);
      pass_.kernels.pass[static_cast<int>(which)](call);
    }
  }

  void flush(std::byte *line, uint32_t words) const {
    pass_.kernels.flush(line, words);
    pass_.kernels.fence();
  }

  const HostPass &pass_;
  const Plan &plan_;
  const StagedPlan &staged_;
  const Places &places_;
  const uint32_t in_blocks_, out_blocks_;
  Scratch scratch_, slab_, incoming_;
  uint64_t word_ = 0, words_ = 0;
};

}  // namespace

uint64_t run_staged(const HostPass &pass) {
  const StagedPlan &staged = *pass.plan.staged;
  const Places places = places_of(pass.plan, staged.slab_bytes != 0);
  const uint64_t block_words = pass.plan.block_bytes / kWordBytes;
  const uint64_t chunks = (block_words + staged.chunk_words - 1) / staged.chunk_words;
  // Everything that can fail to be allocated exists before the first byte moves.
  const uint64_t units = places.clusters.size() * chunks;
  const int threads = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), units));
  std::vector<std::unique_ptr<StagedWorker>> workers;
  for (int thread = 0; thread < threads; ++thread) workers.push_back(std::make_unique<StagedWorker>(pass, places));
  run_threads(threads, [&](int thread) {
    StagedWorker &worker = *workers[static_cast<std::size_t>(thread)];
    const Range range = share_of(units, thread, threads);
    for (uint64_t unit = range.first; unit < range.last; ++unit) {
      const uint64_t word = unit % chunks * staged.chunk_words;
      worker.run(places.clusters[unit / chunks], word, std::min(staged.chunk_words, block_words - word));
    }
    pass.kernels.fence();
  });
  return (staged.slab_bytes + kScratchBytes) * workers.size();
}

}  // namespace pidcomm
