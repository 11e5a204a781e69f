// Messages between PEs, against the oracle.
#include <pidcomm/messages.h>

#include <bit>

#include "machine.h"

namespace {

using namespace machine;
using Messages = std::vector<pidcomm_pe_message>;

constexpr std::size_t kSrc = 1 << 16, kDst = 3 << 16;

/// The definition: what the rows of the destination are after the messages.
Bytes moved(const Messages &messages, std::size_t row_bytes, const Bytes &in, Bytes out) {
  std::vector<verify::Message> same;
  for (const pidcomm_pe_message &m : messages) same.push_back(std::bit_cast<verify::Message>(m));
  verify::move(same, row_bytes, in, out);
  return out;
}

/// Random numbers that do not depend on the C++ library.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::size_t limit) {
    return static_cast<std::uint32_t>((state_ = verify::mix(state_ + 1)) % limit);
  }

 private:
  std::uint64_t state_;
};

/// Messages to every PE: pieces of its destination window of `words` words.
Messages pieces(Choices &choose, std::uint32_t pes, std::uint32_t words, std::uint32_t most) {
  Messages messages;
  for (std::uint32_t pe = 0; pe < pes; ++pe)
    for (std::uint32_t word = choose.below(3); word < words;) {
      const std::uint32_t count = std::min(1 + choose.below(most), words - word);
      pidcomm_pe_message m = {choose.below(pes),
                              pe,
                              8 * choose.below(words - count + 1),
                              8 * word,
                              8 * count,
                              choose.below(2),
                              0,
                              0};
      if (choose.below(8) == 0) m.from_pe = PIDCOMM_FILL, m.from = ~0u, m.from_step = pe;
      messages.push_back(m);
      word += count + (choose.below(4) == 0 ? choose.below(5) : 0);
    }
  return messages;
}

/// The same pieces of the window of every PE, in several runs, from random PEs.
Messages strided(Choices &choose, std::uint32_t pes, std::uint32_t words) {
  Messages messages;
  const std::uint32_t count = 1 + choose.below(3), step = count + choose.below(4),
                      runs = std::max(1u, (words - count) / (step + 1));
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    if (choose.below(5) == 0) continue;
    messages.push_back({choose.below(pes), pe, 8 * choose.below(words / 2), 0, 8 * count, runs,
                        8 * choose.below(2), 8 * step});
    if (step > count && choose.below(2) == 0)  // between the first two runs
      messages.push_back({choose.below(pes), pe, 0, 8 * count, 8, 1, 0, 0});
  }
  return messages;
}

/// A block from every PE to every PE of its row, with random sizes.
Messages uneven(Choices &choose, const Hypercube &cube, std::uint32_t most) {
  const std::uint32_t pes = static_cast<std::uint32_t>(cube.pes()), members = cube.axis_len()[0];
  std::vector<std::uint32_t> counts(std::size_t{pes} * members);
  for (std::uint32_t &bytes : counts) bytes = 8 * choose.below(most);
  std::string mask(cube.axis_len().size(), '0');
  mask[0] = '1';
  Messages messages(counts.size());
  std::size_t count = 0;
  CHECK_EQ(pidcomm_alltoallv_messages(cube.get(), mask.c_str(), counts.data(), pes / members,
                                      messages.data(), messages.size(), &count),
           +PIDCOMM_OK);
  CHECK_EQ(count, counts.size());
  return messages;
}

/// A non-blocking call whose messages change before it ends.
int start_change_and_wait(pidcomm_hypercube *cube, const pidcomm_request *request,
                          const pidcomm_options *options, pidcomm_trace *trace) {
  pidcomm_pending *pending = nullptr;
  const int status = pidcomm_irun(cube, request, options, &pending);
  std::memset(request->host, 0, request->host_bytes);
  return status == PIDCOMM_OK ? pidcomm_wait(&pending, trace) : status;
}

void check_messages(const Hypercube &cube, const Messages &messages, std::size_t row_bytes,
                    const pidcomm_options &options, std::uint64_t seed, bool in_place = false,
                    Run run = pidcomm_run) {
  Picture mram;
  mram.cover(kSrc, row_bytes);
  mram.cover(kDst, row_bytes);
  mram.poison(cube, seed);
  mram.write(cube);
  Messages passed = messages;
  const pidcomm_request request =
      pidcomm::request::sendrecv(passed.data(), passed.size(), in_place ? kDst : kSrc, kDst);
  pidcomm_trace trace{};
  if (run(cube.get(), &request, &options, &trace) != PIDCOMM_OK) fail(pidcomm_last_error());
  mram.put(cube, kDst, row_bytes,
           moved(messages, row_bytes, mram.get(cube, in_place ? kDst : kSrc, row_bytes),
                 mram.get(cube, kDst, row_bytes)));
  const std::string difference = mram.read(cube).difference(cube, mram);
  if (!difference.empty())
    fail(difference + " [isa " + std::to_string(options.isa) + ", technique " +
         std::to_string(options.technique) + ", seed " + std::to_string(seed) + "]");
  if (options.isa == PIDCOMM_ISA_AUDIT && trace.technique == PIDCOMM_TECHNIQUE_TILE)
    CHECK_EQ(audit_of(cube).lines_outside, 0u);
}

TEST(Messages_AreRightOnEveryShapeAndIsa) {
  power_up(5, {{3, 2, 1}, {3, 5, 1}, {4, 0, 0}});
  const DpuSet set = DpuSet::of_ranks(5);
  Grid grid("messages");
  for (const Axes &axes : {Axes{8, 8}, Axes{3, 5}, Axes{12, 11}, Axes{32, 8}, Axes{7}, Axes{1}}) {
    const Hypercube cube(set, axes);
    const auto pes = static_cast<std::uint32_t>(cube.pes());
    for (int isa : available_isas()) {
      for (std::uint64_t seed = 0; seed < 8; ++seed)
        grid.run([&] {
          Choices choose(seed * 100 + pes + static_cast<std::uint64_t>(isa));
          const std::uint32_t words = seed % 2 == 0 ? 40 : 1100;
          pidcomm_options options{};
          options.isa = isa;
          options.threads = static_cast<int>(1 + choose.below(3));
          if (seed % 4 == 3) options.technique = PIDCOMM_TECHNIQUE_CONVENTIONAL;
          check_messages(cube, pieces(choose, pes, words, words / 4), 8 * words, options, seed);
          check_messages(cube, strided(choose, pes, words), 8 * words, options, seed + 1);
          check_messages(cube, uneven(choose, cube, 60), 8 * 60 * axes[0], options, seed + 2, false,
                         start_change_and_wait);
          Messages rotation;
          for (std::uint32_t pe = 0; pe < pes; ++pe)
            rotation.push_back({(pe + 3) % pes, pe, 16, 16, 8 * words - 16, 1, 0, 0});
          check_messages(cube, rotation, 8 * words, options, seed + 3, true);
        });
    }
  }
  grid.finish();
}

TEST(Messages_OfAnotherOrderOfPes) {
  power_up(2);
  const DpuSet set = DpuSet::of_ranks(2);
  const Hypercube cube(set, {8, 16});
  const std::uint32_t lengths[] = {8, 16};
  pidcomm_hypercube *foreach = nullptr;
  CHECK_EQ(pidcomm_hypercube_create(set.get(), 2 | PIDCOMM_FOREACH_ORDER, lengths, &foreach),
           +PIDCOMM_OK);
  std::uint64_t numbers[128];
  for (std::uint64_t pe = 0; pe < 128; ++pe) numbers[pe] = pe;
  CHECK_EQ(pidcomm_write(foreach, 0, 8, numbers), +PIDCOMM_OK);
  Messages messages;
  for (std::uint32_t pe = 0; pe < 128; ++pe) messages.push_back({127 - pe, pe, 0, 0, 8, 1, 0, 0});
  CHECK_EQ(pidcomm_sendrecv(foreach, messages.data(), messages.size(), 0, 8), +PIDCOMM_OK);
  std::uint64_t result[128];
  CHECK_EQ(pidcomm_read(foreach, 8, 8, result), +PIDCOMM_OK);
  for (std::uint64_t pe = 0; pe < 128; ++pe) CHECK_EQ(result[pe], 127 - pe);
  CHECK_EQ(pidcomm_hypercube_destroy(foreach), +PIDCOMM_OK);
}

/// Checks that a message beside one that is right is refused, and that no byte moves.
void check_refused(const Hypercube &cube, const pidcomm_pe_message &message, int status,
                   const std::string &part) {
  const Messages messages = {{0, 1, 0, 0, 64, 1, 0, 0}, message};
  for (int technique : {PIDCOMM_TECHNIQUE_TILE, PIDCOMM_TECHNIQUE_CONVENTIONAL}) {
    Picture mram;
    mram.cover(kDst, 128);
    mram.poison(cube, 5);
    mram.write(cube);
    const pidcomm_request request =
        pidcomm::request::sendrecv(messages.data(), messages.size(), kDst, kDst + 64);
    pidcomm_options options{};
    options.technique = technique;
    machine::check_refused(run(cube, request, options), status, part);
    CHECK_EQ(mram.read(cube).difference(cube, mram), "");
  }
}

TEST(Messages_RefusesWrongMessages) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {8});
  check_refused(cube, {8, 1, 0, 64, 8, 1, 0, 0}, PIDCOMM_ERR_ARGUMENT, "from_pe 8");
  check_refused(cube, {0, 9, 0, 64, 8, 1, 0, 0}, PIDCOMM_ERR_ARGUMENT, "to_pe 9");
  check_refused(cube, {0, 1, 4, 64, 8, 1, 0, 0}, PIDCOMM_ERR_SIZE, "from 4");
  check_refused(cube, {0, 1, 0, 68, 8, 1, 0, 0}, PIDCOMM_ERR_SIZE, "to 68");
  check_refused(cube, {0, 1, 0, 64, 12, 1, 0, 0}, PIDCOMM_ERR_SIZE, "bytes 12");
  check_refused(cube, {0, 1, 0, 64, 8, 2, 4, 8}, PIDCOMM_ERR_SIZE, "from_step 4");
  check_refused(cube, {0, 1, 0, 64, 8, 2, 8, 12}, PIDCOMM_ERR_SIZE, "to_step 12");
  check_refused(cube, {2, 1, 0, 56, 16, 1, 0, 0}, PIDCOMM_ERR_WINDOW, "bytes of PE 1");
  check_refused(cube, {2, 1, 0, 64, 16, 2, 0, 8}, PIDCOMM_ERR_WINDOW, "must not write");
  check_refused(cube, {1, 2, 64, 0, 8, 1, 0, 0}, PIDCOMM_ERR_WINDOW, "another message writes");
  check_refused(cube, {0, 1, 64 << 20, 64, 8, 1, 0, 0}, PIDCOMM_ERR_WINDOW, "source window");
  check_refused(cube, {0, 1, 0, 64 << 20, 8, 1, 0, 0}, PIDCOMM_ERR_WINDOW, "destination window");
  check_refused(cube, {0, 1, 0, 64, 8, ~0u, 0, ~7u}, PIDCOMM_ERR_WINDOW, "destination window");
}

TEST(Messages_BuildersStoreAsManyAsFit) {
  power_up(1);
  const DpuSet set = DpuSet::of_ranks(1);
  const Hypercube cube(set, {4, 2});
  const std::uint32_t sources[] = {1, 2, 3, PIDCOMM_NO_MEMBER}, counts[] = {8, 0, 16, 8};
  pidcomm_pe_message messages[32];
  std::size_t count = 0;
  CHECK_EQ(pidcomm_permute_messages(cube.get(), "10", sources, 24, messages, 32, &count),
           +PIDCOMM_OK);
  CHECK_EQ(count, 6u);
  CHECK(messages[1].from_pe == 5 && messages[1].to_pe == 4 && messages[1].bytes == 24);
  CHECK_EQ(pidcomm_permute_messages(cube.get(), "10", sources, 24, messages, 5, &count),
           +PIDCOMM_ERR_SIZE);
  CHECK_EQ(count, 6u);
  CHECK_EQ(pidcomm_permute_messages(cube.get(), "10", sources, 12, messages, 32, &count),
           +PIDCOMM_ERR_SIZE);
  CHECK_EQ(pidcomm_permute_messages(cube.get(), "01", sources, 24, messages, 32, &count),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_allgatherv_messages(cube.get(), "10", counts, 1, messages, 32, &count),
           +PIDCOMM_OK);
  CHECK_EQ(count, 32u);
  CHECK(messages[15].from_pe == 3 && messages[15].to_pe == 3 && messages[15].to == 24 &&
        messages[15].bytes == 8);
  CHECK_EQ(pidcomm_allgatherv_messages(cube.get(), "10", counts, 3, messages, 32, &count),
           +PIDCOMM_ERR_ARGUMENT);
  const std::uint32_t odd[16] = {8, 8, 12};
  for (const auto build : {pidcomm_alltoallv_messages, pidcomm_allgatherv_messages})
    machine::check_refused(build(cube.get(), "10", odd, 1, messages, 32, &count), PIDCOMM_ERR_SIZE,
                           "12 bytes");
}

}  // namespace
