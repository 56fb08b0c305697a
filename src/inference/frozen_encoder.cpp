#include "posenc/inference/frozen_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <ostream>

#include "functional/attention_mask_internals.h"
#include "functional/lookup.h"
#include "inference/model.h"
#include "models/encoder/parts.h"
#include "nn/encoder_embeddings_internals.h"

namespace posenc {
namespace inference {

struct FrozenEncoderParts {
  EncoderOptions options;
  StaleCheck stale_check;
  FrozenTransformerEncoder layers;
  ConvertedWeights weights = {};
  std::optional<Int8Weight> tokens = {};  // instead of the embeddings' own
  std::optional<EncoderEmbeddingsOptions> embeddings_options = {};  // of token ids
  functional::EncoderEmbeddingsWeights embeddings = {};
  VisionEmbeddings patches{nullptr};  // of images, in eval mode
  LayerNorm pooler_norm{nullptr};
  AttentionPooling attention_pooler{nullptr};
  at::Tensor relative_bias = {}, pooler_weight = {}, pooler_bias = {};

  at::Tensor embed(const at::Tensor& input, const EncoderInputs& inputs) const {
    if (patches) return VisionEmbeddings(patches)->forward(input);
    EmbeddingsCall call =
        embeddings_call(*embeddings_options, embeddings, input, embeddings_inputs(options, inputs));
    if (tokens && !inputs.inputs_embeds().defined()) look_up(call);
    return functional::encoder_embeddings(call.ids, call.weights, call.options);
  }

  // Of the tables only the size is kept where the rows are in 8 bits. Tokens that are also rows of
  // token types stay in float32.
  void convert_tokens(WeightConverter& convert) {
    if (embeddings_options->types_from_tokens()) return;
    tokens = convert.table(embeddings.tokens);
    if (tokens) embeddings.tokens = at::zeros({1, 1}).expand({tokens->out(), tokens->in()});
  }

 private:
  // Rows in 8 bits become a table of their own, with the rows in the order of the ids.
  void look_up(EmbeddingsCall& call) const {
    constexpr functional::LookupNames kNames = {"EncoderEmbeddings", "id", "vocab_size"};
    functional::check_index_type(kNames, call.ids);
    functional::check_indices(kNames, call.ids, tokens->out());
    call.weights.tokens = tokens->rows(call.ids);
    call.ids = at::arange(call.ids.numel(), at::kLong).view(call.ids.sizes());
    call.options.padding_idx(std::nullopt);  // which is not one of the new ids
  }
};

namespace {

// A masked token attends to the real ones like any other, so its row has a value if it is pooled.
bool pools_masked_row(const EncoderOptions& options, const at::Tensor& ids,
                      const at::Tensor& attention_mask) {
  if (!attention_mask.defined() || options.pooling() == encoder::Pooling::None) return false;
  return !pooled_rows(options, attention_mask.ne(0), ids).all().item<bool>();
}

// The layers of a frozen model keep what they compute in buffers that the next layer overwrites.
void refuse_records(const EncoderInputs& inputs) {
  const std::pair<const char*, bool> records[] = {
      {"output_hidden_states", inputs.output_hidden_states()},
      {"output_attentions", inputs.output_attentions()}};
  for (const auto& [name, is_wanted] : records) {
    TORCH_CHECK_VALUE(!is_wanted, "[FrozenEncoder] ", name,
                      " must be false: the Encoder that was frozen has them. Got true");
  }
}

// An equal mask that drops no row, so that those of masked tokens are computed too: the keys are
// given as pairs.
AttentionMask mask_of_all_rows(const AttentionMask& mask) {
  return AttentionMaskAccess::without_keys(mask) &
         AttentionMask::allowed(mask.padding_keys().unsqueeze(1));
}

// The same memory as other tensors, so that the StaleCheck can see that the source's own are gone.
functional::EncoderEmbeddingsWeights detached(functional::EncoderEmbeddingsWeights weights) {
  for (at::Tensor* tensor : {&weights.tokens, &weights.positions, &weights.token_types,
                             &weights.task_types, &weights.norm_weight, &weights.norm_bias,
                             &weights.projection_weight, &weights.projection_bias}) {
    if (tensor->defined()) *tensor = tensor->detach();
  }
  return weights;
}

// A module with options of its own, in eval mode, on the memory of the source's weights.
template <typename Impl>
std::shared_ptr<Impl> detached_module(const Impl& source) {
  auto own = std::dynamic_pointer_cast<Impl>(source.clone());
  const auto weights = source.named_parameters();
  for (auto& item : own->named_parameters()) item.value().set_data(weights[item.key()].detach());
  own->eval();
  return own;
}

}  // namespace
}  // namespace inference

EncoderOutput FrozenEncoder::forward(const torch::Tensor& input, const EncoderInputs& given) const {
  const torch::NoGradGuard no_grad;
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const auto& parts = *held;
  check_encoder_inputs(parts.options, input, given);
  inference::refuse_records(given);
  const EncoderInputs inputs = with_mask(parts.options, input, given);
  parts.stale_check.check();
  EncoderOutput out;
  out.embeddings = masked_embeddings(parts.options, input, inputs, parts.embed(input, inputs));
  const AttentionMask mask =
      encoder_mask(parts.options, inputs, parts.relative_bias, out.embeddings.size(1));
  const bool all_rows = inference::pools_masked_row(parts.options, input, inputs.attention_mask());
  out.last_hidden_state =
      parts.layers.forward(out.embeddings, all_rows ? inference::mask_of_all_rows(mask) : mask,
                           rotary_position_ids(parts.options, inputs));
  if (parts.options.pooling() == encoder::Pooling::None) return out;
  if (parts.attention_pooler) {
    out.pooled = AttentionPooling(parts.attention_pooler)->forward(out.last_hidden_state);
    return out;
  }
  out.pooled = pooled_rows(parts.options, out.last_hidden_state, input);
  if (parts.pooler_norm) out.pooled = LayerNorm(parts.pooler_norm)->forward(out.pooled);
  if (all_rows) {
    out.last_hidden_state =
        out.last_hidden_state.masked_fill(inputs.attention_mask().eq(0).unsqueeze(-1), 0.0);
  }
  if (parts.pooler_weight.defined()) {
    out.pooled = at::linear(out.pooled, parts.pooler_weight, parts.pooler_bias);
  }
  if (parts.options.pooling() == encoder::Pooling::TanhOfFirst) out.pooled = out.pooled.tanh();
  return out;
}

const inference::ConvertedWeights& inference::FrozenAccess::weights(const FrozenEncoder& frozen) {
  return frozen.parts_->weights;
}

const EncoderOptions& FrozenEncoder::options() const { return parts_->options; }
FrozenBytes FrozenEncoder::bytes() const { return parts_->stale_check.bytes(); }

namespace inference {

FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert) {
  FrozenEncoderParts parts = {model.options, StaleCheck(model),
                              freeze_part(*model.encoder, convert)};
  if (model.embeddings) {
    parts.embeddings_options = model.embeddings->options;
    parts.embeddings = embeddings_weights(*model.embeddings);
    parts.convert_tokens(convert);
    parts.embeddings = detached(parts.embeddings);
  } else {
    parts.patches = VisionEmbeddings(detached_module(*model.patches));
  }
  if (model.relative_attention_bias) {
    parts.relative_bias = model.relative_attention_bias->weight.detach();
  }
  if (model.pooler_norm) parts.pooler_norm = LayerNorm(detached_module(*model.pooler_norm));
  if (model.attention_pooler) {
    parts.attention_pooler = AttentionPooling(detached_module(*model.attention_pooler));
  }
  if (model.pooler) {
    parts.pooler_weight = model.pooler->weight.detach();
    if (model.pooler->bias.defined()) parts.pooler_bias = model.pooler->bias.detach();
  }
  parts.stale_check.set_converted(convert.bytes());
  parts.weights = convert.weights();
  return FrozenAccess::wrap(std::make_shared<const FrozenEncoderParts>(std::move(parts)));
}

}  // namespace inference

FrozenEncoder freeze(const EncoderImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  inference::WeightConverter convert(options, model);
  const FrozenEncoder frozen = inference::freeze_part(model, convert);
  convert.check_exceptions();
  return frozen;
}

FrozenEncoder freeze(const Encoder& model, const FreezeOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return freeze(*model.ptr(), options);
}

FrozenEncoder freeze(Encoder&& model, const FreezeOptions& options) {
  return inference::freeze_and_release(model, options);
}

std::ostream& operator<<(std::ostream& stream, const FrozenEncoder& model) {
  const auto& layer = model.options().encoder().layer();
  return stream << "posenc::FrozenEncoder(" << (model.options().embeddings() ? "ids" : "images")
                << ", num_layers=" << model.options().encoder().num_layers()
                << ", d_model=" << layer.d_model() << ", num_heads=" << layer.num_heads()
                << ", d_ff=" << layer.d_ff() << inference::FrozenAccess::weights(model) << ")";
}

}  // namespace posenc
