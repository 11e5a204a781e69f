#include "exec/message_pass.h"

#include <algorithm>
#include <memory>

#include "base/geometry.h"
#include "exec/host_buffer.h"
#include "exec/lines.h"
#include "exec/parallel.h"

namespace pidcomm {

namespace {

/// Lines that stay in the second-level cache, for messages in place.
constexpr uint32_t kCachedLines = 6144;

/// Calls of the pass with fewer words also take the lines that follow.
constexpr uint32_t kLongWords = 256;
constexpr std::size_t kCallStreams = 24;

/// Lines that hold the words of PIDCOMM_FILL: for each word a run of lines, in PIM order.
class FillLines {
 public:
  explicit FillLines(const PeMessages &messages) {
    for (const MessageStream &stream : messages.streams())
      if (stream.eg == kFillEg) words_.push_back(stream.fill);
    std::sort(words_.begin(), words_.end());
    words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
  }
  uint64_t bytes() const { return words_.size() * kRunWords * kLineStride; }

  void write(std::byte *base) {
    base_ = base;
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (uint64_t line = 0; line < kRunWords; ++line)
        for (uint64_t byte = 0; byte < kLineBytes; ++byte)
          base_[(i * kRunWords + line) * kLineStride + byte] =
              static_cast<std::byte>(words_[i] >> byte / kLanes * 8);
  }
  const std::byte *of(uint64_t word) const {
    const auto at = std::lower_bound(words_.begin(), words_.end(), word) - words_.begin();
    return base_ + static_cast<uint64_t>(at) * kRunWords * kLineStride;
  }

 private:
  std::vector<uint64_t> words_;
  std::byte *base_ = nullptr;
};

/// The state of one thread: a call of the pass `merge` that grows line by line.
class MessageWorker {
 public:
  MessageWorker(const HostPass &pass, const FillLines &fill)
      : pass_(pass),
        messages_(*pass.plan.messages),
        fill_(fill),
        is_in_place_(messages_.is_in_place()) {
    std::size_t streams = kCallStreams, targets = kCallStreams, sources = kCallStreams * kLanes;
    for (const MessageGroup &group : messages_.groups()) {
      streams = std::max<std::size_t>(streams, group.stream_count);
      targets = std::max<std::size_t>(targets, group.target_count);
      sources = std::max<std::size_t>(sources, group.target_count * kLanes);
    }
    in_.reserve(streams);
    out_.reserve(targets);
    targets_.reserve(targets);
    sources_.reserve(sources);
    for (uint32_t stream = 0; stream < streams; ++stream) numbers_.push_back(stream);
    strip_words_ = is_in_place_ ? std::clamp(kCachedLines / static_cast<uint32_t>(streams), 1u,
                                             kStepWords)
                                : kStepWords;
    if (is_in_place_) buffer_ = HostBuffer(streams * strip_words_ * kLineBytes);
  }

  std::size_t buffer_bytes() const { return buffer_.size(); }

  /// Moves the words [first, last) of all runs of the groups of a unit.
  void run(const MessageUnit &unit, uint32_t first, uint32_t last) {
    for (uint32_t g = unit.first_group; g < unit.first_group + unit.group_count; ++g) {
      const MessageGroup &group = messages_.groups()[g];
      const uint32_t end = std::min(last, group.words);
      for (uint32_t run = 0; run < group.runs; ++run)
        for (uint32_t word = first; word < end;) word += add(group, run, word, end - word);
    }
    flush();
  }

 private:
  /// Adds the lines of up to `words` words of a group to the call. Returns the number of words.
  uint32_t add(const MessageGroup &group, uint32_t run, uint32_t word, uint32_t words) {
    const MessageStream *const streams = messages_.streams().data() + group.first_stream;
    const MessageTarget *const targets = messages_.targets().data() + group.first_target;
    const auto limit = [&](uint32_t first, uint32_t step) {
      words = static_cast<uint32_t>(
          std::min<uint64_t>(words, kRunWords - (first + run * step + word) % kRunWords));
    };
    for (uint32_t s = 0; s < group.stream_count; ++s)
      streams[s].eg == kFillEg ? limit(0, 0) : limit(streams[s].word, streams[s].step_words);
    for (uint32_t t = 0; t < group.target_count; ++t) limit(targets[t].word, targets[t].step_words);
    if (words != words_ || in_.size() + group.stream_count > in_.capacity() ||
        out_.size() + group.target_count > out_.capacity())
      flush();
    words_ = words;
    const auto line_of = [&](uint32_t eg, uint32_t first, uint32_t step) {
      return position_of(pass_.eg_base[eg], first + run * step + word).line;
    };
    const auto first_stream = static_cast<uint32_t>(in_.size());
    for (uint32_t s = 0; s < group.stream_count; ++s)
      in_.push_back(streams[s].eg == kFillEg
                        ? fill_.of(streams[s].fill)
                        : line_of(streams[s].eg, streams[s].word, streams[s].step_words));
    for (uint32_t t = 0; t < group.target_count; ++t) {
      const MessageTarget &target = targets[t];
      targets_.push_back({static_cast<uint32_t>(out_.size()),
                          static_cast<uint32_t>(sources_.size()), target.source_count,
                          target.keep_lanes});
      out_.push_back(line_of(target.eg, target.word, target.step_words));
      for (uint32_t s = 0; s < target.source_count; ++s) {
        const MessageSource &source = messages_.sources()[target.first_source + s];
        sources_.push_back({source.lane_map, first_stream + source.stream});
      }
    }
    if (words >= kLongWords) flush();
    return words;
  }

  /// Runs the call.
  void flush() {
    if (out_.empty()) return;
    const auto streams = static_cast<uint32_t>(in_.size()),
               targets = static_cast<uint32_t>(out_.size());
    const MergeUnit unit = {0, streams, 0, targets};
    const MergeTable table = {&unit,    numbers_.data(), targets_.data(), sources_.data(),
                              1,        streams,         targets,         kRunWords,
                              strip_words_, is_in_place_};
    const SweepItem item = {in_.data(), out_.data()};
    SweepCall call{};
    call.items = &item;
    call.item_count = 1;
    call.in_count = streams;
    call.out_count = targets;
    call.words = words_;
    call.merge = &table;
    call.section_buffer = buffer_.data();
    pass_.kernels.pass[static_cast<int>(Pass::merge)](call);
    in_.clear();
    out_.clear();
    targets_.clear();
    sources_.clear();
  }

  const HostPass &pass_;
  const PeMessages &messages_;
  const FillLines &fill_;
  const bool is_in_place_;
  uint32_t strip_words_ = 0, words_ = 0;
  HostBuffer buffer_;
  std::vector<uint32_t> numbers_;  // 0, 1, ...
  std::vector<const std::byte *> in_;
  std::vector<std::byte *> out_;
  std::vector<MergeTarget> targets_;
  std::vector<MergeSource> sources_;
};

}  // namespace

uint64_t fill_bytes_of(const PeMessages &messages) { return FillLines(messages).bytes(); }

uint64_t run_messages(const HostPass &pass) {
  const PeMessages &messages = *pass.plan.messages;
  FillLines fill(messages);
  uint32_t words = 0;  // of the longest group with one run
  for (const MessageGroup &group : messages.groups())
    if (group.runs == 1) words = std::max(words, group.words);
  const uint64_t pieces = std::max<uint64_t>(
      1, pieces_of(messages.units().size(), words, pass.threads));
  const uint64_t count = messages.units().size() * pieces;
  const int threads =
      static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(pass.threads), count));
  std::vector<std::unique_ptr<MessageWorker>> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.push_back(std::make_unique<MessageWorker>(pass, fill));
  WorkQueue queue(count, threads);
  fill.write(pass.host_lines.base);
  const auto start_of = [&](uint64_t piece) {
    return piece == pieces ? words
                           : static_cast<uint32_t>((words + kShareWords - 1) / kShareWords * piece /
                                                   pieces * kShareWords);
  };
  run_threads(threads, [&](int thread) {
    MessageWorker &worker = *workers[static_cast<std::size_t>(thread)];
    queue.each(thread, [&](uint64_t number) {
      const MessageUnit &unit = messages.units()[number / pieces];
      const uint64_t piece = number % pieces;
      // The groups of a unit may store lanes of the same lines, so one thread runs all of them.
      const bool is_cut = unit.group_count == 1 && messages.groups()[unit.first_group].runs == 1;
      if (is_cut)
        worker.run(unit, start_of(piece), start_of(piece + 1));
      else if (piece == 0)
        worker.run(unit, 0, UINT32_MAX);
    });
    pass.kernels.fence();  // complete non-temporal stores before the PEs own the MRAM again
  });
  return workers.front()->buffer_bytes() * workers.size() + fill.bytes();
}

}  // namespace pidcomm
