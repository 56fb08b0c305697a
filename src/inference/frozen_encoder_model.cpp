#include "posenc/inference/frozen_encoder_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>

#include <ostream>

#include "functional/attention_mask_internals.h"
#include "inference/stale_check.h"
#include "models/encoder/parts.h"
#include "nn/embedding_front_internals.h"

namespace posenc {
namespace inference {

struct FrozenEncoderParts {
  EncoderOptions options;
  StaleCheck stale_check;
  EmbeddingFront embeddings{nullptr};  // shared with the source, as its tables are large
  VisionFront patches{nullptr};        // a copy in eval mode
  FrozenEncoder layers;
  at::Tensor relative_bias, pooler_weight, pooler_bias;

  // The source may be in train mode, so its own forward() is not used.
  at::Tensor embed(const at::Tensor& input, const EncoderInputs& inputs) const {
    if (patches) return VisionFront(patches)->forward(input);
    auto options_of_call = front_func_options(*embeddings, input, front_inputs(inputs));
    return functional::embedding_front(input, front_weights(*embeddings),
                                       options_of_call.training(false));
  }
};

namespace {

// A masked token attends to the real ones like any other, so its row has a value if it is pooled.
bool pools_masked_row(const EncoderOptions& options, const at::Tensor& ids,
                      const at::Tensor& attention_mask) {
  if (!attention_mask.defined() || options.pooling() == encoder::Pooling::None) return false;
  return !pooled_rows(options, attention_mask.ne(0), ids).all().item<bool>();
}

// An equal mask that drops no row, so that those of masked tokens are computed too: the keys are
// given as pairs.
AttentionMask mask_of_all_rows(const AttentionMask& mask) {
  return AttentionMaskAccess::without_keys(mask) &
         AttentionMask::allowed(mask.padding_keys().unsqueeze(1));
}

}  // namespace
}  // namespace inference

EncoderOutput FrozenEncoderModel::forward(const torch::Tensor& input,
                                          const EncoderInputs& inputs) const {
  const torch::NoGradGuard no_grad;
  const auto& parts = *parts_;
  check_encoder_inputs(parts.options, input, inputs);
  parts.stale_check.check();
  EncoderOutput out;
  out.embeddings = parts.embed(input, inputs);
  const AttentionMask mask =
      encoder_mask(parts.options, inputs, parts.relative_bias, out.embeddings.size(1));
  const bool all_rows = inference::pools_masked_row(parts.options, input, inputs.attention_mask());
  out.last_hidden_state =
      parts.layers.forward(out.embeddings, all_rows ? inference::mask_of_all_rows(mask) : mask);
  if (parts.options.pooling() == encoder::Pooling::None) return out;
  out.pooled = pooled_rows(parts.options, out.last_hidden_state, input);
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

const EncoderOptions& FrozenEncoderModel::options() const { return parts_->options; }
FrozenBytes FrozenEncoderModel::bytes() const { return parts_->stale_check.bytes(); }

FrozenEncoderModel freeze(const EncoderImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  inference::FrozenEncoderParts parts = {model.options,
                                         inference::StaleCheck(model),
                                         model.embeddings,
                                         VisionFront(nullptr),
                                         freeze(model.encoder, options),
                                         {},
                                         {},
                                         {}};
  if (model.patches) {
    parts.patches = VisionFront(std::dynamic_pointer_cast<VisionFrontImpl>(model.patches->clone()));
    parts.patches->eval();
  }
  if (model.relative_attention_bias) parts.relative_bias = model.relative_attention_bias->weight;
  if (model.pooler) {
    parts.pooler_weight = model.pooler->weight;
    parts.pooler_bias = model.pooler->bias;
  }
  return FrozenEncoderModel(
      std::make_shared<const inference::FrozenEncoderParts>(std::move(parts)));
}

FrozenEncoderModel freeze(const Encoder& model, const FreezeOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return freeze(*model.ptr(), options);
}

std::ostream& operator<<(std::ostream& stream, const FrozenEncoderModel& model) {
  const auto& layer = model.options().encoder().layer();
  return stream << "posenc::FrozenEncoderModel("
                << (model.options().embeddings() ? "ids" : "images")
                << ", num_layers=" << model.options().encoder().num_layers()
                << ", d_model=" << layer.d_model() << ", num_heads=" << layer.num_heads()
                << ", d_ff=" << layer.d_ff() << ")";
}

}  // namespace posenc
