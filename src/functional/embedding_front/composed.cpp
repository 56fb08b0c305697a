#include "functional/embedding_front/composed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include "functional/lookup.h"

namespace posenc::functional {
namespace {

using front::Norm;
using front::Order;
using front::Projection;

constexpr LookupNames kTokens = {"EmbeddingFront", "id", "vocab_size"};
constexpr LookupNames kPositions = {"EmbeddingFront", "position id", "the number of positions"};
constexpr LookupNames kTypes = {"EmbeddingFront", "token type id", "type_vocab_size"};
constexpr LookupNames kTypesOfTokens = {"EmbeddingFront", "token type id", "vocab_size"};
constexpr LookupNames kTasks = {"EmbeddingFront", "task type id", "task_type_vocab_size"};

at::Tensor position_rows(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                         const EmbeddingFrontFuncOptions& options) {
  at::Tensor where = options.position_ids();
  if (!where.defined()) {
    const int64_t first = options.offset(), length = ids.size(-1);
    where = at::arange(first, first + length, ids.options().dtype(at::kLong));
    if (ids.dim() == 2) where = where.unsqueeze(0);  // autograd sums over the batch first
  }
  return lookup(kPositions, where, weights.positions,
                padding_row("EmbeddingFront", "position_padding_idx",
                            options.position_padding_idx(), weights.positions.size(0)));
}

at::Tensor type_rows(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                     const EmbeddingFrontFuncOptions& options) {
  const at::Tensor& given = options.token_type_ids();
  return lookup(kTypes, given.defined() ? given : at::zeros_like(ids), weights.token_types,
                padding_row("EmbeddingFront", "type_padding_idx", options.type_padding_idx(),
                            weights.token_types.size(0)));
}

class Steps {
 public:
  Steps(const EmbeddingFrontWeights& weights, const EmbeddingFrontFuncOptions& options)
      : weights_(weights), options_(options) {}

  at::Tensor norm(const at::Tensor& x, Norm place) const {
    if (!weights_.norm_weight.defined() || options_.norm() != place) return x;
    return at::layer_norm(x, {weights_.norm_weight.size(0)}, weights_.norm_weight,
                          weights_.norm_bias, options_.layer_norm_eps());
  }
  at::Tensor project(const at::Tensor& x, Projection place) const {
    if (!weights_.projection_weight.defined() || options_.projection() != place) return x;
    return at::linear(x, weights_.projection_weight, weights_.projection_bias);
  }

 private:
  const EmbeddingFrontWeights& weights_;
  const EmbeddingFrontFuncOptions& options_;
};

}  // namespace

double front_scale(const EmbeddingFrontFuncOptions& options, const at::Tensor& tokens) {
  const double factor = options.scale().factor(tokens.size(1));
  switch (options.scale_rounding()) {
    case front::ScaleRounding::None: return factor;
    case front::ScaleRounding::ToBFloat16: return c10::BFloat16(static_cast<float>(factor));
    case front::ScaleRounding::ToWeight: break;
  }
  const at::Tensor stored = at::scalar_tensor(static_cast<float>(factor), at::kFloat);
  return stored.to(tokens.scalar_type()).item<double>();
}

at::Tensor embedding_front_composed(const at::Tensor& ids, const EmbeddingFrontWeights& weights,
                                    const EmbeddingFrontFuncOptions& options) {
  const Steps steps(weights, options);
  const int64_t padding =
      padding_row("EmbeddingFront", "padding_idx", options.padding_idx(), weights.tokens.size(0));
  at::Tensor x = lookup(kTokens, ids, weights.tokens, padding);
  if (!options.scale().is_none()) x = x * front_scale(options, weights.tokens);
  x = steps.norm(steps.project(x, Projection::Tokens), Norm::AfterTokens);
  const bool has_types = weights.token_types.defined();
  if (has_types && options.order() == Order::TypesFirst) x = x + type_rows(ids, weights, options);
  if (weights.positions.defined()) x = x + position_rows(ids, weights, options);
  if (has_types && options.order() == Order::PositionsFirst)
    x = x + type_rows(ids, weights, options);
  if (options.types_from_tokens() && options.token_type_ids().defined())
    x = x + lookup(kTypesOfTokens, options.token_type_ids(), weights.tokens, padding);
  if (weights.task_types.defined()) {
    const at::Tensor& given = options.task_type_ids();
    x = x + lookup(kTasks, given.defined() ? given : at::zeros_like(ids), weights.task_types);
  }
  x = steps.project(steps.norm(x, Norm::AfterSum), Projection::BeforeDropout);
  x = at::dropout(x, options.dropout(), options.training());
  return steps.project(steps.norm(x, Norm::AfterDropout), Projection::Last);
}

}  // namespace posenc::functional
