#include "transformer/layers/layer_kinds.h"

#include <algorithm>
#include <string>
#include <utility>

#include "posenc/transformer/layers/bottleneck_encoder_layer.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

using Options = TransformerLayerOptions;

template <typename Layer>
LayerKind kind(std::string_view layer, const char* option, const char* with,
               bool (*is_of)(const Options& options), bool has_path,
               std::vector<std::string_view> reads,
               void (*add_attention)(TransformerEncoderLayerImpl& layer) = nullptr) {
  LayerKind made = {layer, option, with, is_of, has_path, std::move(reads)};
  made.add_attention = add_attention;
  made.make = [](const Options& options) -> std::shared_ptr<torch::nn::Module> {
    return std::make_shared<Layer>(options);
  };
  if constexpr (requires(const Layer& layer) { blocks::of(layer); }) {
    made.blocks = [](const torch::nn::Module& layer) {
      return blocks::of(dynamic_cast<const Layer&>(layer));
    };
  }
  return made;
}

// Options are of the first that takes them.
const std::vector<LayerKind>& kinds() {
  using Plain = TransformerEncoderLayerImpl;
  constexpr const char* kPlain = "TransformerEncoderLayer";
  static const std::vector<LayerKind> all = {
      kind<BottleneckEncoderLayerImpl>(
          "BottleneckEncoderLayer", "bottleneck", "",
          [](const Options& own) { return own.bottleneck().has_value(); }, false,
          {"bottleneck", "norm_kind", "bias", "qkv_bias", "query_bias", "key_bias", "value_bias",
           "out_bias", "batch_first", "attention_scale", "python_dropout_order"}),
      kind<ConformerEncoderLayerImpl>(
          "ConformerEncoderLayer", "conformer", "",
          [](const Options& own) { return own.conformer().has_value(); }, false,
          {"conformer", "transformer_xl", "bias", "qkv_bias", "out_bias", "key_bias", "rotary",
           "attention_scale"}),
      kind<Plain>(
          kPlain, nullptr, " with disentangled",
          [](const Options& own) { return own.disentangled().has_value(); }, false,
          {"disentangled", "key_bias", "attention_scale"},
          [](Plain& layer) {
            layer.disentangled_attn =
                layer.register_module("self_attn", make_disentangled_attention(layer.options));
          }),
      kind<Plain>(
          kPlain, nullptr, " with transformer_xl",
          [](const Options& own) { return own.transformer_xl().has_value(); }, false,
          {"transformer_xl", "bias", "qkv_bias", "out_bias", "attention_scale", "window"},
          [](Plain& layer) {
            layer.transformer_xl_attn =
                layer.register_module("self_attn", make_transformer_xl_attention(layer.options));
          }),
      kind<Plain>(
          kPlain, nullptr, " with Mixing::Convolution",
          [](const Options& own) { return own.mixing() == Mixing::Convolution; }, true,
          {"mixing", "feed_forward", "norm_first", "first_norm", "norm_kind", "batch_first"},
          [](Plain& layer) {
            layer.conv_attn =
                layer.register_module("conv_attn", make_convolutional_attention(layer.options));
          }),
      kind<Plain>(kPlain, nullptr, " with Mixing::Fourier",
                  [](const Options& own) { return own.mixing() == Mixing::Fourier; }, true,
                  {"mixing", "feed_forward", "norm_first", "first_norm", "norm_kind", "bias",
                   "qkv_bias", "out_bias", "batch_first", "python_dropout_order"}),
      kind<Plain>(
          kPlain, nullptr, "", [](const Options&) { return true; }, true, {},
          [](Plain& layer) {
            layer.self_attn =
                layer.register_module("self_attn", make_self_attention(layer.options));
          })};
  return all;
}

}  // namespace

const LayerKind& kind_of(const Options& options) {
  return *std::find_if(kinds().begin(), kinds().end(),
                       [&](const LayerKind& kind) { return kind.is_of(options); });
}

void check_kind(std::string_view layer, const Options& options) {
  for (const LayerKind& kind : kinds()) {
    if (kind.option == nullptr) continue;
    const bool is_own = kind.layer == layer;
    TORCH_CHECK_VALUE(!is_own || kind.is_of(options), "[", layer, "] ", kind.option,
                      " must be set. Got no ", kind.option);
    TORCH_CHECK_VALUE(is_own || !kind.is_of(options), "[", layer, "] ", kind.option,
                      " must not be set, except in a ", kind.layer, ". Got one");
  }
  const LayerKind& own = kind_of(options);
  if (!own.reads.empty()) check_unread(std::string(layer).c_str(), options, own.reads, own.with);
  const double path = dropouts_of(options).path;
  TORCH_CHECK_VALUE(own.has_path || path == 0.0, "[", layer,
                    "] the dropout of a path must be 0. Got ", path);
}

}  // namespace posenc
