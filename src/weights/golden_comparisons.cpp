#include "weights/golden_comparisons.h"

#include <ATen/ops/abs.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace posenc::io {
namespace {

// By how far a result is off, as a share of the largest number that is expected.
double share_off(const TensorComparison& comparison, const at::Tensor& expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!comparison.mismatch.empty()) return kInfinity;
  if (comparison.worst.empty()) return 0.0;
  const at::Tensor values = expected.detach().cpu();  // abs() is not of all dtypes
  const at::Tensor sizes =
      values.is_complex() ? values.abs().to(at::kDouble) : values.to(at::kDouble).abs();
  const double largest = sizes.nan_to_num(0.0, 0.0, 0.0).max().item<double>();
  const double share = comparison.difference / (largest > 0.0 ? largest : 1.0);
  return std::isnan(share) ? kInfinity : share;
}

}  // namespace

void GoldenComparisons::add(std::string name, TensorComparison comparison,
                            const at::Tensor& expected) {
  const double off = share_off(comparison, expected);
  const int rank = !comparison.mismatch.empty() ? 0 : comparison.ok ? 2 : 1;
  all_.push_back({rank, off, {std::move(name), std::move(comparison)}});
}

std::vector<GoldenReport::Item> GoldenComparisons::sorted() {
  std::stable_sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.off > b.off;
  });
  std::vector<GoldenReport::Item> items;
  for (auto& one : std::exchange(all_, {})) items.push_back(std::move(one.item));
  return items;
}

}  // namespace posenc::io
