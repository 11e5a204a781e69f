// The streaming limit: a pass that moves as many bytes as a collective with as little work as
// possible. The pass visits every word once, and visits the two banks of a bank pair together.
#include "exec/limit_copy.h"

#include <algorithm>
#include <array>

#include "base/geometry.h"
#include "exec/parallel.h"

namespace pidcomm {

namespace {

constexpr uint32_t kMaxStreams = 64;
constexpr uint64_t kPieceWords = kRunWords;

/// Words [first, first + count) of a window that ends at window_end.
struct Words {
  uint64_t first, count, window_end;
};

/// The source window or the destination window, cut into pieces. Both windows have equal numbers of
/// pieces, so that loads and stores alternate.
struct PiecedWindow {
  uint64_t first, words, pieces;
  bool is_longest;
  Words piece(uint64_t index) const {
    const auto at = [&](uint64_t i) {
      return is_longest ? std::min(words, i * kPieceWords) : words * i / pieces;
    };
    return {first + at(index), at(index + 1) - at(index), first + words};
  }
};

/// Moves several pieces of memory side by side: a few words of one piece, then a few words of the
/// next piece.
class CopyWorker {
 public:
  CopyWorker(const Kernels &kernels, const CopyOrder &order) : kernels_(kernels), order_(order) {}

  void add(const BankPair &pair, const Words &in, const Words &out) {
    if (count_ == order_.streams || (count_ != 0 && !fits(pair, in, out))) run();
    pairs_[count_] = pair;
    in_[count_] = in;
    out_[count_++] = out;
  }

  /// Moves the added pieces. If the source and destination pieces have equal sizes, copies the
  /// data. Otherwise, first loads the source pieces and then stores arbitrary lines to the
  /// destination pieces.
  void run() {
    if (count_ == 0) return;
    if (in_[0].count == out_[0].count) {
      visit(true, true);
    } else {
      visit(true, false);
      visit(false, true);
    }
    count_ = 0;
  }

 private:
  /// Whether a piece can be moved side by side with the added pieces.
  bool fits(const BankPair &pair, const Words &in, const Words &out) const {
    const auto alike = [](const Words &a, const Words &b) {
      return a.count == b.count && a.first % kRunWords == b.first % kRunWords;
    };
    return pair.banks == pairs_[0].banks && alike(in, in_[0]) && alike(out, out_[0]);
  }

  void visit(bool loads, bool stores) const {
    const uint64_t words = (loads ? in_[0] : out_[0]).count;
    for (uint64_t done = 0; done < words;) {
      uint64_t now = words - done;
      CopyCall call{};
      std::array<const std::byte *, kMaxStreams> from;
      std::array<std::byte *, kMaxStreams> to;
      for (uint32_t s = 0; s < count_; ++s) {
        if (loads) {
          const LinePosition at = position_of(pairs_[s].base, in_[s].first + done);
          now = std::min<uint64_t>(now, at.run_words);
          from[s] = at.line;
          const uint64_t ahead =
              std::min<uint64_t>(at.run_words, in_[s].window_end - in_[s].first - done);
          call.prefetch_end = s == 0 ? static_cast<uint32_t>(ahead)
                                     : std::min(call.prefetch_end, static_cast<uint32_t>(ahead));
        }
        if (stores) {
          const LinePosition at = position_of(pairs_[s].base, out_[s].first + done);
          now = std::min<uint64_t>(now, at.run_words);
          to[s] = at.line;
        }
      }
      call.in = loads ? from.data() : nullptr;
      call.out = stores ? to.data() : nullptr;
      call.streams = count_;
      call.banks = pairs_[0].banks;
      call.words = static_cast<uint32_t>(now);
      call.strip_words = order_.strip_words;
      call.ahead_words = order_.ahead_words;
      call.ahead_level = order_.ahead_level;
      kernels_.copy(call);
      done += now;
    }
  }

  const Kernels &kernels_;
  const CopyOrder &order_;
  uint32_t count_ = 0;
  std::array<BankPair, kMaxStreams> pairs_;
  std::array<Words, kMaxStreams> in_, out_;
};

}  // namespace

const CopyOrder *copy_order_of(int copy_order) {
#define PIDCOMM_ROW(ENUM, code, name, streams, strip, ahead, level) \
  {code, streams, strip, ahead, level},
  static constexpr CopyOrder kOrders[] = {PIDCOMM_COPY_ORDERS(PIDCOMM_ROW)};
#undef PIDCOMM_ROW
  static_assert(std::all_of(std::begin(kOrders), std::end(kOrders),
                            [](const CopyOrder &order) { return order.streams <= kMaxStreams; }));
  const auto *const found =
      std::find_if(std::begin(kOrders), std::end(kOrders),
                   [&](const CopyOrder &order) { return order.code == copy_order; });
  return found == std::end(kOrders) ? nullptr : found;
}

void run_limit_copy(const Kernels &kernels, const CopyOrder &order,
                    const std::vector<BankPair> &bank_pairs, uint64_t src, uint64_t bytes_read,
                    uint64_t dst, uint64_t bytes_written, int threads) {
  const uint64_t words_read = bytes_read / kWordBytes, words_written = bytes_written / kWordBytes;
  const uint64_t longest = std::max(words_read, words_written);
  const uint64_t pieces = std::max<uint64_t>(1, (longest + kPieceWords - 1) / kPieceWords);
  const PiecedWindow in = {src / kWordBytes, words_read, pieces, words_read == longest};
  const PiecedWindow out = {dst / kWordBytes, words_written, pieces, words_written == longest};
  WorkQueue queue(bank_pairs.size() * pieces, threads);
  run_threads(threads, [&](int thread) {
    CopyWorker worker(kernels, order);
    const auto add = [&](uint64_t unit) {  // banks first: side by side, banks use more memory
                                           // bandwidth than runs
      const uint64_t piece = unit / bank_pairs.size();
      worker.add(bank_pairs[unit % bank_pairs.size()], in.piece(piece), out.piece(piece));
    };
    queue.each(thread, add, [&] { worker.run(); });
    worker.run();
    kernels.fence();
  });
}

}  // namespace pidcomm
