#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/load/source.h"

namespace posenc {

/// A bias that is not in a file, by the name that it would have there.
struct AbsentBias {
  std::string name;
  int64_t width;
};

/// A source with zeros for these biases, whatever it has there itself: transformers ignores that
/// too.
class ZeroBiases : public io::SelectedSource {
 public:
  ZeroBiases(const io::TensorSource& source, const std::vector<AbsentBias>& biases);

  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;

 private:
  bool is_zeros(std::size_t index) const { return index >= selected(); }
};

}  // namespace posenc
