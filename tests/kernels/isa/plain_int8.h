#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// Products in 8 bits as kernels/int8.h defines them, in plain integers.

namespace posenc::kernels::int8::plain {

struct Quantized {
  std::vector<int> q;
  float unit;
  int zero = 0;
};
enum class Kind { Weight, Input };  // a query or a key is converted as a weight is

// The definition, one step at a time: contraction cannot fuse what a volatile holds.
inline Quantized plain_row(const float* x, int64_t n, Kind kind) {
  float least = 0.0F, most = 0.0F;
  bool is_finite = true;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) is_finite = false;
    least = std::min(least, x[i]);
    most = std::max(most, x[i]);
  }
  Quantized row = {std::vector<int>(static_cast<size_t>(n)),
                   is_finite ? 0.0F : std::numeric_limits<float>::quiet_NaN()};
  const float largest = std::max(-least, most);
  if (!is_finite || largest < 0x1p-100F) return row;
  const float half = kind == Kind::Weight ? largest : most / 2 - least / 2;
  row.unit = half / 127.0F;
  const float scale = 127.0F / half;
  const auto nearest = [&](float one) {
    const volatile float scaled = one * scale;
    return static_cast<int>(std::nearbyint(scaled));
  };
  if (kind == Kind::Input) row.zero = nearest(-least) - 127;
  for (int64_t i = 0; i < n; ++i) row.q[i] = std::min(nearest(x[i]) + row.zero, 127);
  return row;
}

/// The score of a query and a key, without biases.
inline float score(const Quantized& query, const Quantized& key, float scale) {
  int64_t sum = 0;
  for (size_t k = 0; k < query.q.size(); ++k) sum += int64_t{query.q[k]} * key.q[k];
  const volatile float factor = query.unit * scale;
  const volatile float of_query = static_cast<float>(sum) * factor;
  return of_query * key.unit;
}

}  // namespace posenc::kernels::int8::plain
