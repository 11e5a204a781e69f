/// arithmetic_case.h: a computation that a PE and the host both do.
#ifndef TEST_ARITHMETIC_CASE_H
#define TEST_ARITHMETIC_CASE_H

#define ARITHMETIC_CASES 16
#define ARITHMETIC_RESULTS 44

struct arithmetic_case {
  int64_t a, b;  // b is not 0, a * b may wrap
  double x, y;   // of size about 1e-3 to 1e3
};

static inline uint64_t bits_of_double(double value) {
  union {
    double number;
    uint64_t bits;
  } both;
  both.number = value;
  return both.bits;
}

static inline uint64_t bits_of_float(float value) {
  union {
    float number;
    uint32_t bits;
  } both;
  both.number = value;
  return both.bits;
}

static inline void compute_case(const struct arithmetic_case *c, uint64_t *out) {
  const int64_t a = c->a, b = c->b;
  const uint64_t u = (uint64_t)a, v = (uint64_t)b;
  const int32_t s = (int32_t)a, t = (int32_t)(b | 1);
  const uint32_t w = (uint32_t)a, z = (uint32_t)b | 1;
  const double x = c->x, y = c->y;
  const float f = (float)x, g = (float)y;
  uint32_t i = 0;
  out[i++] = u + v;
  out[i++] = u - v;
  out[i++] = u * v;
  out[i++] = u / v;
  out[i++] = u % v;
  out[i++] = b == -1 ? 0 : (uint64_t)(a / b);
  out[i++] = b == -1 ? 0 : (uint64_t)(a % b);
  out[i++] = u << (v & 63);
  out[i++] = u >> (v & 63);
  out[i++] = (uint64_t)(a >> (v & 63));
  out[i++] =
      (uint64_t)(a < b) | (uint64_t)(u < v) << 1 | (uint64_t)(s < t) << 2 | (uint64_t)(w < z) << 3;
  out[i++] = w * z;
  out[i++] = w / z;
  out[i++] = w % z;
  out[i++] = t == -1 ? 0 : (uint64_t)(int64_t)(s / t);
  out[i++] = t == -1 ? 0 : (uint64_t)(int64_t)(s % t);
  out[i++] = (uint64_t)w * z;
  out[i++] = (uint64_t)((int64_t)s * t);
  out[i++] = (uint64_t)(int64_t)(int8_t)a + (uint8_t)a;
  out[i++] = (uint64_t)(int64_t)(int16_t)a + (uint16_t)a;
  out[i++] = (uint32_t)__builtin_popcount(w) + (uint32_t)__builtin_clz(w | 1) * 100 +
             (uint32_t)__builtin_ctz(w | 0x80000000u) * 10000;
  out[i++] = bits_of_double(x + y);
  out[i++] = bits_of_double(x - y);
  out[i++] = bits_of_double(x * y);
  out[i++] = bits_of_double(x / y);
  out[i++] = bits_of_double((double)a);
  out[i++] = bits_of_double((double)u);
  out[i++] = (uint64_t)(int64_t)(x * 1e6);
  out[i++] = (uint64_t)(x * x * 1e6);
  out[i++] = (uint64_t)(int64_t)(int32_t)y;
  out[i++] = (uint64_t)(x < y) | (uint64_t)(x == y) << 1 | (uint64_t)(f >= g) << 2;
  out[i++] = bits_of_float(f + g);
  out[i++] = bits_of_float(f - g);
  out[i++] = bits_of_float(f * g);
  out[i++] = bits_of_float(f / g);
  out[i++] = bits_of_float((float)s);
  out[i++] = bits_of_float((float)u);
  out[i++] = bits_of_float((float)(x * y));
  out[i++] = bits_of_double((double)f);
  out[i++] = (uint64_t)(int64_t)(int32_t)(f * 100.0f);
  out[i++] = (uint32_t)(g * g);
  out[i++] = bits_of_double((double)w / (double)z);
  out[i++] = bits_of_double(x * 0.5 - y * 3.0);
  for (; i < ARITHMETIC_RESULTS; ++i) out[i] = i;
}

#endif  // TEST_ARITHMETIC_CASE_H
