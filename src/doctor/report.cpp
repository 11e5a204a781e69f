#include "doctor/report.h"

#include <cstdio>

namespace doctor {

namespace {

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= ' ')
      result += c;
    else
      result += ' ';
  }
  return result + "\"";
}

}  // namespace

void Report::header(const std::vector<std::pair<std::string, std::string>> &facts) const {
  std::string line;
  for (const auto &[name, value] : facts) {
    if (is_json_)
      line += joined(line.empty() ? "{" : ", ", quoted(name), ": ", quoted(value));
    else
      std::printf("# %s: %s\n", name.c_str(), value.c_str());
  }
  if (is_json_) std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
}

bool Report::item(const std::string &name, const std::function<std::string()> &body) {
  if (!is_json_) {
    std::printf("%-22s ", name.c_str());
    std::fflush(stdout);
  }
  const Stopwatch stopwatch;
  std::string result, detail;
  try {
    detail = body();
    result = "ok";
    ++passed_;
  } catch (const Skipped &reason) {
    result = "skipped";
    detail = reason.what();
    ++skipped_;
  } catch (const std::exception &error) {
    result = "FAILED";
    detail = error.what();
    ++failed_;
  }
  const double seconds = stopwatch.seconds();
  if (is_json_)
    std::printf("{\"item\": %s, \"result\": %s, \"detail\": %s, \"seconds\": %.3f}\n", quoted(name).c_str(), quoted(result).c_str(),
                quoted(detail).c_str(), seconds);
  else if (result == "ok")
    std::printf("ok %7.1f s  %s\n", seconds, detail.c_str());
  else
    std::printf("%s: %s (%.1f s)\n", result.c_str(), detail.c_str(), seconds);
  std::fflush(stdout);
  return result != "FAILED";
}

int Report::finish() const {
  if (is_json_)
    std::printf("{\"passed\": %u, \"failed\": %u, \"skipped\": %u, \"seconds\": %.3f}\n", passed_, failed_, skipped_, total_.seconds());
  else
    std::printf("%u passed, %u failed, %u skipped in %.0f s\n", passed_, failed_, skipped_, total_.seconds());
  return failed_ == 0 ? 0 : 1;
}

}  // namespace doctor
