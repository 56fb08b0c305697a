#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "posenc/inference/freeze.h"

namespace posenc::inference {

/// The tensors of a module as they were when it was frozen, none of which it keeps alive.
class StaleCheck {
 public:
  StaleCheck() = default;
  /// Throws what freeze() documents of dtypes and devices.
  explicit StaleCheck(const std::shared_ptr<torch::nn::Module>& source);

  /// Throws c10::Error if one of them lives and has other memory or another version, or is gone
  /// while the module lives.
  void check() const;
  /// How many of the bytes are also held by a tensor of the source.
  FrozenBytes bytes() const;

 private:
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Entry {
    std::string name;
    Weak tensor;
    const void* data;
    uint32_t version;
    int64_t bytes;
  };
  std::weak_ptr<torch::nn::Module> source_;
  std::vector<Entry> entries_;
};

}  // namespace posenc::inference
