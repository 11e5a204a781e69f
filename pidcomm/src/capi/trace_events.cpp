#include "capi/trace_events.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "base/call_events.h"
#include "capi/line.h"
#include "capi/record_text.h"
#include "plan/request.h"

namespace pidcomm {

namespace {

// No function below throws: a call must not fail because of its event.

const std::string *folder = nullptr;  // is never freed: threads may write while the process ends

/// The file of a process. Forked processes have other files.
struct File {
  pid_t process;
  int descriptor;  // -1: the process writes no more events
};
std::atomic<File> file = File{0, -1};
static_assert(std::atomic<File>::is_always_lock_free);

void write_event(Line &line) {
  const pid_t process = getpid();
  File own = file;
  if (own.process != process) {
    char path[PATH_MAX];
    std::snprintf(path, sizeof path, "%s/pidcomm.%d.jsonl", folder->c_str(),
                  static_cast<int>(process));
    const File opened{process, open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)};
    const bool is_first = file.compare_exchange_strong(own, opened);
    const int unused = is_first ? own.descriptor : opened.descriptor;
    if (unused >= 0) close(unused);
    if (is_first) own = opened;
  }
  if (own.descriptor < 0) return;
  const std::string_view text = line.end_line().text();
  // One write, so that lines of threads do not mix.
  if (write(own.descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    file = File{process, -1};
}

/// The bytes of the UTF-8 character at `text`; 0: it is none.
std::size_t character_bytes(const char *text) {
  const auto at = [text](int i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const unsigned low = first == 0xE0   ? 0xA0
                       : first == 0xF0 ? 0x90
                                       : 0x80,
                 high = first == 0xED   ? 0x9F
                        : first == 0xF4 ? 0x8F
                                        : 0xBF;
  if (at(1) < low || at(1) > high) return 0;
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (int i = 2; i < static_cast<int>(bytes); ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  return bytes;
}

/// Adds a text as part of a JSON string.
void add_json(Line &line, const char *text) {
  while (*text != '\0') {
    const std::size_t bytes = character_bytes(text);
    char copy[5] = {};
    for (std::size_t i = 0; i < bytes; ++i) copy[i] = text[i];
    const bool is_control = bytes == 1 && static_cast<unsigned char>(*text) < 0x20;
    if (*text == '"' || *text == '\\') line << "\\";
    line << (bytes == 0 || is_control ? "?" : copy);
    text += bytes == 0 ? 1 : bytes;
  }
}

void begin_event(Line &line, const char *prefix, const char *name, const char *mask,
                 int64_t begin_ns, int64_t end_ns) {
  line << "{\"name\": \"" << prefix << name << (*mask == '\0' ? "" : " ");
  add_json(line, mask);
  line << "\", \"cat\": \"pidcomm\", \"ph\": \"X\", \"ts\": ";
  line.thousandths(static_cast<uint64_t>(begin_ns)) << ", \"dur\": ";
  line.thousandths(static_cast<uint64_t>(std::max(end_ns - begin_ns, int64_t{0})))
      << ", \"pid\": " << static_cast<uint64_t>(getpid())
      << ", \"tid\": " << static_cast<uint64_t>(syscall(SYS_gettid));
}

void add_text(Line &line, const char *key, const char *value) {
  if (value != nullptr) line << ", \"" << key << "\": \"" << value << "\"";
}

Line call_event(const char *prefix, const pidcomm_record &record, int64_t begin_ns, int64_t end_ns,
                const char *place) {
  Line line;
  begin_event(line, prefix, name_of_recorded(record), record.mask, begin_ns, end_ns);
  line << ", \"args\": {\"hypercube\": " << record.hypercube << ", \"shape\": \"" << record.shape
       << "\", \"call\": " << record.call << ", \"state\": \"" << text_of_state(record.state)
       << "\", \"bytes\": " << record.bytes;
  if (record.collective >= 0) add_text(line, "dtype", name_of_type(record.type));
  if (has_operator(record.collective))
    add_text(line, "op", record.op < 0 ? "own operator" : name_of_op(record.op));
  if (record.requests > 1) line << ", \"requests\": " << record.requests;
  if (record.trace.technique != 0) {
    add_text(line, "technique", name_of_technique(record.trace.technique));
    add_text(line, "isa", name_of_isa(record.trace.isa));
  }
  if (record.status != PIDCOMM_OK) add_text(line, "status", name_of_status(record.status));
  if (place != nullptr) {
    line << ", \"file\": \"";
    add_json(line, place);
    line << "\", \"line\": " << static_cast<uint64_t>(std::max(record.line, 0));
  }
  return line << "}}";
}

void write_call(const char *prefix, const pidcomm_record &record, int64_t begin_ns,
                int64_t end_ns) {
  Line line = call_event(prefix, record, begin_ns, end_ns, record.file);
  if (line.is_full()) line = call_event(prefix, record, begin_ns, end_ns, nullptr);
  write_event(line);
}

void write_phase(const char *name, int64_t begin_ns, int64_t end_ns) {
  Line line;
  begin_event(line, "", name, "", begin_ns, end_ns);
  write_event(line << "}");
}

}  // namespace

void trace_events_to(const std::string &path) {
  static constexpr CallEvents kEvents = {write_phase, write_call};
  folder = new std::string(path);
  call_events = &kEvents;
}

}  // namespace pidcomm
