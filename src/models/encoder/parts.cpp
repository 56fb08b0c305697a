#include "models/encoder/parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>

#include <algorithm>
#include <utility>

#include "posenc/functional/relative_position_bias.h"

namespace posenc {
namespace {

using encoder::Pooling;

// A mask of another shape would be broadcast, or rejected by the layers with a less specific error.
void check_mask(const at::Tensor& mask, at::IntArrayRef ids) {
  TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true),
                   "[Encoder] attention_mask must be bool or an integer type. Got ",
                   mask.scalar_type());
  TORCH_CHECK_VALUE(mask.sizes() == ids, "[Encoder] attention_mask must be (B, L) = ", ids,
                    ". Got ", mask.sizes());
}

void check_embeds(const EncoderOptions& options, const at::Tensor& ids,
                  const EncoderInputs& inputs) {
  const at::Tensor& embeds = inputs.inputs_embeds();
  TORCH_CHECK_VALUE(options.embeddings(), "[Encoder] an encoder of images takes no inputs_embeds");
  TORCH_CHECK_VALUE(!ids.defined(),
                    "[Encoder] ids must be an undefined tensor where inputs_embeds are given. Got ",
                    ids.sizes());
  TORCH_CHECK_VALUE(embeds.dim() == 3, "[Encoder] inputs_embeds must be (B, L, E). Got ",
                    embeds.sizes());
  TORCH_CHECK_VALUE(embeds.size(1) > 0 || options.pooling() == Pooling::None,
                    "[Encoder] sequences must have a token that can be pooled. Got ",
                    embeds.sizes());
  const bool finds_token =
      options.pooling() == Pooling::EndToken || options.pooling() == Pooling::LargestToken;
  TORCH_CHECK_VALUE(!finds_token,
                    "[Encoder] inputs_embeds must be of an encoder whose pooling does not look for "
                    "a token among the ids. Got one that does");
  if (inputs.attention_mask().defined())
    check_mask(inputs.attention_mask(), embeds.sizes().slice(0, 2));
}

}  // namespace

bool layers_see_padding(const EncoderOptions& options) {
  const TransformerEncoderOptions& stack = options.encoder();
  const auto sees_all = [](const TransformerLayerOptions& layer) {
    return layer.mixing() != Mixing::Attention;
  };
  return stack.layers().empty()
             ? sees_all(stack.layer())
             : std::any_of(stack.layers().begin(), stack.layers().end(), sees_all);
}

bool sees_padding(const EncoderOptions& options) {
  const auto& embeddings = options.embeddings();
  return layers_see_padding(options) || (embeddings && embeddings->trigram_input());
}

void check_encoder_inputs(const EncoderOptions& options, const at::Tensor& input,
                          const EncoderInputs& inputs) {
  if (inputs.inputs_embeds().defined()) return check_embeds(options, input, inputs);
  TORCH_CHECK_VALUE(
      input.defined(), "[Encoder] ",
      options.embeddings() ? "ids must be (B, L)" : "pixel_values must be (B, C, H, W)",
      ". Got an undefined tensor");
  if (options.embeddings()) {
    TORCH_CHECK_VALUE(input.dim() == 2, "[Encoder] ids must be (B, L). Got ", input.sizes());
    TORCH_CHECK_VALUE(input.size(1) > 0 || options.pooling() == Pooling::None,
                      "[Encoder] sequences must have a token that can be pooled. Got ",
                      input.sizes());
    if (inputs.attention_mask().defined()) check_mask(inputs.attention_mask(), input.sizes());
    return;
  }
  const std::pair<const char*, const at::Tensor&> of_text[] = {
      {"attention_mask", inputs.attention_mask()},
      {"token_type_ids", inputs.token_type_ids()},
      {"position_ids", inputs.position_ids()},
      {"task_type_ids", inputs.task_type_ids()}};
  for (const auto& [name, tensor] : of_text) {
    TORCH_CHECK_VALUE(!tensor.defined(), "[Encoder] an encoder of images takes no ", name);
  }
}

EncoderInputs with_mask(const EncoderOptions& options, const at::Tensor& ids,
                        const EncoderInputs& inputs) {
  const bool finds_padding = options.zero_padding() && options.pad_token_id() && ids.defined();
  if (!finds_padding || inputs.attention_mask().defined()) return inputs;
  const at::Tensor count = ids.ne(*options.pad_token_id()).sum(1, /*keepdim=*/true);
  const at::Tensor mask = at::arange(ids.size(1), ids.options().dtype(at::kLong)) < count;
  return EncoderInputs(inputs).attention_mask(mask);
}

at::Tensor masked_embeddings(const EncoderOptions& options, const at::Tensor& ids,
                             const EncoderInputs& inputs, const at::Tensor& embeddings) {
  const at::Tensor& mask = inputs.attention_mask();
  at::Tensor rows = embeddings;
  if (options.token_dropout_id() && ids.defined()) {  // not for inputs_embeds
    constexpr double kShareInTraining = 1.0 - 0.15 * 0.8;
    const at::Tensor dropped = ids.eq(*options.token_dropout_id());
    const at::Tensor count = dropped.sum(-1).to(at::kFloat);
    const at::Tensor share = mask.defined() ? count / mask.ne(0).sum(-1) : count / ids.size(1);
    rows = rows.masked_fill(dropped.unsqueeze(-1), 0.0) * kShareInTraining /
           (1.0 - share).view({-1, 1, 1}).to(rows.scalar_type());
  }
  if (!options.zero_padding() || !mask.defined()) return rows;
  return rows * mask.ne(0).unsqueeze(-1).to(rows.scalar_type());
}

EncoderEmbeddingsInputs embeddings_inputs(const EncoderOptions& options,
                                          const EncoderInputs& inputs) {
  const bool are_rotated = rotary_position_ids(options, inputs).defined() &&
                           options.embeddings()->position_ids() == embeddings::PositionIds::None;
  return EncoderEmbeddingsInputs()
      .attention_mask(inputs.attention_mask())
      .token_type_ids(inputs.token_type_ids())
      .position_ids(are_rotated ? at::Tensor() : inputs.position_ids())
      .task_type_ids(inputs.task_type_ids())
      .inputs_embeds(inputs.inputs_embeds());
}

at::Tensor rotary_position_ids(const EncoderOptions& options, const EncoderInputs& inputs) {
  return options.encoder().layer().rotary() ? inputs.position_ids() : at::Tensor();
}

AttentionMask encoder_mask(const EncoderOptions& options, const EncoderInputs& inputs,
                           const at::Tensor& relative_bias, int64_t length) {
  AttentionMask mask;
  if (inputs.attention_mask().defined()) mask = AttentionMask::key_padding(inputs.attention_mask());
  if (options.causal()) mask = mask & AttentionMask::causal();
  if (relative_bias.defined()) {
    const at::Tensor buckets = relative_bias.narrow(0, 0, options.relative_buckets());
    mask =
        mask & AttentionMask::additive(functional::relative_position_bias(buckets, length, length));
  }
  return mask;
}

bool has_pooler(const EncoderOptions& options) {
  return options.pooling() == Pooling::TanhOfFirst || options.pooling() == Pooling::LinearOfLast;
}

bool has_pooling_weights(const EncoderOptions& options) {
  return has_pooler(options) || options.pooling() == Pooling::NormOfFirst ||
         options.pooling() == Pooling::Attention;
}

namespace {

// The index of each sequence's last id that is not padding; 0 where all are.
at::Tensor last_tokens(const EncoderOptions& options, const at::Tensor& ids) {
  const auto places = at::arange(ids.size(1), ids.options().dtype(at::kLong));
  if (options.pad_token_id()) return (places * ids.ne(*options.pad_token_id())).argmax(-1);
  TORCH_CHECK_VALUE(ids.size(0) == 1,
                    "[Encoder] pad_token_id must be set for more than one sequence, to find their "
                    "last tokens. Got ",
                    ids.size(0), " sequences");
  return places.narrow(0, ids.size(1) - 1, 1);
}

at::Tensor rows_at(const at::Tensor& hidden, const at::Tensor& places) {
  return hidden.index({at::arange(hidden.size(0), places.options()), places});
}

}  // namespace

at::Tensor pooled_rows(const EncoderOptions& options, const at::Tensor& hidden,
                       const at::Tensor& ids) {
  switch (options.pooling()) {
    case Pooling::EndToken:
    case Pooling::LargestToken: {
      const at::Tensor marks = options.pooling() == Pooling::EndToken
                                   ? ids.eq(options.eos_token_id()).to(at::kInt)
                                   : ids.to(at::kInt);
      return rows_at(hidden, marks.argmax(-1));  // the first of several
    }
    case Pooling::LastToken:  // the last row of inputs_embeds, as in transformers
      if (ids.defined()) return rows_at(hidden, last_tokens(options, ids));
      [[fallthrough]];
    case Pooling::LinearOfLast: return hidden.select(1, hidden.size(1) - 1);
    default: return hidden.select(1, 0);
  }
}

}  // namespace posenc
