#pragma once

#include <string>
#include <vector>

#include "models/encoder/config.h"
#include "weights/load/source.h"

namespace posenc {

/// A bias that is not in a file, by the name that it would have there.
struct AbsentBias {
  std::string name;
  int64_t width;
};

/// The biases of queries, keys and values that the class has not, where it has some of them: zeros
/// in an Encoder, which has all or none.
std::vector<AbsentBias> absent_biases(const EncoderConfig& config, const std::string& prefix);

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
