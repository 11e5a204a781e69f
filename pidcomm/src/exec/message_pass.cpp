#include "exec/message_pass.h"

#include <algorithm>
#include <memory>

#include "base/geometry.h"
#include "exec/flush.h"
#include "exec/lines.h"
#include "exec/parallel.h"
#include "exec/row_worker.h"
#include "line_kernels/tuning.h"

namespace pidcomm {

namespace {

/// Lines that a call of messages in place keeps in the second-level cache.
constexpr uint32_t kInPlaceLines = 6144;

/// Input streams that a thread visits side by side; with more, the memory bandwidth is lower.
constexpr std::size_t kCallStreams = 64;

/// The most first lines of input streams, and of output streams, of all items of a call.
constexpr std::size_t kCallLines = 4096;

/// Lines that hold the words of PIDCOMM_FILL, in PIM order: for each word as many as the longest
/// item stores.
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
  uint64_t lines_ = 0;  // of the longest item
  std::byte *base_ = nullptr;
};

/// The state of one thread: its places in the tracks that it visits side by side, and a call of the
/// pass `merge` for their targets. An item of the call is a range of words of all these targets.
class MessageWorker {
 public:
  /// buffer: bytes_for(messages) bytes.
  MessageWorker(const HostPass &pass, const FillLines &fill, std::byte *buffer)
      : pass_(pass),
        messages_(*pass.plan.messages),
        fill_(fill),
        is_in_place_(messages_.is_in_place()),
        buffer_(buffer) {
    const std::size_t tracks = messages_.most_tracks(), streams = tracks * kLanes;
    places_.reserve(tracks);
    targets_.reserve(tracks);
    inputs_.reserve(streams);
    sources_.reserve(streams);
    in_.reserve(std::max(streams, kCallLines));
    out_.reserve(std::max(streams, kCallLines));
    items_.reserve(kCallLines);
  }

  /// In place, the pass copies the lines of a strip to a buffer.
  static uint64_t bytes_for(const PeMessages &messages) {
    return !messages.is_in_place()
               ? 0
               : (kInPlaceLines + uint64_t{messages.most_tracks()} * kLanes) * kLineBytes;
  }
  uint64_t lines_loaded() const { return lines_loaded_; }

  /// Moves the lines [first, last) of each track of a unit; if last is ~0, all lines from `first`
  /// on.
  void run(const MessageUnit &unit, uint64_t first, uint64_t last) {
    const MessageTrack *track = messages_.tracks().data() + unit.first_track;
    for (const MessageTrack *const end = track + unit.track_count; track != end;) {
      places_.clear();
      std::size_t streams = 0;
      for (; track != end; ++track) {
        const MessageTarget *const targets = messages_.targets().data() + track->first_target,
                                   *const targets_end = targets + track->target_count;
        streams += std::max_element(targets, targets_end, [](const auto &a, const auto &b) {
                     return a.stream_count < b.stream_count;
                   })->stream_count;
        if (!is_in_place_ && !places_.empty() && streams > kCallStreams) break;
        places_.push_back({targets, targets_end, static_cast<uint32_t>(first / targets->words),
                           static_cast<uint32_t>(first % targets->words)});
      }
      run_places(last);
    }
  }

 private:
  /// The next word of a track: word `word` of run `run` of a target.
  struct Place {
    const MessageTarget *target, *end;
    uint32_t run, word;

    uint64_t line() const { return uint64_t{run} * target->words + word; }
    bool is_at_end(uint64_t last) const { return target == end || line() >= last; }

    /// Returns whether there are more lines of the same target.
    bool advance(uint32_t words, uint64_t last) {
      word += words;
      if (word == target->words) {
        ++run;
        word = 0;
      }
      if (line() < std::min(last, target->lines())) return true;
      if (last == ~uint64_t{0}) *this = {target + 1, end, 0, 0};
      return false;
    }

    /// The word of the target, or of one of its streams.
    template <class Lines>
    uint64_t word_of(const Lines &lines) const {
      return lines.word + uint64_t{run} * lines.step_words + word;
    }
  };

  /// An input stream of the call: a stream at a place, or lines of a fill.
  struct Input {
    const MessageStream *stream;
    const Place *place;
    const std::byte *fill;  // else null

    bool is(const MessageStream &other, const Place &at) const {
      return stream->eg == other.eg && stream->step_words == other.step_words &&
             stream->fill == other.fill && place->word_of(*stream) == at.word_of(other) &&
             place->word == at.word && place->target->words == at.target->words;
    }
  };

  /// Moves the lines from the places to the ends of the tracks, or to line `last` of each.
  void run_places(uint64_t last) {
    for (;;) {
      std::erase_if(places_, [&](const Place &place) { return place.is_at_end(last); });
      if (places_.empty()) return;
      make_tables();
      for (bool has_tables = true; has_tables;) {
        const uint32_t words = item_words(last);
        if (words != words_ || !has_room()) flush();
        words_ = words;
        add_item();
        for (Place &place : places_) has_tables &= place.advance(words, last);
      }
      flush();
    }
  }

  /// Makes the tables of the call, for the targets of the places.
  void make_tables() {
    inputs_.clear();
    targets_.clear();
    sources_.clear();
    for (const Place &place : places_) {
      const MessageTarget &target = *place.target;
      targets_.push_back({static_cast<uint32_t>(targets_.size()),
                          static_cast<uint32_t>(sources_.size()), target.stream_count,
                          target.keep_lanes});
      for (uint32_t s = 0; s < target.stream_count; ++s) {
        const MessageStream &stream = messages_.streams()[target.first_stream + s];
        // Neighbouring targets of a shift load the same lines.
        const auto same = target.stream_count > kFewSources
                              ? inputs_.end()
                              : std::find_if(inputs_.begin(), inputs_.end(),
                                             [&](const Input &i) { return i.is(stream, place); });
        const auto number = static_cast<uint32_t>(same - inputs_.begin());
        if (same == inputs_.end()) {
          inputs_.push_back(
              {&stream, &place, stream.eg == kFillEg ? fill_.of(stream.fill) : nullptr});
        }
        sources_.push_back({stream.lane_map, number});
      }
    }
  }

  /// Returns the number of words of the next item: up to the end of a run of a target or of the
  /// region (see geometry.h), or to line `last`.
  uint32_t item_words(uint64_t last) const {
    uint64_t words = kRunWords;
    const auto limit = [&](uint64_t word) {
      words = std::min(words, kRunWords - word % kRunWords);
    };
    for (const Place &place : places_) {
      words = std::min({words, last - place.line(), uint64_t{place.target->words - place.word}});
      limit(place.word_of(*place.target));
    }
    for (const Input &input : inputs_)
      if (input.fill == nullptr) limit(input.place->word_of(*input.stream));
    return static_cast<uint32_t>(words);
  }

  bool has_room() const {
    return !is_in_place_ && in_.size() + inputs_.size() <= kCallLines &&
           out_.size() + targets_.size() <= kCallLines;
  }

  void add_item() {
    const auto line_of = [&](const auto &lines, const Place &place) {
      return position_of(pass_.eg_base[lines.eg], place.word_of(lines)).line;
    };
    items_.push_back({in_.data() + in_.size(), out_.data() + out_.size()});
    for (const Input &input : inputs_)
      in_.push_back(input.fill != nullptr ? input.fill : line_of(*input.stream, *input.place));
    for (const Place &place : places_) out_.push_back(line_of(*place.target, place));
  }

  /// Runs the call.
  void flush() {
    if (items_.empty()) return;
    const auto streams = static_cast<uint32_t>(inputs_.size()),
               targets = static_cast<uint32_t>(targets_.size());
    const uint32_t strip_words =
        is_in_place_ ? std::clamp(kInPlaceLines / streams, 1u, kStepWords) : kStepWords;
    const MergeUnit unit = {0, streams, 0, targets};
    const MergeTable table = {&unit,   nullptr, targets_.data(), sources_.data(), 1,
                              streams, targets, kRunWords,       strip_words,     is_in_place_};
    SweepCall call{};
    call.tuning = tuning_of(Pass::merge);
    call.items = items_.data();
    call.item_count = static_cast<uint32_t>(items_.size());
    call.in_count = streams;
    call.out_count = targets;
    call.words = words_;
    call.merge = &table;
    call.section_buffer = buffer_;
    pass_.kernels.pass[static_cast<int>(Pass::merge)](call);
    const auto kept =
        std::count_if(targets_.begin(), targets_.end(),
                      [](const MergeTarget &target) { return target.keep_lanes != 0; });
    lines_loaded_ += items_.size() * words_ * (streams + static_cast<uint64_t>(kept));
    items_.clear();
    in_.clear();
    out_.clear();
  }

  const HostPass &pass_;
  const PeMessages &messages_;
  const FillLines &fill_;
  const bool is_in_place_;
  uint64_t lines_loaded_ = 0;
  std::byte *const buffer_;
  std::vector<Place> places_;
  // The call: one target per place, and its items. The vectors keep the capacity that they begin
  // with, because items point into them.
  std::vector<Input> inputs_;
  std::vector<MergeTarget> targets_;
  std::vector<MergeSource> sources_;
  std::vector<const std::byte *> in_;
  std::vector<std::byte *> out_;
  std::vector<SweepItem> items_;
  uint32_t words_ = 0;
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
    const Pieces pieces = pieces_of(messages.units().size(), unit.even_lines, threads);
    for (uint64_t piece = 0; piece < pieces.count; ++piece)
      shares.push_back({nullptr, &unit, pieces.start_of(piece),
                        piece + 1 == pieces.count ? ~uint64_t{0} : pieces.start_of(piece + 1)});
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
  std::byte *buffer = pass.buffer + fill.bytes();
  for (int thread = 0; thread < threads; ++thread) {
    std::byte *const rows = buffer + MessageWorker::bytes_for(messages);
    workers.push_back(std::unique_ptr<Workers>(
        new Workers{MessageWorker(pass, fill, buffer), RowWorker(pass, rows)}));
    buffer = rows + RowWorker::bytes_for(messages);
  }
  WorkQueue queue(shares.size(), threads);
  fill.write(pass.buffer);
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
