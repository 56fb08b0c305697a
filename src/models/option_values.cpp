// posenc-budget: a reader of each class

#include "models/option_values.h"

#include <torch/nn/modules/conv.h>

#include <cstdint>

#include "posenc/models/encoder.h"
#include "posenc/models/output_projection.h"
#include "posenc/nn/encoder_embeddings.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/transformer_decoder.h"
#include "posenc/nn/transformer/transformer_encoder.h"
#include "posenc/nn/transformer/transformer_norm.h"

namespace posenc {
namespace {

using OptionNumbers = std::vector<double>;

void add_values(OptionNumbers& values, std::initializer_list<double> more) {
  values.insert(values.end(), more);
}

template <typename Options>
void add_layer_values(const Options& options, OptionNumbers& values) {
  add_values(
      values,
      {static_cast<double>(options.num_heads()), static_cast<double>(options.activation()),
       static_cast<double>(options.norm_first()), static_cast<double>(options.batch_first())});
}

void read_values(const TransformerEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
  add_values(values, {static_cast<double>(layer.options.mixing()),
                      static_cast<double>(layer.options.conv_kernel_size()),
                      static_cast<double>(layer.options.feed_forward()),
                      static_cast<double>(layer.options.window().value_or(-1))});
}

void read_values(const ConvolutionalAttentionImpl& attention, OptionNumbers& values) {
  add_values(values, {static_cast<double>(attention.options.num_heads()),
                      static_cast<double>(attention.options.conv_kernel_size())});
}

void read_values(const BottleneckEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
  const BottleneckOptions& own = *layer.options.bottleneck();
  add_values(values, {static_cast<double>(own.use_bottleneck()),
                      static_cast<double>(own.use_bottleneck_attention())});
}

void read_values(const BottleneckFeedForwardImpl& network, OptionNumbers& values) {
  values.push_back(static_cast<double>(network.options.activation()));
}

void read_values(const DisentangledEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
}

void read_values(const DisentangledAttentionImpl& attention, OptionNumbers& values) {
  const auto& options = attention.options;
  const DisentangledOptions& positions = options.positions();
  add_values(
      values,
      {static_cast<double>(options.num_heads()), static_cast<double>(options.scale().has_value()),
       options.scale().value_or(0.0), static_cast<double>(positions.max_relative_positions()),
       static_cast<double>(positions.position_buckets()),
       static_cast<double>(positions.relative_attention()),
       static_cast<double>(positions.content_to_position()),
       static_cast<double>(positions.position_to_content())});
}

void read_values(const ShiftedEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
  values.push_back(static_cast<double>(layer.options.window().value_or(-1)));
}

void read_values(const ShiftedAttentionImpl& attention, OptionNumbers& values) {
  const ShiftedOptions& positions = attention.options.positions();
  add_values(values,
             {static_cast<double>(attention.options.num_heads()), attention.scale(),
              static_cast<double>(positions.clamp_len()), static_cast<double>(positions.bi_data()),
              static_cast<double>(positions.segments())});
}

// Those that decide the rows of single positions.
void read_values(const ShiftedPositionsImpl& positions, OptionNumbers& values) {
  const auto& own = positions.options.shifted();
  values.push_back(static_cast<double>(own.has_value()));
  if (!own) return;
  const SinusoidOptions& of = own->sinusoid();
  add_values(values,
             {static_cast<double>(own->clamp_len()), static_cast<double>(own->bi_data()),
              static_cast<double>(of.dim()), static_cast<double>(of.frequency()),
              static_cast<double>(of.index()), static_cast<double>(of.divisor()), of.shift(),
              of.base(), of.max_frequency(), of.min_period(), static_cast<double>(of.phase()),
              of.angle_scale(), static_cast<double>(of.layout()),
              static_cast<double>(of.cos_first()), static_cast<double>(of.post())});
}

void read_values(const ConformerEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
}

void read_values(const ConformerFeedForwardImpl& network, OptionNumbers& values) {
  values.push_back(static_cast<double>(network.options.activation()));
}

void read_values(const ConformerConvolutionImpl& conv, OptionNumbers& values) {
  const auto& norm = conv.batch_norm->options;
  add_values(values, {static_cast<double>(conv.options.activation()), norm.eps(),
                      static_cast<double>(norm.track_running_stats())});
}

void read_values(const WindowEncoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options.layer(), values);
  const WindowOptions& windows = layer.options.windows();
  add_values(
      values,
      {static_cast<double>(layer.options.layer().feed_forward()),
       static_cast<double>(windows.window().height), static_cast<double>(windows.window().width),
       static_cast<double>(windows.shift()), static_cast<double>(windows.needs_room()),
       static_cast<double>(windows.res_post_norm())});
}

void read_values(const WindowAttentionImpl& attention, OptionNumbers& values) {
  const WindowOptions& windows = attention.options.windows();
  add_values(values,
             {static_cast<double>(attention.options.num_heads()),
              static_cast<double>(windows.window().height),
              static_cast<double>(windows.window().width), static_cast<double>(windows.positions()),
              static_cast<double>(windows.pretrained_window().height),
              static_cast<double>(windows.pretrained_window().width)});
}

void read_values(const PatchMergingImpl& merging, OptionNumbers& values) {
  values.push_back(static_cast<double>(merging.options.norm_first()));
}

void read_values(const WindowEncoderImpl& encoder, OptionNumbers& values) {
  values.push_back(static_cast<double>(encoder.options.records_layers()));
}

void read_values(const ConvolutionBesideImpl& convolution, OptionNumbers& values) {
  const auto& own = convolution.options.disentangled();
  values.push_back(own ? static_cast<double>(own->conv_act()) : -1.0);
}

void read_values(const TransformerDecoderLayerImpl& layer, OptionNumbers& values) {
  add_layer_values(layer.options, values);
  values.push_back(static_cast<double>(layer.options.feed_forward()));
}

void add_alibi_values(const std::optional<relative::Alibi>& alibi, OptionNumbers& values) {
  add_values(values,
             {alibi ? static_cast<double>(alibi->slopes) : -1.0, alibi ? alibi->bias_max : 0.0,
              static_cast<double>(alibi && alibi->counts_tokens)});
}

void read_values(const TransformerEncoderImpl& stack, OptionNumbers& values) {
  add_layer_values(stack.options.layer(), values);
  add_alibi_values(stack.options.alibi(), values);
  for (const int64_t layer : stack.options.order()) values.push_back(static_cast<double>(layer));
}

void read_values(const TransformerDecoderImpl& stack, OptionNumbers& values) {
  add_alibi_values(stack.options.alibi(), values);
}

void read_values(const MultiheadAttentionImpl& attention, OptionNumbers& values) {
  const auto& options = attention.options;
  add_values(values, {static_cast<double>(options.num_heads()),
                      static_cast<double>(options.num_kv_heads().value_or(0)),
                      static_cast<double>(options.head_dim().value_or(0)),
                      static_cast<double>(options.scale().has_value()),
                      options.scale().value_or(0.0), static_cast<double>(options.batch_first())});
}

void read_values(const RelativePositionBiasImpl& bias, OptionNumbers& values) {
  const relative::Index& index = bias.options.index();
  values.push_back(static_cast<double>(index.index()));
  if (const auto* const own = std::get_if<relative::Buckets>(&index)) {
    add_values(values,
               {static_cast<double>(own->num_buckets), static_cast<double>(own->max_distance),
                static_cast<double>(own->bidirectional), static_cast<double>(own->truncate_sum),
                static_cast<double>(own->spare_rows)});
  } else if (const auto* const own = std::get_if<relative::SignedLog>(&index)) {
    add_values(values, {static_cast<double>(own->buckets), static_cast<double>(own->max_position)});
  } else if (const auto* const own = std::get_if<relative::Clamp>(&index)) {
    add_values(values,
               {static_cast<double>(own->left), static_cast<double>(own->right),
                static_cast<double>(own->query_minus_key), static_cast<double>(own->absolute)});
  }
}

void read_values(const GridPositionBiasImpl& bias, OptionNumbers& values) {
  const relative::Grid grid = bias.options.grid();
  add_values(values, {static_cast<double>(grid.height), static_cast<double>(grid.width)});
}

void read_values(const DocumentPositionBiasImpl& bias, OptionNumbers& values) {
  add_values(values, {bias.options.scale(), static_cast<double>(bias.options.boxes().has_value())});
}

// Those that matter beside the frequencies, which are a buffer.
void read_values(const RotaryEmbeddingImpl& embedding, OptionNumbers& values) {
  const RotaryOptions& options = embedding.options.rotary();
  add_values(values,
             {static_cast<double>(options.dim()), static_cast<double>(options.part()),
              static_cast<double>(options.pairing()), static_cast<double>(options.cos_layout()),
              static_cast<double>(options.arithmetic()), static_cast<double>(options.reversed()),
              static_cast<double>(options.rotary_value()),
              static_cast<double>(embedding.options.length_rule()),
              static_cast<double>(embedding.options.length())});
}

template <typename Options>
void add_convolution_values(const Options& options, OptionNumbers& values) {
  for (const auto& sides : {*options.stride(), *options.dilation()})
    for (const int64_t side : sides) values.push_back(static_cast<double>(side));
  add_values(values, {static_cast<double>(options.groups()),
                      static_cast<double>(options.padding_mode().index()),
                      static_cast<double>(options.padding().index())});
}

void read_values(const torch::nn::Conv1dImpl& convolution, OptionNumbers& values) {
  add_convolution_values(convolution.options, values);
  const auto* const sides = std::get_if<torch::ExpandingArray<1>>(&convolution.options.padding());
  if (sides != nullptr) values.push_back(static_cast<double>((**sides)[0]));
}

void read_values(const torch::nn::Conv2dImpl& convolution, OptionNumbers& values) {
  add_convolution_values(convolution.options, values);
  const auto* const sides = std::get_if<torch::ExpandingArray<2>>(&convolution.options.padding());
  if (sides == nullptr) return;
  for (const int64_t side : **sides) values.push_back(static_cast<double>(side));
}

void read_values(const LayerNormImpl& norm, OptionNumbers& values) {
  values.push_back(norm.options.eps());
}

void read_values(const TransformerNormImpl& norm, OptionNumbers& values) {
  add_values(values, {static_cast<double>(norm.options.kind()), norm.options.eps()});
}

void read_values(const TokenAndPositionEmbeddingImpl& embedding, OptionNumbers& values) {
  add_values(values, {embedding.options.scale().factor(embedding.options.d_model()),
                      embedding.token_embedding->options.max_norm().value_or(0.0)});
}

void read_values(const EncoderEmbeddingsImpl& embeddings, OptionNumbers& values) {
  const auto& options = embeddings.options;
  add_values(
      values,
      {static_cast<double>(options.position_ids()), static_cast<double>(options.position_offset()),
       static_cast<double>(options.first_position()),
       static_cast<double>(options.position_padding_idx().value_or(-1)),
       static_cast<double>(options.types_from_tokens()), static_cast<double>(options.order()),
       options.layer_norm_eps(), options.scale().factor(options.d_model()),
       static_cast<double>(options.trigram_input()), static_cast<double>(options.no_norm()),
       static_cast<double>(options.stepwise_norm()),
       static_cast<double>(options.scale_rounding())});
}

void read_values(const EncoderImpl& encoder, OptionNumbers& values) {
  add_values(values, {static_cast<double>(encoder.options.causal()),
                      static_cast<double>(encoder.options.pooling()),
                      static_cast<double>(encoder.options.eos_token_id()),
                      static_cast<double>(encoder.options.zero_padding()),
                      static_cast<double>(encoder.options.zero_hidden_padding()),
                      static_cast<double>(encoder.options.raw_inputs_embeds()),
                      static_cast<double>(encoder.options.pad_token_id().value_or(-1)),
                      static_cast<double>(encoder.options.token_dropout_id().value_or(-1))});
}

// Its weight may be the table of another module: which one it is, by an address below 2^53.
void read_values(const OutputProjectionImpl& output, OptionNumbers& values) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(output.effective_weight().unsafeGetTensorImpl());
  values.push_back(static_cast<double>(address));
}

template <typename Impl>
OptionReader reader_if(const torch::nn::Module& module) {
  if (module.as<Impl>() == nullptr) return nullptr;
  return [](const torch::nn::Module& own, OptionNumbers& values) {
    read_values(*own.as<Impl>(), values);
  };
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
                            reader_if<WindowEncoderImpl>,
                            reader_if<OutputProjectionImpl>,
                            reader_if<torch::nn::Conv1dImpl>,
                            reader_if<torch::nn::Conv2dImpl>}) {
    if (const OptionReader found = reader(module)) return found;
  }
  return nullptr;
}

std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected) {
  const auto wanted = expected.named_modules("", /*include_self=*/false);
  OptionNumbers own, other;
  for (const auto& item : got.named_modules("", /*include_self=*/false)) {
    const auto* const found = wanted.find(item.key());
    const OptionReader reader = option_reader(*item.value());
    if (reader == nullptr || found == nullptr || option_reader(**found) != reader) continue;
    own.clear(), other.clear();
    reader(*item.value(), own);
    reader(**found, other);
    if (own != other) return item.key();
  }
  return "";
}

}  // namespace posenc
