#include "posenc/functional/token_embedding.h"

#include "functional/lookup.h"

namespace posenc::functional {

at::Tensor token_embedding(const at::Tensor& ids, const at::Tensor& weight, const Scale& scale,
                           std::optional<int64_t> padding_idx) {
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[TokenEmbedding] weight must be (vocab_size, d_model). Got ", weight.sizes());
  const int64_t rows = weight.size(0);
  int64_t padding = -1;
  if (padding_idx) {
    TORCH_CHECK_VALUE(*padding_idx >= -rows && *padding_idx < rows,
                      "[TokenEmbedding] padding_idx must lie within the vocabulary of ", rows,
                      ". Got ", *padding_idx);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  at::Tensor rows_of_ids = lookup({"TokenEmbedding", "id", "vocab_size"}, ids, weight, padding);
  return scale.is_none() ? rows_of_ids : rows_of_ids * scale.factor(weight.size(1));
}

}  // namespace posenc::functional
