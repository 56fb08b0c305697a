#include "inference/option_values.h"

#include "posenc/models/encoder.h"
#include "posenc/nn/encoder_embeddings.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/transformer_decoder.h"
#include "posenc/nn/transformer/transformer_encoder.h"
#include "posenc/nn/transformer/transformer_norm.h"

namespace posenc::inference {
namespace {

using Values = std::vector<double>;

void add(Values& values, std::initializer_list<double> more) { values.insert(values.end(), more); }

template <typename Options>
void add_layer(const Options& options, Values& values) {
  add(values,
      {static_cast<double>(options.num_heads()), static_cast<double>(options.activation()),
       static_cast<double>(options.norm_first()), static_cast<double>(options.batch_first())});
}

void read(const TransformerEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
  add(values, {static_cast<double>(layer.options.mixing()),
               static_cast<double>(layer.options.conv_kernel_size()),
               static_cast<double>(layer.options.feed_forward()),
               static_cast<double>(layer.options.window().value_or(-1))});
}

void read(const ConvolutionalAttentionImpl& attention, Values& values) {
  add(values, {static_cast<double>(attention.options.num_heads()),
               static_cast<double>(attention.options.conv_kernel_size())});
}

void read(const BottleneckEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
  const BottleneckOptions& own = *layer.options.bottleneck();
  add(values, {static_cast<double>(own.use_bottleneck()),
               static_cast<double>(own.use_bottleneck_attention())});
}

void read(const BottleneckFeedForwardImpl& network, Values& values) {
  values.push_back(static_cast<double>(network.options.activation()));
}

void read(const DisentangledEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
}

void read(const DisentangledAttentionImpl& attention, Values& values) {
  const auto& options = attention.options;
  const DisentangledOptions& positions = options.positions();
  add(values,
      {static_cast<double>(options.num_heads()), static_cast<double>(options.scale().has_value()),
       options.scale().value_or(0.0), static_cast<double>(positions.max_relative_positions()),
       static_cast<double>(positions.position_buckets()),
       static_cast<double>(positions.relative_attention()),
       static_cast<double>(positions.content_to_position()),
       static_cast<double>(positions.position_to_content())});
}

void read(const ShiftedEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
  values.push_back(static_cast<double>(layer.options.window().value_or(-1)));
}

void read(const ShiftedAttentionImpl& attention, Values& values) {
  const ShiftedOptions& positions = attention.options.positions();
  add(values, {static_cast<double>(attention.options.num_heads()), attention.scale(),
               static_cast<double>(positions.clamp_len()), static_cast<double>(positions.bi_data()),
               static_cast<double>(positions.segments())});
}

// Those that decide the rows of single positions.
void read(const ShiftedPositionsImpl& positions, Values& values) {
  const auto& own = positions.options.shifted();
  values.push_back(static_cast<double>(own.has_value()));
  if (!own) return;
  const SinusoidOptions& of = own->sinusoid();
  add(values, {static_cast<double>(own->clamp_len()), static_cast<double>(own->bi_data()),
               static_cast<double>(of.dim()), static_cast<double>(of.frequency()),
               static_cast<double>(of.index()), static_cast<double>(of.divisor()), of.shift(),
               of.base(), of.max_frequency(), of.min_period(), static_cast<double>(of.phase()),
               of.angle_scale(), static_cast<double>(of.layout()),
               static_cast<double>(of.cos_first()), static_cast<double>(of.post())});
}

void read(const ConformerEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
}

void read(const ConformerFeedForwardImpl& network, Values& values) {
  values.push_back(static_cast<double>(network.options.activation()));
}

void read(const ConformerConvolutionImpl& conv, Values& values) {
  const auto& norm = conv.batch_norm->options;
  add(values, {static_cast<double>(conv.options.activation()), norm.eps(),
               static_cast<double>(norm.track_running_stats())});
}

void read(const WindowEncoderLayerImpl& layer, Values& values) {
  add_layer(layer.options.layer(), values);
  const WindowOptions& windows = layer.options.windows();
  add(values,
      {static_cast<double>(layer.options.layer().feed_forward()),
       static_cast<double>(windows.window().height), static_cast<double>(windows.window().width),
       static_cast<double>(windows.shift()), static_cast<double>(windows.needs_room()),
       static_cast<double>(windows.res_post_norm())});
}

void read(const WindowAttentionImpl& attention, Values& values) {
  const WindowOptions& windows = attention.options.windows();
  add(values,
      {static_cast<double>(attention.options.num_heads()),
       static_cast<double>(windows.window().height), static_cast<double>(windows.window().width),
       static_cast<double>(windows.positions()),
       static_cast<double>(windows.pretrained_window().height),
       static_cast<double>(windows.pretrained_window().width)});
}

void read(const PatchMergingImpl& merging, Values& values) {
  values.push_back(static_cast<double>(merging.options.norm_first()));
}

void read(const WindowEncoderImpl& encoder, Values& values) {
  values.push_back(static_cast<double>(encoder.options.records_layers()));
}

void read(const ConvolutionBesideImpl& convolution, Values& values) {
  const auto& own = convolution.options.disentangled();
  values.push_back(own ? static_cast<double>(own->conv_act()) : -1.0);
}

void read(const TransformerDecoderLayerImpl& layer, Values& values) {
  add_layer(layer.options, values);
  values.push_back(static_cast<double>(layer.options.feed_forward()));
}

void add_alibi(const std::optional<relative::Alibi>& alibi, Values& values) {
  add(values, {alibi ? static_cast<double>(alibi->slopes) : -1.0, alibi ? alibi->bias_max : 0.0,
               static_cast<double>(alibi && alibi->counts_tokens)});
}

void read(const TransformerEncoderImpl& stack, Values& values) {
  add_layer(stack.options.layer(), values);
  add_alibi(stack.options.alibi(), values);
  for (const int64_t layer : stack.options.order()) values.push_back(static_cast<double>(layer));
}

void read(const TransformerDecoderImpl& stack, Values& values) {
  add_alibi(stack.options.alibi(), values);
}

void read(const MultiheadAttentionImpl& attention, Values& values) {
  const auto& options = attention.options;
  add(values, {static_cast<double>(options.num_heads()),
               static_cast<double>(options.num_kv_heads().value_or(0)),
               static_cast<double>(options.head_dim().value_or(0)),
               static_cast<double>(options.scale().has_value()), options.scale().value_or(0.0),
               static_cast<double>(options.batch_first())});
}

void read(const RelativePositionBiasImpl& bias, Values& values) {
  const relative::Index& index = bias.options.index();
  values.push_back(static_cast<double>(index.index()));
  if (const auto* const own = std::get_if<relative::Buckets>(&index)) {
    add(values, {static_cast<double>(own->num_buckets), static_cast<double>(own->max_distance),
                 static_cast<double>(own->bidirectional), static_cast<double>(own->truncate_sum),
                 static_cast<double>(own->spare_rows)});
  } else if (const auto* const own = std::get_if<relative::SignedLog>(&index)) {
    add(values, {static_cast<double>(own->buckets), static_cast<double>(own->max_position)});
  } else if (const auto* const own = std::get_if<relative::Clamp>(&index)) {
    add(values, {static_cast<double>(own->left), static_cast<double>(own->right),
                 static_cast<double>(own->query_minus_key), static_cast<double>(own->absolute)});
  }
}

void read(const GridPositionBiasImpl& bias, Values& values) {
  const relative::Grid grid = bias.options.grid();
  add(values, {static_cast<double>(grid.height), static_cast<double>(grid.width)});
}

void read(const DocumentPositionBiasImpl& bias, Values& values) {
  add(values, {bias.options.scale(), static_cast<double>(bias.options.boxes().has_value())});
}

// Those that matter beside the frequencies, which are a buffer.
void read(const RotaryEmbeddingImpl& embedding, Values& values) {
  const RotaryOptions& options = embedding.options.rotary();
  add(values, {static_cast<double>(options.dim()), static_cast<double>(options.part()),
               static_cast<double>(options.pairing()), static_cast<double>(options.cos_layout()),
               static_cast<double>(options.arithmetic()), static_cast<double>(options.reversed()),
               static_cast<double>(options.rotary_value()),
               static_cast<double>(embedding.options.length_rule()),
               static_cast<double>(embedding.options.length())});
}

void read(const LayerNormImpl& norm, Values& values) { values.push_back(norm.options.eps()); }

void read(const TransformerNormImpl& norm, Values& values) {
  add(values, {static_cast<double>(norm.options.kind()), norm.options.eps()});
}

void read(const TokenAndPositionEmbeddingImpl& embedding, Values& values) {
  add(values, {embedding.options.scale().factor(embedding.options.d_model()),
               embedding.token_embedding->options.max_norm().value_or(0.0)});
}

void read(const EncoderEmbeddingsImpl& embeddings, Values& values) {
  const auto& options = embeddings.options;
  add(values,
      {static_cast<double>(options.position_ids()), static_cast<double>(options.position_offset()),
       static_cast<double>(options.first_position()),
       static_cast<double>(options.position_padding_idx().value_or(-1)),
       static_cast<double>(options.types_from_tokens()), static_cast<double>(options.order()),
       options.layer_norm_eps(), options.scale().factor(options.d_model()),
       static_cast<double>(options.trigram_input()), static_cast<double>(options.no_norm()),
       static_cast<double>(options.stepwise_norm()),
       static_cast<double>(options.scale_rounding())});
}

void read(const EncoderImpl& encoder, Values& values) {
  add(values, {static_cast<double>(encoder.options.causal()),
               static_cast<double>(encoder.options.pooling()),
               static_cast<double>(encoder.options.eos_token_id()),
               static_cast<double>(encoder.options.zero_padding()),
               static_cast<double>(encoder.options.zero_hidden_padding()),
               static_cast<double>(encoder.options.raw_inputs_embeds()),
               static_cast<double>(encoder.options.pad_token_id().value_or(-1)),
               static_cast<double>(encoder.options.token_dropout_id().value_or(-1))});
}

template <typename Impl>
OptionReader reader_if(const torch::nn::Module& module) {
  if (module.as<Impl>() == nullptr) return nullptr;
  return [](const torch::nn::Module& own, Values& values) { read(*own.as<Impl>(), values); };
}

}  // namespace

OptionReader option_reader(const torch::nn::Module& module) {
  for (const auto reader : {reader_if<TransformerEncoderLayerImpl>,
                            reader_if<TransformerDecoderLayerImpl>,
                            reader_if<TransformerEncoderImpl>,
                            reader_if<TransformerDecoderImpl>,
                            reader_if<MultiheadAttentionImpl>,
                            reader_if<RotaryEmbeddingImpl>,
                            reader_if<RelativePositionBiasImpl>,
                            reader_if<GridPositionBiasImpl>,
                            reader_if<DocumentPositionBiasImpl>,
                            reader_if<LayerNormImpl>,
                            reader_if<TransformerNormImpl>,
                            reader_if<TokenAndPositionEmbeddingImpl>,
                            reader_if<EncoderEmbeddingsImpl>,
                            reader_if<EncoderImpl>,
                            reader_if<BottleneckEncoderLayerImpl>,
                            reader_if<ConvolutionalAttentionImpl>,
                            reader_if<BottleneckFeedForwardImpl>,
                            reader_if<DisentangledEncoderLayerImpl>,
                            reader_if<DisentangledAttentionImpl>,
                            reader_if<ConvolutionBesideImpl>,
                            reader_if<ShiftedEncoderLayerImpl>,
                            reader_if<ShiftedAttentionImpl>,
                            reader_if<ShiftedPositionsImpl>,
                            reader_if<ConformerEncoderLayerImpl>,
                            reader_if<ConformerFeedForwardImpl>,
                            reader_if<ConformerConvolutionImpl>,
                            reader_if<WindowEncoderLayerImpl>,
                            reader_if<WindowAttentionImpl>,
                            reader_if<PatchMergingImpl>,
                            reader_if<WindowEncoderImpl>}) {
    if (const OptionReader found = reader(module)) return found;
  }
  return nullptr;
}

}  // namespace posenc::inference
