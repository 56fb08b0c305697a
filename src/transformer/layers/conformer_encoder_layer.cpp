#include "posenc/transformer/layers/conformer_encoder_layer.h"

#include <ostream>
#include <utility>

#include "core/print_fields.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

constexpr const char* kConformerLayer = "ConformerEncoderLayer";

// Refuses what a conformer's attention does not have.
void refuse_others(const TransformerXLOptions& own) {
  const std::pair<const char*, bool> others[] = {{"bi_data", own.bi_data()},
                                                 {"segments", own.segments()},
                                                 {"mask_embedding", own.mask_embedding()}};
  for (const auto& [name, is_set] : others) {
    TORCH_CHECK_VALUE(
        !is_set, "[", kConformerLayer, "] ", name,
        " of transformer_xl must be false: it is of a TransformerEncoderLayer. Got true");
  }
}

// Refuses rotations of something else than the hidden states before they are projected.
void check_rotation(const RotaryOptions& rotary, int64_t head_dim) {
  TORCH_CHECK_VALUE(rotary.rotary_dim() == head_dim, "[", kConformerLayer,
                    "] rotary must rotate the ", head_dim, " channels of a head. Got ",
                    rotary.rotary_dim());
  TORCH_CHECK_VALUE(rotary.applied_to() == posenc::rotary::AppliedTo::HiddenStates, "[",
                    kConformerLayer,
                    "] rotary must have applied_to(AppliedTo::HiddenStates): a conformer rotates "
                    "them before it projects queries and keys. Got another");
  TORCH_CHECK_VALUE(!rotary.rotary_value(), "[", kConformerLayer,
                    "] rotary must have rotary_value(false): values are not rotated. Got true");
}

}  // namespace

ConformerEncoderLayerImpl::ConformerEncoderLayerImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  ConformerEncoderLayerImpl::reset();
}

void ConformerEncoderLayerImpl::reset() {
  check_kind(kConformerLayer, options);
  check_layer(kConformerLayer, options);
  TORCH_CHECK_VALUE(!options.transformer_xl() || !options.rotary(), "[", kConformerLayer,
                    "] transformer_xl and rotary must not both be set. Got both");
  if (options.transformer_xl()) refuse_others(*options.transformer_xl());
  ffn1 = register_module("ffn1", ConformerFeedForward(options));
  norm1 = register_module("norm1", make_norm(options));
  if (options.transformer_xl()) {
    transformer_xl_attn = register_module("self_attn", make_transformer_xl_attention(options));
  } else {
    TransformerLayerOptions plain = options;
    self_attn = register_module("self_attn", make_self_attention(plain.rotary(std::nullopt)));
  }
  if (options.rotary()) {
    check_rotation(options.rotary()->rotary(), options.d_model() / options.num_heads());
    RotaryEmbeddingOptions own = *options.rotary();
    own.head_axis(posenc::rotary::HeadAxis::AfterLength);
    rotary = register_module("rotary", RotaryEmbedding(own));
  }
  dropout1 = register_module("dropout1", torch::nn::Dropout(dropouts_of(options).attention_output));
  conv = register_module("conv", ConformerConvolution(options));
  ffn2 = register_module("ffn2", ConformerFeedForward(options));
  norm2 = register_module("norm2", make_norm(options));
}

void ConformerEncoderLayerImpl::reset_parameters() {
  ffn1->reset_parameters();
  norm1->reset_parameters();
  if (self_attn) self_attn->reset_parameters();
  if (transformer_xl_attn) transformer_xl_attn->reset_parameters();
  conv->reset_parameters();
  ffn2->reset_parameters();
  norm2->reset_parameters();
}

void ConformerEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "ConformerEncoderLayer", options, TransformerLayerOptions(-1, -1));
}

torch::Tensor ConformerEncoderLayerImpl::forward(const torch::Tensor& x, const AttentionMask& mask,
                                                 const torch::Tensor& table) {
  return run(x, {table, {}}, mask, {}, nullptr);
}

torch::Tensor ConformerEncoderLayerImpl::run(const torch::Tensor& x, const StackPositions& relative,
                                             const AttentionMask& mask,
                                             const torch::Tensor& position_ids,
                                             torch::Tensor* weights) {
  return blocks::run(blocks::of(*this), x, {relative, mask, position_ids, weights}, options,
                     is_training());
}

}  // namespace posenc
