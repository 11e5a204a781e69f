#include "pool/wait.h"

#include <sys/wait.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "exec/flush.h"

namespace pidcomm {

namespace {

/// Whether a child process has ended; false for 0. Leaves its exit code for the program.
bool has_ended(std::size_t process) {
  siginfo_t info{};
  if (process == 0) return false;
  const int status = waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT);
  return status == 0 ? info.si_pid != 0 : errno == ECHILD;
}

}  // namespace

void Pool::flush(const void *begin, uint64_t bytes) const {
  if (coherence() == PIDCOMM_COHERENCE_HARDWARE) flush_bytes(kernels_, begin, bytes);
}

void Pool::set(Counter &counter, uint32_t value) const {
  store(counter.value, value);
  if (coherence() != PIDCOMM_COHERENCE_HARDWARE &&
      counter.sleepers.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, &counter.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Counters may overflow.
bool Pool::has_reached(const Counter &counter, uint32_t value) const {
  return static_cast<int32_t>(load(counter.value) - value) >= 0;
}

std::string Pool::name_of(uint32_t number) const {
  const std::size_t child = number == kSwitchSeat ? settings_.switch_process : 0;
  return name_of_seat(number) + " (process " +
         std::to_string(child != 0 ? child : static_cast<std::size_t>(seat(number).process)) + ")";
}

bool Pool::is_gone(uint32_t number) const {
  if (number == kSwitchSeat && has_ended(settings_.switch_process)) return true;
  if (load(seat(number).generation) != generation_) return false;
  return load(seat(number).left) != kNot ||
         (memory_->sees_seats() && number != number_ && !memory_->is_taken(number));
}

/// Names the process that ended first. A process that sees the end of another one closes the pool
/// after its error, so the kinds of end are read in the order from effect to cause, and the last
/// kind found is the cause. The switch is the last process, because it ends with host 0.
void Pool::check_alive() const {
  std::string reason;
  for (const Left left : {kAfterError, kClosed, kNot}) {
    bool is_found = false;
    each_seat([&](uint32_t number) {
      if (is_found || !is_gone(number) || load(seat(number).left) != left) return;
      is_found = true;
      reason = name_of(number) + (left == kNot      ? " has ended without closing the pool"
                                  : left == kClosed ? " has closed the pool"
                                                    : " has closed the pool after an error");
    });
  }
  if (!reason.empty()) fail(PIDCOMM_ERR_DEVICE, memory_->title(), ": ", reason);
}

/// Host 0 gives up for all processes.
void Pool::refuse(pidcomm_status status, const std::string &sentence) const {
  if (load(head().refusal) != PIDCOMM_OK) return;
  const std::size_t length = std::min(sentence.size(), sizeof head().sentence - 1);
  std::memcpy(head().sentence, sentence.data(), length);
  head().sentence[length] = '\0';
  flush(head().sentence, sizeof head().sentence);
  store(head().refusal, int32_t{status});
  set(head().released, head().released.value);
}

void Pool::check_refused() const {
  const int32_t status = load(head().refusal);
  if (status == PIDCOMM_OK) return;
  flush(head().sentence, sizeof head().sentence);
  fail(static_cast<pidcomm_status>(status), head().sentence);
}

}  // namespace pidcomm
