// posenc-budget: one model: its parts, its calls, its freezing

#include "posenc/models/frozen_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <ostream>

#include "inference/freeze/model.h"
#include "inference/layers/window_layers.h"
#include "inference/rows/activation_rows.h"
#include "inference/rows/frozen_scope.h"
#include "models/encoder/parts.h"
#include "models/frozen/freeze_encoder.h"
#include "models/options/values.h"
#include "positions/functional/lookup.h"
#include "positions/nn/encoder_embeddings_internals.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace inference {

struct FrozenEncoderParts {
  EncoderOptions options;
  StaleCheck stale_check;
  std::optional<FrozenTransformerEncoder> layers = {};
  std::optional<WindowStages> windows = {};                  // instead of layers
  std::shared_ptr<const TransformerModel> transformer = {};  // instead of embeddings and layers
  ConvolutionNeck neck{nullptr};                             // of windows, in eval mode
  ConvertedWeights weights = {};
  torch_internals::CallOptions call = {};
  std::optional<ConvertedTable> tokens = {};  // instead of the embeddings' own
  std::optional<EncoderEmbeddingsOptions> embeddings_options = {};  // of token ids
  functional::EncoderEmbeddingsWeights embeddings = {};
  VisionEmbeddings patches{nullptr};  // of images, in eval mode
  LayerNorm pooler_norm{nullptr};
  AttentionPooling attention_pooler{nullptr};
  DocumentPositionBias document_bias{nullptr};
  std::optional<Projection> pooler = {}, output_projection = {};
  FrozenSource source = {};

  // What the stages return for the patches of images.
  at::Tensor run_windows(const at::Tensor& input, const at::Tensor& rows,
                         TransformerEncoderRecord& record) const {
    const relative::Grid grid = patches->grid(input.size(2), input.size(3));
    const at::Tensor out = windows->run(rows.unflatten(1, {grid.height, grid.width}), record);
    return neck ? ConvolutionNeck(neck)->forward(out) : out;
  }

  // What EncoderImpl::decoded() returns.
  EncoderOutput decoded(const at::Tensor& ids, const EncoderInputs& inputs) const {
    EncoderOutput out;
    const at::Tensor& given = inputs.attention_mask();
    const AttentionMask keys = encoder_mask(options, inputs, {nullptr}, ids.size(1));
    out.embeddings = transformer->src_embedding(ids);
    const Memory memory = encode(*transformer, ids, keys);
    const at::Tensor hidden =
        decode_rows(*transformer, decoder_ids(options, ids), memory.packing.unpack(memory.rows),
                    AttentionMask::causal(), keys)
            .view(out.embeddings.sizes());
    if (options.pooling() != encoder::Pooling::None) out.pooled = pooled_rows(options, hidden, ids);
    out.last_hidden_state =
        given.defined() ? hidden.masked_fill(given.eq(0).unsqueeze(-1), 0.0) : hidden;
    return out;
  }

  at::Tensor embed(const at::Tensor& input, const EncoderInputs& inputs) const {
    if (patches) return VisionEmbeddings(patches)->forward(input);
    const auto rows_of = [&](const at::Tensor& ids) {
      return tokens ? converted_rows({"Encoder", "id", "vocab_size"}, ids)
                          .view({ids.size(0), ids.size(1), tokens->width()})
                    : token_rows(options, embeddings.tokens, ids);
    };
    const auto embed = [&](const at::Tensor& ids, const EncoderEmbeddingsInputs& of_embeddings) {
      EmbeddingsCall call = embeddings_call(*embeddings_options, embeddings, ids, of_embeddings);
      if (tokens && !of_embeddings.inputs_embeds().defined()) look_up(call);
      return functional::encoder_embeddings(call.ids, call.weights, call.options);
    };
    return embed_tokens(options, rows_of, input, inputs, embed);
  }

  // Of the tables only the size is kept where the rows are converted. Tokens that are also rows of
  // token types stay in float32, also beside an output layer that is converted.
  void convert_tokens(WeightConverter& convert) {
    if (embeddings_options->types_from_tokens()) return convert.keep(embeddings.tokens);
    tokens = convert.table(embeddings.tokens);
    if (tokens)
      embeddings.tokens =
          at::zeros({1, 1}, at::kFloat).expand({tokens->vocab_size(), tokens->width()});
  }

 private:
  // The rows (N, E) of N ids in the converted table.
  at::Tensor converted_rows(const functional::LookupNames& names, const at::Tensor& ids) const {
    functional::check_index_type(names, ids);
    functional::check_indices(names, ids, tokens->vocab_size());
    return tokens->rows(ids);
  }

  // Converted rows become a table of their own, with the rows in the order of the ids.
  void look_up(EmbeddingsCall& call) const {
    call.weights.tokens = converted_rows({"EncoderEmbeddings", "id", "vocab_size"}, call.ids);
    call.ids = at::arange(call.ids.numel(), at::kLong).view(call.ids.sizes());
    call.options.padding_idx(std::nullopt);  // which is not one of the new ids
  }
};

/// Wraps and unwraps the implementation.
struct FrozenEncoderAccess {
  static FrozenEncoder wrap(std::shared_ptr<const FrozenEncoderParts> parts) {
    return FrozenEncoder(std::move(parts));
  }
  static const FrozenEncoderParts& parts(const FrozenEncoder& frozen) { return *frozen.parts_; }
};

const FrozenSource& source_of(const FrozenEncoder& frozen) {
  return FrozenEncoderAccess::parts(frozen).source;
}
const StaleCheck& check_of(const FrozenEncoder& frozen) {
  return FrozenEncoderAccess::parts(frozen).stale_check;
}

namespace {

// A masked token is computed in a module, so its row has a value if it is pooled.
bool pools_masked_row(const EncoderOptions& options, const at::Tensor& ids,
                      const at::Tensor& attention_mask) {
  if (!attention_mask.defined() || options.pooling() == encoder::Pooling::None) return false;
  const at::Tensor real = attention_mask.ne(0);
  if (options.pooling() == encoder::Pooling::Mean) return !real.all().item<bool>();
  return !pooled_rows(options, real, ids).all().item<bool>();
}

// The same memory as other tensors, so that the StaleCheck can see that the source's own are gone.
functional::EncoderEmbeddingsWeights detached(functional::EncoderEmbeddingsWeights weights) {
  for (at::Tensor* tensor :
       {&weights.tokens, &weights.positions, &weights.token_types, &weights.task_types,
        &weights.x_positions, &weights.y_positions, &weights.h_positions, &weights.w_positions,
        &weights.norm_weight, &weights.norm_bias, &weights.projection_weight,
        &weights.projection_bias}) {
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
  const inference::FrozenScope scope;
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const auto& parts = *held;
  check_encoder_inputs(parts.options, input, given);
  TORCH_CHECK_VALUE(!given.output_attentions(),
                    "[FrozenEncoder] output_attentions must be false: the Encoder that was frozen "
                    "has them. Got true");
  const EncoderInputs inputs = with_mask(parts.options, input, given);
  parts.stale_check.check();
  using torch_internals::Operations;  // of LibTorch beside the layers: products of images are large
  const torch_internals::CallThreads threads(
      parts.call, parts.options.patches() ? Operations::Large : Operations::Small);
  if (parts.transformer) return parts.decoded(input, given);
  EncoderOutput out;
  out.embeddings = parts.embed(input, inputs);
  const AttentionMask mask =
      encoder_mask(parts.options, inputs, parts.document_bias, out.embeddings.size(1));
  const bool sees_all = layers_see_padding(parts.options);
  const at::Tensor& tokens = inputs.attention_mask();
  at::Tensor computed = tokens.defined() ? inputs.computed_mask() : at::Tensor(), masked;
  const bool all_rows = !sees_all && inference::pools_masked_row(parts.options, input, tokens);
  if (tokens.defined() && (sees_all || all_rows || computed.defined())) {
    const at::Tensor wanted = computed.defined() ? tokens.logical_or(computed) : tokens;
    masked = wanted.eq(0).unsqueeze(-1);
  }
  if (all_rows) computed = at::ones({1, 1}, at::kBool);
  TransformerEncoderRecord record;
  record.output_hidden_states = inputs.output_hidden_states();
  if (parts.windows) {
    out.last_hidden_state = parts.run_windows(input, out.embeddings, record);
  } else {
    const inference::LayerInputs of_layers = {
        rotary_position_ids(parts.options, input, inputs), segments_of(parts.options, inputs),
        grid_of(parts.options, input), kept_rows(parts.options, inputs)};
    out.last_hidden_state = inference::run(*inference::FrozenAccess::model(*parts.layers),
                                           out.embeddings, mask, of_layers, computed, record);
  }
  if (parts.output_projection) {
    out.last_hidden_state = parts.output_projection->rows(out.last_hidden_state.flatten(0, 1))
                                .view({out.embeddings.size(0), out.embeddings.size(1), -1});
  }
  out.hidden_states = std::move(record.hidden_states);
  if (record.output_hidden_states && !parts.options.hidden_states_before_norm())
    out.hidden_states.back() = out.last_hidden_state;
  const at::Tensor hidden = out.last_hidden_state;
  if (masked.defined()) {
    out.last_hidden_state = hidden.masked_fill(masked, 0.0);
    for (std::size_t i = 1; i < out.hidden_states.size(); ++i)
      out.hidden_states[i] = out.hidden_states[i].masked_fill(masked, 0.0);
  }
  if (parts.options.pooling() == encoder::Pooling::None) return out;
  if (parts.attention_pooler) {
    out.pooled = AttentionPooling(parts.attention_pooler)->forward(out.last_hidden_state);
    return out;
  }
  out.pooled = pooled_rows(parts.options, hidden, input);
  if (parts.pooler_norm) out.pooled = LayerNorm(parts.pooler_norm)->forward(out.pooled);
  if (parts.pooler) out.pooled = parts.pooler->rows(out.pooled);
  if (parts.options.pooling() == encoder::Pooling::TanhOfFirst) {
    if (!parts.pooler) out.pooled = out.pooled.clone();  // rows of the hidden states until now
    inference::activate_by_row(out.pooled, Activation::Tanh);
  }
  return out;
}

const EncoderOptions& FrozenEncoder::options() const { return parts_->options; }
FrozenBytes FrozenEncoder::bytes() const { return parts_->stale_check.bytes(); }

namespace inference {

CausalRows causal_rows(const FrozenEncoder& model, const at::Tensor& ids, const Packing& packing,
                       TokenCache* cache, bool wants_outputs,
                       const std::vector<int64_t>* used_rows) {
  const FrozenEncoderParts& parts = FrozenEncoderAccess::parts(model);
  EncoderInputs inputs;
  if (parts.options.embeddings()->position_ids() != embeddings::PositionIds::None)
    inputs.position_ids(
        (packing.token_positions() + parts.options.embeddings()->first_position()).unsqueeze(0));
  CausalRows all;
  const at::Tensor rows = parts.embed(ids.unsqueeze(0), inputs).squeeze(0);
  if (wants_outputs) all.embeddings = rows.clone();
  LayerInputs of_layers;
  of_layers.cache = cache;
  of_layers.used_rows = used_rows;
  const FrozenLayers& layers = *FrozenAccess::model(*parts.layers)->layers;
  all.hidden = layers.run(rows, packing, layers.causal_mask(packing), of_layers,
                          wants_outputs ? &all.outputs : nullptr);
  if (parts.output_projection) all.hidden = parts.output_projection->rows(all.hidden);
  if (wants_outputs && !parts.options.hidden_states_before_norm()) all.outputs.back() = all.hidden;
  return all;
}

CacheNeeds cache_needs(const FrozenEncoder& model) {
  const FrozenEncoderParts& parts = FrozenEncoderAccess::parts(model);
  std::optional<CacheNeeds> needs;
  if (parts.layers) needs = FrozenAccess::model(*parts.layers)->layers->cache_needs();
  TORCH_CHECK_VALUE(needs && parts.embeddings_options,
                    "[freeze] the layers of a Decoder must mix tokens by attention to keys and "
                    "values alone. Got others");
  return *needs;
}

namespace {

FrozenEncoderParts frozen_parts(const EncoderImpl& model, WeightConverter& convert,
                                const at::Tensor& multiplied = {}) {
  FrozenEncoderParts parts = {model.options, StaleCheck(model, copy_of_model_options)};
  if (model.transformer) {
    parts.transformer = freeze_part(*model.transformer, convert);
  } else if (model.windows) {
    parts.windows.emplace(*model.windows, convert);
    if (model.windows->neck) parts.neck = ConvolutionNeck(detached_module(*model.windows->neck));
  } else {
    parts.layers.emplace(freeze_part(*model.encoder, convert));
  }
  if (model.embeddings) {
    parts.embeddings_options = model.embeddings->options;
    parts.embeddings = embeddings_weights(*model.embeddings);
    parts.convert_tokens(convert);
    parts.embeddings = detached(parts.embeddings);
  } else if (model.patches) {
    parts.patches = VisionEmbeddings(detached_module(*model.patches));
  }
  if (model.pooler_norm) parts.pooler_norm = LayerNorm(detached_module(*model.pooler_norm));
  if (model.attention_pooler) {
    parts.attention_pooler = AttentionPooling(detached_module(*model.attention_pooler));
  }
  if (model.document_bias)
    parts.document_bias = DocumentPositionBias(detached_module(*model.document_bias));
  if (model.output_projection)
    parts.output_projection = convert.float_projection(model.output_projection->weight, {});
  if (model.pooler)
    parts.pooler = convert.float_projection(model.pooler->weight, model.pooler->bias);
  // What the table is multiplied as is counted with the table.
  if (multiplied.defined() && convert.has_converted(multiplied)) convert.projection(multiplied, {});
  finish(parts.stale_check, convert);
  parts.weights = convert.weights();
  parts.call = convert.call_options();
  parts.source.options = convert.options();
  return parts;
}

FrozenEncoder wrapped(FrozenEncoderParts parts) {
  return FrozenEncoderAccess::wrap(std::make_shared<const FrozenEncoderParts>(std::move(parts)));
}

}  // namespace

FrozenEncoder without_pooling(const FrozenEncoder& model) {
  FrozenEncoderParts parts = FrozenEncoderAccess::parts(model);
  parts.options.pooling(encoder::Pooling::None);
  return wrapped(std::move(parts));
}

FrozenEncoder freeze_part(const EncoderImpl& model, WeightConverter& convert,
                          const at::Tensor& multiplied) {
  return wrapped(frozen_parts(model, convert, multiplied));
}

FrozenEncoder freeze_by(const EncoderImpl& model, WeightConverter& convert) {
  const FrozenScope scope;
  FrozenEncoderParts parts = frozen_parts(model, convert);
  convert.check_exceptions();
  parts.source.arrays = convert.arrays();
  return wrapped(std::move(parts));
}

}  // namespace inference

FrozenEncoder freeze(const EncoderImpl& model, const FreezeOptions& options) {
  inference::WeightConverter convert(options, model);
  return inference::freeze_by(model, convert);
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
  return stream << "posenc::FrozenEncoder(" << input_name(model.options())
                << ", num_layers=" << model.options().encoder().num_layers()
                << ", d_model=" << layer.d_model() << ", num_heads=" << layer.num_heads()
                << ", d_ff=" << layer.d_ff() << inference::FrozenEncoderAccess::parts(model).weights
                << ")";
}

}  // namespace posenc
