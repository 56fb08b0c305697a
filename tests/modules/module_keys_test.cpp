// The keys in tools/modules.json, and so in docs/porting.md, must be those of the modules.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "posenc/models/encoder.h"
#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/positions/nn/fourier_features.h"
#include "posenc/positions/nn/grid_positional_encoding.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/polar_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/relative_attention.h"
#include "posenc/positions/nn/relative_position_bias.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/rotary_position_embedding_2d.h"
#include "posenc/positions/nn/sine_position_embedding_2d.h"
#include "posenc/positions/nn/sinusoidal_timesteps.h"
#include "posenc/positions/nn/timestep_embedding.h"
#include "posenc/positions/nn/vision_embeddings.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/state_dict.h"

namespace posenc::module_keys_test {
namespace {

using Json = nlohmann::json;
using Keys = std::vector<std::string>;
using Module = std::shared_ptr<torch::nn::Module>;

constexpr int kLayers = 2;

TransformerXLOptions transformer_xl_options() {
  return TransformerXLOptions(SinusoidOptions(8)).segments(true).mask_embedding(true);
}

template <typename Impl, typename... Arguments>
Module make(Arguments&&... arguments) {
  return std::make_shared<Impl>(std::forward<Arguments>(arguments)...);
}

const Json& table() {
  static const Json rows =
      Json::parse(std::ifstream(std::string(POSENC_SOURCE_DIR) + "/tools/modules.json"));
  return rows;
}

const Json& row_of(const std::string& name) {
  for (const Json& row : table()) {
    if (row.at("class") == name) return row;
  }
  throw std::runtime_error("tools/modules.json has no " + name);
}

// Expands `layers.N: TransformerEncoderLayer` to the keys of each layer.
Keys written_out(const Json& listed) {
  Keys keys;
  for (const std::string entry : listed) {
    const auto colon = entry.find(": ");
    if (colon == std::string::npos) {
      keys.push_back(entry);
      continue;
    }
    std::string prefix = entry.substr(0, colon) + ".";
    const auto number = prefix.find(".N.");
    const auto inner = written_out(row_of(entry.substr(colon + 2)).at("keys"));
    for (int layer = 0; layer < (number == std::string::npos ? 1 : kLayers); ++layer) {
      if (number != std::string::npos) prefix.replace(number, 3, "." + std::to_string(layer) + ".");
      for (const auto& key : inner) keys.push_back(prefix + key);
    }
  }
  return keys;
}

// One module for each way in which the table lists a class.
std::multimap<std::string, Module> modules() {
  const TransformerLayerOptions layer = TransformerLayerOptions(8, 2).d_ff(5);
  const auto encoder = TransformerEncoderOptions(layer, kLayers);
  const auto decoder = TransformerDecoderOptions(layer, kLayers);
  const WindowEncoderLayerOptions windows(TransformerLayerOptions(layer).norm_first(true),
                                          WindowOptions({2, 2}));
  const auto stage = WindowStageOptions(std::vector<WindowEncoderLayerOptions>(kLayers, windows))
                         .downsample(PatchMergingOptions(8));
  const auto grid = preset("mae_2d", 8, {{"height", 2}});
  const auto bert =
      EncoderEmbeddingsOptions(9, 8).type_vocab_size(2).norm(embeddings::Norm::AfterSum);
  return {
      {"TokenEmbedding", make<TokenEmbeddingImpl>(9, 6)},
      {"EncoderEmbeddings", make<EncoderEmbeddingsImpl>(bert)},
      {"LearnedPositionEmbedding", make<LearnedPositionEmbeddingImpl>(9, 6)},
      {"PositionalEncoding", make<PositionalEncodingImpl>(6, 7)},
      {"InputEmbedding", make<InputEmbeddingImpl>(9, 6, 8)},
      {"PositionEmbedding", make<PositionEmbeddingImpl>(PositionEmbeddingOptions(6))},
      {"PositionEmbedding", make<PositionEmbeddingImpl>(PositionEmbeddingOptions(6).register_as(
                                PositionEmbeddingOptions::RegisterAs::Buffer))},
      {"TimestepEmbedding", make<TimestepEmbeddingImpl>(6, 3)},
      {"TokenAndPositionEmbedding", make<TokenAndPositionEmbeddingImpl>(9, 6, 8)},
      {"GridPositionalEncoding", make<GridPositionalEncodingImpl>(grid)},
      {"SinePositionEmbedding2d", make<SinePositionEmbedding2dImpl>(8)},
      {"SinusoidalTimesteps", make<SinusoidalTimestepsImpl>(6, 5)},
      {"FourierFeatures", make<FourierFeaturesImpl>(FourierFeaturesOptions(3, 2))},
      {"MultiheadAttention", make<MultiheadAttentionImpl>(8, 2)},
      {"MultiheadAttention", make<MultiheadAttentionImpl>(MultiheadAttentionOptions(8, 2).kdim(3))},
      {"ConvolutionalAttention",
       make<ConvolutionalAttentionImpl>(ConvolutionalAttentionOptions(8, 2))},
      {"LayerNorm", make<LayerNormImpl>(8)},
      {"TransformerEncoderLayer", make<TransformerEncoderLayerImpl>(layer)},
      {"BottleneckEncoderLayer",
       make<BottleneckEncoderLayerImpl>(
           TransformerLayerOptions(layer).bottleneck(BottleneckOptions(4)))},
      {"DisentangledAttention",
       make<DisentangledAttentionImpl>(DisentangledAttentionOptions(8, 2, DisentangledOptions(4)))},
      {"RelativeEmbeddings",
       make<RelativeEmbeddingsImpl>(TransformerLayerOptions(layer).disentangled(
           DisentangledOptions(4).norm_relative_embeddings(true)))},
      {"TransformerXLAttention", make<TransformerXLAttentionImpl>(
                                     TransformerXLAttentionOptions(8, 2, transformer_xl_options())
                                         .bias(true)
                                         .out_bias(true))},
      {"TransformerXLPositions",
       make<TransformerXLPositionsImpl>(
           TransformerLayerOptions(layer).transformer_xl(transformer_xl_options()))},
      {"ConformerConvolution", make<ConformerConvolutionImpl>(
                                   TransformerLayerOptions(layer).conformer(ConformerOptions(3)))},
      {"ConformerFeedForward", make<ConformerFeedForwardImpl>(layer)},
      {"ConformerEncoderLayer", make<ConformerEncoderLayerImpl>(
                                    TransformerLayerOptions(layer).conformer(ConformerOptions(3)))},
      {"WindowAttention",
       make<WindowAttentionImpl>(WindowAttentionOptions(8, 2, WindowOptions({2, 2})))},
      {"WindowEncoderLayer",
       make<WindowEncoderLayerImpl>(WindowEncoderLayerOptions(
           TransformerLayerOptions(layer).norm_first(true), WindowOptions({2, 2})))},
      {"PatchMerging", make<PatchMergingImpl>(PatchMergingOptions(8))},
      {"WindowStage", make<WindowStageImpl>(stage)},
      {"WindowEncoder", make<WindowEncoderImpl>(WindowEncoderOptions({stage}))},
      {"ConvolutionNeck", make<ConvolutionNeckImpl>(ConvolutionNeckOptions(8, 4))},
      {"TransformerDecoderLayer", make<TransformerDecoderLayerImpl>(layer)},
      {"TransformerEncoder", make<TransformerEncoderImpl>(encoder)},
      {"TransformerEncoder",
       make<TransformerEncoderImpl>(TransformerEncoderOptions(encoder).norm(true))},
      {"TransformerDecoder", make<TransformerDecoderImpl>(decoder)},
      {"TransformerDecoder",
       make<TransformerDecoderImpl>(TransformerDecoderOptions(decoder).norm(true))},
      {"PolarEmbedding", make<PolarEmbeddingImpl>(8, 2)},
      {"RotaryEmbedding", make<RotaryEmbeddingImpl>(rotary_preset("llama", 8))},
      {"RotaryPositionEmbedding2d",
       make<RotaryPositionEmbedding2dImpl>(rotary_preset("dinov3", 8))},
      {"RelativePositionBias", make<RelativePositionBiasImpl>(relative::Buckets{8, 20}, 2)},
      {"GridPositionBias", make<GridPositionBiasImpl>(relative::Grid{2, 2}, 2)},
      {"DocumentPositionBias",
       make<DocumentPositionBiasImpl>(DocumentPositionBiasOptions(2, relative::Buckets{8, 20})
                                          .boxes(relative::Buckets{8, 20}))},
      {"RelativeAttention",
       make<RelativeAttentionImpl>(RelativeAttentionOptions(relative::Clamp{2, 1}, 8))},
      {"RMSNorm", make<RMSNormImpl>(8)},
      {"TransformerNorm", make<TransformerNormImpl>(8)},
      {"TransformerNorm", make<TransformerNormImpl>(TransformerNormOptions(8).kind(NormKind::RMS))},
      {"GatedFeedForward", make<GatedFeedForwardImpl>(8, 5)},
      {"LayerScale", make<LayerScaleImpl>(8)},
      {"AudioEmbeddings", make<AudioEmbeddingsImpl>(AudioEmbeddingsOptions(3, 8, 4))},
      {"AudioEmbeddings",
       make<AudioEmbeddingsImpl>(AudioEmbeddingsOptions(3, 8, 4).learned_positions(true))},
      {"VisionEmbeddings", make<VisionEmbeddingsImpl>(VisionEmbeddingsOptions(4, 2, 6))},
      {"VisionEmbeddings", make<VisionEmbeddingsImpl>(VisionEmbeddingsOptions(4, 2, 6)
                                                          .mask_token(true)
                                                          .register_tokens(3)
                                                          .distillation_token(true)
                                                          .norm(true))},
      {"Encoder",
       make<EncoderImpl>(
           EncoderOptions(bert, encoder).pooling(posenc::encoder::Pooling::TanhOfFirst))},
      {"Transformer", make<TransformerImpl>(TransformerOptions(9, 9)
                                                .d_model(8)
                                                .num_heads(2)
                                                .d_ff(5)
                                                .max_len(7)
                                                .num_encoder_layers(kLayers)
                                                .num_decoder_layers(kLayers))},
  };
}

TEST(ModuleKeys, AreThoseOfTheTable) {
  std::multimap<std::string, Keys> listed, real;
  for (const Json& row : table()) {
    const std::string name = row.at("class");
    if (std::islower(static_cast<unsigned char>(name[0]))) continue;  // a function
    listed.emplace(name, written_out(row.at("keys")));
    if (row.contains("keys_where")) {
      listed.emplace(name, written_out(row.at("keys_where").at("keys")));
    }
  }
  for (const auto& [name, module] : modules()) real.emplace(name, state_dict(*module).keys());
  const auto has = [](const auto& map, const auto& entry) {
    const auto [begin, end] = map.equal_range(entry.first);
    return std::any_of(begin, end, [&](const auto& other) { return other == entry; });
  };
  for (const auto& entry : listed) {
    EXPECT_TRUE(has(real, entry)) << entry.first << ": " << Json(entry.second);
  }
  for (const auto& entry : real) {
    EXPECT_TRUE(has(listed, entry)) << entry.first << ": " << Json(entry.second);
  }
}

}  // namespace
}  // namespace posenc::module_keys_test
