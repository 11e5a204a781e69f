#include "capi/trace_events.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <string_view>

#include "base/call_events.h"
#include "capi/record_text.h"
#include "capi/text_line.h"
#include "plan/request.h"

namespace pidcomm {

namespace {

// No function below throws: a call must not fail because of its event.

const std::string *folder = nullptr;  // is never freed: threads may write while the process ends

/// The file of a process. Forked processes have other files. The program may close the descriptor
/// and open its own file with the same number, so device and inode say whether it is this file.
struct File {
  pid_t process;
  int descriptor;  // -1: the process writes no more events
  dev_t device;
  ino_t inode;

  /// Stores the size of the file.
  bool is_open(off_t &size) const {
    struct stat now;
    if (descriptor < 0 || fstat(descriptor, &now) != 0) return false;
    size = now.st_size;
    return now.st_dev == device && now.st_ino == inode;
  }
  void close_own() {
    off_t size;
    if (is_open(size)) close(descriptor);
    descriptor = -1;
  }
};

File open_file(pid_t process) {
  char path[PATH_MAX];
  std::snprintf(path, sizeof path, "%s/pidcomm.%d.jsonl", folder->c_str(),
                static_cast<int>(process));
  int descriptor;
  do descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  while (descriptor < 0 && errno == EINTR);
  struct stat now{};
  if (descriptor >= 0 && fstat(descriptor, &now) != 0) {
    close(descriptor);
    descriptor = -1;
  }
  return {process, descriptor, now.st_dev, now.st_ino};
}

std::mutex file_mutex;  // guards the file; fork waits for it
File file = {};

/// Appends complete lines. After an error, the file ends with the last complete line.
void write_lines(std::string_view lines) {
  const std::lock_guard<std::mutex> lock(file_mutex);
  const pid_t process = getpid();
  if (file.process == process && file.descriptor < 0) return;
  off_t size = 0;
  if (file.process != process || !file.is_open(size)) {
    if (file.process != 0) file.close_own();
    file = open_file(process);
    if (!file.is_open(size)) return;
  }
  if (write_all(file.descriptor, lines)) return;
  [[maybe_unused]] const int status = ftruncate(file.descriptor, size);
  file.close_own();
}

/// Collects lines, so that few writes suffice.
class Lines {
 public:
  Lines() = default;
  ~Lines() { write(); }
  Lines(const Lines &) = delete;
  Lines &operator=(const Lines &) = delete;
  void add(TextLine &line) {
    const std::string_view text = line.end_line().text();
    if (length_ + text.size() > sizeof text_) write();
    std::memcpy(text_ + length_, text.data(), text.size());
    length_ += text.size();
  }

 private:
  void write() {
    if (length_ != 0) write_lines({text_, length_});
    length_ = 0;
  }
  char text_[8192];  // more than a line
  std::size_t length_ = 0;
};

/// Returns the number of bytes of the UTF-8 character at `text`, or 0 if `text` is not UTF-8.
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
void add_json(TextLine &line, const char *text) {
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

void begin_event(TextLine &line, const char *prefix, const char *name, const char *mask,
                 int64_t begin_ns, int64_t end_ns) {
  line << "{\"name\": \"" << prefix << name << (*mask == '\0' ? "" : " ");
  add_json(line, mask);
  line << "\", \"cat\": \"pidcomm\", \"ph\": \"X\", \"ts\": ";
  line.thousandths(static_cast<uint64_t>(begin_ns)) << ", \"dur\": ";
  line.thousandths(static_cast<uint64_t>(std::max(end_ns - begin_ns, int64_t{0})))
      << ", \"pid\": " << static_cast<uint64_t>(getpid())
      << ", \"tid\": " << static_cast<uint64_t>(syscall(SYS_gettid));
}

void add_text(TextLine &line, const char *key, const char *value) {
  if (value != nullptr) line << ", \"" << key << "\": \"" << value << "\"";
}

TextLine call_event(const char *prefix, const pidcomm_record &record, int64_t begin_ns,
                    int64_t end_ns, const char *place) {
  TextLine line;
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
  if (record.status != PIDCOMM_OK) {
    add_text(line, "status", name_of_status(record.status));
    line << ", \"error\": \"";
    add_json(line, record.sentence);
    line << "\"";
  }
  if (place != nullptr) {
    line << ", \"file\": \"";
    add_json(line, place);
    line << "\", \"line\": " << static_cast<uint64_t>(std::max(record.line, 0));
  }
  return line << "}}";
}

struct Phase {
  const char *name;
  int64_t begin_ns, end_ns;
};
/// Of the call that this thread carries out.
struct Phases {
  Phase phase[64];
  std::size_t count;
};
thread_local constinit Phases phases = {};

void add_phases(Lines &lines) {
  for (std::size_t i = 0; i < phases.count; ++i) {
    const Phase &phase = phases.phase[i];
    TextLine line;
    begin_event(line, "", phase.name, "", phase.begin_ns, phase.end_ns);
    lines.add(line << "}");
  }
  phases.count = 0;
}

/// A call with more phases writes them before its end.
void keep_phase(const char *name, int64_t begin_ns, int64_t end_ns) {
  if (phases.count == std::size(phases.phase)) {
    Lines lines;
    add_phases(lines);
  }
  phases.phase[phases.count++] = {name, begin_ns, end_ns};
}

void write_call(const char *prefix, const pidcomm_record &record, int64_t begin_ns,
                int64_t end_ns) {
  Lines lines;
  add_phases(lines);
  TextLine line = call_event(prefix, record, begin_ns, end_ns, record.file);
  if (line.is_full()) line = call_event(prefix, record, begin_ns, end_ns, nullptr);
  lines.add(line);
}

void drop_phases() { phases.count = 0; }

}  // namespace

void trace_events_to(const std::string &path) {
  static constexpr CallEvents kEvents = {keep_phase, write_call, drop_phases};
  const int status = pthread_atfork([] { file_mutex.lock(); }, [] { file_mutex.unlock(); },
                                    [] { file_mutex.unlock(); });
  if (status != 0) throw std::bad_alloc();
  folder = new std::string(path);
  call_events = &kEvents;
}

}  // namespace pidcomm
