#include "functional/embed/composed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>

#include "functional/lookup.h"

namespace posenc::functional {
namespace {

// The row that gets no gradient, as a non-negative index; -1 if there is none.
int64_t padding_idx_of(const at::Tensor& weight, const std::optional<int64_t>& padding_idx) {
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[TokenEmbedding] weight must be (vocab_size, d_model). Got ", weight.sizes());
  if (!padding_idx) return -1;
  const int64_t rows = weight.size(0);
  TORCH_CHECK_VALUE(*padding_idx >= -rows && *padding_idx < rows,
                    "[TokenEmbedding] padding_idx must lie within the vocabulary of ", rows,
                    ". Got ", *padding_idx);
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}

}  // namespace

at::Tensor embed_composed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                          const EmbedFuncOptions& options) {
  const at::Tensor vectors =
      lookup({"TokenEmbedding", "id", "vocab_size"}, ids, weight,
             padding_idx_of(weight, options.padding_idx()), options.sparse());
  // Half types with Precision::Exact are computed in float32 and rounded once, at the end.
  const at::ScalarType type = vectors.scalar_type();
  const bool once = options.precision() == Precision::Exact && at::isReducedFloatingType(type);
  at::Tensor x = once ? vectors.to(at::kFloat) : vectors;
  if (!options.scale().is_none()) x = x * options.scale().factor(x.size(-1));
  if (table.defined())
    x = positional_encoding(x, once ? table.to(at::kFloat) : table, options.position());
  x = at::dropout(x, options.dropout(), options.training());
  return once ? x.to(type) : x;
}

}  // namespace posenc::functional
