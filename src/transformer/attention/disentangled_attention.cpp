#include "posenc/transformer/attention/disentangled_attention.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/low_rank.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/relative/term.h"
#include "positions/nn/weights.h"
#include "transformer/attention/masked_weights.h"
#include "transformer/attention/position_projections.h"
#include "transformer/functional/drop.h"

namespace posenc {
namespace {

constexpr const char* kDisentangled = "DisentangledAttention";

bool has_key_term(const DisentangledOptions& positions) {
  return positions.relative_attention() && positions.content_to_position();
}
bool has_query_term(const DisentangledOptions& positions) {
  return positions.relative_attention() && positions.position_to_content();
}

// (R, E) -> (H, R, Dh)
torch::Tensor heads_of_rows(const torch::Tensor& rows, int64_t heads) {
  return rows.unflatten(-1, {heads, -1}).transpose(0, 1);
}

}  // namespace

relative::Index DisentangledOptions::index() const {
  if (position_buckets_ > 0) return relative::SignedLog{position_buckets_, max_relative_positions_};
  return relative::Clamp{max_relative_positions_, max_relative_positions_ - 1,
                         /*query_minus_key=*/true};
}

DisentangledAttentionImpl::DisentangledAttentionImpl(DisentangledAttentionOptions options_)
    : options(options_) {
  DisentangledAttentionImpl::reset();
}

void DisentangledAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  const DisentangledOptions& positions = options.positions();
  check_positive(kDisentangled, "embed_dim", width);
  check_positive(kDisentangled, "num_heads", options.num_heads());
  check_dropout(kDisentangled, options.dropout());
  check_dropout(kDisentangled, options.position_dropout());
  TORCH_CHECK_VALUE(width % options.num_heads() == 0, "[", kDisentangled,
                    "] embed_dim must be a multiple of num_heads ", options.num_heads(), ". Got ",
                    width);
  check_positive(kDisentangled, "max_relative_positions", positions.max_relative_positions());
  TORCH_CHECK_VALUE(positions.position_buckets() >= 0 && positions.position_buckets() != 1, "[",
                    kDisentangled, "] position_buckets must be 0 or at least 2. Got ",
                    positions.position_buckets());
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
  in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
  const auto linear = [&](bool bias) {
    return make_linear(torch::nn::LinearOptions(width, width).bias(bias));
  };
  out_proj = register_module("out_proj", linear(true));
  if (!positions.share_att_key() && has_key_term(positions))
    pos_key = register_module("pos_key", linear(positions.position_key_bias()));
  if (!positions.share_att_key() && has_query_term(positions))
    pos_query = register_module("pos_query", linear(true));
  position_dropout =
      register_module("position_dropout", torch::nn::Dropout(options.position_dropout()));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
  if (!SkipInit::is_active()) reset_parameters();
}

void DisentangledAttentionImpl::reset_parameters() {
  torch::nn::init::xavier_uniform_(in_proj_weight);
  torch::nn::init::zeros_(in_proj_bias);
  for (auto* one : {&out_proj, &pos_key, &pos_query}) {
    if (*one) (*one)->reset_parameters();
  }
}

void DisentangledAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "DisentangledAttention", options,
                       DisentangledAttentionOptions(-1, -1, DisentangledOptions(-1)));
}

double DisentangledAttentionImpl::scale() const {
  const DisentangledOptions& positions = options.positions();
  const int64_t products =
      1 + (positions.content_to_position() ? 1 : 0) + (positions.position_to_content() ? 1 : 0);
  const int64_t width = options.embed_dim() / options.num_heads();
  return options.scale().value_or(1.0 / std::sqrt(static_cast<double>(width * products)));
}

PositionProjections position_projections(const DisentangledAttentionImpl& attention,
                                         const torch::Tensor& table) {
  const DisentangledOptions& positions = attention.options.positions();
  const int64_t width = attention.options.embed_dim();
  if (!has_key_term(positions) && !has_query_term(positions)) return {};
  const int64_t sizes[] = {2 * positions.span(), width};
  TORCH_CHECK_VALUE(table.defined() && table.sizes() == at::IntArrayRef(sizes), "[", kDisentangled,
                    "] table must be ", at::IntArrayRef(sizes), ". Got ",
                    table.defined() ? c10::str(table.sizes()) : "an undefined tensor");
  const auto projection = [&](const torch::nn::Linear& own, int64_t shared) -> PositionProjection {
    if (own) return {own->weight, own->bias};
    return {attention.in_proj_weight.narrow(0, shared * width, width),
            attention.in_proj_bias.narrow(0, shared * width, width)};
  };
  PositionProjections all;
  if (has_key_term(positions)) all.keys = projection(attention.pos_key, 1);
  if (has_query_term(positions)) all.queries = projection(attention.pos_query, 0);
  return all;
}

std::tuple<torch::Tensor, torch::Tensor> DisentangledAttentionImpl::position_heads(
    const torch::Tensor& table) {
  const int64_t width = options.embed_dim();
  const auto heads_of = [&](const PositionProjection& own, const torch::nn::Linear& apart,
                            int64_t shared) {
    if (!own.weight.defined()) return torch::Tensor();
    const torch::Tensor rows =
        apart ? forward_linear(*apart.ptr(), table)
              : linear_rows(table, in_proj_weight, in_proj_bias, shared * width, width);
    return heads_of_rows(rows, options.num_heads());
  };
  const PositionProjections projections = position_projections(*this, table);
  return {heads_of(projections.keys, pos_key, 1), heads_of(projections.queries, pos_query, 0)};
}

torch::Tensor DisentangledAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& table,
                                                 const AttentionMask& mask) {
  return run(x, table, mask, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> DisentangledAttentionImpl::forward_with_weights(
    const torch::Tensor& x, const torch::Tensor& table, const AttentionMask& mask) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, table, mask, &weights);
  return {out, weights};
}

torch::Tensor DisentangledAttentionImpl::run(const torch::Tensor& x, const torch::Tensor& table,
                                             const AttentionMask& mask, torch::Tensor* shares) {
  const int64_t width = options.embed_dim(), heads = options.num_heads();
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width, "[", kDisentangled, "] x must be (B, L, ",
                    width, "). Got ", x.sizes());
  torch::Tensor bias = in_proj_bias;
  if (!options.key_bias()) {  // zeros without a gradient
    bias = torch::cat({bias.narrow(0, 0, width), bias.narrow(0, width, width).detach(),
                       bias.narrow(0, 2 * width, width)});
  }
  const auto parts = linear_rows(x, in_proj_weight, bias).chunk(3, -1);
  const auto of_heads = [&](const torch::Tensor& part) {
    return part.unflatten(-1, {heads, -1}).transpose(1, 2);
  };
  const torch::Tensor q = of_heads(parts[0]), k = of_heads(parts[1]), v = of_heads(parts[2]);
  const bool drops = table.defined() && options.positions().relative_attention();
  const auto [keys, queries] =
      position_heads(drops ? drop(*position_dropout, table) : torch::Tensor());
  const relative::Index index = options.positions().index();
  const int64_t length = x.size(1);
  torch::Tensor term;
  if (keys.defined()) term = relative_term(q, keys, length, index);
  if (queries.defined()) {
    const torch::Tensor of_keys = relative_term(k, queries, length, index, relative::Contract::Key);
    term = term.defined() ? term + of_keys : of_keys;
  }
  const torch::Tensor weights = drop(*dropout, masked_weights(q, k, term, scale(), mask));
  if (shares != nullptr) *shares = weights;
  const torch::Tensor context = torch::matmul(weights, v);
  return forward_linear(*out_proj, context.transpose(1, 2).flatten(2));
}

}  // namespace posenc
