// Memory and threads of the host run out. Each case is a process in which one request fails: the
// first, the second, ... until the process makes fewer requests. No call may end the process or
// wait forever; the emulator must work again afterwards.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "program_fixture.h"

using namespace fixture;

namespace {

enum class Request { kNew, kMap, kProtect, kThread };

std::atomic<bool> is_armed{false};
std::atomic<Request> request_to_fail{Request::kNew};
std::atomic<int> requests_left{0};
std::atomic<bool> has_failed{false};

/// Whether this request must fail.
[[maybe_unused]] bool fails(Request request) {
  if (!is_armed || request != request_to_fail || --requests_left != 0) return false;
  has_failed = true;
  return true;
}

template <class Function>
[[maybe_unused]] Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// These definitions replace those of the C and C++ libraries in the whole process. Thread sanitizer
// calls the functions before it can run functions of the program, so the tests do nothing there.
#if defined(__SANITIZE_THREAD__)
constexpr bool kReplaces = false;
#else
constexpr bool kReplaces = true;

void *operator new(size_t bytes) {
  void *const memory = fails(Request::kNew) ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

extern "C" void *mmap(void *address, size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
  static const auto real = next<decltype(mmap)>("mmap");
  if (!fails(Request::kMap)) return real(address, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

extern "C" int mprotect(void *address, size_t bytes, int protection) noexcept {
  static const auto real = next<decltype(mprotect)>("mprotect");
  if (!fails(Request::kProtect)) return real(address, bytes, protection);
  errno = ENOMEM;
  return -1;
}

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*body)(void *), void *argument) noexcept {
  static const auto real = next<decltype(pthread_create)>("pthread_create");
  return fails(Request::kThread) ? EAGAIN : real(thread, attributes, body, argument);
}
#endif

namespace {

constexpr uint32_t kDpus = 2;

dpu_error_t do_nothing(dpu_set_t, uint32_t, void *) { return DPU_OK; }

/// Calls the host API as a program does, without a request of the test itself. Returns the first
/// status that is not DPU_OK.
dpu_error_t use_emulator(std::vector<uint8_t> &program, int strict) {
  dpuemu_machine_t machine = {};
  machine.ranks = 1;
  machine.threads = 2;
  machine.hugepages = 2;
  machine.strict = strict;
  const uint32_t none = 0;
  dpu_error_t first = dpuemu_configure(&machine, &none, 0);
  const auto note = [&](dpu_error_t status) {
    if (first == DPU_OK) first = status;
    return status == DPU_OK;
  };
  dpu_set_t set;
  if (!note(dpu_alloc(kDpus, nullptr, &set))) return first;
  if (note(dpu_load_from_memory(set, program.data(), program.size(), nullptr))) {
    note(dpu_launch(set, DPU_SYNCHRONOUS));
    note(dpu_launch(set, DPU_ASYNCHRONOUS));
    note(dpu_callback(
        set, do_nothing, nullptr,
        static_cast<dpu_callback_flags_t>(DPU_CALLBACK_ASYNC | DPU_CALLBACK_NONBLOCKING)));
    note(dpu_sync(set));
    note(dpu_launch(set, DPU_ASYNCHRONOUS));
    note(dpuemu_stop(set));
    const dpu_error_t status = dpu_sync(set);
    note(status == DPU_ERR_DPU_FAULT ? DPU_OK : status);  // the PEs may have ended before the stop
  }
  if (!note(dpu_free(set))) {
    is_armed = false;
    dpu_free(set);
  }
  return first;
}

enum Exit { kSurvived = 10, kNoRequest, kWrongStatus, kBrokenAfterwards };

/// The body of one process.
Exit fail_once(Request request, int number, std::vector<uint8_t> program, int strict) {
  alarm(60);  // ends a process that waits forever
  request_to_fail = request;
  requests_left = number;
  is_armed = true;
  const dpu_error_t status = use_emulator(program, strict);
  is_armed = false;
  if (status != DPU_OK && status != DPU_ERR_SYSTEM && status != DPU_ERR_DPU_FAULT)
    return kWrongStatus;
  if (!has_failed) return status == DPU_OK ? kNoRequest : kWrongStatus;
  return use_emulator(program, strict) == DPU_OK ? kSurvived : kBrokenAfterwards;
}

void check_every_request(Request request, const std::string &name, int least,
                         int strict = kLenient) {
  const std::vector<uint8_t> program = program_bytes("direct");
  for (int number = 1; kReplaces; ++number) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(fail_once(request, number, program, strict));
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    const std::string what = name + " number " + std::to_string(number) + " fails: ";
    CHECK_EQ(what + "signal " + std::to_string(WTERMSIG(status)), what + "signal 0");
    if (WEXITSTATUS(status) == kNoRequest) {
      CHECK(number > least);
      return;
    }
    CHECK_EQ(what + std::to_string(WEXITSTATUS(status)), what + std::to_string(kSurvived));
  }
}

}  // namespace

TEST(Exhaustion_OfAllocationsIsAStatus) {
  setenv("DPUEMU_REPORT", "/dev/null", 1);
  check_every_request(Request::kNew, "operator new", 20);
}

TEST(Exhaustion_OfMappingsIsAStatus) { check_every_request(Request::kMap, "mmap", 10); }

TEST(Exhaustion_OfMappingChangesIsAStatus) {
  check_every_request(Request::kProtect, "mprotect", 50);
  check_every_request(Request::kProtect, "mprotect in strict mode", 50, kStrict);
}

TEST(Exhaustion_OfThreadsIsAStatus) { check_every_request(Request::kThread, "pthread_create", 3); }
