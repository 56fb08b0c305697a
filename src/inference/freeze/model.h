#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/handle.h"
#include "core/torch_internals/parts.h"
#include "inference/freeze/embedding.h"
#include "inference/freeze/stale_check.h"
#include "inference/layers/decoder_stack.h"
#include "inference/layers/frozen_layers.h"
#include "posenc/inference/freeze.h"

namespace posenc::inference {

/// What a file of a frozen model is made of; without arrays in a part of another model.
struct FrozenSource {
  FreezeOptions options = {};
  FrozenArrays arrays = {};
};

/// The implementation of FrozenTransformerEncoder.
struct TransformerEncoderModel {
  TransformerEncoderOptions options;
  StaleCheck stale_check;
  std::unique_ptr<const FrozenLayers> layers;
  ConvertedWeights weights = {};
  torch_internals::CallOptions call = {};
  FrozenSource source = {};
};

/// The implementation of FrozenTransformer.
struct TransformerModel {
  TransformerOptions options;
  StaleCheck stale_check;
  Embedding src_embedding, tgt_embedding;
  std::unique_ptr<const FrozenLayers> encoder;
  DecoderStack decoder;
  Projection final_layer;
  std::optional<AudioRows> src_features = {};  // instead of src_embedding
  ConvertedWeights weights = {};
  torch_internals::CallOptions call = {};
  FrozenSource source = {};
};

/// Wraps and unwraps the implementations of the public classes.
struct FrozenAccess {
  static FrozenTransformerEncoder wrap(std::shared_ptr<const TransformerEncoderModel> model) {
    return FrozenTransformerEncoder(std::move(model));
  }
  static FrozenTransformer wrap(std::shared_ptr<const TransformerModel> model) {
    return FrozenTransformer(std::move(model));
  }
  /// Keeps the model alive while a call runs: a callback may assign another one to `frozen`.
  static std::shared_ptr<const TransformerModel> model(const FrozenTransformer& frozen) {
    return referred("FrozenTransformer", frozen.model_);
  }
  static std::shared_ptr<const TransformerEncoderModel> model(
      const FrozenTransformerEncoder& frozen) {
    return referred("FrozenTransformerEncoder", frozen.model_);
  }
  static const ConvertedWeights& weights(const FrozenTransformerEncoder& frozen) {
    return model(frozen)->weights;
  }
};

/// The stack inside a model whose parameters `convert` was made for.
FrozenTransformerEncoder freeze_part(const TransformerEncoderImpl& model, WeightConverter& convert);

/// The Transformer inside one, without its output layer.
std::shared_ptr<const TransformerModel> freeze_part(const TransformerImpl& model,
                                                    WeightConverter& convert);

/// freeze() by a converter that was made for the model.
FrozenTransformerEncoder freeze_by(const TransformerEncoderImpl& model, WeightConverter& convert);
FrozenTransformer freeze_by(const TransformerImpl& model, WeightConverter& convert);

/// Completes the check of a model whose parts are frozen.
void finish(StaleCheck& check, const WeightConverter& convert);

/// FrozenTransformerEncoder::forward_with() with inputs whose kept_rows are (B, L). The rows of
/// `computed`, bool (B|1, L|1), are computed even if they are padding, as in the module.
at::Tensor run(const TransformerEncoderModel& model, const at::Tensor& x, const AttentionMask& mask,
               const LayerInputs& inputs, const at::Tensor& computed,
               TransformerEncoderRecord& record);

/// freeze() of a holder, which is empty afterwards.
template <typename Holder>
auto freeze_and_release(Holder& model, const FreezeOptions& options) {
  auto frozen = freeze(std::as_const(model), options);
  model = Holder(nullptr);
  return frozen;
}

/// The encoder's output for a batch.
struct Memory {
  at::Tensor rows;  ///< (rows, D)
  Packing packing;
};

/// Throws the errors of encode() for the shape, dtype or device of a source.
void check_source(const TransformerModel& model, const at::Tensor& src);

/// Encodes ids (B, S), skipping padding, or features (B, M, W).
Memory encode(const TransformerModel& model, const at::Tensor& src, const AttentionMask& src_mask);

/// The rows (B * L, D) that the output layer of FrozenTransformer::decode() gets.
at::Tensor decode_rows(const TransformerModel& model, const at::Tensor& tgt,
                       const at::Tensor& memory, const AttentionMask& tgt_mask,
                       const AttentionMask& memory_mask, at::Tensor* memory_weights = nullptr,
                       const std::vector<int64_t>& tgt_tokens = {});

/// FrozenTransformer::decode(). `memory_weights`, if given, receives what run() gives it.
/// `tgt_tokens`: how many ids of each target are no padding, where tgt_mask does not tell.
at::Tensor decode(const TransformerModel& model, const at::Tensor& tgt, const at::Tensor& memory,
                  const AttentionMask& tgt_mask, const AttentionMask& memory_mask,
                  at::Tensor* memory_weights = nullptr,
                  const std::vector<int64_t>& tgt_tokens = {});

}  // namespace posenc::inference
