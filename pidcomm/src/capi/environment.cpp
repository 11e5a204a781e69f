#include "capi/environment.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "capi/recorder.h"
#include "capi/trace_events.h"
#include "pidcomm/recorder.h"

namespace pidcomm {

namespace {

constexpr int kStderr = 2;

constexpr const char *kVariable = "environment variable PIDCOMM_RECORDER: ";

void check(int status) {
  if (status != PIDCOMM_OK)
    fail(static_cast<pidcomm_status>(status), kVariable, std::string(pidcomm_last_error()));
}

double seconds_of(std::string_view item) {
  constexpr std::string_view kWait = "wait=";
  const std::string_view number = item.starts_with(kWait) ? item.substr(kWait.size()) : "";
  double seconds = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      seconds == 0)
    fail(PIDCOMM_ERR_ARGUMENT, kVariable, "\"", std::string(item),
         "\" is unknown; use signal, wait=SECONDS above 0, or both with a comma between them");
  return seconds;
}

bool has_default_handler() {
  struct sigaction action{};
  return sigaction(SIGUSR1, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_DFL;
}

bool apply() {
  const char *const text = std::getenv("PIDCOMM_RECORDER");
  bool has_signal = false;
  double wait_s = 0;
  for (std::string_view rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    if (item == "signal" ? has_signal : wait_s != 0)
      fail(PIDCOMM_ERR_ARGUMENT, kVariable, "\"", text, "\" has an item twice");
    if (item == "signal")
      has_signal = true;
    else
      wait_s = seconds_of(item);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (wait_s != 0 && !has_watch()) check(pidcomm_recorder_watch(wait_s, kStderr));
  if (has_signal && has_default_handler()) check(pidcomm_recorder_signal(SIGUSR1, kStderr));
  if (const char *const folder = std::getenv("TRACE_EVENTS_FOLDER");
      folder != nullptr && *folder != '\0')
    trace_events_to(folder);
  return true;
}

}  // namespace

void apply_environment() {
  [[maybe_unused]] static const bool is_applied = apply();  // after an error, the next call tries
}

}  // namespace pidcomm
