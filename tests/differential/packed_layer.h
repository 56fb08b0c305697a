#pragma once

#include <torch/types.h>

#include "differential/ops.h"
#include "inference/linear/projection.h"
#include "support/threads.h"

namespace posenc::differential {

/// A layer with the weight make(), and rows of it as of a table. Rows of x are a number of floats
/// apart of which the first are the layer's input.
template <typename Make>
StateDict packed_layer(const Json& options, const StateDict& tensors, const Make& make) {
  const testing::Threads threads(options.at("threads").get<int>());
  const auto weight = make();
  const inference::Projection projection(weight,
                                         tensors.contains("bias") ? tensors["bias"] : at::Tensor());
  const at::Tensor& x = tensors["x"];
  const at::Tensor out = torch::empty({x.size(0), weight.out()});
  projection.run(x.const_data_ptr<float>(), x.size(1), x.size(0), out.data_ptr<float>(),
                 weight.out(), inference::row_regime(x.size(0)));
  StateDict results;
  results.insert("out", out);
  results.insert("rows", weight.rows(tensors["ids"]));
  return results;
}

}  // namespace posenc::differential
