// Scalar operations on the element types, implemented independently of the kernels: with the
// compiler's 16-bit float, and bfloat16 by comparing the two neighbours.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#if defined(__clang__) && __clang_major__ < 15
#include <c10/util/Half.h>
#endif

#include "kernels/dispatch.h"
#include "kernels/embed.h"
#include "kernels/isa.h"

namespace posenc::kernels::embed::scalar {

using Bytes = std::vector<uint8_t>;

inline const Type kAllTypes[kTypes] = {Type::Float32, Type::Float64,       Type::BFloat16,
                                       Type::Float16, Type::BFloat16Exact, Type::Float16Exact};

inline bool is_exact(Type t) { return t == Type::BFloat16Exact || t == Type::Float16Exact; }
inline Type plain(Type t) {
  return t == Type::BFloat16Exact ? Type::BFloat16 : t == Type::Float16Exact ? Type::Float16 : t;
}
inline Type table_type(Type t) { return is_exact(t) ? Type::Float32 : t; }

#if defined(__aarch64__)
typedef __fp16 Half;  // g++ 12 has _Float16 on x86-64 only
#elif defined(__clang__) && __clang_major__ < 15
using Half = c10::Half;  // clang 14 has no _Float16 on x86-64
#else
__extension__ typedef _Float16 Half;
#endif

inline float bfloat16_value(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float x;
  std::memcpy(&x, &wide, 4);
  return x;
}
// The nearest of the two neighbours, ties to even; 2^128 represents infinity.
inline uint16_t bfloat16_bits(float x) {
  if (std::isnan(x)) return 0x7fc0;
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const auto down = static_cast<uint16_t>(bits >> 16);
  if (std::isinf(x)) return down;
  const auto value = [](uint16_t b) {
    return (b & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, bfloat16_value(b)) : bfloat16_value(b);
  };
  const auto up = static_cast<uint16_t>(down + 1);
  const double to_down = std::fabs(x - value(down)), to_up = std::fabs(value(up) - x);
  return to_down < to_up || (to_down == to_up && down % 2 == 0) ? down : up;
}

inline double get(const Bytes& data, Type type, int64_t i) {
  const uint8_t* at = data.data() + i * element_size(type);
  if (type == Type::Float64) {
    double x;
    std::memcpy(&x, at, 8);
    return x;
  }
  if (type == Type::Float32) {
    float x;
    std::memcpy(&x, at, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  if (plain(type) == Type::BFloat16) return bfloat16_value(bits);
  Half h;
  std::memcpy(&h, &bits, 2);
  return h;
}
inline void put(Bytes& data, Type type, int64_t i, double x) {
  uint8_t* at = data.data() + i * element_size(type);
  const auto single = static_cast<float>(x);
  if (type == Type::Float64) {
    std::memcpy(at, &x, 8);
  } else if (type == Type::Float32) {
    std::memcpy(at, &single, 4);
  } else if (plain(type) == Type::BFloat16) {
    const uint16_t bits = bfloat16_bits(single);
    std::memcpy(at, &bits, 2);
  } else {
    const auto h = static_cast<Half>(single);
    std::memcpy(at, &h, 2);
  }
}
// The result of one operation rounded to the type: unchanged for Float64; the others go through
// float32.
inline double rounded(Type type, double x) {
  if (type == Type::Float64) return x;
  Bytes one(8);
  put(one, type, 0, x);
  return get(one, type, 0);
}
inline double product(Type type, double a, double b) {
  return type == Type::Float64 ? a * b : double{static_cast<float>(a) * static_cast<float>(b)};
}
inline double sum(Type type, double a, double b) {
  return type == Type::Float64 ? a + b : double{static_cast<float>(a) + static_cast<float>(b)};
}

inline Bytes random_values(Type type, int64_t n, std::mt19937& random, bool extremes = false) {
  Bytes data(static_cast<size_t>(n * element_size(type)) + 64);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < n; ++i) {
    double x = normal(random);
    if (extremes && i % 7 == 0) x = std::ldexp(x, static_cast<int>(random() % 60) - 40);
    if (extremes && i % 31 == 0) x = i % 2 == 0 ? -0.0 : 65519.0;
    if (extremes && i % 37 == 0) x = i % 2 == 0 ? HUGE_VAL : -3e4;
    put(data, type, i, x);
  }
  return data;
}

// n random bits, plus the bytes after them that the kernels may read.
inline std::vector<uint8_t> random_mask(int64_t n, std::mt19937& random) {
  std::vector<uint8_t> bits(static_cast<size_t>(n / 8 + 9));
  for (uint8_t& b : bits) b = static_cast<uint8_t>(random());
  return bits;
}
inline bool kept(const uint8_t* bits, int64_t i) { return (bits[i >> 3] >> (i & 7) & 1) != 0; }

// Runs the test with each instruction set that this processor supports.
inline void on_each_set(const std::function<void(const InferenceKernels&)>& test) {
  for (const std::string& name : set_names()) {
    SCOPED_TRACE(name);
    test(*find_inference(name));
  }
}

}  // namespace posenc::kernels::embed::scalar
