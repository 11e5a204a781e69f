#include "pe/signals.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <mutex>
#include <new>

namespace dpuemu {
namespace {

/// The signal that the watch sends to a thread. Programs rarely use this real-time signal, but
/// often use signals with a name.
int watch_signal() { return SIGRTMAX - 1; }

/// Handlers of one signal: the handler before the emulator's handler, and the last handler that the
/// program installed over the emulator's handler, if any.
struct Handled {
  int signal;
  bool is_installed;
  struct sigaction original, latest;
};
Handled handled[] = {{SIGSEGV, false, {}, {}}, {SIGBUS, false, {}, {}},
                     {SIGFPE, false, {}, {}},  {SIGILL, false, {}, {}},
                     {SIGTRAP, false, {}, {}}, {0 /* watch_signal() */, false, {}, {}}};
constexpr size_t kHandlerStackBytes = 256 << 10;

// The data of the calling thread: nullptr until it first runs PEs. A signal of the watch may arrive
// after the thread has stopped running PEs.
__attribute__((tls_model("initial-exec"))) thread_local SignalTarget *current_target = nullptr;
SignalTarget nothing_inside;
// A handler that the program installed over the emulator's handler may call the emulator's handler.
// In this case, the emulator calls the original handler.
__attribute__((tls_model("initial-exec"))) thread_local int passing_on = 0;

/// Returns whether an instruction of this thread raised the signal, not kill() or raise().
bool is_synchronous(const siginfo_t *info) { return info->si_code > 0; }

void end_process(int signal, bool is_repeated) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  if (!is_repeated) raise(signal);  // delivered when the handler returns
}

void pass_on(int signal, siginfo_t *info, void *context) {
  for (const Handled &entry : handled) {
    if (entry.signal != signal) continue;
    const struct sigaction &next = passing_on == 0 ? entry.latest : entry.original;
    if (next.sa_handler == SIG_IGN && !is_synchronous(info)) return;
    if (next.sa_handler == SIG_DFL || next.sa_handler == SIG_IGN)
      return end_process(signal, is_synchronous(info) && signal != SIGTRAP);
    ++passing_on;
    if (next.sa_flags & SA_SIGINFO)
      next.sa_sigaction(signal, info, context);
    else
      next.sa_handler(signal);
    --passing_on;
  }
}

void on_signal(int signal, siginfo_t *info, void *context) {
  SignalTarget *const target = current_target;
  const bool is_from_watch = signal == watch_signal() && target != nullptr &&
                             info->si_code == SI_TKILL && info->si_pid == getpid();
  if (is_from_watch) {
    if (target->door.is_inside == 0 ||
        target->long_turn.load() != target->turns.load(std::memory_order_relaxed))
      return;
    const auto place =
        static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
    if (!target->run.load(std::memory_order_relaxed)->is_interruptible(place)) return;
    return interrupt_tasklet(target->door, context);
  }
  if (target == nullptr || target->door.is_inside == 0 || !is_synchronous(info))
    return pass_on(signal, info, context);
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  if (signal == SIGSEGV &&
      target->run.load(std::memory_order_relaxed)->handle_memory_fault(address))
    return;
  leave_by_signal(target->door, signal, address, context);
}

sigset_t all_handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const Handled &entry : handled)
    sigaddset(&set, entry.signal != 0 ? entry.signal : watch_signal());
  return set;
}

void block_other_signals() {
  sigset_t blocked, ours = all_handled();
  sigfillset(&blocked);
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&ours, signal) == 1) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace

PeSignals::PeSignals()
    : stack_(mmap(nullptr, kHandlerStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0)) {
  if (stack_ == MAP_FAILED) throw std::bad_alloc();
}

PeSignals::~PeSignals() { munmap(stack_, kHandlerStackBytes); }

void PeSignals::attach() {
  stack_t handler_stack = {};
  handler_stack.ss_sp = stack_;
  handler_stack.ss_size = kHandlerStackBytes;
  sigaltstack(&handler_stack, &stack_before_);
  set_current_door(&target.door);
  if (current_target == nullptr) block_other_signals();
  current_target = &target;
}

void PeSignals::detach() {
  current_target = &nothing_inside;
  set_current_door(nullptr);
  sigaltstack(&stack_before_, nullptr);
}

void install_signal_handlers() {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  for (Handled &entry : handled) {
    if (entry.signal == 0) entry.signal = watch_signal();
    struct sigaction now = {};
    sigaction(entry.signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) continue;
    if (!entry.is_installed) entry.original = now;
    entry.latest = now;
    entry.is_installed = true;
    struct sigaction ours = {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    ours.sa_mask = all_handled();
    sigaction(entry.signal, &ours, nullptr);
  }
}

void interrupt_turn(pthread_t thread, SignalTarget &target, uint64_t turn) {
  target.long_turn.store(turn);
  pthread_kill(thread, watch_signal());
}

}  // namespace dpuemu
