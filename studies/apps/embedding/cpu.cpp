// Embedding tables on the CPUs: the look-up with pooling, and the requests that the host sends to
// PEs.
#include "../cpu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

using namespace pidcomm_apps;

void require(bool holds, const char *rule) {
  if (!holds) throw nb::value_error(rule);
}

void require_bags(const In<int64_t> &starts, size_t indices, size_t tables) {
  require(starts.shape(0) >= 1 && tables >= 1 && (starts.shape(0) - 1) % tables == 0,
          "starts must have a bag per sample and table");
  require(starts(0) == 0 && static_cast<size_t>(starts(starts.shape(0) - 1)) == indices,
          "starts must begin with 0 and end with all indices");
  for (size_t bag = 1; bag < starts.shape(0); ++bag)
    require(starts(bag - 1) <= starts(bag), "starts must not fall");
}

/// Adds a row of `columns` values. Integers are added without a sign, because unsigned arithmetic
/// wraps.
PIDCOMM_APPS_WIDEST_VECTORS void add(uint32_t *sum, const uint32_t *row, size_t columns) {
#pragma omp simd
  for (size_t c = 0; c < columns; ++c) sum[c] += row[c];
}
PIDCOMM_APPS_WIDEST_VECTORS void add(float *sum, const float *row, size_t columns) {
#pragma omp simd
  for (size_t c = 0; c < columns; ++c) sum[c] += row[c];
}
PIDCOMM_APPS_WIDEST_VECTORS void add_absolute(float *sum, const float *row, size_t columns) {
#pragma omp simd
  for (size_t c = 0; c < columns; ++c) sum[c] += std::fabs(row[c]);
}

/// Returns the sum of the rows of each bag; bag `s * tables + t` takes rows of table t.
/// is_absolute: adds absolute values (floats only).
template <class T>
Out2<T> pooled(In2<T> tables, size_t table_count, In<int64_t> starts, In<uint32_t> indices,
               bool is_absolute) {
  const size_t columns = tables.shape(1);
  require(table_count >= 1 && tables.shape(0) % table_count == 0,
          "tables must have an equal number of rows each");
  require_bags(starts, indices.shape(0), table_count);
  const size_t rows = tables.shape(0) / table_count, bags = starts.shape(0) - 1;
  for (size_t i = 0; i < indices.shape(0); ++i)
    require(indices(i) < rows, "an index must be below the number of rows");
  Owned<T> sums(bags * columns);
  {
    using Value = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    const nb::gil_scoped_release released;
    const Value *const values = reinterpret_cast<const Value *>(tables.data());
    Value *const out = reinterpret_cast<Value *>(sums.data());
    const int64_t *const start = starts.data();
    const uint32_t *const index = indices.data();
#pragma omp parallel for schedule(dynamic, 8)
    for (size_t bag = 0; bag < bags; ++bag) {
      const Value *const table = values + bag % table_count * rows * columns;
      for (int64_t i = start[bag]; i < start[bag + 1]; ++i) {
        if constexpr (std::is_floating_point_v<T>) {
          if (is_absolute) {
            add_absolute(out + bag * columns, table + index[i] * columns, columns);
            continue;
          }
        }
        add(out + bag * columns, table + index[i] * columns, columns);
      }
    }
  }
  return sums.array(bags, columns);
}

/// Returns the requests of kernel.c: a row for each part of the tables (x) and of their rows (y), x
/// fastest.
///
/// Each of x parts has `part_tables` tables, each of y parts has `part_rows` rows. A row has the
/// starts of its bags in the order (sample, local table), then the number of its indices, zeros up
/// to `start_words`, then its indices.
Out2<uint32_t> requests(In<int64_t> starts, In<uint32_t> indices, size_t tables, size_t x, size_t y,
                        size_t part_tables, size_t part_rows, size_t start_words) {
  require(part_tables >= 1 && part_rows >= 1 && x * part_tables >= tables,
          "the parts must have all tables");
  require_bags(starts, indices.shape(0), tables);
  const size_t samples = (starts.shape(0) - 1) / tables, bags = samples * part_tables;
  require(start_words > bags, "start_words must have room for the starts and their end");
  for (size_t i = 0; i < indices.shape(0); ++i)
    require(indices(i) / part_rows < y, "the parts must have all rows");
  const int64_t *const start = starts.data();
  const uint32_t *const index = indices.data();
  std::vector<uint32_t> counts(x * y);
  for (size_t bag = 0; bag + 1 < starts.shape(0); ++bag)
    for (int64_t i = start[bag]; i < start[bag + 1]; ++i)
      ++counts[index[i] / part_rows * x + bag % tables / part_tables];
  size_t most = 0;
  for (const uint32_t count : counts) most = std::max<size_t>(most, count);
  const size_t width = start_words + (most + 1) / 2 * 2;
  Owned<uint32_t> rows(x * y * width);
  {
    const nb::gil_scoped_release released;
    uint32_t *const out = rows.data();
    std::vector<uint32_t> ends(x * y);
    for (size_t s = 0; s < samples; ++s)
      for (size_t t = 0; t < x * part_tables; ++t) {
        const size_t part_x = t / part_tables, local = t % part_tables;
        for (size_t part = part_x; part < x * y; part += x)
          out[part * width + s * part_tables + local] = ends[part];
        if (t >= tables) continue;
        const size_t bag = s * tables + t;
        for (int64_t i = start[bag]; i < start[bag + 1]; ++i) {
          const size_t part_y = index[i] / part_rows, part = part_y * x + part_x;
          out[part * width + start_words + ends[part]++] =
              static_cast<uint32_t>(local * part_rows + index[i] - part_y * part_rows);
        }
      }
    for (size_t part = 0; part < x * y; ++part)
      for (size_t word = bags; word < start_words; ++word)
        out[part * width + word] = word == bags ? ends[part] : 0;
  }
  return rows.array(x * y, width);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  const auto array = nb::arg().noconvert();
  module.def("embedding", &pooled<int32_t>, array, nb::arg(), array, array, nb::arg());
  module.def("embedding", &pooled<float>, array, nb::arg(), array, array, nb::arg());
  module.def("embedding_requests", &requests, array, array, nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg());
}
