// What the areas share whose cases the driver draws itself, each from its seed.
#pragma once

#include <torch/types.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "differential/ops.h"

namespace posenc::differential {

/// The choices of a case and, for the report, what it has done so far.
class Drawn {
 public:
  explicit Drawn(const Json& options);

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool coin(double probability = 0.5) {
    return static_cast<double>(below(1 << 20)) < probability * (1 << 20);
  }
  template <typename T>
  T any(std::initializer_list<T> of) {
    return *(of.begin() + below(static_cast<int64_t>(of.size())));
  }
  /// `n` as a rule, otherwise another size that programs confuse with it.
  int64_t near(int64_t n);

  /// Adds a step to the report, and shows it, in case it ends the program.
  void did(const std::string& what);
  /// Ends the case as a failure.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::mt19937_64 random_;
  std::string report_;
};

/// What a computation gave: tensors, or the text of an error.
struct Outcome {
  std::vector<at::Tensor> values;
  std::string error;
};

/// Runs `compute`, which returns tensors.
Outcome outcome_of(const std::function<std::vector<at::Tensor>()>& compute);

/// "" if both are the same: shapes, dtypes, the elements that are finite, and these within
/// `tolerance` of the largest. Undefined tensors are equal.
std::string difference(const at::Tensor& got, const at::Tensor& expected, double tolerance);
std::string difference(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                       double tolerance);

}  // namespace posenc::differential
