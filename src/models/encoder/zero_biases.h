#pragma once

#include <string>
#include <vector>

#include "io/load/source.h"
#include "models/encoder/config.h"

namespace posenc {

/// The names in a file of the biases of queries, keys and values that the class has not, where it
/// has some of them: zeros in an Encoder, which has all or none.
std::vector<std::string> absent_biases(const EncoderConfig& config, const std::string& prefix);

/// A source with zeros of `width` under these names, whatever it has there itself: transformers
/// ignores that too. The source has to outlive it.
class ZeroBiases : public io::TensorSource {
 public:
  ZeroBiases(const io::TensorSource& source, const std::vector<std::string>& names, int64_t width);

  std::string subject() const override { return source_.subject(); }
  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;
  void check_values(std::size_t index) const override;
  void check_unchanged() const override { source_.check_unchanged(); }

 private:
  bool is_zeros(std::size_t index) const { return index >= index_.size(); }

  const io::TensorSource& source_;
  std::vector<std::size_t> index_;  // in the source, of the entries before the zeros
  int64_t width_;
};

}  // namespace posenc
