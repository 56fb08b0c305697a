// Single layers with weights in 8 bits, for int8.py.

#include <torch/types.h>

#include "differential/ops.h"
#include "inference/projection.h"
#include "support/threads.h"

namespace posenc::differential {
namespace {

// Rows of x are a number of floats apart of which the first are the layer's input.
StateDict int8_layer(const Json& options, const StateDict& tensors) {
  const testing::Threads threads(options.at("threads").get<int>());
  const inference::Int8Weight weight(tensors["weight"]);
  const inference::Projection projection(weight,
                                         tensors.contains("bias") ? tensors["bias"] : at::Tensor());
  const auto& x = tensors["x"];
  const auto out = torch::empty({x.size(0), weight.out()});
  projection.run(x.const_data_ptr<float>(), x.size(1), x.size(0), out.data_ptr<float>(),
                 weight.out(), inference::row_regime(x.size(0)));
  StateDict results;
  results.insert("out", out);
  results.insert("rows", weight.rows(tensors["ids"]));
  return results;
}

}  // namespace

Ops int8_ops() { return {{"int8_layer", int8_layer}}; }

}  // namespace posenc::differential
