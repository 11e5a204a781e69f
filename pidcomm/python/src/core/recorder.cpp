// The records of the last calls, and the places of their callers.
#include "recorder.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <pidcomm/recorder.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings.h"
#include "gil.h"
#include "status.h"
#include "values.h"

namespace core {

using namespace nanobind::literals;

namespace {

/// A code object. lines: of the instructions that have called, by index; a line takes longer to
/// compute than a small call.
struct Code {
  nb::object object;
  const char *file;
  bool is_inside;  // of the package, or of contextlib, which ends the blocks of batches and streams
  std::unordered_map<long, int> lines{};
};

constexpr std::size_t kMostCodes = 1024;

/// Objects for all calls. They are never destroyed, because calls may come at the end of Python.
struct Names {
  nb::object getframe = nb::module_::import_("sys").attr("_getframe");
  nb::str instruction{"f_lasti"}, back{"f_back"};
  std::string package =
      nb::cast<std::string>(nb::module_::import_("pidcomm").attr("__path__")[nb::int_(0)]) + "/";
  std::string contextlib =
      nb::cast<std::string>(nb::module_::import_("contextlib").attr("__file__"));
  std::unordered_set<std::string> files;  // records keep pointers to their characters
  std::unordered_map<PyObject *, Code> codes;
};
Names &names() {
  static Names &names = *new Names;
  return names;
}

Code &code_of(nb::handle frame) {
  Names &all = names();
  nb::object object = nb::steal(reinterpret_cast<PyObject *>(
      PyFrame_GetCode(reinterpret_cast<PyFrameObject *>(frame.ptr()))));
  if (const auto found = all.codes.find(object.ptr()); found != all.codes.end())
    return found->second;
  if (all.codes.size() == kMostCodes) all.codes.clear();
  const std::string &file =
      *all.files.insert(nb::cast<std::string>(object.attr("co_filename"))).first;
  const bool is_inside = std::string_view(file).starts_with(all.package) || file == all.contextlib;
  PyObject *const key = object.ptr();
  return all.codes.try_emplace(key, Code{std::move(object), file.c_str(), is_inside}).first->second;
}

int line_of(Code &code, nb::handle frame) {
  const nb::object index = frame.attr(names().instruction);
  const auto [line, is_new] = code.lines.try_emplace(PyLong_AsLong(index.ptr()), 0);
  if (is_new) {
    const nb::object number = frame.attr("f_lineno");  // None in code without lines
    if (!number.is_none()) line->second = nb::cast<int>(number);
  }
  return line->second;
}

}  // namespace

Place place_of_caller(int inner) {
  try {
    nb::object frame;
    if (inner != 0) {
      try {
        frame = names().getframe(inner);
      } catch (nb::python_error &) {  // there are fewer frames
      }
      if (frame.is_valid() && !code_of(frame).is_inside) frame.reset();
    }
    if (!frame.is_valid()) frame = names().getframe(0);
    for (; !frame.is_none(); frame = frame.attr(names().back)) {
      Code &code = code_of(frame);
      if (!code.is_inside) return {code.file, line_of(code, frame)};
    }
  } catch (const std::exception &) {  // a call without a known caller has a record, too
  }
  return {nullptr, 0};
}

void note_caller(int inner) {
  const auto [file, line] = place_of_caller(inner);
  pidcomm_recorder_place(file, line);
}

namespace {

std::string text_of_record(const pidcomm_record &record) {
  return text_of([&](char *text, std::size_t capacity, std::size_t *length) {
    return pidcomm_record_text(&record, text, capacity, length);
  });
}

const char *state_name(int state) {
  constexpr const char *kNames[] = {
#define PIDCOMM_ROW(ENUM, code, text) text,
      PIDCOMM_CALL_STATES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  };
  return kNames[state];
}

nb::dict dict_of_record(const pidcomm_record &record) {
  nb::dict dict;
  dict["hypercube"] = record.hypercube;
  dict["shape"] = record.shape;
  dict["call"] = record.call;
  dict["collective"] = pidcomm_name(PIDCOMM_TABLE_COLLECTIVE, record.collective);
  dict["mask"] = record.mask;
  dict["bytes"] = record.bytes;
  dict["dtype"] = pidcomm_name(PIDCOMM_TABLE_TYPE, record.type);
  dict["op"] = pidcomm_name(PIDCOMM_TABLE_OP, record.op);
  dict["requests"] = record.requests;
  dict["request"] = record.request;
  dict["state"] = state_name(record.state);
  dict["status"] = pidcomm_name(PIDCOMM_TABLE_STATUS, record.status);
  dict["sentence"] = record.sentence;
  dict["awaited_host"] = record.awaited_hosts == 0 ? nb::object(nb::none())
                                                   : nb::object(nb::int_(record.awaited_host));
  dict["awaited_hosts"] = record.awaited_hosts;
  dict["started_s"] = record.started_s;
  dict["elapsed_s"] = record.elapsed_s;
  dict["file"] = record.file;
  dict["line"] = record.line;
  dict["text"] = text_of_record(record);
  return dict;
}

/// The fields of each record, and its trace, or None.
nb::list records() {
  std::vector<pidcomm_record> all;
  for (std::size_t count = PIDCOMM_RECORDED_CALLS; count > all.size();) {
    all.assign(count, pidcomm_record{});
    check(pidcomm_recorder_read(all.data(), all.size(), &count));
    if (count <= all.size()) {
      all.resize(count);
      break;
    }
  }
  nb::list rows;
  for (const pidcomm_record &record : all) {
    const bool has_trace = record.state == PIDCOMM_CALL_DONE && record.trace.technique != 0;
    rows.append(nb::make_tuple(dict_of_record(record),
                               has_trace ? nb::cast(record.trace) : nb::object(nb::none())));
  }
  return rows;
}

void watch(double seconds, int file_descriptor) {
  int status;
  {
    const gil::Released released;
    status = pidcomm_recorder_watch(seconds, file_descriptor);
  }
  check(status);
}

/// A handler in C runs while the interpreter waits for a call.
void on_signal(int number, int file_descriptor) {
  check(pidcomm_recorder_signal(number, file_descriptor));
}

}  // namespace

void bind_recorder(nb::module_ &m) {
  m.def("records", records,
        nb::sig("def records() -> list[tuple[dict[str, Any], RawTrace | None]]"));
  m.def("recorder_watch", watch, "seconds"_a, "file_descriptor"_a);
  m.def("recorder_on_signal", on_signal, "number"_a, "file_descriptor"_a);
}

}  // namespace core
