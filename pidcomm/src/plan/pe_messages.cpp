#include "plan/pe_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/geometry.h"
#include "plan/passes.h"
#include "plan/window.h"

namespace pidcomm {

namespace {

constexpr const char *kName = "sendrecv";

/// Ranks whose entangled groups a unit visits side by side, and the number for messages that have
/// at least kLongPeBytes per PE. The memory loads both banks of a pair together. If the banks of a
/// pair belong to two units, it loads them twice; with more ranks per unit, this happens less.
constexpr uint32_t kUnitRanks = 2, kLongUnitRanks = 4;
constexpr uint64_t kLongPeBytes = 256u << 10;

/// Words of the destination of a unit of kUnitRanks ranks, unless one target has more.
constexpr uint32_t kUnitWords = 1u << 15;

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

enum UnitKind : uint32_t {
  kByWords,         // targets that begin in the same words of a unit
  kByPattern,       // targets with the same runs
  kOneAfterAnother  // all targets of an entangled group, because some store lanes of the same lines
};

/// A target that has no track yet.
struct PeMessages::Cut {
  uint32_t eg, word, step_words, words, runs;
  uint32_t lanes = 0;  // that messages write
  uint32_t stream_count = 0;
  std::array<MessageStream, kLanes> streams{};
  std::array<uint32_t, 4> unit{};  // UnitKind, and what distinguishes units of this kind
  uint32_t track = 0;

  uint64_t lines() const { return uint64_t{words} * runs; }

  /// Adds a message that writes the words of the target, from word `skipped` of its run on.
  void add(const Lanes &message, uint32_t skipped) {
    MessageStream from = message.from;
    if (from.eg != kFillEg) from.word += skipped;
    uint32_t s = 0;
    while (s < stream_count &&
           (streams[s].eg != from.eg || streams[s].word != from.word ||
            streams[s].step_words != from.step_words || streams[s].fill != from.fill))
      ++s;
    if (s == stream_count) {
      streams[s] = from;
      streams[s].lane_map = kNoLane * 0x0101010101010101u;
      ++stream_count;
    }
    uint64_t &map = streams[s].lane_map;
    const uint32_t shift = 8 * message.lane;
    map = (map & ~(uint64_t{0xFF} << shift)) | uint64_t{message.from_lane} << shift;
    lanes |= 1u << message.lane;
  }
};

PeMessages::PeMessages(const Hypercube &cube, const pidcomm_request &request, uint64_t heap_base)
    : pes_(cube.pes) {
  if (request.host_bytes % sizeof(pidcomm_pe_message) != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, kName, ": host_bytes (", request.host_bytes,
         ") must be a multiple of the ", sizeof(pidcomm_pe_message),
         " bytes of a pidcomm_pe_message");
  const std::size_t count = request.host_bytes / sizeof(pidcomm_pe_message);
  if (count != 0 && request.host == nullptr)
    fail(PIDCOMM_ERR_HOST_BUFFER, kName, ": the array of ", count, " messages is null");
  if (count > UINT32_MAX)
    fail(PIDCOMM_ERR_SIZE, kName, ": ", count, " messages; a call has at most ", UINT32_MAX);
  if (request.host_stride != 0 || request.host_transposes != 0)
    fail(PIDCOMM_ERR_HOST_BUFFER, kName, ": host_stride (", request.host_stride,
         ") and host_transposes (", request.host_transposes, ") must be 0");
  given_.resize(count);
  if (count != 0) std::memcpy(given_.data(), request.host, request.host_bytes);
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
    if (message.runs > 1 && message.bytes != 0 && message.to_step < message.bytes)
      fail(PIDCOMM_ERR_WINDOW, kName, ": message ", i, " has ", message.runs, " runs of ",
           message.bytes, " bytes with to_step ", message.to_step,
           "; a run must not write bytes of the run before");
    if (!is_fill(message)) {
      check_pe("from_pe", message.from_pe);
      check_words("from", message.from);
      check_words("from_step", message.from_step);
    }
    if (message.bytes == 0) continue;
    if (message.runs == 1) message.to_step = 0;
    if (message.runs == 1 && !is_fill(message)) message.from_step = 0;
    if (!is_fill(message)) in_bytes_ = std::max(in_bytes_, end_of(message.from, message.from_step));
    out_bytes_ = std::max(out_bytes_, end_of(message.to, message.to_step));
    bytes_ += uint64_t{message.bytes} * message.runs;
    list_.push_back(message);
  }
}

void PeMessages::check_overlaps() {
  const std::vector<uint32_t> by_writer =
      sorted_by(list_, [](const pidcomm_pe_message &message) { return message.to_pe; });
  const std::vector<uint32_t> by_reader =
      !windows_meet()
          ? std::vector<uint32_t>()
          : sorted_by(list_, [](const pidcomm_pe_message &message) { return message.from_pe; });
  const uint64_t first = (windows_meet() ? std::min(src_, dst_) : dst_) / kWordBytes,
                 end = (windows_meet() ? std::max(src_ + in_bytes_, dst_ + out_bytes_)
                                       : dst_ + out_bytes_) /
                       kWordBytes;
  WordSet written(end - first);
  const auto each_run = [&](uint64_t begin, uint64_t step, const pidcomm_pe_message &message,
                            bool adds) {
    bool found = false;
    for (uint64_t run = 0; run < message.runs; ++run)
      found |= written.visit((begin + run * step) / kWordBytes - first, message.bytes / kWordBytes,
                             adds);
    return found;
  };
  auto reader = by_reader.begin();
  for (auto writer = by_writer.begin(); writer != by_writer.end();) {
    const uint32_t pe = list_[*writer].to_pe;
    written.clear();
    for (; writer != by_writer.end() && list_[*writer].to_pe == pe; ++writer) {
      const pidcomm_pe_message &message = list_[*writer];
      if (each_run(dst_ + message.to, message.to_step, message, true))
        fail(PIDCOMM_ERR_WINDOW, kName, ": two messages write bytes of PE ", pe, " from byte ",
             message.to, " of the destination window; no two messages may write the same byte");
    }
    while (reader != by_reader.end() && list_[*reader].from_pe < pe) ++reader;
    for (; reader != by_reader.end() && list_[*reader].from_pe == pe; ++reader)
      is_in_place_ |=
          each_run(src_ + list_[*reader].from, list_[*reader].from_step, list_[*reader], false);
  }
  if (!is_in_place_) return;
  for (const pidcomm_pe_message &message : list_)
    if (message.runs != 1 || message.bytes != list_[0].bytes || message.to != list_[0].to ||
        (!is_fill(message) && src_ + message.from != dst_ + message.to))
      fail(PIDCOMM_ERR_WINDOW, kName,
           ": a message reads bytes that another message writes; this "
           "needs another destination window (in place, all messages have one run, the same number "
           "of bytes, and the same place in MRAM at both PEs)");
}

uint32_t PeMessages::unit_ranks() const {
  return bytes_ < kLongPeBytes * pes_ ? kUnitRanks : kLongUnitRanks;
}

void PeMessages::make_tables(const Hypercube &cube) {
  const std::vector<uint32_t> order = sorted_by(list_, [&](const pidcomm_pe_message &message) {
    return std::pair(cube.place_of(message.to_pe), message.to);
  });
  const uint32_t src_word = words_of(src_), dst_word = words_of(dst_);
  const uint32_t unit_egs = kBanks * unit_ranks();
  std::vector<Cut> cuts;
  std::vector<Lanes> lanes;
  uint32_t unit = ~0u;
  for (auto at = order.begin(); at != order.end();) {
    const uint32_t eg = cube.place_of(list_[*at].to_pe) / kLanes;
    lanes.clear();
    for (; at != order.end(); ++at) {
      const pidcomm_pe_message &message = list_[*at];
      const uint32_t place = cube.place_of(message.to_pe);
      if (place / kLanes != eg) break;
      const uint32_t from = is_fill(message) ? 0 : cube.place_of(message.from_pe);
      lanes.push_back(
          {place % kLanes, dst_word + words_of(message.to), words_of(message.bytes), message.runs,
           words_of(message.to_step),
           is_fill(message)
               ? MessageStream{kFillEg, 0, 0, uint64_t{message.from_step} << 32 | message.from, 0}
               : MessageStream{from / kLanes, src_word + words_of(message.from),
                               words_of(message.from_step), 0, 0},
           is_fill(message) ? place % kLanes : from % kLanes});
    }
    if (!is_in_place_ && eg / unit_egs != unit) add_units(cuts);
    unit = eg / unit_egs;
    cut(eg, lanes, cuts);
  }
  add_units(cuts);
}

/// Cuts the messages to an entangled group, which are in the order of lanes and words, and gives
/// each cut its unit and track.
void PeMessages::cut(uint32_t eg, std::vector<Lanes> &lanes, std::vector<Cut> &cuts) {
  const std::size_t first_cut = cuts.size();
  const auto new_cut = [&](uint32_t word, uint32_t words, uint32_t runs, uint32_t step) {
    cuts.push_back({eg, word, step, words, runs});
  };
  // Messages with several runs: a target for each pattern.
  const auto strided = std::stable_partition(
      lanes.begin(), lanes.end(), [](const Lanes &message) { return message.runs == 1; });
  std::sort(strided, lanes.end(), [](const Lanes &a, const Lanes &b) {
    return std::pair(a.pattern(), a.lane) < std::pair(b.pattern(), b.lane);
  });
  for (auto message = strided; message != lanes.end(); ++message) {
    if (message == strided || message->pattern() != (message - 1)->pattern())
      new_cut(message->word, message->words, message->runs, message->step_words);
    cuts.back().add(*message, 0);
  }
  // Other messages: a target between two ends of messages. The messages of a lane do not overlap.
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
        new_cut(static_cast<uint32_t>(ends[i]), static_cast<uint32_t>(ends[i + 1] - ends[i]), 1, 0);
      has_target = true;
      cuts.back().add(message, static_cast<uint32_t>(ends[i] - message.word));
    }
  }

  // Lines with many sources, and no messages with several runs: row units. Row units load complete
  // lines of the source window, so no other thread may store lines there.
  uint64_t lines = 0, sources = 0;
  for (std::size_t c = first_cut; c < cuts.size(); ++c) {
    lines += cuts[c].lines();
    sources += cuts[c].lines() * cuts[c].stream_count;
  }
  if (!windows_meet() && strided == lanes.end() && sources > lines * kFewSources) {
    cuts.resize(first_cut);
    add_row_units(eg, lanes);
    return;
  }

  // Two cuts may store different lanes of the same lines if one has several runs.
  bool meet = false;
  if (strided != lanes.end()) {
    const uint64_t first = dst_ / kWordBytes;
    WordSet stored(out_bytes_ / kWordBytes);
    for (std::size_t c = first_cut; c < cuts.size(); ++c)
      for (uint64_t run = 0; run < cuts[c].runs; ++run)
        meet |= stored.visit(cuts[c].word + run * cuts[c].step_words - first, cuts[c].words, true);
  }
  // A thread visits both banks of a pair together, because their lines are adjacent.
  const uint32_t bank = eg % kBanks,
                 place = eg / kBanks * kBanks + bank % kPairEgs * 2 + bank / kPairEgs;
  for (std::size_t c = first_cut; c < cuts.size(); ++c) {
    Cut &made = cuts[c];
    made.track = place;
    if (is_in_place_) continue;
    if (meet)
      made.unit = {kOneAfterAnother, eg, 0, 0};
    else if (made.runs > 1)
      made.unit = {kByPattern, made.word, made.step_words, made.words};
    else
      made.unit = {kByWords, made.word / (kUnitWords * kUnitRanks / unit_ranks()), 0, 0};
  }
}

void PeMessages::add_units(std::vector<Cut> &cuts) {
  const auto key = [](const Cut &cut) { return std::tuple(cut.unit, cut.track, cut.word); };
  std::stable_sort(cuts.begin(), cuts.end(),
                   [&](const Cut &a, const Cut &b) { return key(a) < key(b); });
  for (auto first = cuts.begin(); first != cuts.end();) {
    const auto last =
        std::find_if(first, cuts.end(), [&](const Cut &cut) { return cut.unit != first->unit; });
    bool is_even = true;
    for (auto cut = first; cut != last; ++cut)
      is_even &= (cut == first || cut->track != (cut - 1)->track) &&
                 std::pair(cut->words, cut->runs) == std::pair(first->words, first->runs);
    const auto first_track = static_cast<uint32_t>(tracks_.size());
    const uint64_t even_lines = is_even ? first->lines() : 0;
    for (auto cut = first; cut != last; ++cut) {
      if (cut == first || cut->track != (cut - 1)->track)
        tracks_.push_back({static_cast<uint32_t>(targets_.size()), 0});
      ++tracks_.back().target_count;
      add_target(*cut);
    }
    units_.push_back(
        {first_track, static_cast<uint32_t>(tracks_.size()) - first_track, even_lines});
    most_tracks_ = std::max(most_tracks_, units_.back().track_count);
    first = last;
  }
  cuts.clear();
}

void PeMessages::add_row_units(uint32_t eg, const std::vector<Lanes> &lanes) {
  std::array<uint32_t, kLanes + 1> first_message{};
  uint32_t first_word = ~0u;
  uint64_t end_word = 0, words = 0;
  auto message = lanes.begin();
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    first_message[lane] = static_cast<uint32_t>(row_messages_.size());
    for (; message != lanes.end() && message->lane == lane; ++message) {
      row_messages_.push_back({message->word, message->words, message->from.eg, message->from_lane,
                               message->from.word, message->from.fill});
      longest_row_words_ = std::max(longest_row_words_, message->words);
      first_word = std::min(first_word, message->word);
      end_word = std::max(end_word, message->end());
      words += message->words;
    }
  }
  first_message[kLanes] = static_cast<uint32_t>(row_messages_.size());
  for (uint64_t word = first_word; word < end_word; word += kUnitWords - word % kUnitWords)
    row_units_.push_back(
        {eg, static_cast<uint32_t>(word),
         static_cast<uint32_t>(std::min(word + kUnitWords - word % kUnitWords, end_word)),
         first_message});
  const uint64_t lines = end_word - first_word, kept = lines * kLanes - words;
  lines_.stored += lines;
  lines_.loaded += (words + kLanes - 1) / kLanes;
  lines_.shuffled += 4 * lines;  // two turns with three exchanges of lanes and a transpose, each
                                 // for 8 lines
  lines_.kept += std::min(lines, kept);
}

void PeMessages::add_target(const Cut &cut) {
  const MessageTarget target = {cut.eg,           cut.word,
                                cut.step_words,   cut.words,
                                cut.runs,         static_cast<uint32_t>(streams_.size()),
                                cut.stream_count, ~cut.lanes & 0xFFu};
  targets_.push_back(target);
  lines_.stored += target.lines();
  lines_.shuffled += target.lines() * cut.stream_count;
  if (target.keep_lanes != 0) lines_.kept += target.lines();
  for (uint32_t s = 0; s < cut.stream_count; ++s) {
    streams_.push_back(cut.streams[s]);
    if (cut.streams[s].eg != kFillEg) lines_.loaded += target.lines();
  }
}

}  // namespace pidcomm
