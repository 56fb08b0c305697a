#pragma once

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <vector>

#include "inference/stream.h"

namespace posenc::inference {

/// Where the output of each layer goes, if it is wanted.
class LayerOutputs {
 public:
  /// Adds to `outputs` a tensor like `rows` (rows, D) for each layer, unless it is null.
  LayerOutputs(std::vector<at::Tensor>* outputs, size_t layers, const at::Tensor& rows) {
    if (outputs == nullptr) return;
    for (size_t i = 0; i < layers; ++i) outputs_.push_back(at::empty_like(rows));
    outputs->insert(outputs->end(), outputs_.begin(), outputs_.end());
  }

  /// Copies the residual stream after layer i, whose first row is row `begin` of all.
  void add(size_t i, const Stream& part, int64_t begin) const {
    if (outputs_.empty()) return;
    std::copy_n(part.x, part.rows * part.width, outputs_[i].data_ptr<float>() + begin * part.width);
  }

 private:
  std::vector<at::Tensor> outputs_;
};

}  // namespace posenc::inference
