#include "pe_signals.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <mutex>
#include <new>

namespace dpuemu {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGURG};
constexpr size_t kHandlerStackBytes = 256 << 10;

struct sigaction previous_actions[std::size(kSignals)];

__attribute__((tls_model("initial-exec"))) thread_local SignalTarget *current_target = nullptr;

void pass_on(int signal, siginfo_t *info, void *context) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction &previous = previous_actions[i];
    if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
    if (signal == SIGURG) return;  // ignored by default
    struct sigaction end_process = {};
    end_process.sa_handler = SIG_DFL;
    sigaction(signal, &end_process, nullptr);  // what raised it is repeated
  }
}

void on_signal(int signal, siginfo_t *info, void *context) {
  SignalTarget *target = current_target;
  if (target == nullptr || target->door.is_inside == 0) {
    if (signal != SIGURG || target == nullptr) pass_on(signal, info, context);
    return;
  }
  if (signal == SIGURG && target->overdue_turn.load() != target->turns.load(std::memory_order_relaxed)) return;
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (signal == SIGSEGV && target->run->handle_memory_fault(address)) return;
  leave_by_signal(target->door, signal, address, context);
}

}  // namespace

void prepare_thread_for_signals(SignalTarget &target) {
  current_target = &target;
  set_current_door(&target.door);
  void *stack = mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) throw std::bad_alloc();
  stack_t handler_stack = {};
  handler_stack.ss_sp = stack;
  handler_stack.ss_size = kHandlerStackBytes;
  sigaltstack(&handler_stack, nullptr);
  sigset_t blocked;
  sigfillset(&blocked);
  for (int signal : kSignals) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

void install_signal_handlers() {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now = {};
    sigaction(kSignals[i], nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) continue;
    previous_actions[i] = now;
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(kSignals[i], &ours, nullptr);
  }
}

}  // namespace dpuemu
