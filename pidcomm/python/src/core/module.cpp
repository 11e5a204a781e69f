// Module pidcomm._core: the C functions of pidcomm and dpu.h for Python. The Python package adds
// names, defaults, shapes and dtypes.
//
// Memory is passed as one-dimensional contiguous arrays of bytes. Functions that wait or move bytes
// release the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <pidcomm/messages.h>
#include <pidcomm/stream.h>

#include "bindings.h"
#include "cube.h"
#include "status.h"

namespace core {

using namespace nanobind::literals;

void bind_cube(nb::module_ &m) {
  nb::class_<Operator>(m, "Operator")
      .def(nb::init<uint64_t, uint64_t, uint64_t, const nb::bytes &>(), "element_bytes"_a,
           "combine"_a, "store"_a, "identity"_a)
      .def_static("of_library", &Operator::of_library, "name"_a, "type"_a, "factor"_a);
  nb::class_<Request>(m, "Request")
      .def(
          "__init__",
          [](Request *self, int collective, std::string mask, uint64_t bytes, uint64_t src,
             uint64_t dst, int type, int op, std::shared_ptr<Operator> operation) {
            new (self) Request{collective, std::move(mask),     bytes, src, dst, type,
                               op,         std::move(operation)};
          },
          "collective"_a, "mask"_a, "bytes"_a, "src"_a, "dst"_a, "type"_a, "op"_a,
          "operation"_a.none())
      .def_ro("mask", &Request::mask)
      .def_ro("bytes", &Request::bytes)
      .def_ro("src", &Request::src)
      .def_ro("dst", &Request::dst);

  nb::class_<pidcomm_trace>(m, "RawTrace")
      .def("dict", nb::overload_cast<const pidcomm_trace &>(dict_of));
  nb::class_<Pending>(m, "Pending").def("wait", &Pending::wait).def("test", &Pending::test);

  nb::class_<Block>(m, "Block")
      .def_prop_ro("window", &Block::window)
      .def_prop_ro("address", &Block::address)
      .def_prop_ro("size_bytes", &Block::size_bytes);
  nb::class_<Cube>(m, "Cube")
      .def(
          "block",
          [](const Cube &cube, const std::string &name, uint64_t bytes) {
            return std::make_unique<Block>(cube, name, bytes);
          },
          "name"_a, "bytes"_a)
      .def("start", &Cube::start, "request"_a, "host_in"_a.noconvert().none(),
           "host_out"_a.noconvert().none(), "options"_a, nb::keep_alive<0, 1>())
      .def("run", &Cube::run, "request"_a, "host_in"_a.noconvert().none(),
           "host_out"_a.noconvert().none(), "options"_a)
      .def("run_batch", &Cube::run_batch, "calls"_a)
      .def("validate", &Cube::validate, "request"_a, "options"_a, "messages"_a.noconvert().none())
      .def("audit", &Cube::audit)
      .def("location", &Cube::location, "pe"_a)
      .def("fill_variables", &Cube::fill_variables, "names"_a)
      .def("coords", &Cube::coords, "pe"_a)
      .def("group_of", &Cube::group_of, "mask"_a, "pe"_a)
      .def("member_of", &Cube::member_of, "mask"_a, "pe"_a)
      .def("groups", &Cube::groups, "mask"_a)
      .def("stream_limit", &Cube::stream_limit, "copy_order"_a, "bytes_read"_a, "bytes_written"_a,
           "src"_a, "dst"_a, "options"_a)
      .def("push_xfer", &Cube::push_xfer, "to_pes"_a, "offset"_a, "rows"_a.noconvert());
}

}  // namespace core

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator(core::translate);

  m.attr("MRAM_BYTES") = PIDCOMM_MRAM_BYTES;
  m.attr("CHIPS_PER_RANK") = PIDCOMM_CHIPS_PER_RANK;
  m.attr("BANKS_PER_CHIP") = PIDCOMM_BANKS_PER_CHIP;
  m.attr("PES_PER_RANK") = PIDCOMM_PES_PER_RANK;
  m.attr("SENDRECV") = int{PIDCOMM_SENDRECV};
  nanobind::dict scans;
#define PIDCOMM_ROW(ENUM, code, name) scans[#name] = code;
  PIDCOMM_SCANS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  m.attr("SCANS") = scans;
  nanobind::dict operators;
#define PIDCOMM_ROW(name) operators[#name] = operators.size();
  PIDCOMM_OPERATORS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  m.attr("OPERATORS") = operators;
  nanobind::dict stream_kinds;
#define PIDCOMM_ROW(ENUM, code, name) stream_kinds[nanobind::int_(code)] = #name;
  PIDCOMM_STREAM_KINDS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  m.attr("STREAM_KINDS") = stream_kinds;
  m.attr("WORD_BYTES") = PIDCOMM_WORD_BYTES;
  m.attr("LINE_BYTES") = PIDCOMM_LINE_BYTES;
  m.attr("RUN_BYTES") = PIDCOMM_RUN_BYTES;
  m.attr("HEAP_NAME") = DPU_MRAM_HEAP_POINTER_NAME;
  m.attr("SDK") = PIDCOMM_SDK_NAME;
  m.attr("IS_EMULATED") = PIDCOMM_SDK_IS_EMULATED;
  core::bind_tables(m);
  core::bind_cube(m);
  core::bind_pool(m);
  core::bind_recorder(m);
  core::bind_hosts(m);
  core::bind_set(m);
  core::bind_stream(m);
}
