// Streams whose passes and launches run in random orders, as slow or fast hosts and PEs cause them.
#include "capi/stream.h"
#include "stream_cases.h"

namespace {

TEST(RandomStreams_HaveTheSameBytesInEachPossibleOrder) {
  stream_cases::Setting setting;
  machine::Grid grid("shuffled streams");
  for (unsigned seed = 0; seed < (effort::is_full() ? 2000u : 120u); ++seed)
    grid.run([&] {
      std::mt19937 random(seed);
      const auto shuffle = [&random](pidcomm::CutStream &stream) {
        pidcomm::SchedulePolicy policy;
        for (std::size_t piece = 0; piece < stream.graph.pieces().size(); ++piece) {
          policy.urgencies.push_back(static_cast<double>(random()));
          policy.seconds.push_back({static_cast<double>(random()), static_cast<double>(random())});
        }
        policy.keeps_host_busy = random() % 2 == 0;
        stream.schedule.set_policy(policy);
      };
      stream_cases::run_random(
          setting, seed, [&](pidcomm_stream *stream) { stream->stream.before_runs(shuffle); });
    });
  grid.finish();
}

}  // namespace
