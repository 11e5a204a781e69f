// The forward pass on the CPUs. Threads take groups of samples; each sample of a group uses one
// lane of the vector registers. Arithmetic is unsigned, because unsigned arithmetic wraps.
#include "../cpu.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

namespace nb = nanobind;
using pidcomm_apps::In;
using pidcomm_apps::In2;
using pidcomm_apps::Out;
using pidcomm_apps::Owned;

constexpr size_t kLanes = 32;
struct alignas(64) Lanes {  // one value for each sample of a group
  uint32_t of[kLanes];
};

struct Layers {
  const uint32_t *weights;  // for each output: one weight per input, then the bias
  const int32_t
      *widths;  // the number of inputs of the first layer, then the number of outputs of each layer
  size_t count;
};

struct Model {
  const uint32_t *tables;
  const int64_t *starts;  // the first row of each table
  size_t table_count, columns, features;
  Layers bottom, top;

  size_t inputs_of_top() const { return columns + table_count * (table_count + 1) / 2; }
};

/// Buffers of a thread: the vectors, the inputs of the top layers, and two buffers for values
/// between layers.
class Workspace {
 public:
  explicit Workspace(const Model &model)
      : vectors((model.table_count + 1) * model.columns), products(model.inputs_of_top()) {
    size_t widest = model.features;
    for (const Layers &layers : {model.bottom, model.top})
      for (size_t i = 1; i <= layers.count; ++i)
        widest = std::max<size_t>(widest, layers.widths[i]);
    for (auto &place : between) place.resize(widest);
  }
  std::vector<Lanes> vectors, products, between[2];
};

#define ALWAYS_INLINE __attribute__((always_inline)) inline

/// sum += factor * values; there is one factor for all lanes, or one factor per lane.
ALWAYS_INLINE void add_products(Lanes *sum, uint32_t factor, const Lanes &values) {
#pragma omp simd
  for (size_t lane = 0; lane < kLanes; ++lane) sum->of[lane] += factor * values.of[lane];
}
ALWAYS_INLINE void add_products(Lanes *sum, const Lanes &factors, const Lanes &values) {
#pragma omp simd
  for (size_t lane = 0; lane < kLanes; ++lane) sum->of[lane] += factors.of[lane] * values.of[lane];
}

/// Computes all layers; writes the outputs of the last to `out`. is_end: omits the maximum with 0
/// after the last layer.
ALWAYS_INLINE void all_layers(const Layers &layers, const Lanes *in, Lanes *out,
                              std::vector<Lanes> *between, bool is_end) {
  const uint32_t *weights = layers.weights;
  for (size_t i = 0; i < layers.count; ++i) {
    const size_t inputs = layers.widths[i], outputs = layers.widths[i + 1];
    const bool is_last = i + 1 == layers.count;
    Lanes *const to = is_last ? out : between[i % 2].data();
    for (size_t n = 0; n < outputs; ++n, weights += inputs + 1) {
      Lanes sum;
      for (size_t lane = 0; lane < kLanes; ++lane) sum.of[lane] = weights[inputs];
      for (size_t k = 0; k < inputs; ++k) add_products(&sum, weights[k], in[k]);
      for (size_t lane = 0; lane < kLanes; ++lane)
        to[n].of[lane] =
            (is_end && is_last) || static_cast<int32_t>(sum.of[lane]) > 0 ? sum.of[lane] : 0;
    }
    in = to;
  }
}

/// Computes `count` samples, at most kLanes.
PIDCOMM_APPS_WIDEST_VECTORS
void forward(const Model &model, const uint32_t *rows, const uint32_t *dense, size_t count,
             uint32_t *results, Workspace *work) {
  const size_t columns = model.columns;
  Lanes *const vectors = work->vectors.data(), *const products = work->products.data(),
               *const features = work->between[1].data();
  for (size_t lane = 0; lane < count; ++lane) {
    for (size_t t = 0; t < model.table_count; ++t) {
      const uint32_t *const row =
          model.tables + (model.starts[t] + rows[lane * model.table_count + t]) * columns;
      for (size_t c = 0; c < columns; ++c) vectors[(t + 1) * columns + c].of[lane] = row[c];
    }
    for (size_t f = 0; f < model.features; ++f)
      features[f].of[lane] = dense[lane * model.features + f];
  }
  all_layers(model.bottom, features, vectors, work->between, false);
  std::copy_n(vectors, columns, products);
  Lanes *product = products + columns;
  for (size_t i = 1; i <= model.table_count; ++i)
    for (size_t j = 0; j < i; ++j) {
      Lanes sum = {};
      for (size_t c = 0; c < columns; ++c)
        add_products(&sum, vectors[i * columns + c], vectors[j * columns + c]);
      *product++ = sum;
    }
  Lanes last;
  all_layers(model.top, products, &last, work->between, true);
  std::copy_n(last.of, count, results);
}

const uint32_t *words(const int32_t *values) { return reinterpret_cast<const uint32_t *>(values); }

void require(bool holds, const char *rule) {
  if (!holds) throw nb::value_error(rule);
}

/// Returns layers with `inputs` inputs and `outputs` outputs. Throws if widths or weights do not
/// match.
Layers layers_of(const In<int32_t> &weights, const In<int32_t> &widths, size_t inputs,
                 size_t outputs) {
  const size_t count = widths.shape(0);
  require(count >= 2, "widths must have the inputs and outputs of at least one layer");
  size_t needed = 0;
  for (size_t i = 0; i < count; ++i) {
    require(widths(i) > 0, "widths must be positive");
    if (i > 0) needed += (static_cast<size_t>(widths(i - 1)) + 1) * static_cast<size_t>(widths(i));
  }
  require(static_cast<size_t>(widths(0)) == inputs, "the first width must be the number of inputs");
  require(static_cast<size_t>(widths(count - 1)) == outputs,
          "the last width must be the number of outputs");
  require(weights.shape(0) == needed, "weights must match the widths of the layers");
  return {words(weights.data()), widths.data(), count - 1};
}

/// starts: the first row of each table, and the number of all rows. rows: each is in its table.
Out<int32_t> dlrm(In2<int32_t> tables, In<int64_t> starts, In2<uint32_t> rows, In2<int32_t> dense,
                  In<int32_t> bottom, In<int32_t> bottom_widths, In<int32_t> top,
                  In<int32_t> top_widths) {
  const size_t samples = rows.shape(0), table_count = rows.shape(1);
  require(starts.shape(0) == table_count + 1, "starts must have a start for each column of rows");
  require(starts(0) == 0 && std::is_sorted(starts.data(), starts.data() + table_count + 1) &&
              static_cast<size_t>(starts(table_count)) == tables.shape(0),
          "starts must ascend from 0 to the number of rows of tables");
  require(dense.shape(0) == samples, "dense must have a row for each row of rows");
  Model model = {
      words(tables.data()), starts.data(), table_count, tables.shape(1), dense.shape(1), {}, {}};
  model.bottom = layers_of(bottom, bottom_widths, model.features, model.columns);
  model.top = layers_of(top, top_widths, model.inputs_of_top(), 1);
  Owned<int32_t> results(samples);
  {
    const nb::gil_scoped_release released;
    uint32_t *const out = reinterpret_cast<uint32_t *>(results.data());
    const uint32_t *const indices = rows.data(), *const features = words(dense.data());
#pragma omp parallel
    {
      Workspace work(model);
#pragma omp for schedule(dynamic, 4)
      for (size_t first = 0; first < samples; first += kLanes)
        forward(model, indices + first * model.table_count, features + first * model.features,
                std::min(kLanes, samples - first), out + first, &work);
    }
  }
  return results.array(samples);
}

}  // namespace

PIDCOMM_APPS_ADD(module) {
  const auto array = nb::arg().noconvert();
  module.def("dlrm", &dlrm, array, array, array, array, array, array, array, array);
}
