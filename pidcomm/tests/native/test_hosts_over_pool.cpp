// Collectives over hosts, which are threads of this process, through a pool and a switch.
#include <random>

#include "hosts_cases.h"

namespace {

using namespace over_hosts;

constexpr std::size_t kRoomy = std::size_t{16} << 20;

Connection pool_of(std::size_t bytes, std::size_t coherence = PIDCOMM_COHERENCE_NONE,
                   bool has_switch = false) {
  return {bytes, coherence, has_switch};
}

TEST(CallsThroughAPool_EqualTheOracle) {
  for (const std::uint32_t count : {1u, 2u, 3u, 4u})
    check_all_collectives(count, {4, 2}, {}, pool_of(kRoomy));
  check_all_collectives(3, {3, 5}, {}, pool_of(kRoomy));
}

TEST(CallsThroughAPool_EqualTheOracle_WithFlushes) {
  for (const std::uint32_t count : {2u, 3u})
    check_all_collectives(count, {8, 2}, {}, pool_of(kRoomy, PIDCOMM_COHERENCE_HARDWARE));
}

TEST(CallsThroughASmallPool_EqualTheOracle_InPieces) {
  for (const std::uint32_t count : {2u, 3u, 4u})
    check_all_collectives(count, {4, 2}, {}, pool_of(24 << 10));
}

/// The bytes of a pool that runs every collective; see pidcomm_pool_transport.
std::size_t smallest_pool(std::uint32_t count, std::size_t pes) {
  const std::size_t bytes =
      pidcomm_pool_own_bytes(count) + 1024 * count + 128 * count * count * pes;
  return (bytes + PIDCOMM_POOL_PAGE_BYTES - 1) / PIDCOMM_POOL_PAGE_BYTES * PIDCOMM_POOL_PAGE_BYTES;
}

TEST(CallsLargerThanThePool_EqualTheOracle) {
  const Axes shape = {8, 4};
  machine::Grid grid("calls larger than the pool");
  std::uint64_t seed = 0;
  for (const std::uint32_t count : {2u, 3u})
    for (const bool has_switch : {false, true}) {
      const std::size_t pool_bytes = smallest_pool(count, product(shape));
      Hosts hosts(count, shape, {}, pool_of(pool_bytes, PIDCOMM_COHERENCE_NONE, has_switch));
      for (const int collective : kCollectives)
        for (const char *mask : {"001", "101", "011", "111"}) {
          const bool has_blocks = bytes_for(collective, 2, 1) == 2;
          const std::size_t members = verify::groups_of(hosts.axes(), mask).group_pes,
                            block = ++seed % 2 == 0 ? 1024 : 1032,
                            bytes = has_blocks ? members * block : pool_bytes + block;
          const std::size_t src = 64, dst = seed % 3 == 0 ? src : std::size_t{1} << 22;
          const Call call = {{collective, hosts.axes(), mask, bytes, PIDCOMM_INT32, PIDCOMM_SUM},
                             src,
                             dst,
                             static_cast<std::uint32_t>(seed % count),
                             seed % 4 != 0};
          pidcomm_options options{};
          options.technique = seed % 5 == 0   ? +PIDCOMM_TECHNIQUE_CONVENTIONAL
                              : seed % 5 == 1 ? +PIDCOMM_TECHNIQUE_AUTO
                                              : +PIDCOMM_TECHNIQUE_TILE;
          options.threads = 2;
          grid.run([&] { check_call(hosts, call, seed, options); });
        }
    }
  grid.finish();
}

TEST(CallsWithASwitch_EqualTheOracle) {
  for (const std::uint32_t count : {1u, 2u, 4u})
    check_all_collectives(count, {4, 2}, {}, pool_of(kRoomy, PIDCOMM_COHERENCE_NONE, true));
  check_all_collectives(3, {8}, {}, pool_of(20 << 10, PIDCOMM_COHERENCE_HARDWARE, true));
}

TEST(CallsThroughAPool_EqualTheOracle_OverAnEmulatedLink) {
  pidcomm_hosts_settings settings{};
  settings.link_gb_s = 0.5;
  settings.link_latency_us = 50;
  check_all_collectives(2, {4}, settings, pool_of(kRoomy));
}

TEST(PrTechniques_RunThroughAPool) { check_pr_techniques({}, pool_of(kRoomy)); }

TEST(Auto_IgnoresAScratchThatIsNotValid_ThroughAPool) {
  check_auto_ignores_scratch(pool_of(kRoomy));
}

TEST(LocalPasses_WriteRowsOnceIntoThePool_AndReadThemThere) {
  const std::uint32_t count = 3;
  Hosts hosts(count, {8, 2}, {}, pool_of(kRoomy));
  const std::size_t groups = 2, block = 64, members = 8 * count, bytes = members * block,
                    part = bytes / count, others = count - 1;
  pidcomm_options audit{};
  audit.isa = PIDCOMM_ISA_AUDIT;
  const auto traced = [&](int collective, std::size_t size) {
    return check_call(
        hosts,
        {{collective, hosts.axes(), "101", size, PIDCOMM_INT32, PIDCOMM_SUM}, 0, 1 << 20, 0, true},
        9, audit)[1];
  };
  pidcomm_trace trace =
      traced(PIDCOMM_ALLGATHER, bytes);  // one write per host, whatever the number of hosts
  CHECK_EQ(trace.bytes_sent, groups * part);
  CHECK_EQ(trace.bytes_received, groups * bytes);
  CHECK_EQ(trace.host_bytes_written, trace.bytes_sent);
  CHECK_EQ(trace.host_bytes_read, trace.bytes_received);
  trace = traced(PIDCOMM_ALLTOALL, bytes);
  CHECK_EQ(trace.bytes_sent, others * hosts.pes() * part);
  CHECK_EQ(trace.bytes_received, trace.bytes_sent);
  CHECK_EQ(trace.host_bytes_written, trace.bytes_sent);
  CHECK_EQ(trace.host_bytes_read, trace.bytes_received);
  trace = traced(PIDCOMM_ALLREDUCE, bytes);
  CHECK_EQ(trace.host_bytes_written, groups * bytes);
  CHECK_EQ(trace.host_bytes_read, groups * bytes);
  CHECK_EQ(trace.bytes_sent, groups * (bytes + part));
  CHECK_EQ(trace.bytes_received, groups * (bytes + count * part));
  trace = traced(PIDCOMM_REDUCE_SCATTER, bytes);
  CHECK_EQ(trace.host_bytes_written, groups * bytes);
  CHECK_EQ(trace.host_bytes_read, groups * part);
}

TEST(ACallThatDoesNotFitIntoThePool_IsTheSameErrorOnAllHosts) {
  Hosts hosts(3, {4, 2}, {}, pool_of(8 << 10));
  const pidcomm_request request = [] {
    pidcomm_request made{};
    made.collective = PIDCOMM_ALLTOALL;
    made.mask = "001";
    made.bytes = 3 * 4096;
    made.dst = 1 << 20;
    made.type = PIDCOMM_INT32;
    return made;
  }();
  for (const int status : hosts.each([&](std::uint32_t host) {
         return pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
       }))
    CHECK_EQ(status, +PIDCOMM_ERR_MEMORY);
  for (const std::string &sentence : hosts.sentences) {
    CHECK_EQ(sentence, hosts.sentences[0]);
    const std::string part =
        "host 0 refuses the call: alltoall with mask 001 of 4x2x3, 12288 bytes, needs 6144 bytes "
        "of the pool in 65 pieces; the pool has";
    if (sentence.find(part) == std::string::npos)
      machine::fail("'" + sentence + "' lacks '" + part + "'");
  }
}

TEST(SharedMemoryWithoutRoomOrFunctions_IsAnError) {
  machine::power_up(1);
  const machine::DpuSet set = machine::DpuSet::of_ranks(1);
  const machine::Hypercube local(set, {8});
  alignas(64) std::byte memory[512];
  pidcomm_transport transport{};
  transport.hosts = 1;
  transport.shared = memory;
  transport.shared_bytes = sizeof memory;
  const auto check = [&](const char *part) {
    pidcomm_hosts *cube = nullptr;
    CHECK_EQ(pidcomm_hosts_connect(local.get(), &transport, nullptr, &cube), +PIDCOMM_ERR_ARGUMENT);
    const std::string sentence = pidcomm_last_error();
    if (sentence.find(part) == std::string::npos)
      machine::fail("'" + sentence + "' lacks '" + part + "'");
  };
  transport.allocate = [](void *, std::size_t bytes) { return std::malloc(bytes); };
  transport.release = [](void *, void *given) { std::free(given); };
  check("transport.sync is null");
  transport.sync = [](void *, double) -> const char * { return nullptr; };
  check("has 512 bytes; 1 hosts need at least 1024");
  transport.shared = memory + 8;
  check("must be aligned to 64 bytes");
}

}  // namespace
