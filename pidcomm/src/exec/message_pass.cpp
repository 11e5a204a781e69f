#include "exec/message_pass.h"

#include <algorithm>
#include <memory>

#include "base/geometry.h"
#include "exec/flush.h"
#include "exec/lines.h"
#include "exec/parallel.h"
#include "exec/row_worker.h"

namespace pidcomm {

namespace {

/// Lines that a call of messages in place keeps in the second-level cache.
constexpr uint32_t kInPlaceLines = 6144;

/// The largest call. The memory bandwidth is lower if a thread visits more streams at a time.
constexpr std::size_t kCallStreams = 64, kCallTargets = 32;

/// Lines that hold the words of PIDCOMM_FILL, in PIM order: for each word as many as the longest
/// call stores.
class FillLines {
 public:
  explicit FillLines(const PeMessages &messages) {
    for (const MessageTarget &target : messages.targets())
      for (uint32_t s = 0; s < target.stream_count; ++s)
        if (const MessageStream &stream = messages.streams()[target.first_stream + s];
            stream.eg == kFillEg) {
          words_.push_back(stream.fill);
          lines_ = std::max(lines_, std::min<uint64_t>(target.words, kRunWords));
        }
    std::sort(words_.begin(), words_.end());
    words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  }
  uint64_t bytes() const { return words_.size() * lines_ * kLineStride; }

  void write(std::byte *base) {
    base_ = base;
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (uint64_t line = 0; line < lines_; ++line)
        for (uint64_t byte = 0; byte < kLineBytes; ++byte)
          base_[(i * lines_ + line) * kLineStride + byte] =
              static_cast<std::byte>(words_[i] >> byte / kLanes * 8);
  }
  const std::byte *of(uint64_t word) const {
    const auto at = std::lower_bound(words_.begin(), words_.end(), word) - words_.begin();
    return base_ + static_cast<uint64_t>(at) * lines_ * kLineStride;
  }

 private:
  std::vector<uint64_t> words_;
  uint64_t lines_ = 0;  // of the longest call
  std::byte *base_ = nullptr;
};

/// The state of one thread: the places of the tracks of a unit, and a call of the pass `merge` that
/// grows target by target.
class MessageWorker {
 public:
  /// buffer: bytes_for(messages) bytes.
  MessageWorker(const HostPass &pass, const FillLines &fill, std::byte *buffer)
      : pass_(pass),
        messages_(*pass.plan.messages),
        fill_(fill),
        is_in_place_(messages_.is_in_place()),
        buffer_(buffer) {
    const uint32_t tracks = messages_.most_tracks();
    places_.resize(tracks);
    call_targets_ = is_in_place_ ? tracks : kCallTargets;
    call_streams_ = is_in_place_ ? tracks * kLanes : kCallStreams;
    in_.reserve(call_streams_ + kLanes);
    numbers_.reserve(call_streams_ + kLanes);
    sources_.reserve(call_targets_ * kLanes + kLanes);
    out_.reserve(call_targets_ + 1);
    targets_.reserve(call_targets_ + 1);
  }

  /// In place, the pass copies the lines of a strip to a buffer.
  static uint64_t bytes_for(const PeMessages &messages) {
    return !messages.is_in_place()
               ? 0
               : (kInPlaceLines + uint64_t{messages.most_tracks()} * kLanes) * kLineBytes;
  }
  uint64_t lines_loaded() const { return lines_loaded_; }

  /// Moves the lines [first, last) of each track of a unit; all lines if first is 0 and last is ~0.
  void run(const MessageUnit &unit, uint64_t first, uint64_t last) {
    const MessageTrack *const tracks = messages_.tracks().data() + unit.first_track;
    for (uint32_t t = 0; t < unit.track_count; ++t) places_[t] = {0, first};
    for (;;) {
      uint64_t words = ~uint64_t{0};
      for (uint32_t t = 0; t < unit.track_count; ++t)
        words = std::min(words, words_at(tracks[t], places_[t], last));
      if (words == ~uint64_t{0}) break;
      for (uint32_t t = 0; t < unit.track_count; ++t)
        add(tracks[t], places_[t], static_cast<uint32_t>(words), last);
    }
    flush();
  }

 private:
  /// A target of a track, and the number of its lines that have been added to a call.
  struct Place {
    uint32_t target;
    uint64_t line;
  };

  const MessageTarget *target_at(const MessageTrack &track, const Place &place,
                                 uint64_t last) const {
    if (place.target == track.target_count) return nullptr;
    const MessageTarget &target = messages_.targets()[track.first_target + place.target];
    return place.line < std::min(last, target.lines()) ? &target : nullptr;
  }

  /// Returns the number of words at a place that one call can move, up to line `last`; ~0 at the
  /// end of the track.
  uint64_t words_at(const MessageTrack &track, const Place &place, uint64_t last) const {
    const MessageTarget *const target = target_at(track, place, last);
    if (target == nullptr) return ~uint64_t{0};
    const uint64_t run = place.line / target->words, word = place.line % target->words;
    uint64_t words = std::min(last - place.line, target->words - word);
    const auto limit = [&](const auto &lines) {
      words = std::min(words, kRunWords - (lines.word + run * lines.step_words + word) % kRunWords);
    };
    limit(*target);
    for (uint32_t s = 0; s < target->stream_count; ++s)
      if (const MessageStream &stream = messages_.streams()[target->first_stream + s];
          stream.eg != kFillEg)
        limit(stream);
    return words;
  }

  /// Adds `words` words of a track to the call, unless the place is the end of the track.
  void add(const MessageTrack &track, Place &place, uint32_t words, uint64_t last) {
    const MessageTarget *const at = target_at(track, place, last);
    if (at == nullptr) return;
    const MessageTarget &target = *at;
    const uint64_t run = place.line / target.words, word = place.line % target.words;
    const MessageStream *const streams = messages_.streams().data() + target.first_stream;
    const auto first_of = [&](const auto &lines) {
      return lines.word + run * lines.step_words + word;
    };
    if (words != words_ || in_.size() + target.stream_count > call_streams_ ||
        out_.size() == call_targets_)
      flush();
    words_ = words;
    const auto line_of = [&](const auto &lines) {
      return position_of(pass_.eg_base[lines.eg], first_of(lines)).line;
    };
    targets_.push_back({static_cast<uint32_t>(out_.size()), static_cast<uint32_t>(sources_.size()),
                        target.stream_count, target.keep_lanes});
    out_.push_back(line_of(target));
    for (uint32_t s = 0; s < target.stream_count; ++s) {
      const std::byte *const line =
          streams[s].eg == kFillEg ? fill_.of(streams[s].fill) : line_of(streams[s]);
      // Neighbouring targets of a shift load the same lines.
      const auto same =
          target.stream_count <= kFewSources ? std::find(in_.begin(), in_.end(), line) : in_.end();
      const auto stream = static_cast<std::size_t>(same - in_.begin());
      if (stream == in_.size()) {
        in_.push_back(line);
        numbers_.push_back(static_cast<uint32_t>(stream));
      }
      sources_.push_back({streams[s].lane_map, static_cast<uint32_t>(stream)});
    }
    place.line += words;
    if (place.line == target.lines() && last == ~uint64_t{0}) place = {place.target + 1, 0};
  }

  /// Runs the call.
  void flush() {
    if (out_.empty()) return;
    const auto streams = static_cast<uint32_t>(in_.size()),
               targets = static_cast<uint32_t>(out_.size());
    const uint32_t strip_words =
        is_in_place_ ? std::clamp(kInPlaceLines / streams, 1u, kStepWords) : kStepWords;
    const MergeUnit unit = {0, streams, 0, targets};
    const MergeTable table = {&unit,       numbers_.data(), targets_.data(), sources_.data(),
                              1,           streams,         targets,         kRunWords,
                              strip_words, is_in_place_};
    lines_loaded_ += uint64_t{streams} * words_;
    for (const MergeTarget &target : targets_)
      if (target.keep_lanes != 0) lines_loaded_ += words_;
    const SweepItem item = {in_.data(), out_.data()};
    SweepCall call{};
    call.items = &item;
    call.item_count = 1;
    call.in_count = streams;
    call.out_count = targets;
    call.words = words_;
    call.merge = &table;
    call.section_buffer = buffer_;
    pass_.kernels.pass[static_cast<int>(Pass::merge)](call);
    in_.clear();
    numbers_.clear();
    out_.clear();
    targets_.clear();
    sources_.clear();
  }

  const HostPass &pass_;
  const PeMessages &messages_;
  const FillLines &fill_;
  const bool is_in_place_;
  std::size_t call_streams_ = 0, call_targets_ = 0;
  uint32_t words_ = 0;
  uint64_t lines_loaded_ = 0;
  std::byte *const buffer_;
  std::vector<Place> places_;      // by track
  std::vector<uint32_t> numbers_;  // 0, 1, ...
  std::vector<const std::byte *> in_;
  std::vector<std::byte *> out_;
  std::vector<MergeTarget> targets_;
  std::vector<MergeSource> sources_;
};

/// Work of one thread: a row unit, or lines of a unit (see MessageWorker::run).
struct Share {
  const RowUnit *rows;
  const MessageUnit *unit;
  uint64_t first, last;
};

std::vector<Share> shares_of(const PeMessages &messages, int threads) {
  std::vector<Share> shares;
  for (const RowUnit &unit : messages.row_units()) shares.push_back({&unit, nullptr, 0, 0});
  for (const MessageUnit &unit : messages.units()) {
    const uint64_t pieces =
        std::max<uint64_t>(1, pieces_of(messages.units().size(), unit.even_lines, threads));
    const uint64_t chunks = (unit.even_lines + kShareWords - 1) / kShareWords;
    for (uint64_t piece = 0; piece < pieces; ++piece)
      shares.push_back(
          {nullptr, &unit, chunks * piece / pieces * kShareWords,
           piece + 1 == pieces ? ~uint64_t{0} : chunks * (piece + 1) / pieces * kShareWords});
  }
  return shares;
}

}  // namespace

uint64_t message_buffer_bytes(const PeMessages &messages, int threads) {
  const uint64_t of_thread = MessageWorker::bytes_for(messages) + RowWorker::bytes_for(messages);
  return FillLines(messages).bytes() + static_cast<uint64_t>(threads) * of_thread;
}

void flush_messages(const HostPass &pass, const std::vector<BankPair> &bank_pairs) {
  const Plan &plan = pass.plan;
  const PeMessages &messages = *plan.messages;
  if (!messages.row_units().empty()) {  // they load most lines of the windows
    flush_window(pass.kernels, bank_pairs, plan.src, plan.in_pe_bytes, pass.threads);
    if (messages.lines().kept != 0)
      flush_window(pass.kernels, bank_pairs, plan.dst, plan.out_pe_bytes, pass.threads);
  }
  const std::vector<MessageTarget> &targets = messages.targets();
  WorkQueue queue(targets.size(), pass.threads);
  run_threads(pass.threads, [&](int thread) {
    queue.each(thread, [&](uint64_t number) {
      const MessageTarget &target = targets[number];
      const auto flush = [&](const auto &lines) {
        for (uint32_t run = 0; run < target.runs; ++run)
          for (uint32_t word = 0; word < target.words;) {
            const LinePosition position = position_of(
                pass.eg_base[lines.eg], lines.word + uint64_t{run} * lines.step_words + word);
            const uint32_t words = std::min(target.words - word, position.run_words);
            pass.kernels.flush(position.line, words, 1);
            word += words;
          }
      };
      for (uint32_t s = 0; s < target.stream_count; ++s)
        if (const MessageStream &stream = messages.streams()[target.first_stream + s];
            stream.eg != kFillEg)
          flush(stream);
      if (target.keep_lanes != 0) flush(target);
    });
    pass.kernels.fence();
  });
}

void run_messages(const HostPass &pass, pidcomm_trace &trace) {
  const PeMessages &messages = *pass.plan.messages;
  FillLines fill(messages);
  const std::vector<Share> shares = shares_of(messages, pass.threads);
  const int threads =
      static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), shares.size()));
  struct Workers {
    MessageWorker lines;
    RowWorker rows;
  };
  std::vector<std::unique_ptr<Workers>> workers;
  std::byte *buffer = pass.host_lines.base + fill.bytes();
  for (int thread = 0; thread < threads; ++thread) {
    std::byte *const rows = buffer + MessageWorker::bytes_for(messages);
    workers.push_back(std::unique_ptr<Workers>(
        new Workers{MessageWorker(pass, fill, buffer), RowWorker(pass, rows)}));
    buffer = rows + RowWorker::bytes_for(messages);
  }
  WorkQueue queue(shares.size(), threads);
  fill.write(pass.host_lines.base);
  run_threads(threads, [&](int thread) {
    queue.each(thread, [&](uint64_t number) {
      Workers &own = *workers[static_cast<std::size_t>(thread)];
      const Share &share = shares[number];
      share.rows != nullptr ? own.rows.run(*share.rows)
                            : own.lines.run(*share.unit, share.first, share.last);
    });
    pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
  });
  for (const auto &own : workers)
    trace.mram_bytes_read += (own->lines.lines_loaded() + own->rows.lines_loaded()) * kLineBytes;
}

}  // namespace pidcomm
