#include "positions/sinusoid/frequency.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numbers>

namespace posenc {
namespace {

at::ScalarType type_of(const SinusoidOptions& o) {
  return o.arithmetic() == sinusoid::Arithmetic::Float32 ? at::kFloat : at::kDouble;
}

bool one_entry_per_channel(sinusoid::Index index) {
  return index == sinusoid::Index::Paired || index == sinusoid::Index::PairNumber ||
         index == sinusoid::Index::Doubled;
}

// The number of channels in the formula, which ignores the widening of a row.
int64_t counted(const SinusoidOptions& o, int64_t channels) {
  return o.odd_dim() == sinusoid::OddDim::Widen ? o.dim() : channels;
}

at::Tensor index_vector(const SinusoidOptions& o, int64_t channels) {
  const int64_t half = channels / 2;
  const at::TensorOptions integers(at::kLong);
  const auto halved = [](const at::Tensor& t) { return t.div(2, "floor"); };
  switch (o.index()) {
    case sinusoid::Index::Even: return at::arange(0, channels, 2, integers);
    case sinusoid::Index::Half: return at::arange(half, integers);
    case sinusoid::Index::Paired: return 2 * halved(at::arange(channels, integers));
    case sinusoid::Index::PairNumber: return halved(at::arange(channels, integers));
    case sinusoid::Index::Doubled: return 2 * at::arange(channels, integers);
    case sinusoid::Index::PairedHalf: return 2 * halved(at::arange(half, integers));
  }
  return {};
}

// ln b as a one-element float32 tensor, so that -(ln b) / m can be computed in float32 too.
at::Tensor float_log(double base) {
  return at::log(at::scalar_tensor(base, at::TensorOptions(at::kFloat)));
}

at::Tensor exponential(const SinusoidOptions& o, const at::Tensor& i, double m) {
  const double log = std::log(o.base());
  switch (o.frequency()) {
    case sinusoid::Frequency::ExpOfFloatLog:
      return at::exp(i * -(float_log(o.base()).item<float>() / m));
    case sinusoid::Frequency::ExpInFloat: return at::exp(i * -(float_log(o.base()) / m));
    case sinusoid::Frequency::ExpDividedLast: return at::exp((i * -log) / m);
    case sinusoid::Frequency::ExpFloored: return at::exp(i * std::floor((-log / (2 * m)) / 2));
    default: return at::exp(i * -(log / m));
  }
}

at::Tensor power(const SinusoidOptions& o, const at::Tensor& i, double m, int64_t positions) {
  at::Tensor exponent = o.frequency() == sinusoid::Frequency::PowerOfProduct ? i * (2 / m) : i / m;
  if (o.frequency() == sinusoid::Frequency::PowerNegative) exponent = -exponent;
  if (o.power_shape() == sinusoid::PowerShape::Grid) {
    exponent = exponent.expand({positions, exponent.size(0)}).contiguous();
  }
  at::Tensor result;
  run_single_threaded([&] {
    if (o.frequency() == sinusoid::Frequency::PowerInverseBase) {
      result = at::pow(at::scalar_tensor(1 / o.base(), exponent.options()), exponent);
    } else {
      result = at::pow(o.base(), exponent);
    }
  });
  return o.frequency() == sinusoid::Frequency::PowerReciprocal ? result.reciprocal() : result;
}

at::Tensor of_periods(const SinusoidOptions& o, const at::Tensor& fraction) {
  at::Tensor ratio;
  run_single_threaded([&] { ratio = at::pow(o.base(), fraction); });
  return (o.min_period() * ratio).reciprocal() * 2 * std::numbers::pi;
}

}  // namespace

void warm_up_vector_math() {
  static std::once_flag once;
  std::call_once(once, [] {
    at::NoGradGuard no_grad;
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor some = at::ones({64}, at::TensorOptions(type));
      at::sin(at::cos(at::log(at::exp(some))));
    }
  });
}

void run_single_threaded(const std::function<void()>& work) {
  // Inside a parallel region ATen does not split its work, so a single thread does it all.
  at::parallel_for(0, std::max(2, at::get_num_threads()), 1, [&](int64_t begin, int64_t) {
    at::NoGradGuard no_grad;  // thread-local
    if (begin == 0) work();
  });
}

bool in_bands(sinusoid::Frequency frequency) {
  return frequency == sinusoid::Frequency::PowersOfTwo ||
         frequency == sinusoid::Frequency::Linear || frequency == sinusoid::Frequency::Periods;
}

double divisor_of(const SinusoidOptions& o, int64_t channels) {
  double m = static_cast<double>(channels);
  if (o.divisor() == sinusoid::Divisor::HalfChannels) m = static_cast<double>(channels) / 2.0;
  if (o.divisor() == sinusoid::Divisor::Pairs) m = static_cast<double>(channels / 2);
  m -= o.shift();
  return o.divisor_at_least_one() ? std::max(m, 1.0) : m;
}

FrequencyCounts frequency_counts(const SinusoidOptions& o, int64_t channels) {
  channels = counted(o, channels);
  const bool each = one_entry_per_channel(o.index());
  if (in_bands(o.frequency())) return {channels / 2, each ? 0 : channels / 2};
  if (each) return {(channels + 1) / 2, channels / 2, /*shared=*/false};
  const int64_t count = o.index() == sinusoid::Index::Even ? (channels + 1) / 2 : channels / 2;
  return {count, count};
}

Frequencies frequencies(const SinusoidOptions& o, int64_t channels, int64_t positions) {
  channels = counted(o, channels);
  const int64_t bands = channels / 2;
  const at::TensorOptions type(type_of(o));
  at::Tensor f;
  if (o.frequency() == sinusoid::Frequency::PowersOfTwo) {
    f = at::pow(2.0, at::linspace(0, bands - 1, bands, type));
  } else if (o.frequency() == sinusoid::Frequency::Linear) {
    f = at::linspace(1.0, o.max_frequency(), bands, type);
  } else if (o.frequency() == sinusoid::Frequency::Periods) {
    f = of_periods(o, at::linspace(0.0, 1.0, bands, type));
  } else {
    const at::Tensor i = index_vector(o, channels).to(type);
    const double m = divisor_of(o, channels);
    f = o.frequency() <= sinusoid::Frequency::ExpFloored ? exponential(o, i, m)
                                                         : power(o, i, m, positions);
  }
  if (one_entry_per_channel(o.index())) {
    return {f.slice(-1, 0, channels, 2), f.slice(-1, 1, channels, 2)};
  }
  return {f, f};
}

}  // namespace posenc
