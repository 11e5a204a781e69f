// Pools: their calls on all kinds of memory, errors, names and access rights, killed processes, and
// the switch. One file, because all tests start the hosts of a pool with the same functions.
#include <fcntl.h>
#include <pidcomm/pool.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "effort.h"
#include "harness.h"

namespace {

constexpr std::size_t kBytes = 1 << 20;
using Settings = pidcomm_pool_settings;

void expect(bool is_right, const std::string &what) {
  if (!is_right) throw harness::Failure(what);
}

/// The objects of pools of this process and its children.
std::vector<std::string> objects() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("-test" + std::to_string(getpid())) != std::string::npos) names.push_back(name);
  }
  return names;
}

std::string unique_name() {
  static int number = 0;
  return "test" + std::to_string(getpid()) + "." + std::to_string(++number);
}

Settings named(const std::string &name, std::uint32_t hosts) {
  Settings settings{};
  settings.name = name.c_str();
  settings.bytes = kBytes;
  settings.hosts = hosts;
  settings.timeout_s = 20;
  return settings;
}

struct Result {
  int status = PIDCOMM_OK;
  std::string sentence;
};

/// Runs body(settings) on a thread for each host.
std::vector<Result> each(Settings settings, const std::function<int(const Settings &)> &body) {
  std::vector<Result> results(settings.hosts);
  std::vector<std::thread> threads;
  for (std::uint32_t host = 0; host < settings.hosts; ++host)
    threads.emplace_back([&results, &body, settings, host]() mutable {
      settings.host = host;
      try {
        results[host].status = body(settings);
        results[host].sentence = pidcomm_last_error();
      } catch (const harness::Failure &failure) {
        results[host] = {PIDCOMM_ERR_INTERNAL, failure.what()};
      }
    });
  for (std::thread &thread : threads) thread.join();
  return results;
}

void expect_all(const std::vector<Result> &results, int status, const std::string &part = "") {
  for (const Result &result : results) {
    CHECK_EQ(result.status, status);
    expect(result.sentence.find(part) != std::string::npos,
           "'" + result.sentence + "' lacks '" + part + "'");
  }
}

/// Every host writes a block of its own; after a sync every host reads all blocks; several times.
int share(const Settings &settings, int rounds, std::size_t bytes = 4096 + 8) {
  pidcomm_pool *pool = nullptr;
  std::size_t offset = 0;
  if (const int status = pidcomm_pool_open(&settings, &pool)) return status;
  int status = pidcomm_pool_allocate(pool, 2 * settings.hosts * bytes, &offset);
  std::vector<std::uint8_t> block(bytes), all(settings.hosts * bytes);
  for (int round = 0; round < rounds && status == PIDCOMM_OK; ++round) {
    const std::size_t slot = offset + static_cast<std::size_t>(round % 2) * settings.hosts * bytes;
    const auto value = [&](std::uint32_t host, std::size_t i) {
      return static_cast<std::uint8_t>(i * 7 + host * 31 + round);
    };
    for (std::size_t i = 0; i < bytes; ++i) block[i] = value(settings.host, i);
    status = pidcomm_pool_write(pool, slot + settings.host * bytes, bytes, block.data());
    if (status == PIDCOMM_OK) status = pidcomm_pool_sync(pool);
    if (status == PIDCOMM_OK) status = pidcomm_pool_read(pool, slot, all.size(), all.data());
    for (std::uint32_t host = 0; host < settings.hosts && status == PIDCOMM_OK; ++host)
      for (std::size_t i = 0; i < bytes && status == PIDCOMM_OK; ++i)
        if (all[host * bytes + i] != value(host, i)) status = PIDCOMM_ERR_INTERNAL;
  }
  const std::string sentence = pidcomm_last_error();
  pidcomm_pool_close(pool);
  if (status == PIDCOMM_ERR_DEVICE) fprintf(stderr, "%s\n", sentence.c_str());
  return status;
}

/// A file that is removed at the end.
struct File {
  std::string path = std::filesystem::temp_directory_path() / unique_name();
  ~File() { std::filesystem::remove(path); }
};

// ---- processes; first, because sanitizers fork only before other threads have run

/// Starts a process that ends with the result of body.
pid_t start(const std::function<int()> &body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(KilledProcesses_EndTheOthers_AndLeaveNothing) {
  // The victim is a host or the switch; the moment is anywhere from its start to the middle of its
  // syncs.
  std::mt19937 random(7);
  const int kills = effort::is_small() ? 10 : 100;
  for (int n = 0; n < kills; ++n) {
    const std::string name = "test" + std::to_string(getpid()) + ".kill";  // always the same name
    Settings settings = named(name, 3);
    settings.has_switch = static_cast<std::size_t>(n % 2);
    settings.timeout_s = 0.3;  // for a victim that never came
    std::vector<pid_t> children;
    for (std::uint32_t host = 0; host < 3; ++host)
      children.push_back(start([settings, host]() mutable {
        if (freopen("/dev/null", "w", stderr) == nullptr) return 99;
        settings.host = host;
        return share(settings, 1 << 30, 64);
      }));
    if (n % 2 != 0) children.push_back(start([settings] { return pidcomm_switch_run(&settings); }));
    const std::size_t victim = random() % children.size();
    usleep(random() % (n % 4 < 2 ? 3000 : 30000));
    kill(children[victim], SIGKILL);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const int end = end_of(children[i]);
      const bool is_switch = i == 3;
      if (i != victim && !(is_switch && end == PIDCOMM_OK)) CHECK_EQ(end, +PIDCOMM_ERR_DEVICE);
    }
    std::vector<pid_t> next;
    settings.has_switch = 0;
    settings.hosts = 2;
    settings.timeout_s = 20;
    for (std::uint32_t host = 0; host < 2; ++host)
      next.push_back(start([settings, host]() mutable {
        settings.host = host;
        return share(settings, 3);
      }));
    for (const pid_t child : next) CHECK_EQ(end_of(child), +PIDCOMM_OK);
    expect(objects().empty(),
           "kill " + std::to_string(n) + " has left " + (objects().empty() ? "" : objects()[0]));
  }
}

TEST(ASwitchThatEndsBeforeItHasOpenedThePool_IsAnError) {
  const File file;
  const std::string name = "test" + std::to_string(getpid()) + ".switch";
  for (const bool has_name : {true, false}) {
    Settings settings = named(name, 1);
    if (!has_name) settings.name = nullptr, settings.path = file.path.c_str();
    settings.coherence = has_name ? PIDCOMM_COHERENCE_NONE : PIDCOMM_COHERENCE_HARDWARE;
    settings.has_switch = 1;
    settings.timeout_s = 1000;
    const pid_t child = start([] { return 3; });
    settings.switch_process = static_cast<std::size_t>(child);
    pidcomm_pool *pool = nullptr;
    CHECK_EQ(pidcomm_pool_open(&settings, &pool), +PIDCOMM_ERR_DEVICE);
    const std::string sentence = pidcomm_last_error(),
                      part = "the switch (process " + std::to_string(child) + ") has ended";
    expect(sentence.find(part) != std::string::npos, "'" + sentence + "' lacks '" + part + "'");
    CHECK_EQ(end_of(child), 3);
  }
}

// ---- threads

TEST(Hosts_ReadWhatAllHostsWroteBeforeTheSync) {
  for (const std::size_t coherence : {PIDCOMM_COHERENCE_NONE, PIDCOMM_COHERENCE_HARDWARE})
    for (const std::uint32_t hosts : {1u, 2u, 5u}) {
      const std::string name = unique_name();
      const File file;
      std::vector<std::byte> memory(kBytes + 64);
      for (int kind = 0; kind < 3; ++kind) {
        Settings settings = named(name, hosts);
        settings.coherence = coherence;
        if (kind != 0) settings.name = nullptr;
        if (kind == 1) settings.path = file.path.c_str();
        if (kind == 2)
          settings.memory = reinterpret_cast<void *>(
              (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
        for (int run = 0; run < 2;
             ++run)  // a file and memory of the program still have the contents of the first run
          expect_all(each(settings, [](const Settings &own) { return share(own, 50); }),
                     PIDCOMM_OK);
      }
    }
  expect(objects().empty(), "an object is left");
}

TEST(AnAllgather_CopiesTheBytesOfAllHostsToAll_ForAllAreas) {
  for (const std::uint32_t hosts : {1u, 2u, 3u})
    for (const std::size_t coherence : {PIDCOMM_COHERENCE_NONE, PIDCOMM_COHERENCE_HARDWARE}) {
      const std::string name = unique_name();
      Settings settings = named(name, hosts);
      settings.coherence = coherence;
      expect_all(each(settings,
                      [](const Settings &own) {
                        constexpr std::size_t kArea = 100'000;
                        pidcomm_pool *pool = nullptr;
                        std::size_t offset = 0;
                        if (const int status = pidcomm_pool_open(&own, &pool)) return status;
                        int status = pidcomm_pool_allocate(pool, kArea, &offset);
                        for (const std::size_t bytes : {0u, 1u, 64u, 4099u, 70'001u, 600'000u})
                          for (const std::size_t area : {std::size_t{128} * own.hosts, kArea}) {
                            if (bytes > 5000 && area != kArea) continue;  // thousands of chunks
                            std::vector<std::uint8_t> block(bytes), all(own.hosts * bytes + 1, 99);
                            const auto value = [&](std::uint32_t host, std::size_t i) {
                              return static_cast<std::uint8_t>(i * 7 + i / 256 + host * 31 + bytes);
                            };
                            for (std::size_t i = 0; i < bytes; ++i) block[i] = value(own.host, i);
                            if (status == PIDCOMM_OK)
                              status = pidcomm_pool_allgather(pool, offset, area, bytes,
                                                              block.data(), all.data());
                            for (std::size_t i = 0; i + 1 < all.size() && status == PIDCOMM_OK; ++i)
                              if (all[i] != value(static_cast<std::uint32_t>(i / bytes), i % bytes))
                                status = PIDCOMM_ERR_INTERNAL;
                            if (all.back() != 99) status = PIDCOMM_ERR_INTERNAL;
                          }
                        pidcomm_pool_close(pool);
                        return status;
                      }),
                 PIDCOMM_OK);
    }
}

TEST(OnlyTheUserHasAccess_AndTheNameGoesWhenAllHostsAreThere) {
  const std::string name = unique_name();
  const Settings settings = named(name, 2);
  std::thread first([settings] {
    pidcomm_pool *pool = nullptr;
    pidcomm_pool_open(&settings, &pool);
    pidcomm_pool_close(pool);
  });
  while (objects().empty()) std::this_thread::yield();
  const std::string object = objects().at(0);
  struct stat found{};
  const int status = stat(("/dev/shm/" + object).c_str(), &found);
  Settings second = settings;
  second.host = 1;
  pidcomm_pool *pool = nullptr;
  const int opened = pidcomm_pool_open(&second, &pool);
  const bool is_gone = objects().empty();
  pidcomm_pool_close(pool);
  first.join();
  CHECK_EQ(status, 0);
  CHECK_EQ(found.st_mode & 0777, 0600u);
  CHECK_EQ(static_cast<std::size_t>(found.st_size), kBytes);
  CHECK_EQ(opened, +PIDCOMM_OK);
  CHECK(is_gone);
  expect(object.find("-" + name + "-" + std::to_string(getpid()) + "-") != std::string::npos,
         object + " has no owner");
  const File file;
  Settings mapped = settings;
  mapped.name = nullptr;
  mapped.path = file.path.c_str();
  expect_all(each(mapped, [](const Settings &own) { return share(own, 1); }), PIDCOMM_OK);
  CHECK_EQ(stat(file.path.c_str(), &found), 0);
  CHECK_EQ(found.st_mode & 0777, 0600u);
}

/// Makes a file of another user. Returns false if this process cannot: only root can, and in some
/// containers not even root.
bool make_foreign(const std::string &path) {
  std::ofstream(path) << "text";
  return chown(path.c_str(), 65534, 65534) == 0;
}

TEST(FilesOfOtherUsers_AreErrorsAsPaths_AndDoNotBlockNames) {
  const std::string name = unique_name(), prefix = "/dev/shm/pidcomm-pool-" +
                                                   std::to_string(geteuid()) + "-" + name + "-";
  File file, blocked;
  file.path = prefix + "1-1";
  if (!make_foreign(file.path)) return;
  // The names that this process would choose next.
  std::vector<std::unique_ptr<File>> chosen;
  for (int sequence = 1; sequence < 200; ++sequence) {
    chosen.push_back(std::make_unique<File>());
    chosen.back()->path = prefix + std::to_string(getpid()) + "-" + std::to_string(sequence);
    CHECK(make_foreign(chosen.back()->path));
  }
  expect_all(each(named(name, 2), [](const Settings &settings) { return share(settings, 2); }),
             PIDCOMM_OK);
  CHECK(make_foreign(blocked.path));
  Settings settings = named(name, 1);
  settings.name = nullptr;
  settings.path = blocked.path.c_str();
  pidcomm_pool *pool = nullptr;
  CHECK_EQ(pidcomm_pool_open(&settings, &pool), +PIDCOMM_ERR_ARGUMENT);
  const std::string sentence = pidcomm_last_error();
  const std::string part =
      "is a file of the user 65534; this process has the user " + std::to_string(geteuid());
  expect(sentence.find(part) != std::string::npos, sentence);
}

TEST(WrongSettings_AreErrors) {
  const auto check = [](Settings settings, const std::string &part,
                        int status = PIDCOMM_ERR_ARGUMENT) {
    pidcomm_pool *pool = nullptr;
    CHECK_EQ(pidcomm_pool_open(&settings, &pool), status);
    CHECK(pool == nullptr);
    const std::string sentence = pidcomm_last_error();
    expect(sentence.find(part) != std::string::npos, "'" + sentence + "' lacks '" + part + "'");
  };
  const std::string name = unique_name();
  const Settings usual = named(name, 1);
  const auto with = [&](auto field, auto value) {
    Settings settings = usual;
    settings.*field = value;
    return settings;
  };
  check(with(&Settings::path, "/tmp/x"), "exactly one of name, path and memory, not 2");
  check(with(&Settings::name, nullptr), "exactly one of name, path and memory, not 0");
  check(with(&Settings::name, "a/b"), "the name 'a/b' of a pool must have 1 to 64 letters");
  check(with(&Settings::name, ""), "the name '' of a pool");
  check(with(&Settings::bytes, std::size_t{5000}),
        "bytes (5000) of a pool must be a multiple of 4096 and more than the 4096");
  check(with(&Settings::bytes, pidcomm_pool_own_bytes(1)), "and more than the");
  check(with(&Settings::hosts, 0u), "hosts (0) of a pool must be between 1 and 1024");
  check(with(&Settings::hosts, 2000u), "hosts (2000)");
  check(with(&Settings::host, 1u), "host (1) must be below the number of hosts (1)");
  check(with(&Settings::coherence, std::size_t{7}), "coherence code 7", PIDCOMM_ERR_OPTION);
  check(with(&Settings::has_switch, std::size_t{2}), "has_switch (2)");
  check(with(&Settings::switch_process, std::size_t{7}), "switch_process (7) of a pool must");
  check(with(&Settings::timeout_s, -1.0), "timeout_s (-1)");
  check(with(&Settings::bytes, std::size_t{1} << 46), "free bytes", PIDCOMM_ERR_MEMORY);
  Settings settings = usual;
  settings.name = nullptr;
  settings.path = "/nowhere/pool";
  check(settings, "cannot open it: No such file");
  settings.path = "/dev/null";
  check(settings, "the pool /dev/null", PIDCOMM_ERR_DEVICE);
  settings.path = "/tmp";
  check(settings, "the pool /tmp", PIDCOMM_ERR_DEVICE);
  const File file;
  std::ofstream(file.path) << "text";
  settings.path = file.path.c_str();
  check(settings, "is a file of 4 bytes, not 1048576");
  Settings of_switch = usual;
  CHECK_EQ(pidcomm_switch_run(&of_switch), +PIDCOMM_ERR_ARGUMENT);
  expect(objects().empty(), "an object is left");
}

TEST(DifferentSettings_AreTheSameErrorOnAllHosts) {
  const std::string name = unique_name();
  const auto differ = [&](const std::function<void(Settings &)> &change, const std::string &part) {
    expect_all(each(named(name, 3),
                    [&](Settings own) {
                      if (own.host == 1) change(own);
                      return share(own, 1);
                    }),
               PIDCOMM_ERR_ARGUMENT, part);
  };
  differ([](Settings &own) { own.bytes *= 2; },
         "differs between host 0 (1048576 bytes, 3 hosts, no switch, coherence none, layout 2) and "
         "host 1");
  differ([](Settings &own) { own.coherence = PIDCOMM_COHERENCE_HARDWARE; }, "coherence hardware");
  differ([](Settings &own) { own.hosts = 2; }, "2 hosts");
  Settings too_large = named(name, 3);
  too_large.bytes = std::size_t{1} << 46;
  expect_all(each(too_large, [](const Settings &own) { return share(own, 1); }), PIDCOMM_ERR_MEMORY,
             "needs 70368744177664 bytes");
  expect(objects().empty(), "an object is left");
}

TEST(DifferentAllocations_AreTheSameErrorOnAllHosts) {
  const std::string name = unique_name();
  expect_all(
      each(named(name, 3),
           [](const Settings &own) {
             pidcomm_pool *pool = nullptr;
             std::size_t offset = 0;
             if (const int status = pidcomm_pool_open(&own, &pool)) return status;
             pidcomm_pool_allocate(pool, own.host == 2 ? 128 : 64, &offset);
             const int status = pidcomm_pool_sync(pool);
             CHECK_EQ(pidcomm_pool_sync(pool), +PIDCOMM_ERR_DEVICE);
             const std::string sentence = pidcomm_last_error();
             pidcomm_pool_close(pool);
             expect(sentence.find("all hosts must make the same allocations") != std::string::npos,
                    sentence);
             return status;
           }),
      PIDCOMM_ERR_ARGUMENT);
}

TEST(TwoPoolsOfOneName_AndTwoHostsOfOneNumber_AreErrors) {
  const std::string name = unique_name();
  const Settings settings = named(name, 2);
  Result first, second;
  const auto open = [settings](std::uint32_t host, Result &result) {
    Settings own = settings;
    own.host = host;
    own.timeout_s = 2;
    pidcomm_pool *pool = nullptr;
    result.status = pidcomm_pool_open(&own, &pool);
    result.sentence = pidcomm_last_error();
    pidcomm_pool_close(pool);
  };
  std::thread waiting(open, 0, std::ref(first));
  while (objects().empty()) std::this_thread::yield();
  open(0, second);
  CHECK_EQ(second.status, +PIDCOMM_ERR_ARGUMENT);
  expect(second.sentence.find("another pool of this name (/dev/shm/" + objects().at(0)) !=
             std::string::npos,
         second.sentence);
  waiting.join();
  CHECK_EQ(first.status, +PIDCOMM_ERR_DEVICE);
  expect(first.sentence.find("has waited 2 s for host 1 to open it") != std::string::npos,
         first.sentence);
  expect(objects().empty(), "an object is left");
  // Two processes with the number of one host of three.
  Settings of_three = settings;
  of_three.hosts = 3;
  of_three.timeout_s = 1;
  std::vector<Result> results(3);
  std::vector<std::thread> threads;
  for (const std::uint32_t host : {0u, 1u, 1u})
    threads.emplace_back([&results, of_three, host, at = threads.size()]() mutable {
      of_three.host = host;
      pidcomm_pool *pool = nullptr;
      results[at].status = pidcomm_pool_open(&of_three, &pool);
      results[at].sentence = pidcomm_last_error();
      pidcomm_pool_close(pool);
    });
  for (std::thread &thread : threads) thread.join();
  const auto is_refused = [](const Result &result) {
    return result.status == PIDCOMM_ERR_ARGUMENT &&
           result.sentence.find("is already open as host 1") != std::string::npos;
  };
  CHECK(is_refused(results[1]) != is_refused(results[2]));
  CHECK_EQ(results[0].status, +PIDCOMM_ERR_DEVICE);
}

TEST(BytesOutsideAllocatedMemory_AreErrors) {
  const std::string name = unique_name();
  const Settings settings = named(name, 1);
  pidcomm_pool *pool = nullptr;
  std::size_t offset = 0, other = 0;
  std::vector<std::byte> host(kBytes);
  CHECK_EQ(pidcomm_pool_open(&settings, &pool), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_pool_allocate(pool, 100, &offset), +PIDCOMM_OK);
  CHECK_EQ(offset, pidcomm_pool_own_bytes(1));
  CHECK_EQ(pidcomm_pool_allocate(pool, 64, &other), +PIDCOMM_OK);
  CHECK_EQ(other, offset + 128);
  CHECK_EQ(pidcomm_pool_allocate(pool, kBytes, &other), +PIDCOMM_ERR_MEMORY);
  expect(std::string(pidcomm_last_error()).find("free bytes of 1048576; 1048576 are needed") !=
             std::string::npos,
         pidcomm_last_error());
  CHECK_EQ(pidcomm_pool_allocate(pool, SIZE_MAX - 3, &other), +PIDCOMM_ERR_MEMORY);
  for (const std::size_t at : {std::size_t{0}, offset - 1, offset + 190, SIZE_MAX}) {
    CHECK_EQ(pidcomm_pool_write(pool, at, 8, host.data()), +PIDCOMM_ERR_ARGUMENT);
    CHECK_EQ(pidcomm_pool_read(pool, at, 8, host.data()), +PIDCOMM_ERR_ARGUMENT);
  }
  CHECK_EQ(pidcomm_pool_write(pool, offset, SIZE_MAX, host.data()), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_pool_write(pool, offset, 192, host.data()), +PIDCOMM_OK);
  CHECK_EQ(pidcomm_pool_write(pool, offset, 8, nullptr), +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_pool_write_and_copy(pool, offset, 8, host.data(), nullptr),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_pool_write_and_copy(pool, 0, 8, host.data(), host.data() + 8),
           +PIDCOMM_ERR_ARGUMENT);
  CHECK_EQ(pidcomm_pool_write_and_copy(pool, offset, 16, host.data(), host.data() + 8),
           +PIDCOMM_ERR_ARGUMENT);
  expect(std::string(pidcomm_last_error()).find("16 bytes at ") != std::string::npos,
         pidcomm_last_error());
  CHECK_EQ(pidcomm_pool_close(pool), +PIDCOMM_OK);
}

TEST(AHostThatDoesNotSync_EndsTheOthersAfterTheTimeOut) {
  const std::string name = unique_name();
  Settings settings = named(name, 3);
  settings.timeout_s = 0.3;
  const std::vector<Result> results = each(settings, [](const Settings &own) {
    pidcomm_pool *pool = nullptr;
    if (const int status = pidcomm_pool_open(&own, &pool)) return status;
    if (own.host == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
    const int status = pidcomm_pool_sync(pool);
    const std::string sentence = pidcomm_last_error();
    pidcomm_pool_close(pool);
    // Host 2 may be the first whose time is over; then it closes the pool.
    const bool is_right =
        sentence.find("has waited 0.3 s for host 1 (process ") != std::string::npos ||
        sentence.find(" has closed the pool") != std::string::npos;
    expect(own.host != 0 || is_right, sentence);
    return status;
  });
  expect_all(results, PIDCOMM_ERR_DEVICE);
}

TEST(AHostThatClosesThePool_IsAnErrorOfTheOthers) {
  const std::string name = unique_name();
  const std::vector<Result> results = each(named(name, 3), [](const Settings &own) {
    pidcomm_pool *pool = nullptr;
    if (const int status = pidcomm_pool_open(&own, &pool)) return status;
    int status = pidcomm_pool_sync(pool);
    if (own.host != 2 && status == PIDCOMM_OK) {
      status = pidcomm_pool_sync(pool);
      const std::string sentence = pidcomm_last_error();
      expect(sentence.find("host 2 (process ") != std::string::npos &&
                 sentence.find("has closed the pool") != std::string::npos,
             sentence);
    }
    pidcomm_pool_close(pool);
    return status;
  });
  CHECK_EQ(results[0].status, +PIDCOMM_ERR_DEVICE);
  CHECK_EQ(results[1].status, +PIDCOMM_ERR_DEVICE);
  CHECK_EQ(results[2].status, +PIDCOMM_OK);
}

TEST(TheSwitch_ReducesRows_AndEndsWithTheLastHost) {
  for (const std::size_t coherence : {PIDCOMM_COHERENCE_NONE, PIDCOMM_COHERENCE_HARDWARE}) {
    const std::string name = unique_name();
    Settings settings = named(name, 3);
    settings.has_switch = 1;
    settings.coherence = coherence;
    int ended = -1;
    std::thread network_switch([&] { ended = pidcomm_switch_run(&settings); });
    const std::vector<Result> results = each(settings, [](const Settings &own) {
      pidcomm_pool *pool = nullptr;
      if (const int status = pidcomm_pool_open(&own, &pool)) return status;
      pidcomm_transport transport{};
      CHECK_EQ(pidcomm_pool_transport(pool, 0, &transport), +PIDCOMM_OK);
      auto *const rows = static_cast<std::int32_t *>(transport.shared);
      const std::size_t count = 20000;
      int status = PIDCOMM_OK;
      for (int round = 0; round < 5; ++round) {
        std::iota(rows + own.host * count, rows + (own.host + 1) * count,
                  static_cast<int>(own.host) * 1000 + round);
        if (transport.sync(transport.context, 20) != nullptr) return +PIDCOMM_ERR_DEVICE;
        const pidcomm_reduction reduction{PIDCOMM_INT32, PIDCOMM_SUM, own.hosts, 0,
                                          4 * count,     4 * count};
        if (own.host == 0 && transport.reduce(transport.context, &reduction, 20) != nullptr)
          return +PIDCOMM_ERR_DEVICE;
        if (transport.sync(transport.context, 20) != nullptr) return +PIDCOMM_ERR_DEVICE;
        for (std::size_t i = 0; i < count; ++i)
          if (rows[i] != static_cast<int>(3 * (i + static_cast<std::size_t>(round)) + 3000))
            status = PIDCOMM_ERR_INTERNAL;
        if (transport.sync(transport.context, 20) != nullptr) return +PIDCOMM_ERR_DEVICE;
      }
      transport.close(transport.context);
      pidcomm_pool_close(pool);
      return status;
    });
    network_switch.join();
    expect_all(results, PIDCOMM_OK);
    CHECK_EQ(ended, +PIDCOMM_OK);
  }
}

}  // namespace
