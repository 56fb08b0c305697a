#include "posenc/positions/functional/timestep_embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "positions/functional/lookup.h"

namespace posenc::functional {

at::Tensor timestep_embedding(const at::Tensor& t, const at::Tensor& table,
                              const TimestepWeights& weights) {
  TORCH_CHECK_VALUE(t.dim() == 1 || (t.dim() == 2 && t.size(1) == 1),
                    "[TimestepEmbedding] t must be (N) or (N, 1). Got ", t.sizes());
  const at::Tensor rows = lookup({"TimestepEmbedding", "timestep", "max_len"}, t, table);
  const at::Tensor hidden = at::relu(at::linear(rows, weights.weight0, weights.bias0));
  const at::Tensor value = at::linear(hidden, weights.weight2, weights.bias2);
  return value.reshape({t.size(0), weights.weight2.size(0), 1, 1});  // (N, C, 1, 1)
}

at::Tensor add_timestep(const at::Tensor& image, const at::Tensor& encoding) {
  TORCH_CHECK_VALUE(encoding.dim() == 4 && encoding.size(2) == 1 && encoding.size(3) == 1,
                    "[TimestepEmbedding] encoding must be (N, C, 1, 1). Got ", encoding.sizes());
  const bool batched = image.dim() == 4;
  TORCH_CHECK_VALUE(batched || image.dim() == 3,
                    "[TimestepEmbedding] image must be (C, H, W) or (N, C, H, W). Got ",
                    image.sizes());
  TORCH_CHECK_VALUE(image.size(-3) == encoding.size(1), "[TimestepEmbedding] image must have ",
                    encoding.size(1), " channels. Got ", image.sizes());
  TORCH_CHECK_VALUE(!batched || image.size(0) == encoding.size(0),
                    "[TimestepEmbedding] image must have a batch of ", encoding.size(0), ". Got ",
                    image.sizes());
  return image + encoding;
}

}  // namespace posenc::functional
