#include "positions/functional/embed/composed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros_like.h>

#include "positions/functional/lookup.h"

namespace posenc::functional {
namespace {

using embeddings::Norm;
using embeddings::Order;
using embeddings::Projection;

constexpr LookupNames kTokens = {"EncoderEmbeddings", "id", "vocab_size"};
constexpr LookupNames kPositions = {"EncoderEmbeddings", "position id", "the number of positions"};
constexpr LookupNames kTypes = {"EncoderEmbeddings", "token type id", "type_vocab_size"};
constexpr LookupNames kTypesOfTokens = {"EncoderEmbeddings", "token type id", "vocab_size"};
constexpr LookupNames kBoxes = {"EncoderEmbeddings", "edge, height and width of a box",
                                "max_2d_position_embeddings"};
constexpr LookupNames kTasks = {"EncoderEmbeddings", "task type id", "task_type_vocab_size"};

at::Tensor position_rows(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                         const EncoderEmbeddingsFuncOptions& options) {
  at::Tensor where = options.position_ids();
  if (!where.defined()) {
    const int64_t first = options.offset(), length = ids.size(-1);
    where = at::arange(first, first + length, ids.options().dtype(at::kLong));
    if (ids.dim() == 2) where = where.unsqueeze(0);  // autograd sums over the batch first
  }
  return lookup(kPositions, where, weights.positions,
                padding_row("EncoderEmbeddings", "position_padding_idx",
                            options.position_padding_idx(), weights.positions.size(0)));
}

at::Tensor type_rows(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                     const EncoderEmbeddingsFuncOptions& options) {
  const at::Tensor& given = options.token_type_ids();
  return lookup(kTypes, given.defined() ? given : at::zeros_like(ids), weights.token_types,
                padding_row("EncoderEmbeddings", "type_padding_idx", options.type_padding_idx(),
                            weights.token_types.size(0)));
}

// The next token's vector, the token's own and the last one's, side by side: the operations of
// transformers, whose gradients are summed in their order.
at::Tensor with_neighbours(const at::Tensor& x) {
  const int64_t length = x.size(-2);
  if (length == 0) return at::cat({x, x, x}, -1);
  const at::Tensor next = at::constant_pad_nd(x.narrow(-2, 1, length - 1), {0, 0, 0, 1});
  const at::Tensor last = at::constant_pad_nd(x.narrow(-2, 0, length - 1), {0, 0, 1, 0});
  return at::cat({next, x, last}, -1);
}

constexpr int64_t kMostSide = 1023;  // of a box of LayoutLMv3

at::Tensor add_boxes(at::Tensor x, const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                     const EncoderEmbeddingsFuncOptions& options) {
  const bool is_sum = !boxes_are_side_by_side(weights, x.size(-1));
  std::vector<at::Tensor> parts;
  for (const auto& [table, index] : box_rows(weights, options.bbox())) {
    const bool is_side = table == &weights.h_positions || table == &weights.w_positions;
    at::Tensor row = index.defined() ? index : at::zeros_like(ids, at::kLong);
    if (!is_sum && is_side) row = row.clamp(0, kMostSide);
    parts.push_back(lookup(kBoxes, row, *table));
    if (is_sum) x = x + parts.back();
  }
  return is_sum ? x : x + at::cat(parts, -1);
}

class Steps {
 public:
  Steps(const EncoderEmbeddingsWeights& weights, const EncoderEmbeddingsFuncOptions& options)
      : weights_(weights), options_(options) {}

  at::Tensor norm(const at::Tensor& x, Norm step) const {
    if (!weights_.norm_weight.defined() || options_.norm() != step) return x;
    if (options_.no_norm()) {
      const at::Tensor y = x * weights_.norm_weight;
      return weights_.norm_bias.defined() ? y + weights_.norm_bias : y;
    }
    if (options_.stepwise_norm()) return stepwise_norm(x);
    return at::layer_norm(x, {weights_.norm_weight.size(0)}, weights_.norm_weight,
                          weights_.norm_bias, options_.layer_norm_eps());
  }
  at::Tensor project(const at::Tensor& x, Projection step) const {
    if (!weights_.projection_weight.defined() || options_.projection() != step) return x;
    return at::linear(options_.trigram_input() ? with_neighbours(x) : x, weights_.projection_weight,
                      weights_.projection_bias);
  }

 private:
  // DebertaLayerNorm
  at::Tensor stepwise_norm(const at::Tensor& x) const {
    at::Tensor y = x.to(at::kFloat);
    const at::Tensor centred = y - y.mean(-1, /*keepdim=*/true);
    const at::Tensor variance = centred.pow(2).mean(-1, /*keepdim=*/true);
    y = (centred / at::sqrt(variance + options_.layer_norm_eps())).to(x.scalar_type());
    y = weights_.norm_weight * y;
    return weights_.norm_bias.defined() ? y + weights_.norm_bias : y;
  }

  const EncoderEmbeddingsWeights& weights_;
  const EncoderEmbeddingsFuncOptions& options_;
};

}  // namespace

at::Tensor embed_composed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                          const EmbedFuncOptions& options) {
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[TokenEmbedding] weight must be (vocab_size, d_model). Got ", weight.sizes());
  const int64_t padding =
      padding_row("TokenEmbedding", "padding_idx", options.padding_idx(), weight.size(0));
  const at::Tensor vectors =
      lookup({"TokenEmbedding", "id", "vocab_size"}, ids, weight, padding, options.sparse());
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

bool boxes_are_side_by_side(const EncoderEmbeddingsWeights& weights, int64_t width) {
  const at::Tensor &x = weights.x_positions, &h = weights.h_positions;
  if (!x.defined() || !h.defined() || x.dim() != 2 || h.dim() != 2) return false;
  return 4 * x.size(1) + 2 * h.size(1) == width;
}

std::vector<BoxRows> box_rows(const EncoderEmbeddingsWeights& weights, const at::Tensor& bbox) {
  if (!weights.x_positions.defined()) return {};
  const bool is_narrow = bbox.defined() && bbox.scalar_type() != at::kInt;
  const at::Tensor wide = is_narrow ? bbox.to(at::kLong) : bbox;
  const auto edge = [&](int64_t i) { return wide.defined() ? wide.select(-1, i) : at::Tensor(); };
  const at::Tensor x0 = edge(0), y0 = edge(1), x1 = edge(2), y1 = edge(3);
  return {{&weights.x_positions, x0},
          {&weights.y_positions, y0},
          {&weights.x_positions, x1},
          {&weights.y_positions, y1},
          {&weights.h_positions, bbox.defined() ? y1 - y0 : at::Tensor()},
          {&weights.w_positions, bbox.defined() ? x1 - x0 : at::Tensor()}};
}

double embeddings_scale(const EncoderEmbeddingsFuncOptions& options, const at::Tensor& tokens) {
  const double factor = options.scale().factor(tokens.size(1));
  switch (options.scale_rounding()) {
    case embeddings::ScaleRounding::None: return factor;
    case embeddings::ScaleRounding::ToBFloat16: return c10::BFloat16(static_cast<float>(factor));
    case embeddings::ScaleRounding::ToWeight: break;
  }
  const at::Tensor stored = at::scalar_tensor(static_cast<float>(factor), at::kFloat);
  return stored.to(tokens.scalar_type()).item<double>();
}

at::Tensor encoder_embeddings_composed(const at::Tensor& ids,
                                       const EncoderEmbeddingsWeights& weights,
                                       const EncoderEmbeddingsFuncOptions& options) {
  const Steps steps(weights, options);
  const int64_t padding = padding_row("EncoderEmbeddings", "padding_idx", options.padding_idx(),
                                      weights.tokens.size(0));
  at::Tensor x = lookup(kTokens, ids, weights.tokens, padding);
  if (!options.scale().is_none()) x = x * embeddings_scale(options, weights.tokens);
  x = steps.norm(steps.project(x, Projection::Tokens), Norm::AfterTokens);
  const bool has_types = weights.token_types.defined();
  if (has_types && options.order() == Order::TypesFirst) x = x + type_rows(ids, weights, options);
  if (weights.positions.defined()) x = x + position_rows(ids, weights, options);
  x = add_boxes(x, ids, weights, options);
  if (has_types && options.order() == Order::PositionsFirst)
    x = x + type_rows(ids, weights, options);
  if (options.types_from_tokens() && options.token_type_ids().defined())
    x = x + lookup(kTypesOfTokens, options.token_type_ids(), weights.tokens, padding);
  if (weights.task_types.defined()) {
    const at::Tensor& given = options.task_type_ids();
    x = x + lookup(kTasks, given.defined() ? given : at::zeros_like(ids), weights.task_types);
  }
  x = steps.norm(steps.project(x, Projection::Sum), Norm::AfterSum);
  x = steps.project(x, Projection::BeforeDropout);
  x = at::dropout(x, options.dropout(), options.training());
  return steps.project(steps.norm(x, Norm::AfterDropout), Projection::Last);
}

}  // namespace posenc::functional
