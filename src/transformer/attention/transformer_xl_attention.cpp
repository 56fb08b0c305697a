#include "posenc/transformer/attention/transformer_xl_attention.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/relative/term.h"
#include "positions/nn/weights.h"
#include "transformer/attention/masked_weights.h"
#include "transformer/attention/segments.h"
#include "transformer/functional/drop.h"

namespace posenc {
namespace {

constexpr const char* kAttention = "TransformerXLAttention";

// A bias (H, Dh) of queries (B, H, L, Dh).
torch::Tensor biased(const torch::Tensor& q, const torch::Tensor& bias) {
  return q + bias.unsqueeze(1);
}

// The product of a query with the vector of its own segment or of others, (B, H, L, L).
torch::Tensor segment_term(const torch::Tensor& q, const torch::Tensor& embed,
                           const torch::Tensor& segments) {
  const torch::Tensor products = torch::matmul(q, embed.permute({1, 2, 0}));  // (B, H, L, 2)
  const torch::Tensor differ = segments.unsqueeze(2).ne(segments.unsqueeze(1)).unsqueeze(1);
  return torch::where(differ, products.narrow(-1, 1, 1), products.narrow(-1, 0, 1));
}

}  // namespace

TransformerXLAttentionImpl::TransformerXLAttentionImpl(TransformerXLAttentionOptions options_)
    : options(std::move(options_)) {
  TransformerXLAttentionImpl::reset();
}

void TransformerXLAttentionImpl::reset() {
  const int64_t width = options.embed_dim(), heads = options.num_heads();
  const TransformerXLOptions& positions = options.positions();
  check_positive(kAttention, "embed_dim", width);
  check_positive(kAttention, "num_heads", heads);
  check_dropout(kAttention, options.dropout());
  TORCH_CHECK_VALUE(width % heads == 0, "[", kAttention,
                    "] embed_dim must be a multiple of num_heads ", heads, ". Got ", width);
  TORCH_CHECK_VALUE(positions.sinusoid().channels() == width, "[", kAttention,
                    "] the sinusoid must have embed_dim ", width, " channels. Got ",
                    positions.sinusoid().channels());
  TORCH_CHECK_VALUE(positions.clamp_len() >= 0, "[", kAttention,
                    "] clamp_len must not be negative. Got ", positions.clamp_len());
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
  if (options.bias()) in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
  const auto linear = [&](bool bias) {
    return make_linear(torch::nn::LinearOptions(width, width).bias(bias));
  };
  out_proj = register_module("out_proj", linear(options.out_bias()));
  position_proj = register_module("position_proj", linear(false));
  const auto of_heads = [&](const char* name) {
    return register_parameter(name, torch::empty({heads, width / heads}));
  };
  content_bias = of_heads("content_bias");
  position_bias = of_heads("position_bias");
  if (positions.segments()) {
    segment_bias = of_heads("segment_bias");
    segment_embed = register_parameter("segment_embed", torch::empty({2, heads, width / heads}));
  }
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
  if (!SkipInit::is_active()) reset_parameters();
}

void TransformerXLAttentionImpl::reset_parameters() {
  torch::nn::init::xavier_uniform_(in_proj_weight);
  out_proj->reset_parameters();
  position_proj->reset_parameters();
  for (const auto& bias : {in_proj_bias, content_bias, position_bias, segment_bias}) {
    if (bias.defined()) zero_weights_(const_cast<torch::Tensor&>(bias));
  }
  if (segment_embed.defined()) torch::nn::init::normal_(segment_embed, 0.0, 0.02);
}

void TransformerXLAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(
      stream, "TransformerXLAttention", options,
      TransformerXLAttentionOptions(-1, -1, TransformerXLOptions(options.positions().sinusoid())));
}

double TransformerXLAttentionImpl::scale() const {
  const auto width = static_cast<double>(options.embed_dim() / options.num_heads());
  return options.scale().value_or(1.0 / std::sqrt(width));
}

torch::Tensor TransformerXLAttentionImpl::forward(const torch::Tensor& x,
                                                  const torch::Tensor& table,
                                                  const AttentionMask& mask,
                                                  const torch::Tensor& segments) {
  return run(x, table, mask, segments, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> TransformerXLAttentionImpl::forward_with_weights(
    const torch::Tensor& x, const torch::Tensor& table, const AttentionMask& mask,
    const torch::Tensor& segments) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, table, mask, segments, &weights);
  return {out, weights};
}

relative::Term TransformerXLAttentionImpl::term_of(const torch::Tensor& q,
                                                   const torch::Tensor& table,
                                                   const torch::Tensor& segments) {
  const int64_t batch = q.size(0), length = q.size(2), groups = table.size(0);
  if (length == 0) return {};
  torch::Tensor rows = position_proj->forward(table)
                           .unflatten(-1, {options.num_heads(), -1})
                           .transpose(1, 2);  // (G, H, R, Dh)
  if (groups > 1 && groups != batch) rows = rows.repeat_interleave(batch / groups, 0);
  const relative::DistanceVectors of_distances = {biased(q, position_bias), rows, {length - 1}};
  if (!segments.defined()) return of_distances;
  return relative_term(of_distances.x, rows, length, of_distances.index) +
         segment_term(biased(q, segment_bias), segment_embed, segments);
}

torch::Tensor TransformerXLAttentionImpl::run(const torch::Tensor& x, const torch::Tensor& table,
                                              const AttentionMask& mask,
                                              const torch::Tensor& segments,
                                              torch::Tensor* shares) {
  const int64_t width = options.embed_dim(), heads = options.num_heads();
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width, "[", kAttention, "] x must be (B, L, ",
                    width, "). Got ", x.sizes());
  const int64_t batch = x.size(0), length = x.size(1);
  const bool fits = table.defined() && table.dim() == 3 && table.size(0) > 0 &&
                    batch % table.size(0) == 0 &&
                    (length == 0 || table.size(1) == 2 * length - 1) && table.size(2) == width;
  TORCH_CHECK_VALUE(fits, "[", kAttention, "] table must be (G, 2 L - 1, E) = (G, ", 2 * length - 1,
                    ", ", width, ") with a G that divides ", batch, ". Got ",
                    table.defined() ? c10::str(table.sizes()) : "an undefined tensor");
  check_segments(kAttention, segments, batch, length);
  TORCH_CHECK_VALUE(!segments.defined() || segment_embed.defined(), "[", kAttention,
                    "] segments must be undefined without TransformerXLOptions::segments. Got ",
                    segments.defined() ? segments.sizes() : at::IntArrayRef());
  const auto parts = torch::linear(x, in_proj_weight, in_proj_bias).chunk(3, -1);
  const auto of_heads = [&](const torch::Tensor& part) {
    return part.unflatten(-1, {heads, -1}).transpose(1, 2);
  };
  const torch::Tensor q = of_heads(parts[0]);
  const torch::Tensor weights =
      drop(*dropout, masked_weights(biased(q, content_bias), of_heads(parts[1]),
                                    term_of(q, table, segments), scale(), mask));
  if (shares != nullptr) *shares = weights;
  const torch::Tensor context = torch::matmul(weights, of_heads(parts[2]));
  return out_proj->forward(context.transpose(1, 2).flatten(2));
}

}  // namespace posenc
