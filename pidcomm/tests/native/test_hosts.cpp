// Collectives over hosts, which are threads of this process: against the oracle, with and without
// overlap, and errors.
#include <pidcomm/messages.h>
#include <pidcomm/operators.h>

#include <random>

#include "hosts_cases.h"

namespace {

using namespace over_hosts;

pidcomm_hosts_settings with_overlap(std::size_t overlap) {
  pidcomm_hosts_settings settings{};
  settings.overlap = overlap;
  return settings;
}

TEST(CallsOverHosts_EqualTheOracle_WithoutOverlap) {
  for (const std::uint32_t count : {1u, 2u, 3u, 4u})
    check_all_collectives(count, {4, 2}, with_overlap(PIDCOMM_OVERLAP_OFF));
}

TEST(CallsOverHosts_EqualTheOracle_WithOverlap) {
  for (const std::uint32_t count : {2u, 3u})
    check_all_collectives(count, {8, 2}, with_overlap(PIDCOMM_OVERLAP_ON));
}

TEST(CallsOverHosts_EqualTheOracle_OnShapesWithoutALaneSplit) {
  check_all_collectives(3, {3, 5}, {});
}

TEST(CallsOverHosts_EqualTheOracle_OverAnEmulatedLink) {
  pidcomm_hosts_settings settings{};
  settings.link_gb_s = 0.05;
  settings.link_latency_us = 100;
  check_all_collectives(2, {4}, settings);
}

TEST(PrTechniques_RunOverHosts) { check_pr_techniques(with_overlap(PIDCOMM_OVERLAP_ON)); }

TEST(Auto_IgnoresAScratchThatIsNotValid_OverHosts) { check_auto_ignores_scratch(); }

TEST(LocalPasses_WriteEachRowOnceAndStraightIntoTheTransport) {
  // Rows in host memory are exactly the bytes of messages and of the parts that stay: a further
  // copy would move more.
  const std::uint32_t count = 3;
  Hosts hosts(count, {8, 2}, with_overlap(PIDCOMM_OVERLAP_OFF));
  const std::size_t groups = 2, block = 64, members = 8 * count, bytes = members * block,
                    part = bytes / count;
  pidcomm_options audit{};
  audit.isa = PIDCOMM_ISA_AUDIT;
  const auto traced = [&](int collective, std::size_t size) {
    return check_call(
        hosts,
        {{collective, hosts.axes(), "101", size, PIDCOMM_INT32, PIDCOMM_SUM}, 0, 1 << 20, 0, true},
        9, audit)[1];
  };
  const std::size_t others = count - 1;
  pidcomm_trace trace = traced(PIDCOMM_ALLTOALL, bytes);
  CHECK_EQ(trace.bytes_sent, others * hosts.pes() * part);
  CHECK_EQ(trace.host_bytes_written, trace.bytes_sent);
  CHECK_EQ(trace.host_bytes_read, trace.bytes_received);
  trace = traced(PIDCOMM_REDUCE_SCATTER, bytes);
  CHECK_EQ(trace.bytes_sent, others * groups * part);
  CHECK_EQ(trace.host_bytes_written, groups * bytes);
  CHECK_EQ(trace.host_bytes_read, groups * part);
  trace = traced(PIDCOMM_ALLREDUCE, bytes);
  CHECK_EQ(trace.bytes_sent, 2 * others * groups * part);
  CHECK_EQ(trace.host_bytes_written, groups * bytes);
  CHECK_EQ(trace.host_bytes_read, groups * bytes);
  trace = traced(PIDCOMM_ALLGATHER, bytes);
  CHECK_EQ(trace.bytes_sent, others * groups * part);
  CHECK_EQ(trace.host_bytes_written, groups * part);
  CHECK_EQ(trace.host_bytes_read, groups * bytes);
  for (const int collective : {PIDCOMM_GATHER, PIDCOMM_SCATTER}) {
    trace = traced(collective, block);
    CHECK_EQ(trace.bytes_sent + trace.bytes_received, hosts.pes() * block);
    CHECK_EQ(trace.host_bytes_written + trace.host_bytes_read, hosts.pes() * block);
  }
}

// ---- errors

pidcomm_request allreduce(const char *mask, std::size_t bytes, int type = PIDCOMM_INT32,
                          std::size_t src = 0) {
  pidcomm_request request{};
  request.collective = PIDCOMM_ALLREDUCE;
  request.mask = mask;
  request.bytes = bytes;
  request.src = request.dst = src;
  request.type = type;
  request.op = PIDCOMM_SUM;
  return request;
}

/// All hosts return the same error, no MRAM changes, and the next call works.
void check_same_error(const pidcomm_request &first, const pidcomm_request &other, int status,
                      const std::string &part, std::uint32_t root = 0) {
  Hosts hosts(3, {4, 2});
  const Bytes before(8 * 64, 7);
  EACH_OK(hosts, [&](std::uint32_t host) {
    return pidcomm_write(hosts.local(host), 0, 64, before.data());
  });
  for (const int got : hosts.each([&](std::uint32_t host) {
         return pidcomm_hosts_run(hosts.cube(host), host == 1 ? &other : &first, root, nullptr,
                                  nullptr);
       }))
    CHECK_EQ(got, status);
  for (const std::string &sentence : hosts.sentences) {
    CHECK_EQ(sentence, hosts.sentences[0]);
    if (sentence.find(part) == std::string::npos)
      machine::fail("'" + sentence + "' lacks '" + part + "'");
  }
  EACH_OK(hosts, [&](std::uint32_t host) {
    Bytes after(before.size());
    if (const int read = pidcomm_read(hosts.local(host), 0, 64, after.data())) return read;
    return after == before ? +PIDCOMM_OK : +PIDCOMM_ERR_INTERNAL;
  });
  const pidcomm_request valid = allreduce("111", 64);
  EACH_OK(hosts, [&](std::uint32_t host) {
    return pidcomm_hosts_run(hosts.cube(host), &valid, 0, nullptr, nullptr);
  });
}

TEST(DifferentCalls_AreTheSameErrorOnAllHosts) {
  const pidcomm_request usual = allreduce("111", 64);
  const auto differs = [&](const pidcomm_request &other, const char *part) {
    check_same_error(
        usual, other, PIDCOMM_ERR_ARGUMENT,
        std::string("the hosts make different calls: host 0: allreduce with mask 111 of "
                    "4x2x3, 64 bytes of int32, sum; host 1: ") +
            part);
  };
  differs(allreduce("101", 64), "allreduce with mask 101");
  differs(allreduce("110", 64), "allreduce with mask 110");
  differs(allreduce("111", 32), "allreduce with mask 111 of 4x2x3, 32 bytes");
  differs(allreduce("111", 64, PIDCOMM_FLOAT32),
          "allreduce with mask 111 of 4x2x3, 64 bytes of float32");
  pidcomm_request other = usual;
  other.op = PIDCOMM_MAX;
  differs(other, "allreduce with mask 111 of 4x2x3, 64 bytes of int32, max");
  other = usual;
  other.collective = PIDCOMM_ALLGATHER;
  other.bytes = 24 * 64;
  other.dst = 4096;
  differs(other, "allgather with mask 111");
}

TEST(AnErrorOfOneHost_IsTheErrorOfAllHosts) {
  const pidcomm_request usual = allreduce("111", 64);
  check_same_error(usual, allreduce("111", 64, PIDCOMM_INT32, 4), PIDCOMM_ERR_WINDOW,
                   "host 1 refuses the call: allreduce: source");
  check_same_error(usual, allreduce("11", 64), PIDCOMM_ERR_MASK, "host 1 refuses the call");
  check_same_error(usual, allreduce("111", 60), PIDCOMM_ERR_SIZE, "host 1 refuses the call");
  check_same_error(usual, allreduce("111", 64, 4), PIDCOMM_ERR_TYPE, "host 1 refuses the call");
  check_same_error(allreduce("110", 64), allreduce("110", 60), PIDCOMM_ERR_SIZE,
                   "host 1 refuses the call");
}

TEST(Messages_AreRefused) {
  const pidcomm_pe_message message = {0, 1, 0, 0, 64, 1, 0, 0};
  pidcomm_request request = allreduce("111", 64);
  request.collective = PIDCOMM_SENDRECV;
  request.host = const_cast<pidcomm_pe_message *>(&message);
  request.host_bytes = sizeof message;
  check_same_error(request, request, PIDCOMM_ERR_ARGUMENT, "sendrecv moves messages between");
  request.host_bytes = 0;
  check_same_error(request, request, PIDCOMM_ERR_ARGUMENT, "sendrecv moves messages between");
}

TEST(ScansAndOperators_AreRefused) {
  pidcomm_operator average;
  CHECK_EQ(pidcomm_operator_avg(PIDCOMM_INT32, &average), +PIDCOMM_OK);
  pidcomm_request request = allreduce("111", 64);
  request.collective = PIDCOMM_SCAN;
  check_same_error(request, request, PIDCOMM_ERR_ARGUMENT, "scan combines PEs of one host");
  request = allreduce("110", 64);
  request.operation = &average;
  check_same_error(request, request, PIDCOMM_ERR_ARGUMENT,
                   "allreduce with an operation combines PEs of one host");
}

TEST(Rows_AreOnlyAtTheRoot) {
  pidcomm_request request = allreduce("111", 64);
  request.collective = PIDCOMM_REDUCE;
  check_same_error(request, request, PIDCOMM_ERR_HOST_BUFFER, "the host buffer has 0 bytes", 0);
  check_same_error(request, request, PIDCOMM_ERR_ARGUMENT,
                   "root (3) must be below the number of hosts (3)", 3);
  Bytes rows(64);
  pidcomm_request with_rows = request;
  with_rows.host = rows.data();
  with_rows.host_bytes = rows.size();
  check_same_error(with_rows, with_rows, PIDCOMM_ERR_HOST_BUFFER, "only the root, host 1, has rows",
                   1);
}

TEST(AHostThatDoesNotCome_EndsTheOthersAfterTheTimeOut) {
  pidcomm_hosts_settings settings{};
  settings.timeout_s = 0.2;
  Hosts hosts(2, {4}, settings);
  const pidcomm_request request = allreduce("11", 64);
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK_EQ(pidcomm_hosts_run(hosts.cube(0), &request, 0, nullptr, nullptr), +PIDCOMM_ERR_DEVICE);
    CHECK(
        std::string(pidcomm_last_error()).find("host 0 has waited 0.2 s for messages of host 1") !=
        std::string::npos);
  }
}

TEST(AFailureOfTheTransport_IsAnError) {
  Hosts hosts(2, {4});
  hosts.network().fail();
  const pidcomm_request request = allreduce("11", 64);
  for (const int status : hosts.each([&](std::uint32_t host) {
         return pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
       }))
    CHECK_EQ(status, +PIDCOMM_ERR_DEVICE);
  CHECK(hosts.sentences[0].find("the test's network is down") != std::string::npos);
}

TEST(AFailedTransport_KeepsTheConnectionClosed) {
  Hosts hosts(2, {4});
  hosts.network().fail();
  const pidcomm_request request = allreduce("11", 64);
  for (int attempt = 0; attempt < 2; ++attempt)
    for (const int status : hosts.each([&](std::uint32_t host) {
           return pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
         }))
      CHECK_EQ(status, +PIDCOMM_ERR_DEVICE);
  for (const std::string &sentence : hosts.sentences)
    CHECK(sentence.find("cannot be used any more") != std::string::npos);
}

TEST(Refuse_EndsTheCallOfTheOtherHosts) {
  Hosts hosts(3, {4});
  const pidcomm_request request = allreduce("11", 64);
  const std::vector<int> statuses = hosts.each([&](std::uint32_t host) {
    return host == 2 ? pidcomm_hosts_refuse(hosts.cube(host), PIDCOMM_ERR_MEMORY, "no rows")
                     : pidcomm_hosts_run(hosts.cube(host), &request, 0, nullptr, nullptr);
  });
  for (const int status : statuses) CHECK_EQ(status, +PIDCOMM_ERR_MEMORY);
  for (const std::string &sentence : hosts.sentences)
    CHECK_EQ(sentence, "host 2 refuses the call: no rows");
}

TEST(NonBlockingCalls_RunInOrder_AndKeepTheConnection) {
  Hosts hosts(2, {4});
  std::vector<std::uint32_t> ones(4 * 16, 1);
  EACH_OK(hosts, [&](std::uint32_t host) {
    if (const int status = pidcomm_write(hosts.local(host), 0, 64, ones.data())) return status;
    const pidcomm_request request = allreduce("11", 64);
    pidcomm_pending *pending[3];
    for (pidcomm_pending *&one : pending)
      if (const int status = pidcomm_hosts_irun(hosts.cube(host), &request, 0, nullptr, &one))
        return status;
    if (pidcomm_hosts_disconnect(hosts.cube(host)) != PIDCOMM_ERR_BUSY)
      return +PIDCOMM_ERR_INTERNAL;
    for (pidcomm_pending *&one : pending)
      if (const int status = pidcomm_wait(&one, nullptr)) return status;
    std::vector<std::uint32_t> sums(ones.size());
    if (const int status = pidcomm_read(hosts.local(host), 0, 64, sums.data())) return status;
    return sums == std::vector<std::uint32_t>(ones.size(), 512) ? +PIDCOMM_OK
                                                                : +PIDCOMM_ERR_INTERNAL;
  });
}

TEST(ATransportForOneThread_RefusesNonBlockingCalls) {
  machine::power_up(1);
  const machine::DpuSet set = machine::DpuSet::of_ranks(1);
  const machine::Hypercube local(set, {8});
  QueueNetwork network(1);
  pidcomm_transport transport = network.transport(0);
  transport.allows_any_thread = 0;
  pidcomm_hosts *cube = nullptr;
  CHECK_EQ(pidcomm_hosts_connect(local.get(), &transport, nullptr, &cube), +PIDCOMM_OK);
  const pidcomm_request request = allreduce("11", 64);
  pidcomm_pending *pending = nullptr;
  CHECK_EQ(pidcomm_hosts_irun(cube, &request, 0, nullptr, &pending), +PIDCOMM_ERR_OPTION);
  CHECK(std::string(pidcomm_last_error()).find("MPI_THREAD_SERIALIZED") != std::string::npos);
  CHECK_EQ(pidcomm_hosts_run(cube, &request, 0, nullptr, nullptr), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_hosts_disconnect(cube), +PIDCOMM_OK);
}

}  // namespace
