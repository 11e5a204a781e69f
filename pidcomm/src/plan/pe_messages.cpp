#include "plan/pe_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <tuple>

#include "base/error.h"
#include "base/geometry.h"
#include "line_kernels/kernels.h"
#include "plan/window.h"

namespace pidcomm {

namespace {

constexpr const char *kName = "sendrecv";

/// Targets and streams of a group. The memory bandwidth is lower if a thread visits more streams at
/// a time.
constexpr std::size_t kGroupTargets = 8, kGroupStreams = 24;

bool is_fill(const pidcomm_pe_message &message) { return message.from_pe == PIDCOMM_FILL; }

uint32_t words_of(uint64_t bytes) { return static_cast<uint32_t>(bytes / kWordBytes); }

/// Words of the MRAM of one PE.
class WordSet {
 public:
  explicit WordSet(uint64_t words) : bits_(words / 64 + 1) {}
  void clear() { std::fill(bits_.begin(), bits_.end(), 0); }

  /// Whether the set has one of the words [first, first + count). If adds, adds all of them.
  bool visit(uint64_t first, uint64_t count, bool adds) {
    uint64_t found = 0;
    for (const uint64_t end = first + count; first < end;) {
      const uint64_t bit = first % 64, bits = std::min(64 - bit, end - first);
      const uint64_t mask = ~uint64_t{0} >> (64 - bits) << bit;
      found |= bits_[first / 64] & mask;
      if (adds) bits_[first / 64] |= mask;
      first += bits;
    }
    return found != 0;
  }

 private:
  std::vector<uint64_t> bits_;
};

/// The indices of messages, in the order of key(message).
template <class Key>
std::vector<uint32_t> sorted_by(const std::vector<pidcomm_pe_message> &messages, const Key &key) {
  std::vector<uint32_t> order(messages.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(messages[a]) < key(messages[b]); });
  return order;
}

}  // namespace

/// A message to a lane of an entangled group, in words of MRAM.
struct PeMessages::Lanes {
  uint32_t lane, word, words, runs, step_words;
  MessageStream from;
  uint32_t from_lane;

  uint64_t end() const { return uint64_t{word} + words; }
  auto pattern() const { return std::tuple(word, words, runs, step_words); }
};

/// A target that has no group yet.
struct PeMessages::Cut {
  uint32_t eg, word, step_words, words, runs;
  uint32_t lanes = 0;  // that messages write
  uint32_t source_count = 0;
  std::array<MessageStream, kLanes> streams{};
  std::array<uint64_t, kLanes> lane_maps{};
  bool has_own_unit = false;  // with all cuts of its entangled group

  /// Adds a message that writes the words of the target, from word `skipped` of its run on.
  void add(const Lanes &message, uint32_t skipped) {
    MessageStream from = message.from;
    if (from.eg != kFillEg) from.word += skipped;
    uint32_t s = 0;
    while (s < source_count && streams[s] != from) ++s;
    if (s == source_count) {
      streams[s] = from;
      lane_maps[s] = kNoLane * 0x0101010101010101u;
      ++source_count;
    }
    const uint32_t shift = 8 * message.lane;
    lane_maps[s] = (lane_maps[s] & ~(uint64_t{0xFF} << shift)) | uint64_t{message.from_lane}
                                                                     << shift;
    lanes |= 1u << message.lane;
  }
  auto pattern() const { return std::tuple(word, words, runs, step_words); }
};

PeMessages::PeMessages(const Hypercube &cube, const pidcomm_request &request, uint64_t heap_base)
    : pes_(cube.pes) {
  if (request.host_bytes % sizeof(pidcomm_pe_message) != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, kName, ": host_bytes (", request.host_bytes,
         ") must be a multiple of the ", sizeof(pidcomm_pe_message), " bytes of a pidcomm_pe_message");
  const std::size_t count = request.host_bytes / sizeof(pidcomm_pe_message);
  if (count == 0) return;
  if (request.host == nullptr)
    fail(PIDCOMM_ERR_HOST_BUFFER, kName, ": the array of ", count, " messages is null");
  if (count > UINT32_MAX)
    fail(PIDCOMM_ERR_SIZE, kName, ": ", count, " messages; a call has at most ", UINT32_MAX);
  given_.resize(count);
  std::memcpy(given_.data(), request.host, request.host_bytes);
  measure(cube);
  src_ = checked_window(kName, "source", request.src, in_bytes_, heap_base);
  dst_ = checked_window(kName, "destination", request.dst, out_bytes_, heap_base);
  check_overlaps();
  make_tables(cube);
}

bool PeMessages::is_of(const pidcomm_request &request) const {
  return request.host_bytes == given_.size() * sizeof(pidcomm_pe_message) &&
         (given_.empty() || (request.host != nullptr &&
                             std::memcmp(request.host, given_.data(), request.host_bytes) == 0));
}

/// Checks each message by itself, and measures the windows.
void PeMessages::measure(const Hypercube &cube) {
  list_.reserve(given_.size());
  for (std::size_t i = 0; i < given_.size(); ++i) {
    pidcomm_pe_message message = given_[i];
    message.runs = std::max(message.runs, 1u);
    const auto check_pe = [&](const char *side, uint32_t pe) {
      if (pe >= cube.pes)
        fail(PIDCOMM_ERR_ARGUMENT, kName, ": message ", i, " has ", side, " ", pe,
             "; the hypercube ", cube.to_string(), " has ", cube.pes, " PEs");
    };
    const auto check_words = [&](const char *field, uint32_t bytes) {
      if (bytes % kWordBytes != 0)
        fail(PIDCOMM_ERR_SIZE, kName, ": message ", i, " has ", field, " ", bytes,
             ", which is not a multiple of ", kWordBytes);
    };
    check_pe("to_pe", message.to_pe);
    check_words("to", message.to);
    check_words("to_step", message.to_step);
    check_words("bytes", message.bytes);
    const auto end_of = [&](uint64_t first, uint64_t step) {
      return first + step * (message.runs - 1) + message.bytes;
    };
    if (!is_fill(message)) {
      check_pe("from_pe", message.from_pe);
      check_words("from", message.from);
      check_words("from_step", message.from_step);
    }
    if (message.bytes == 0) continue;
    if (!is_fill(message))
      in_bytes_ = std::max(in_bytes_, end_of(message.from, message.from_step));
    out_bytes_ = std::max(out_bytes_, end_of(message.to, message.to_step));
    bytes_ += uint64_t{message.bytes} * message.runs;
    list_.push_back(message);
  }
}

void PeMessages::check_overlaps() {
  const std::vector<uint32_t> by_writer =
      sorted_by(list_, [](const pidcomm_pe_message &message) { return message.to_pe; });
  const bool windows_meet = src_ < dst_ + out_bytes_ && dst_ < src_ + in_bytes_;
  const std::vector<uint32_t> by_reader =
      !windows_meet
          ? std::vector<uint32_t>()
          : sorted_by(list_, [](const pidcomm_pe_message &message) { return message.from_pe; });
  const uint64_t first = std::min(src_, dst_) / kWordBytes,
                 end = std::max(src_ + in_bytes_, dst_ + out_bytes_) / kWordBytes;
  WordSet written(end - first);
  const auto each_run = [&](uint64_t begin, uint64_t step, const pidcomm_pe_message &message,
                            bool adds) {
    bool found = false;
    for (uint64_t run = 0; run < message.runs; ++run)
      found |= written.visit((begin + run * step) / kWordBytes - first,
                             message.bytes / kWordBytes, adds);
    return found;
  };
  auto reader = by_reader.begin();
  for (auto writer = by_writer.begin(); writer != by_writer.end();) {
    const uint32_t pe = list_[*writer].to_pe;
    written.clear();
    for (; writer != by_writer.end() && list_[*writer].to_pe == pe; ++writer) {
      const pidcomm_pe_message &message = list_[*writer];
      if (each_run(dst_ + message.to, message.to_step, message, true))
        fail(PIDCOMM_ERR_WINDOW, kName, ": PE ", pe, " gets bytes of ", message.runs, " runs of ",
             message.bytes, " bytes from byte ", message.to,
             " of the destination window on twice; no two messages may write the same byte");
    }
    while (reader != by_reader.end() && list_[*reader].from_pe < pe) ++reader;
    for (; reader != by_reader.end() && list_[*reader].from_pe == pe; ++reader)
      is_in_place_ |= each_run(src_ + list_[*reader].from, list_[*reader].from_step,
                               list_[*reader], false);
  }
  if (!is_in_place_) return;
  for (const pidcomm_pe_message &message : list_)
    if (message.runs != 1 || message.bytes != list_[0].bytes || message.to != list_[0].to ||
        (!is_fill(message) && src_ + message.from != dst_ + message.to))
      fail(PIDCOMM_ERR_WINDOW, kName, ": a message reads bytes that another message writes; this "
           "needs another destination window (in place, all messages have one run, the same number "
           "of bytes, and the same place in MRAM at both PEs)");
}

void PeMessages::make_tables(const Hypercube &cube) {
  std::vector<std::vector<Lanes>> lanes_of_eg(kBanks);
  const std::vector<uint32_t> order = sorted_by(list_, [&](const pidcomm_pe_message &message) {
    return std::pair(cube.place_of(message.to_pe), message.to);
  });
  const uint32_t src_word = words_of(src_), dst_word = words_of(dst_);
  std::vector<Cut> cuts;
  for (auto at = order.begin(); at != order.end();) {
    const uint32_t rank = cube.place_of(list_[*at].to_pe) / (kLanes * kBanks);
    for (std::vector<Lanes> &lanes : lanes_of_eg) lanes.clear();
    for (; at != order.end(); ++at) {
      const pidcomm_pe_message &message = list_[*at];
      const uint32_t place = cube.place_of(message.to_pe);
      if (place / (kLanes * kBanks) != rank) break;
      const uint32_t from = is_fill(message) ? 0 : cube.place_of(message.from_pe);
      lanes_of_eg[place / kLanes % kBanks].push_back(
          {place % kLanes, dst_word + words_of(message.to), words_of(message.bytes), message.runs,
           words_of(message.to_step),
           is_fill(message) ? MessageStream{kFillEg, 0, 0,
                                            uint64_t{message.from_step} << 32 | message.from}
                            : MessageStream{from / kLanes, src_word + words_of(message.from),
                                            words_of(message.from_step), 0},
           is_fill(message) ? place % kLanes : from % kLanes});
    }
    if (!is_in_place_) cuts.clear();
    for (uint32_t bank = 0; bank < kBanks; ++bank) {
      std::vector<Lanes> &lanes = lanes_of_eg[bank];
      const auto new_cut = [&](uint32_t word, uint32_t words, uint32_t runs, uint32_t step) {
        cuts.push_back({rank * kBanks + bank, word, step, words, runs});
      };
      // Messages with several runs: a target for each pattern.
      const auto strided = std::stable_partition(
          lanes.begin(), lanes.end(), [](const Lanes &message) { return message.runs == 1; });
      const std::size_t first_cut = cuts.size();
      std::sort(strided, lanes.end(), [](const Lanes &a, const Lanes &b) {
        return std::pair(a.pattern(), a.lane) < std::pair(b.pattern(), b.lane);
      });
      for (auto message = strided; message != lanes.end(); ++message) {
        const bool is_new = message == strided || message->pattern() != (message - 1)->pattern() ||
                            message->lane == (message - 1)->lane;
        if (is_new) new_cut(message->word, message->words, message->runs, message->step_words);
        cuts.back().add(*message, 0);
      }
      // Other messages: a target between two ends of messages. The messages of a lane do not
      // overlap, and `lanes` has them in ascending order.
      std::vector<uint64_t> ends;
      std::array<std::vector<const Lanes *>, kLanes> waiting;
      for (auto message = lanes.begin(); message != strided; ++message) {
        ends.push_back(message->word);
        ends.push_back(message->end());
        waiting[message->lane].push_back(&*message);
      }
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
      std::array<std::size_t, kLanes> next{};
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        bool has_target = false;
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          while (next[lane] < waiting[lane].size() && waiting[lane][next[lane]]->end() <= ends[i])
            ++next[lane];
          if (next[lane] == waiting[lane].size()) continue;
          const Lanes &message = *waiting[lane][next[lane]];
          if (message.word > ends[i]) continue;
          if (!has_target)
            new_cut(static_cast<uint32_t>(ends[i]), static_cast<uint32_t>(ends[i + 1] - ends[i]),
                    1, 0);
          has_target = true;
          cuts.back().add(message, static_cast<uint32_t>(ends[i] - message.word));
        }
      }
      if (strided != lanes.end())
        for (std::size_t c = first_cut; c < cuts.size(); ++c) cuts[c].has_own_unit = true;
    }
    if (!is_in_place_) add_rank(cuts);
  }
  if (is_in_place_) add_unit(cuts.data(), cuts.data() + cuts.size());
}

/// Adds the units of a rank. A thread visits both banks of a pair together, because their lines are
/// adjacent.
void PeMessages::add_rank(std::vector<Cut> &cuts) {
  const auto key = [](const Cut &cut) {
    const uint32_t bank = cut.eg % kBanks, pair_order = bank % kPairEgs * 2 + bank / kPairEgs;
    return std::tuple(cut.has_own_unit, cut.has_own_unit ? pair_order : 0, cut.pattern(),
                      pair_order);
  };
  std::stable_sort(cuts.begin(), cuts.end(),
                   [&](const Cut &a, const Cut &b) { return key(a) < key(b); });
  for (std::size_t first = 0; first < cuts.size();) {
    std::size_t last = first + 1;
    if (cuts[first].has_own_unit) {
      while (last < cuts.size() && cuts[last].eg == cuts[first].eg) ++last;
    } else {
      std::size_t streams = cuts[first].source_count;
      while (last < cuts.size() && last - first < kGroupTargets && !cuts[last].has_own_unit &&
             cuts[last].pattern() == cuts[first].pattern() &&
             (streams += cuts[last].source_count) <= kGroupStreams)
        ++last;
    }
    add_unit(cuts.data() + first, cuts.data() + last);
    first = last;
  }
}

void PeMessages::add_unit(const Cut *first, const Cut *last) {
  const auto first_group = static_cast<uint32_t>(groups_.size());
  if (first->has_own_unit)
    for (const Cut *cut = first; cut != last; ++cut) add_group(cut, cut + 1);
  else
    add_group(first, last);
  units_.push_back({first_group, static_cast<uint32_t>(groups_.size()) - first_group});
}

void PeMessages::add_group(const Cut *first, const Cut *last) {
  MessageGroup group = {static_cast<uint32_t>(targets_.size()),
                        static_cast<uint32_t>(last - first),
                        static_cast<uint32_t>(streams_.size()),
                        0,
                        first->words,
                        first->runs};
  const uint64_t lines = uint64_t{group.words} * group.runs;
  for (const Cut *cut = first; cut != last; ++cut) {
    targets_.push_back({cut->eg, cut->word, cut->step_words,
                        static_cast<uint32_t>(sources_.size()), cut->source_count,
                        ~cut->lanes & 0xFFu});
    lines_.stored += lines;
    lines_.shuffled += lines * cut->source_count;
    if (targets_.back().keep_lanes != 0) lines_.kept += lines;
    for (uint32_t s = 0; s < cut->source_count; ++s) {
      const auto streams = streams_.begin() + group.first_stream;
      const auto stream = std::find(streams, streams_.end(), cut->streams[s]);
      sources_.push_back({cut->lane_maps[s], static_cast<uint32_t>(stream - streams)});
      if (stream != streams_.end()) continue;
      streams_.push_back(cut->streams[s]);
      if (cut->streams[s].eg != kFillEg) lines_.loaded += lines;
    }
  }
  group.stream_count = static_cast<uint32_t>(streams_.size()) - group.first_stream;
  groups_.push_back(group);
}

}  // namespace pidcomm
