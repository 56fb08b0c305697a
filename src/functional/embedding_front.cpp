#include "posenc/functional/embedding_front.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>

#include "core/check.h"
#include "functional/embedding_front/composed.h"

namespace posenc::functional {

at::Tensor embedding_front(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                           const EmbeddingFrontFuncOptions& options) {
  check_dropout("EmbeddingFront", options.dropout());
  return embedding_front_composed(ids, weights, options);
}

at::Tensor position_ids_from_ids(const at::Tensor& ids, int64_t padding_idx) {
  const at::Tensor is_token = ids.ne(padding_idx).to(at::kLong);
  return at::cumsum(is_token, -1) * is_token + padding_idx;
}

at::Tensor position_ids_from_mask(const at::Tensor& attention_mask) {
  const at::Tensor is_token = attention_mask.to(at::kLong);
  return at::cumsum(is_token, -1) * is_token - 1;
}

}  // namespace posenc::functional
