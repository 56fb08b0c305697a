#include "nn/embed_parts.h"

#include <ATen/ops/_unsafe_view.h>

#include "functional/embed/fused.h"
#include "functional/embed/memory.h"
#include "posenc/core/skip_init.h"
#include "posenc/functional/embed.h"
#include "torch_internals/shortcut.h"

namespace posenc {
namespace {

using functional::EmbedFuncOptions;
using functional::PositionalEncodingFuncOptions;

int64_t length_of(const torch::Tensor& ids, bool batch_first) {
  return ids.size(ids.dim() == 2 && batch_first ? 1 : 0);
}

torch::Tensor fused(const EmbedParts& parts, const torch::Tensor& ids, const torch::Tensor& rows,
                    const EmbedFuncOptions& how) {
  const torch::Tensor& weight = parts.tokens.weight;
  if (parts.reuse == nullptr || torch_internals::is_recorded(weight))
    return functional::embed_fused(ids, weight, rows, how);
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  const torch::Tensor out = functional::embed_fused(ids, weight, rows, how,
                                                    parts.reuse->take(sizes, weight.scalar_type()));
  if (out.defined()) parts.reuse->keep(out);
  return out;
}

// Rows that are computed for these positions: (L, D), or (..., D) as the ids lie.
torch::Tensor with_computed_rows(const EmbedParts& parts, const torch::Tensor& ids, int64_t offset,
                                 const torch::Tensor& position_ids, EmbedFuncOptions& how) {
  const int64_t length = length_of(ids, parts.position.options.batch_first());
  const torch::Tensor rows =
      parts.position.computed_rows(ids.sizes(), length, offset, position_ids);
  if (!rows.defined()) return {};
  if (rows.dim() == 2 && rows.size(0) == length) return fused(parts, ids, rows, how);
  if (ids.dim() != 2) return {};
  how.position(PositionalEncodingFuncOptions());
  const torch::Tensor flat = fused(parts, ids.reshape({-1}), rows.flatten(0, 1), how);
  // No view: one that is made without gradients could not be written in place outside.
  return flat.defined() ? at::_unsafe_view(flat, {ids.size(0), ids.size(1), flat.size(1)}) : flat;
}

}  // namespace

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options) {
  const bool fresh = !options._weight().defined();
  if (fresh) {
    options._weight(functional::fresh_output({options.num_embeddings(), options.embedding_dim()},
                                             c10::get_default_dtype_as_scalartype()));
  }
  torch::nn::Embedding made(options);
  made->options._weight(torch::Tensor());  // or every clone would share this very tensor
  if (fresh && !SkipInit::is_active()) made->reset_parameters();
  return made;
}

void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options) {
  TORCH_CHECK_VALUE(!options.max_norm().has_value(), "[", module,
                    "] max_norm is not supported: renormalise the weight between steps. Got ",
                    *options.max_norm());
  TORCH_CHECK_VALUE(!options.scale_grad_by_freq(), "[", module,
                    "] scale_grad_by_freq is not supported. Got true");
}

torch::Tensor embed_parts(const EmbedParts& parts, const torch::Tensor& ids, int64_t offset,
                          const torch::Tensor& position_ids) {
  check_token_options(parts.module, parts.tokens.options);
  const double p = parts.dropout.options.p();
  const PositionalEncodingOptions& position = parts.position.options;
  if (!ids.defined() || ids.dim() < 1 || ids.dim() > 2 || !ids.is_cpu() || !(p >= 0.0 && p < 1.0))
    return {};
  auto how = EmbedFuncOptions()
                 .scale(parts.scale)
                 .padding_idx(parts.padding_idx)
                 .dropout(p)
                 .training(parts.dropout.is_training())
                 .precision(position.sinusoid().precision())
                 .sparse(parts.tokens.options.sparse());
  how.position().batch_first(position.batch_first());
  if (position.storage() != Storage::Table)
    return with_computed_rows(parts, ids, offset, position_ids, how);
  how.position().offset(offset).position_ids(position_ids);
  const bool grows = position.grow() && !position_ids.defined() && offset >= 0;
  const auto held =
      parts.position.hold(grows ? offset + length_of(ids, position.batch_first()) : 0);
  const torch::Tensor& rows = parts.position.rows_to_add();
  const torch::Tensor out = fused(parts, ids, rows, how);
  // Of half types, Precision::Exact is another definition than what the parts do one by one.
  if (out.defined() || rows.is_same(parts.position.pe)) return out;
  return functional::embed(ids, parts.tokens.weight, rows, how);
}

}  // namespace posenc
