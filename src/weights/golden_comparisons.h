#pragma once

#include <string>
#include <vector>

#include "posenc/weights/golden.h"

namespace posenc::io {

/// Comparisons in the order of a report: those that could not be made, those that differ, and those
/// that agree, each of the three by how far they are off.
class GoldenComparisons {
 public:
  /// Adds the comparison with what is `expected`, which is undefined if there is none.
  void add(std::string name, TensorComparison comparison, const at::Tensor& expected = {});
  /// All of them; this is empty afterwards.
  std::vector<GoldenReport::Item> sorted();

 private:
  struct Ranked {
    int rank;
    double off;
    GoldenReport::Item item;
  };
  std::vector<Ranked> all_;
};

}  // namespace posenc::io
