// Embedding tables on the CPUs: the look-up with pooling, the requests that the host sends to PEs,
// and the sums from those of the PEs.
#include "../cpu.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace pidcomm_apps;

#ifdef __clang__
#define PIDCOMM_APPS_NO_VECTORS
#define PIDCOMM_APPS_NO_VECTORS_IN_LOOP _Pragma("clang loop vectorize(disable)")
#else
#define PIDCOMM_APPS_NO_VECTORS __attribute__((optimize("no-tree-vectorize")))
#define PIDCOMM_APPS_NO_VECTORS_IN_LOOP
#endif

constexpr size_t kThreadBytes = 256 << 10;  // for fewer, a thread costs more than it saves
constexpr size_t kUnitWords = 16 << 10;     // most sums that a thread takes at a time

size_t threads_for(size_t bytes) {
  return std::min<size_t>(omp_get_max_threads(), 1 + bytes / kThreadBytes);
}

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

/// Adds without vectors, as a plain loop does.
template <class T>
PIDCOMM_APPS_NO_VECTORS void add_plainly(T *sum, const T *row, size_t columns) {
  PIDCOMM_APPS_NO_VECTORS_IN_LOOP
  for (size_t c = 0; c < columns; ++c) sum[c] += row[c];
}

/// Returns the sum of the rows of each bag; bag `s * tables + t` takes rows of table t.
/// is_absolute: adds absolute values (floats only). is_plain: one thread adds, without vectors.
template <class T>
Out2<T> pooled(In2<T> tables, size_t table_count, In<int64_t> starts, In<uint32_t> indices,
               bool is_absolute, bool is_plain) {
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
    void (*act)(Value *, const Value *, size_t) = &add;
    if (is_plain) act = &add_plainly<Value>;
    if constexpr (std::is_floating_point_v<T>)
      if (is_absolute) act = &add_absolute;
#pragma omp parallel for schedule(dynamic, 8) if (!is_plain)
    for (size_t bag = 0; bag < bags; ++bag) {
      const Value *const table = values + bag % table_count * rows * columns;
      for (int64_t i = start[bag]; i < start[bag + 1]; ++i)
        act(out + bag * columns, table + index[i] * columns, columns);
    }
  }
  return sums.array(bags, columns);
}

/// Returns the requests of kernel.c: a row for each part of the tables (x) and of their rows (y), x
/// fastest.
///
/// Each of x parts has `part_tables` tables, each of y parts has `part_rows` rows. A row has the
/// starts of its bags in the order (sample, local table), then the number of its indices, zeros up
/// to `start_words`, then its indices. Each thread has its part of the samples: it counts the
/// indices for every PE, and then writes them behind those of the threads before it.
Out2<uint32_t> requests(In<int64_t> starts, In<uint32_t> indices, size_t tables, size_t x, size_t y,
                        size_t part_tables, size_t part_rows, size_t start_words) {
  require(part_tables >= 1 && x * part_tables >= tables, "the parts must have all tables");
  require(part_rows >= 1 && part_rows <= UINT32_MAX, "part_rows must be from 1 to 2^32 - 1");
  require_bags(starts, indices.shape(0), tables);
  const size_t samples = (starts.shape(0) - 1) / tables, bags = samples * part_tables;
  require(start_words > bags, "start_words must have room for the starts and their end");
  const int64_t *const start = starts.data();
  const uint32_t *const index = indices.data();
  const size_t parts = x * y, words = parts * start_words + 2 * indices.shape(0);
  const size_t threads = std::clamp<size_t>(samples, 1, threads_for(words * sizeof(uint32_t)));
  const uint32_t rows_of_part = static_cast<uint32_t>(part_rows);  // 32 bits divide faster
  std::vector<uint32_t> ends(threads * parts);  // of the indices of each thread, by part
  bool has_all_rows = true;
#pragma omp parallel for num_threads(threads) reduction(&& : has_all_rows)
  for (size_t thread = 0; thread < threads; ++thread) {
    uint32_t *const count = ends.data() + thread * parts;
    for (size_t bag = samples * thread / threads * tables;
         bag < samples * (thread + 1) / threads * tables; ++bag)
      for (int64_t i = start[bag]; i < start[bag + 1]; ++i) {
        const size_t part_y = index[i] / rows_of_part;
        if (part_y < y)
          ++count[part_y * x + bag % tables / part_tables];
        else
          has_all_rows = false;
      }
  }
  require(has_all_rows, "the parts must have all rows");
  size_t most = 0;
  std::vector<uint32_t> totals(parts);
  for (size_t part = 0; part < parts; ++part) {
    for (size_t thread = 0; thread < threads; ++thread)
      totals[part] += std::exchange(ends[thread * parts + part], totals[part]);
    most = std::max<size_t>(most, totals[part]);
  }
  const size_t width = start_words + (most + 1) / 2 * 2;
  Owned<uint32_t> rows(parts * width);
  {
    const nb::gil_scoped_release released;
    uint32_t *const out = rows.data();
#pragma omp parallel for num_threads(threads)
    for (size_t thread = 0; thread < threads; ++thread) {
      uint32_t *const end = ends.data() + thread * parts;
      for (size_t s = samples * thread / threads; s < samples * (thread + 1) / threads; ++s)
        for (size_t t = 0; t < x * part_tables; ++t) {
          const size_t part_x = t / part_tables, local = t % part_tables;
          for (size_t part = part_x; part < parts; part += x)
            out[part * width + s * part_tables + local] = end[part];
          if (t >= tables) continue;
          const size_t bag = s * tables + t;
          for (int64_t i = start[bag]; i < start[bag + 1]; ++i) {
            const size_t part_y = index[i] / rows_of_part, part = part_y * x + part_x;
            out[part * width + start_words + end[part]++] =
                static_cast<uint32_t>(local * part_rows + index[i] - part_y * part_rows);
          }
        }
    }
    for (size_t part = 0; part < parts; ++part) out[part * width + bags] = totals[part];
  }
  return rows.array(parts, width);
}

/// Returns the sums of all bags from those of the PEs: adds the parts of the rows (y) and joins
/// the columns (z) and tables (x).
///
/// sums: a row for each z and x, x fastest, with `y` equal blocks. requests: those of the PEs.
/// group: number of bags that a PE writes together; without an index it does not write them, so
/// that they are not read. 0: every bag is written. tables, columns: of the whole.
template <class T>
Out2<T> joined(In2<T> sums, In2<uint32_t> requests, size_t x, size_t y, size_t z, size_t samples,
               size_t tables, size_t part_tables, size_t columns, size_t part_columns,
               size_t group) {
  const size_t bags = samples * part_tables, block = sums.shape(1) / std::max<size_t>(y, 1);
  require(sums.shape(0) == x * z && y >= 1 && block >= bags * part_columns,
          "sums must have the blocks of all PEs");
  require(!group || (requests.shape(0) == x * y && requests.shape(1) > bags),
          "requests must have the starts of all PEs");
  require(tables >= 1 && x * part_tables >= tables && z * part_columns >= columns,
          "the parts must have all tables and columns");
  Owned<T> out(samples * tables * columns);
  {
    using Value = std::conditional_t<std::is_integral_v<T>, uint32_t, T>;
    const nb::gil_scoped_release released;
    const Value *const values = reinterpret_cast<const Value *>(sums.data());
    Value *const whole = reinterpret_cast<Value *>(out.data());
    const size_t step = std::max<size_t>(group, 1);
    const size_t threads = threads_for(sums.nbytes());
    const size_t most = std::min(kUnitWords / (z * part_columns), x * bags / (2 * threads));
    const size_t unit = (most / step + 1) * step;  // bags of a PE that a thread takes at a time
    const size_t units = (bags + unit - 1) / unit;
    /// Calls act(begin, end) for each longest run of bags from `first` that PEs wrote.
    const auto for_written = [&](size_t part, size_t first, size_t end, auto act) {
      if (!group) return act(first, end);
      const uint32_t *const start = requests.data() + part * requests.shape(1);
      size_t begin = first;
      for (size_t bag = first; bag < end; bag += step) {
        const size_t next = std::min(bag + step, end);
        if (start[bag] != start[next]) continue;
        if (begin < bag) act(begin, bag);
        begin = next;
      }
      if (begin < end) act(begin, end);
    };
#pragma omp parallel num_threads(threads)
    {
      std::vector<Value> pooled(unit * part_columns * z);
#pragma omp for schedule(dynamic) collapse(2)
      for (size_t part_x = 0; part_x < x; ++part_x)
        for (size_t u = 0; u < units; ++u) {
          const size_t first = u * unit, end = std::min(first + unit, bags);
          std::fill(pooled.begin(), pooled.end(), Value());
          for (size_t part_z = 0; part_z < z; ++part_z)
            for (size_t part_y = 0; part_y < y; ++part_y) {
              const Value *const from = values + ((part_z * x + part_x) * y + part_y) * block;
              Value *const to = pooled.data() + part_z * unit * part_columns;
              for_written(part_y * x + part_x, first, end, [&](size_t begin, size_t last) {
                add(to + (begin - first) * part_columns, from + begin * part_columns,
                    (last - begin) * part_columns);
              });
            }
          for (size_t bag = first; bag < end; ++bag) {
            const size_t table = part_x * part_tables + bag % part_tables;
            if (table >= tables) continue;
            Value *row = whole + (bag / part_tables * tables + table) * columns;
            const Value *from = pooled.data() + (bag - first) * part_columns;
            for (size_t left = columns; left; from += unit * part_columns) {
              const size_t width = std::min(part_columns, left);
              for (size_t c = 0; c < width; ++c) *row++ = from[c];
              left -= width;
            }
          }
        }
    }
  }
  return out.array(samples * tables, columns);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  const auto array = nb::arg().noconvert();
  module.def("embedding", &pooled<int32_t>, array, nb::arg(), array, array, nb::arg(), nb::arg());
  module.def("embedding", &pooled<float>, array, nb::arg(), array, array, nb::arg(), nb::arg());
  module.def("embedding_requests", &requests, array, array, nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg());
  module.def("embedding_joined", &joined<int32_t>);
  module.def("embedding_joined", &joined<float>);
}
