#pragma once

#include <set>

#include "io/load/source.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The tensors of a state dict.
class MemorySource : public TensorSource {
 public:
  /// Tensors in memory of `module` are copied first, as that memory could be overwritten before
  /// they are read.
  MemorySource(const StateDict& tensors, const torch::nn::Module& module);

  std::string subject() const override { return "the state dict "; }
  at::Tensor tensor(std::size_t index) const override;
  at::Tensor head(std::size_t index, int64_t axis, int64_t count) const override;
  void copy_to(std::size_t index, const at::Tensor& target) const override;
  bool equal(std::size_t a, std::size_t b) const override;

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace posenc::io
