#pragma once

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "inference/rows/stream.h"

namespace posenc::inference {

/// What happens to the residual stream between a layer and the next: rows become zeros, and the
/// output of the layer is copied where it is wanted.
class LayerEnds {
 public:
  /// Adds to `outputs` a tensor like `rows` (rows, D) for each layer, unless it is null.
  /// `zero_rows`: those that are zeros after each layer, ascending.
  LayerEnds(std::vector<at::Tensor>* outputs, size_t layers, const at::Tensor& rows,
            std::vector<int64_t> zero_rows)
      : zero_rows_(std::move(zero_rows)) {
    if (outputs == nullptr) return;
    for (size_t i = 0; i < layers; ++i) outputs_.push_back(at::empty_like(rows));
    outputs->insert(outputs->end(), outputs_.begin(), outputs_.end());
  }

  /// Ends layer i on a part of the stream, whose first row is row `begin` of all; `next` is the
  /// norm in its input, if that is other memory.
  void end(size_t i, const Stream& part, int64_t begin, const Norm& next = {}) const {
    auto row = std::lower_bound(zero_rows_.begin(), zero_rows_.end(), begin);
    for (; row != zero_rows_.end() && *row < begin + part.rows; ++row) {
      const Stream one = part.part(*row - begin, *row - begin + 1);
      for (int64_t c = 0; c < one.width; ++c) one.x[c] *= 0.0F;  // a NaN stays one
      normalise(one, one.norm_first() ? next : Norm());
    }
    if (outputs_.empty()) return;
    std::copy_n(part.x, part.rows * part.width, outputs_[i].data_ptr<float>() + begin * part.width);
  }

 private:
  std::vector<int64_t> zero_rows_;
  std::vector<at::Tensor> outputs_;
};

}  // namespace posenc::inference
