// Random transfers of the SDK's C++ API, `<dpu>`, against a model of MRAM in host memory: copies to
// all DPUs or to each one, and scatter-gather transfers, at once or queued, of a set, of its ranks
// and of single DPUs; refused transfers change nothing.
#include <algorithm>
#include <dpu>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "campaign.h"

namespace {

using campaign::Random;
using dpu::DpuError;
using dpu::DpuSet;
using Bytes = std::vector<std::uint8_t>;
using Rows = std::vector<Bytes>;

constexpr std::size_t kBytes = 8192;  // of each DPU that the transfers use
constexpr std::size_t kMostBlocks = 16;
constexpr unsigned kHeap = 0x08000000, kMostDpus = 130;
constexpr char kHeapName[] = "__sys_used_mram_end";  // address 0 without a program
constexpr char kProfile[] = "sgXferEnable=true, sgXferMaxBlocksPerDpu=16";

Bytes noise(Random &random, std::size_t size) {
  Bytes bytes(size);
  for (std::uint8_t &byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  return bytes;
}

/// The blocks of all DPUs of a scatter-gather transfer. Each DPU has separate host memory, in which
/// blocks lie in descending order.
struct Blocks {
  Rows host;
  std::vector<std::vector<sg_block_info>> of_dpu;

  Blocks(Random &random, std::size_t dpus, std::size_t size) : of_dpu(dpus) {
    for (std::size_t dpu = 0; dpu < dpus; ++dpu) {
      host.push_back(noise(random, size));
      std::size_t rest = size;
      while (rest > 0) {
        const bool is_last = of_dpu[dpu].size() + 1 == kMostBlocks;
        const std::size_t length =
            is_last ? rest : std::min<std::size_t>(rest, random.below(size / 4 + 2));
        rest -= length;
        of_dpu[dpu].push_back({host[dpu].data() + rest, static_cast<std::uint32_t>(length)});
      }
    }
  }

  /// The bytes in the order of MRAM.
  Bytes in_order(std::size_t dpu) const {
    Bytes bytes;
    for (const sg_block_info &block : of_dpu[dpu])
      bytes.insert(bytes.end(), block.addr, block.addr + block.length);
    return bytes;
  }
};

/// Without members that own memory, because queued transfers copy its bytes.
struct BlockSource {
  const Blocks *blocks;
  bool operator()(sg_block_info *out, std::uint32_t dpu, std::uint32_t block) const {
    if (block >= blocks->of_dpu[dpu].size()) return false;
    *out = blocks->of_dpu[dpu][block];
    return true;
  }
};

/// A set, and the bytes that its DPUs must have.
class Model {
 public:
  explicit Model(Random &random)
      : random_(random),
        set_(DpuSet::allocate(static_cast<unsigned>(1 + random.below(kMostDpus)), kProfile)) {
    for (std::size_t i = 0; i < set_.dpus().size(); ++i) {
      number_[set_.dpus()[i]] = i;
      mram_.push_back(noise(random, kBytes));
    }
    set_.copy(kHeapName, 0, mram_);
  }

  /// Carries out a random transfer, at once or queued.
  void transfer() {
    DpuSet &part = random_part();
    const bool is_queued = random_.one_in(2);
    dpu::DpuSetAsync queue = part.async();
    dpu::DpuSetOps &ops = is_queued ? static_cast<dpu::DpuSetOps &>(queue) : part;
    choose_range();
    const std::size_t first = number_.at(part.dpus()[0]), dpus = part.dpus().size();
    switch (random_.below(5)) {
      case 0: {  // one buffer for all DPUs
        const Bytes &sent =
            *kept_bytes_.emplace_back(std::make_unique<Bytes>(noise(random_, size_)));
        by_symbol([&](const auto &symbol) { ops.copy(symbol, offset_, sent); });
        for (std::size_t i = 0; i < dpus; ++i) write(first + i, sent);
        break;
      }
      case 1: {
        Rows &sent = new_rows(dpus);
        by_symbol([&](const auto &symbol) { ops.copy(symbol, offset_, sent); });
        for (std::size_t i = 0; i < dpus; ++i) write(first + i, sent[i]);
        break;
      }
      case 2: {
        Rows &received = new_rows(dpus);
        by_symbol([&](const auto &symbol) { ops.copy(received, symbol, offset_); });
        for (std::size_t i = 0; i < dpus; ++i) expect("a copy", received[i], read(first + i));
        break;
      }
      case 3: {
        const Blocks &blocks = new_blocks(dpus);
        by_symbol([&](const auto &symbol) {
          ops.copyScatterGather(symbol, offset_, BlockSource{&blocks}, size_);
        });
        for (std::size_t i = 0; i < dpus; ++i) write(first + i, blocks.in_order(i));
        break;
      }
      default: {
        const Blocks &blocks = new_blocks(dpus);
        by_symbol([&](const auto &symbol) {
          ops.copyScatterGather(BlockSource{&blocks}, size_, symbol, offset_);
        });
        for (std::size_t i = 0; i < dpus; ++i)
          expected_blocks_.push_back({&blocks, i, read(first + i)});
      }
    }
    if (!is_queued || random_.one_in(4)) check();
  }

  /// Tries a wrong transfer, which must throw and change nothing.
  void refuse() {
    DpuSet &part = random_part();
    choose_range();
    const std::size_t dpus = part.dpus().size();
    const Blocks &blocks = new_blocks(dpus);
    Rows rows = new_rows(dpus);
    try {
      switch (random_.below(5)) {
        case 0:
          part.copyScatterGather(kHeapName, offset_, BlockSource{&blocks}, size_ + 8);
          break;
        case 1:
          part.copyScatterGather(BlockSource{&blocks}, size_ + 8, kHeapName, offset_);
          break;
        case 2:
          rows.pop_back();
          part.copy(kHeapName, offset_, rows, static_cast<unsigned>(size_));
          break;
        case 3:
          part.copy(rows, static_cast<unsigned>(size_ + 8), kHeapName, offset_);
          break;
        default:
          part.copy(dpu::DpuSymbol(kHeap, static_cast<unsigned>(size_)), offset_ + 8, rows);
      }
    } catch (const DpuError &) {
      return check();
    }
    throw std::runtime_error("a wrong transfer of " + std::to_string(size_) + " bytes is accepted");
  }

  /// Waits for queued transfers, and compares all bytes.
  void check() {
    set_.async().sync();
    for (const Expected &one : expected_) compare(one.what, *one.received, one.bytes);
    for (const ExpectedBlocks &one : expected_blocks_)
      compare("a scatter", one.blocks->in_order(one.dpu), one.bytes);
    expected_.clear();
    expected_blocks_.clear();
    Rows all(mram_.size(), Bytes(kBytes));
    set_.copy(all, kHeapName);
    for (std::size_t i = 0; i < all.size(); ++i) compare("MRAM", all[i], mram_[i]);
  }

 private:
  struct Expected {
    const char *what;
    const Bytes *received;
    Bytes bytes;
  };
  struct ExpectedBlocks {
    const Blocks *blocks;
    std::size_t dpu;
    Bytes bytes;
  };

  DpuSet &random_part() {
    const std::uint64_t kind = random_.below(3);
    return kind == 0 ? set_ : kind == 1 ? *random_.of(set_.ranks()) : *random_.of(set_.dpus());
  }
  void choose_range() {
    size_ = static_cast<unsigned>(8 * (1 + random_.below(random_.one_in(4) ? kBytes / 8 : 32)));
    offset_ = static_cast<unsigned>(8 * random_.below((kBytes - size_) / 8 + 1));
  }
  template <class Call>
  void by_symbol(const Call &call) {
    if (random_.one_in(2))
      call(kHeapName);
    else
      call(dpu::DpuSymbol(kHeap, kBytes));
  }
  Rows &new_rows(std::size_t dpus) {
    Rows rows;
    for (std::size_t i = 0; i < dpus; ++i) rows.push_back(noise(random_, size_));
    return *kept_rows_.emplace_back(std::make_unique<Rows>(std::move(rows)));
  }
  const Blocks &new_blocks(std::size_t dpus) {
    return *kept_blocks_.emplace_back(std::make_unique<Blocks>(random_, dpus, size_));
  }
  void write(std::size_t dpu, const Bytes &bytes) {
    std::copy(bytes.begin(), bytes.end(), mram_[dpu].begin() + offset_);
  }
  Bytes read(std::size_t dpu) const {
    return {mram_[dpu].begin() + offset_, mram_[dpu].begin() + offset_ + size_};
  }
  void expect(const char *what, const Bytes &received, const Bytes &bytes) {
    expected_.push_back({what, &received, bytes});
  }
  static void compare(const char *what, const Bytes &received, const Bytes &expected) {
    if (received == expected) return;
    std::size_t at = 0;
    while (at < received.size() && received[at] == expected[at]) ++at;
    throw std::runtime_error(std::string(what) + " of " + std::to_string(expected.size()) +
                             " bytes is wrong from byte " + std::to_string(at));
  }

  Random &random_;
  // What queued transfers use; the set, which waits for them, ends first.
  std::vector<std::unique_ptr<Bytes>> kept_bytes_;
  std::vector<std::unique_ptr<Rows>> kept_rows_;
  std::vector<std::unique_ptr<Blocks>> kept_blocks_;
  DpuSet set_;
  std::map<const DpuSet *, std::size_t> number_;
  Rows mram_;
  unsigned size_ = 0, offset_ = 0;
  std::vector<Expected> expected_;
  std::vector<ExpectedBlocks> expected_blocks_;
};

void run_case(Random random) {
  Model model(random);
  const std::uint64_t transfers = 1 + random.below(20);
  for (std::uint64_t i = 0; i < transfers; ++i)
    random.one_in(6) ? model.refuse() : model.transfer();
  model.check();
}

}  // namespace

int main(int argc, char **argv) {
  campaign::Run run(argc, argv);
  for (std::uint64_t number = run.only; !run.is_over(); ++number) {
    run.count();
    try {
      run_case(Random(run.seed, number));
    } catch (const std::exception &error) {
      run.find(number, true, error.what());
    }
    if (run.only_one) break;
  }
  return run.finish();
}
