/// The levels of a transform on the CPUs. cpu.cpp includes this file once for each set of lanes,
/// each time in another namespace and with the compiler's options for these lanes.
///
/// Lanes have a type V of kLanes residues, and functions on it. times() < kBound q, for a value
/// below 2 kBound q. `low` and `high` permute two vectors with blocks of 2 `half` elements, `half`
/// < kLanes, into the first and the second halves of their blocks; `first` and `second` are the
/// inverse. Values are below 2 kBound q between the levels of a forward transform, and below kBound
/// q between those of an inverse transform.

/// Butterflies of residues a and b; w, quotient: of each lane.
template <class L, bool kInverse>
inline void butterfly(typename L::V &a, typename L::V &b, typename L::V w, typename L::V quotient,
                      typename L::V q, typename L::V limit) {
  if constexpr (kInverse) {
    const typename L::V difference = L::sub(L::add(a, limit), b);
    a = L::reduced(L::add(a, b), limit);
    b = L::times(difference, w, quotient, q);
  } else {
    const typename L::V term = L::times(b, w, quotient, q), kept = L::reduced(a, limit);
    a = L::add(kept, term);
    b = L::sub(L::add(kept, limit), term);
  }
}

/// One level of butterflies on columns first to last - 1 of each node, multiples of kLanes.
template <class L, bool kInverse>
void level(uint64_t *x, size_t nodes, size_t length, const Factor *factors, size_t first,
           size_t last, uint64_t modulus) {
  using V = typename L::V;
  const size_t half = length / 2;
  const V q = L::all(modulus), limit = L::all(L::kBound * modulus);
  for (size_t node = 0; node < nodes; ++node, x += length) {
    const V w = L::all(factors[node].value), quotient = L::all(L::quotient(factors[node].quotient));
    for (size_t i = first; i < last; i += L::kLanes) {
      V a = L::load(x + i), b = L::load(x + i + half);
      butterfly<L, kInverse>(a, b, w, quotient, q, limit);
      L::store(x + i, a);
      L::store(x + i + half, b);
    }
  }
}

/// A level whose halves are shorter than a vector.
template <class L, bool kInverse>
void short_level(uint64_t *x, size_t nodes, size_t half, const Factor *factors, uint64_t modulus) {
  using V = typename L::V;
  const V q = L::all(modulus), limit = L::all(L::kBound * modulus);
  const size_t step = L::kLanes / half;
  for (size_t node = 0; node < nodes; node += step, factors += step, x += 2 * L::kLanes) {
    const V x0 = L::load(x), x1 = L::load(x + L::kLanes);
    V a = L::low(x0, x1, half), b = L::high(x0, x1, half);
    const V pairs0 = L::load(&factors->value), pairs1 = L::load(&factors->value + L::kLanes);
    butterfly<L, kInverse>(a, b, L::value_of(pairs0, pairs1, half),
                           L::quotient_of(pairs0, pairs1, half), q, limit);
    L::store(x, L::first(a, b, half));
    L::store(x + L::kLanes, L::second(a, b, half));
  }
}

/// The levels below node `node` at level `top`, one after the other. length: at least 2 kLanes.
template <class L, bool kInverse>
void subtree(uint64_t *x, size_t length, const Factor *table, int top, size_t node, uint64_t q) {
  const int levels = std::countr_zero(length);
  for (int turn = 0; turn < levels; ++turn) {
    const int s = kInverse ? levels - 1 - turn : turn;
    const size_t here = length >> s, nodes = size_t{1} << s;
    const Factor *const factors = table + (size_t{1} << (top + s)) + (node << s);
    if constexpr (L::kLanes > 1) {
      if (here / 2 < L::kLanes) {
        short_level<L, kInverse>(x, nodes, here / 2, factors, q);
        continue;
      }
    }
    level<L, kInverse>(x, nodes, here, factors, 0, here / 2, q);
  }
}

/// The first levels, on some columns of length N >> top.
template <class L, bool kInverse>
void columns(uint64_t *x, size_t n, const Factor *table, int top, size_t part, size_t parts,
             uint64_t q) {
  const size_t width = n >> top, first = width * part / parts, last = width * (part + 1) / parts;
  for (int turn = 0; turn < top; ++turn) {
    const int s = kInverse ? top - 1 - turn : turn;
    const size_t nodes = size_t{1} << s, half = n >> (s + 1);
    for (size_t from = 0; from < half; from += width)
      level<L, kInverse>(x, nodes, 2 * half, table + nodes, from + first, from + last, q);
  }
}

/// Makes values smaller than q; after an inverse transform, multiplies them by `scale` first.
template <class L, bool kInverse>
void finish(uint64_t *x, size_t count, Factor scale, uint64_t modulus) {
  using V = typename L::V;
  const V q = L::all(modulus), w = L::all(scale.value),
          quotient = L::all(L::quotient(scale.quotient));
  for (size_t i = 0; i < count; i += L::kLanes) {
    V value = L::load(x + i);
    if constexpr (kInverse) value = L::times(value, w, quotient, q);
    for (uint64_t multiple = L::kBound; multiple > 0; multiple /= 2)
      value = L::reduced(value, L::all(multiple * modulus));
    L::store(x + i, value);
  }
}

/// out = a b modulo q. barrett: entry 0 of a table.
template <class L>
void multiply(const uint64_t *a, const uint64_t *b, uint64_t *out, size_t count, Factor barrett) {
  using V = typename L::V;
  const V q = L::all(barrett.value), quotient = L::all(barrett.quotient);
  const int shift = std::countl_zero(barrett.value);
  for (size_t i = 0; i < count; i += L::kLanes) {
    V value = L::product(L::load(a + i), L::load(b + i), q, quotient, shift);
    for (uint64_t multiple = 4; multiple > 0; multiple /= 2)
      value = L::reduced(value, L::all(multiple * barrett.value));
    L::store(out + i, value);
  }
}

/// out = (a - b) w modulo q.
template <class L>
void scale(const uint64_t *a, const uint64_t *b, uint64_t *out, size_t count, Factor factor,
           uint64_t modulus) {
  using V = typename L::V;
  const V q = L::all(modulus), w = L::all(factor.value),
          quotient = L::all(L::quotient(factor.quotient));
  for (size_t i = 0; i < count; i += L::kLanes) {
    V value = L::times(L::sub(L::add(L::load(a + i), q), L::load(b + i)), w, quotient, q);
    for (uint64_t multiple = L::kBound / 2; multiple > 0; multiple /= 2)
      value = L::reduced(value, L::all(multiple * modulus));
    L::store(out + i, value);
  }
}

/// out = the sum of y[i] factors[i] modulo q, for rows y that are `row` elements apart.
template <class L>
void weigh(const uint64_t *y, size_t row, size_t rows, uint64_t *out, size_t count,
           const Factor *factors, uint64_t modulus) {
  using V = typename L::V;
  const V q = L::all(modulus), limit = L::all(L::kBound * modulus);
  for (size_t k = 0; k < count; k += L::kLanes) {
    V sum = L::all(0);
    for (size_t i = 0; i < rows; ++i)
      sum = L::reduced(L::add(sum, L::times(L::load(y + i * row + k), L::all(factors[i].value),
                                            L::all(L::quotient(factors[i].quotient)), q)),
                       limit);
    for (uint64_t multiple = L::kBound / 2; multiple > 0; multiple /= 2)
      sum = L::reduced(sum, L::all(multiple * modulus));
    L::store(out + k, sum);
  }
}

template <class L>
constexpr Functions functions_of() {
  return {{columns<L, false>, columns<L, true>},
          {subtree<L, false>, subtree<L, true>},
          {finish<L, false>, finish<L, true>},
          multiply<L>,
          scale<L>,
          weigh<L>,
          L::kLanes};
}
