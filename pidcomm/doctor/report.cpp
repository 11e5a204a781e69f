#include "doctor/report.h"

#include <iomanip>

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

std::string json_seconds(double seconds) {
  return joined("\"seconds\": ", std::fixed, std::setprecision(3), seconds);
}

}  // namespace

void Report::write_json(const std::string &object) const {
  if (json_ == nullptr) return;
  std::fprintf(json_, "{%s}\n", object.c_str());
  std::fflush(json_);
}

void Report::header(const std::vector<std::pair<std::string, std::string>> &facts) const {
  std::string object;
  for (const auto &[name, value] : facts) {
    object += joined(object.empty() ? "" : ", ", quoted(name), ": ", quoted(value));
    if (has_text_) std::printf("# %s: %s\n", name.c_str(), value.c_str());
  }
  std::fflush(stdout);
  write_json(object);
}

bool Report::item(const std::string &name, const std::function<std::string()> &body) {
  if (has_text_) {
    std::printf("%-23s ", name.c_str());
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
  if (has_text_) {
    if (result == "ok")
      std::printf("ok %7.1f s  %s\n", seconds, detail.c_str());
    else
      std::printf("%s: %s (%.1f s)\n", result.c_str(), detail.c_str(), seconds);
    std::fflush(stdout);
  }
  write_json(joined("\"item\": ", quoted(name), ", \"result\": ", quoted(result),
                    ", \"detail\": ", quoted(detail), ", ", json_seconds(seconds)));
  return result != "FAILED";
}

int Report::finish() const {
  if (has_text_)
    std::printf("%u passed, %u failed, %u skipped in %.0f s\n", passed_, failed_, skipped_,
                total_.seconds());
  write_json(joined("\"passed\": ", passed_, ", \"failed\": ", failed_, ", \"skipped\": ", skipped_,
                    ", ", json_seconds(total_.seconds())));
  return failed_ == 0 ? 0 : 1;
}

}  // namespace doctor
