// What is done row by row, in one pass over memory: residual and layer norm, activations, the best
// of a row of logits. Compiled once per instruction set.
//
// The slow twins are at::add and at::layer_norm; at::relu, at::gelu and at::silu;
// at::logsumexp and at::topk.
#include <math.h>

#include "kernels/inference/exponential.h"
#include "kernels/inference/kernels.h"
#include "kernels/inference/lanes.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// f(first, n) for each sixteen of `width`, the last of which may have fewer: n.
template <typename F>
POSENC_INLINE void by_sixteen(int64_t width, F f) {
  int64_t i = 0;
  for (; i + kWide <= width; i += kWide) f(i, int64_t{kWide});
  if (i < width) f(i, width - i);
}
POSENC_INLINE Wide read(const float* from, int64_t n) {
  return n == kWide ? load_wide(from) : load_wide(from, n);
}
POSENC_INLINE void write(float* to, const Wide& w, int64_t n) {
  memcpy(to, &w, sizeof(float) * static_cast<size_t>(n));
}
template <typename F>
POSENC_INLINE Wide each(F f) {
  Wide w;
  for (int i = 0; i < kParts; ++i) w.part[i] = f(i);
  return w;
}

// sum = x + y; returns the mean.
float add_row(const AddNorm& p, const float* x, const float* y, float* sum) {
  Wide all_of = {};
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    Wide s = read(x + i, n);
    if (y != nullptr) {
      const Wide other = read(y + i, n);
      s = each([&](int part) { return s.part[part] + other.part[part]; });
    }
    write(sum + i, s, n);
    all_of = each([&](int part) { return all_of.part[part] + s.part[part]; });
  });
  return total(all_of) / static_cast<float>(p.width);
}

void norm_row(const AddNorm& p, const float* sum, float mean, float* out) {
  Wide squares = {};
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    float middle[kWide];
    for (float& one : middle) one = mean;  // what is not there adds nothing
    memcpy(middle, sum + i, sizeof(float) * static_cast<size_t>(n));
    const Wide s = load_wide(middle);
    squares = each([&](int part) {
      const Floats away = s.part[part] - all(mean);
      return fma(away, away, squares.part[part]);
    });
  });
  const float variance = total(squares) / static_cast<float>(p.width);
  const Floats scale = all(1.0f / sqrtf(variance + p.eps)), middle = all(mean);
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    const Wide s = read(sum + i, n), weight = read(p.weight + i, n);
    Wide y = each([&](int part) { return (s.part[part] - middle) * scale * weight.part[part]; });
    if (p.bias != nullptr) {
      const Wide bias = read(p.bias + i, n);
      y = each([&](int part) { return y.part[part] + bias.part[part]; });
    }
    write(out + i, y, n);
  });
}

void add_norm(const AddNorm& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * p.width;
    float* const out = p.out != nullptr ? p.out + at : nullptr;
    float* const sum = p.sum != nullptr ? p.sum + at : out;
    const float mean = add_row(p, p.x + at, p.y != nullptr ? p.y + at : nullptr, sum);
    if (out != nullptr) norm_row(p, sum, mean, out);
  }
}

// x = f(x), in place.
template <typename F>
POSENC_INLINE void in_place(float* x, int64_t count, F f) {
  by_sixteen(count, [&](int64_t i, int64_t n) {
    const Wide w = read(x + i, n);
    write(x + i, each([&](int part) { return f(w.part[part]); }), n);
  });
}

void relu(float* x, int64_t n) {
  in_place(x, n, [](Floats v) { return larger(all(0.0f), v); });
}

void swish(float* x, int64_t n) {
  in_place(x, n, [](Floats v) { return v / (all(1.0f) + exponential(-v)); });
}

// A rational function, within 1e-7 of erf up to |x| = 4, where it is 1 (the one of Eigen).
POSENC_INLINE Floats error_function(Floats x) {
  x = larger(all(-4.0f), smaller(all(4.0f), x));
  const Floats x2 = x * x;
  const Floats p =
      polynomial(x2, {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f,
                      -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                      -1.60960333262415e-02f});
  const Floats q =
      polynomial(x2, {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                      -7.37332916720468e-03f, -1.42647390514189e-02f});
  return x * p / q;
}

void gelu(float* x, int64_t n) {
  in_place(x, n, [](Floats v) {
    return all(0.5f) * v * (all(1.0f) + error_function(v * all(0.70710678118654752f)));
  });
}

// The logits i .. i + n - 1, then -inf.
POSENC_INLINE Wide read_logits(const float* from, int64_t n) {
  float padded[kWide];
  for (float& one : padded) one = -__builtin_inff();
  memcpy(padded, from, sizeof(float) * static_cast<size_t>(n));
  return load_wide(padded);
}

LogSum log_sum_exp(const float* x, int64_t n) {
  Wide most = each([](int) { return all(-__builtin_inff()); });
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read_logits(x + i, count);
    most = each([&](int part) { return larger(most.part[part], w.part[part]); });
  });
  float lanes[kWide], largest = -__builtin_inff();
  write(lanes, most, kWide);
  for (const float one : lanes) largest = one > largest ? one : largest;
  if (largest == -__builtin_inff()) largest = 0.0f;  // all of them are -inf, or NaN
  Wide sum = {};
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read_logits(x + i, count);
    sum = each([&](int part) { return sum.part[part] + exponential(w.part[part] - all(largest)); });
  });
  return {largest, logf(total(sum))};
}

// Behind those that are as good.
void insert(Ranked one, Ranked* best, int64_t count) {
  int64_t i = count - 1;
  for (; i > 0 && one.score > best[i - 1].score; --i) best[i] = best[i - 1];
  best[i] = one;
}

void rank(const float* x, int64_t n, float shift, float base, int64_t place, Ranked* best,
          int64_t count) {
  by_sixteen(n, [&](int64_t i, int64_t some) {
    const Wide w = read_logits(x + i, some);
    bool any = false;
    for (const Floats& part : w.part)
      any = any || any_larger((part - all(shift)) + all(base), all(best[count - 1].score));
    for (int64_t j = i; any && j < i + some; ++j) {
      const float score = (x[j] - shift) + base;
      if (score > best[count - 1].score) insert({score, place + j}, best, count);
    }
  });
}

}  // namespace

const RowKernels row_kernels = {add_norm, {relu, gelu, swish}, log_sum_exp, rank};

}  // namespace posenc::kernels::inference::POSENC_ISA
