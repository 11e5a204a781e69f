// pidcomm.bench._verify: the oracle, payloads, and an ordinary memory copy as a baseline.
// Shares no code with the library.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <verify/fill.h>
#include <verify/oracle.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Returns the fold of an operator of operators.h, or null for "". factor: of scaled_sum.
std::shared_ptr<const verify::Fold> fold_of(const std::string &name, int type, double factor) {
  const auto fold = [&]() -> verify::Fold {
    if (name == "avg") return verify::average(type);
    if (name == "argmin" || name == "argmax") return verify::place(type, name == "argmax");
    if (name == "scaled_sum") return verify::scaled_sum(type, factor);
    throw nb::value_error(("unknown operator " + name).c_str());
  };
  return name.empty() ? nullptr : std::make_shared<const verify::Fold>(fold());
}

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of an ordinary copy of contiguous memory by `threads` threads. The time excludes the
/// start and end of the threads.
double host_copy(MutableBytes destination, Bytes source, uint32_t threads) {
  if (destination.size() != source.size() || threads == 0)
    throw nb::value_error("a copy needs two arrays of the same size and at least one thread");
  const gil::Released released;
  std::latch ready(threads), done(threads);
  std::vector<double> begin(threads);
  const auto share = [&](uint32_t thread) { return source.size() / threads * thread; };
  const auto copy = [&](uint32_t thread) {
    ready.arrive_and_wait();
    begin[thread] = seconds_now();
    const std::size_t end = thread + 1 == threads ? source.size() : share(thread + 1);
    std::memcpy(destination.data() + share(thread), source.data() + share(thread),
                end - share(thread));
    done.arrive_and_wait();
  };
  std::vector<std::jthread> others;
  try {
    for (uint32_t thread = 1; thread < threads; ++thread) others.emplace_back(copy, thread);
  } catch (...) {  // the started threads wait for missing threads: release them
    const auto missing = static_cast<std::ptrdiff_t>(threads - others.size());
    ready.count_down(missing);
    done.count_down(missing);
    throw;
  }
  copy(0);
  return seconds_now() - *std::min_element(begin.begin(), begin.end());
}

}  // namespace

NB_MODULE(_verify, m) {
  nb::set_leak_warnings(false);
  using verify::Fill;
  using verify::Problem;
  nb::class_<Problem>(m, "Problem")
      .def(
          "__init__",
          [](Problem *self, int collective, std::vector<uint32_t> axis_len, std::string mask,
             uint64_t bytes, int type, int op, const std::string &operation, double factor) {
            new (self) Problem{collective,
                               std::move(axis_len),
                               std::move(mask),
                               bytes,
                               type,
                               op,
                               fold_of(operation, type, factor)};
          },
          "collective"_a, "axis_len"_a, "mask"_a, "bytes"_a, "type"_a, "op"_a, "operation"_a,
          "factor"_a)
      .def("rows_before",
           [](const Problem &self) {
             const auto rows = verify::rows_before(self);
             return std::tuple(rows.count, rows.row_bytes, rows.at_pes);
           })
      .def("rows_after",
           [](const Problem &self) {
             const auto rows = verify::rows_after(self);
             return std::tuple(rows.count, rows.row_bytes, rows.at_pes);
           })
      .def(
          "expected",
          [](const Problem &self, Bytes before, MutableBytes after) {
            const gil::Released released;
            verify::expected(self, {before.data(), before.size()}, {after.data(), after.size()});
          },
          "before"_a.noconvert(), "after"_a.noconvert())
      .def(
          "check",
          [](const Problem &self, Bytes before, Bytes got) {
            verify::Verdict verdict;
            {
              const gil::Released released;
              verdict =
                  verify::check(self, {before.data(), before.size()}, {got.data(), got.size()});
            }
            return std::pair(verdict.wrong, verdict.first);
          },
          "before"_a.noconvert(), "got"_a.noconvert());
  m.def(
      "members",
      [](const std::vector<uint32_t> &axis_len, const std::string &mask) {
        const verify::Groups groups = verify::groups_of(axis_len, mask);
        std::vector<std::vector<uint32_t>> members;
        for (uint32_t group = 0; group < groups.count; ++group)
          members.emplace_back(groups.members(group).begin(), groups.members(group).end());
        return members;
      },
      "axis_len"_a, "mask"_a);
  m.def(
      "move",
      [](const std::vector<std::array<uint32_t, 8>> &messages, uint64_t row_bytes, Bytes before,
         MutableBytes after) {
        std::vector<verify::Message> all;
        for (const auto &fields : messages) all.push_back(std::bit_cast<verify::Message>(fields));
        const gil::Released released;
        verify::move(all, row_bytes, {before.data(), before.size()}, {after.data(), after.size()});
      },
      "messages"_a, "row_bytes"_a, "before"_a.noconvert(), "after"_a.noconvert());
  nb::enum_<Fill>(m, "Fill")
      .value("distinct", Fill::kDistinct)
      .value("exact", Fill::kExact)
      .value("special", Fill::kSpecial)
      .value("rounding", Fill::kRounding);
  m.def("fill_for", verify::fill_for, "takes_op"_a, "type"_a, "op"_a);
  m.def(
      "fill",
      [](Fill kind, int type, int op, uint64_t seed, uint64_t row_bytes, MutableBytes rows) {
        const gil::Released released;
        verify::fill(kind, type, op, seed, row_bytes, {rows.data(), rows.size()});
      },
      "kind"_a, "type"_a, "op"_a, "seed"_a, "row_bytes"_a, "rows"_a.noconvert());
  m.def("is_defined", verify::is_defined, "op"_a, "type"_a);
  m.def("host_copy", host_copy, "destination"_a.noconvert(), "source"_a.noconvert(), "threads"_a);
}
