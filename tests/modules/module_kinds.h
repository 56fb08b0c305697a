#pragma once

// posenc-budget: a row of each module

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/positions/nn/fourier_features.h"
#include "posenc/positions/nn/grid_positional_encoding.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/learned_position_embedding.h"
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
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/nn/vision_embeddings.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/transformer/layers/convolution_neck.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/transformer/layers/relative_embeddings.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/window_encoder.h"

namespace posenc::testing {

using RegisterAs = PositionEmbeddingOptions::RegisterAs;

/// A module to be tested for the laws that hold for all modules.
struct Kind {
  std::string name;
  std::string keys;    // wire format, in order
  std::string frozen;  // parameters with requires_grad=false
  std::string print;   // start of the printed module
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  std::function<torch::Tensor(torch::nn::Module&, const torch::Tensor&)> run;  // ids (B, L) in 0..6
};

inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

inline torch::Tensor on_patches(torch::nn::Module& module, const torch::Tensor& ids) {
  auto& self = dynamic_cast<GridPositionalEncodingImpl&>(module);
  return self.forward(torch::ones_like(self.pos_embed) * ids.select(1, 0).view({-1, 1, 1}));
}

template <typename Impl>
torch::Tensor forward(torch::nn::Module& module, const torch::Tensor& ids) {
  return dynamic_cast<Impl&>(module).forward(ids);
}

// ids (B, L) as vectors (B, L, 8) in the module's dtype.
inline torch::Tensor as_vectors(const torch::nn::Module& module, const torch::Tensor& ids) {
  return torch::one_hot(ids, 8).to(module.parameters()[0].dtype());
}

template <typename Impl>
torch::Tensor on_vectors(torch::nn::Module& module, const torch::Tensor& ids) {
  return dynamic_cast<Impl&>(module).forward(as_vectors(module, ids));
}

// Uses the reversed sequence as memory.
template <typename Impl>
torch::Tensor on_memory(torch::nn::Module& module, const torch::Tensor& ids) {
  const auto x = as_vectors(module, ids);
  return dynamic_cast<Impl&>(module).forward(x, x.flip(1), AttentionMask::causal());
}

// `layers.0.self_attn.in_proj_weight ...`: the keys of an encoder or decoder layer below `prefix`.
inline std::string layer_keys(const std::string& prefix, bool decoder) {
  std::string joined;
  const auto add = [&](const std::string& name, bool attention = false) {
    for (const char* part : {"weight", "bias"}) {
      joined += prefix + name + (attention ? "_" : ".") + part + " ";
    }
  };
  for (const std::string attention : {"self_attn", "multihead_attn"}) {
    if (attention == "multihead_attn" && !decoder) continue;
    add(attention + ".in_proj", true);
    add(attention + ".out_proj");
  }
  for (const char* name : {"linear1", "linear2", "norm1", "norm2"}) add(name);
  if (decoder) add("norm3");
  joined.pop_back();
  return joined;
}

inline VisionEmbeddingsOptions one_pixel_patches() {
  return VisionEmbeddingsOptions(2, 1, 4).image_width(3).num_channels(1);
}

// ids (B, L) as an image of a channel.
inline torch::Tensor on_image(torch::nn::Module& module, const torch::Tensor& ids) {
  const auto image = ids.to(module.parameters()[0].dtype()).view({1, 1, ids.size(0), ids.size(1)});
  return dynamic_cast<VisionEmbeddingsImpl&>(module).forward(image);
}

inline TransformerLayerOptions small_layer() { return TransformerLayerOptions(8, 2).d_ff(5); }

inline const Kind kModules[] = {
    {"TokenEmbedding", "embedding.weight", "",
     "posenc::TokenEmbedding(vocab_size=9, d_model=6, scale=sqrt(d_model), padding_idx=0)",
     [] {
       return std::make_shared<TokenEmbeddingImpl>(
           TokenEmbeddingOptions(9, 6).scale(Scale::SqrtDim).padding_idx(0));
     },
     forward<TokenEmbeddingImpl>},
    {"FrozenTokenEmbedding", "embedding.weight", "embedding.weight",
     "posenc::TokenEmbedding(vocab_size=9, d_model=6, scale=0.5, freeze=true)",
     [] {
       return std::make_shared<TokenEmbeddingImpl>(
           TokenEmbeddingOptions(9, 6).scale(0.5).freeze(true));
     },
     forward<TokenEmbeddingImpl>},
    {"PositionalEncoding", "pe", "",
     "posenc::PositionalEncoding(max_len=7, grow=true, d_model=6, sinusoid=(dim=6), dropout=0.5)",
     [] {
       return std::make_shared<PositionalEncodingImpl>(
           PositionalEncodingOptions(6, 7).dropout(0.5).grow(true));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       auto& self = dynamic_cast<PositionalEncodingImpl&>(module);
       const auto shape = {ids.size(0), ids.size(1), self.pe.size(2)};
       return self.forward(torch::ones(shape, self.pe.options()));
     }},
    {"PositionEmbedding", "embedding.weight", "embedding.weight",
     "posenc::PositionEmbedding(d_model=6, max_len=9, sinusoid=(dim=6, frequency=Power, "
     "power_shape=Grid, phase=Quotient))",
     [] { return std::make_shared<PositionEmbeddingImpl>(PositionEmbeddingOptions(6).max_len(9)); },
     forward<PositionEmbeddingImpl>},
    {"PositionEmbeddingBuffer", "pos_enc", "",
     "posenc::PositionEmbedding(d_model=6, max_len=9, register_as=Buffer, sinusoid=(dim=6, "
     "frequency=PowerReciprocal))",
     [] {
       return std::make_shared<PositionEmbeddingImpl>(
           PositionEmbeddingOptions(6).max_len(9).register_as(RegisterAs::Buffer));
     },
     forward<PositionEmbeddingImpl>},
    {"EncoderEmbeddings",
     "word_embeddings.weight position_embeddings.weight token_type_embeddings.weight "
     "LayerNorm.weight LayerNorm.bias projection.weight projection.bias",
     "",
     "posenc::EncoderEmbeddings(norm=AfterSum, projection=Last, padding_idx=0, vocab_size=9, "
     "d_model=6, embedding_dim=4, position_rows=8, type_vocab_size=2)",
     [] {
       return std::make_shared<EncoderEmbeddingsImpl>(
           EncoderEmbeddingsOptions(9, 6)
               .embedding_dim(4)
               .position_rows(8)
               .type_vocab_size(2)
               .padding_idx(0)
               .norm(embeddings::Norm::AfterSum)
               .projection(embeddings::Projection::Last));
     },
     forward<EncoderEmbeddingsImpl>},
    {"EncoderEmbeddingsOfSinusoids", "word_embeddings.weight position_embeddings.weight",
     "position_embeddings.weight",
     "posenc::EncoderEmbeddings(scale=sqrt(d_model), vocab_size=9, d_model=6, position_rows=8, "
     "sinusoid=(dim=6))",
     [] {
       return std::make_shared<EncoderEmbeddingsImpl>(EncoderEmbeddingsOptions(9, 6)
                                                          .position_rows(8)
                                                          .scale(Scale::SqrtDim)
                                                          .sinusoid(SinusoidOptions(6)));
     },
     forward<EncoderEmbeddingsImpl>},
    {"LearnedPositionEmbedding", "weight", "",
     "posenc::LearnedPositionEmbedding(num_embeddings=9, embedding_dim=6, offset=2, padding_idx=1)",
     [] {
       return std::make_shared<LearnedPositionEmbeddingImpl>(
           LearnedPositionEmbeddingOptions(9, 6).offset(2).padding_idx(1));
     },
     forward<LearnedPositionEmbeddingImpl>},
    {"InputEmbedding", "token_embedding.embedding.weight pos_encoding.pe", "",
     "posenc::InputEmbedding(vocab_size=9, d_model=6, max_len=8)",
     [] { return std::make_shared<InputEmbeddingImpl>(9, 6, 8); }, forward<InputEmbeddingImpl>},
    {"TokenAndPositionEmbedding", "token_embedding.weight position_encoding.pe", "",
     "posenc::TokenAndPositionEmbedding(vocab_size=9, d_model=6, max_len=8)",
     [] { return std::make_shared<TokenAndPositionEmbeddingImpl>(9, 6, 8); },
     forward<TokenAndPositionEmbeddingImpl>},
    {"TimestepEmbedding",
     "pe.embedding.weight pe_linear.0.weight pe_linear.0.bias pe_linear.2.weight pe_linear.2.bias",
     "pe.embedding.weight", "posenc::TimestepEmbedding(d_model=6, channels=3, hidden=3, max_len=9)",
     [] {
       return std::make_shared<TimestepEmbeddingImpl>(TimestepEmbeddingOptions(6, 3).max_len(9));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<TimestepEmbeddingImpl&>(module).forward(ids.select(1, 0));
     }},
    {"GridPositionalEncoding", "pos_embed", "pos_embed",
     "posenc::GridPositionalEncoding(sinusoid=(dim=8, frequency=PowerReciprocal, index=Half, "
     "divisor=HalfChannels, arithmetic=Float64, layout=Halves, cls_row=true, grid=[2, 2], "
     "channel_axes=[1, 0]))",
     [] {
       return std::make_shared<GridPositionalEncodingImpl>(
           preset("mae_2d", 8, {{"height", 2}, {"cls_token", 1}}));
     },
     on_patches},
    {"GridPositionalEncodingBuffer", "grid", "",
     "posenc::GridPositionalEncoding(sinusoid=(dim=8, frequency=PowerReciprocal, index=Half, "
     "divisor=Pairs, layout=Halves, grid=[2, 3], channel_axes=[1, 0]), register_as=Buffer, "
     "key=grid)",
     [] {
       return std::make_shared<GridPositionalEncodingImpl>(
           GridPositionalEncodingOptions(preset("monai_2d", 8, {{"height", 2}, {"width", 3}}))
               .key("grid")
               .register_as(GridPositionalEncodingOptions::RegisterAs::Buffer));
     },
     on_patches},
    {"SinePositionEmbedding2d", "", "",
     "posenc::SinePositionEmbedding2d(d_model=8, temperature=20, offset=-0.5)",
     [] {
       return std::make_shared<SinePositionEmbedding2dImpl>(
           SinePositionEmbedding2dOptions(8).temperature(20).offset(-0.5));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<SinePositionEmbedding2dImpl&>(module).forward((ids == 0).unsqueeze(0));
     }},
    {"RotaryPositionEmbedding2d", "", "",
     "posenc::RotaryPositionEmbedding2d(rotary=(dim=8, frequency=PowerOfSteps, planes=Axial, "
     "position_scale=6.28319, grid=(coordinates=Midpoints)), prefix_tokens=1)",
     [] {
       return std::make_shared<RotaryPositionEmbedding2dImpl>(
           RotaryPositionEmbedding2dOptions(rotary_preset("dinov3", 8)).prefix_tokens(1));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {  // a row of patches
       const auto q = torch::one_hot(ids, 8).to(torch::kFloat).unsqueeze(1);
       auto& self = dynamic_cast<RotaryPositionEmbedding2dImpl&>(module);
       return std::get<0>(self.forward(q, {}, 1, ids.size(1) - 1));
     }},
    {"SinusoidalTimesteps", "linear_1.weight linear_1.bias linear_2.weight linear_2.bias", "",
     "posenc::SinusoidalTimesteps(d_model=6, hidden=5, channels=5, sinusoid=(dim=6, "
     "frequency=ExpDividedLast, index=Half, divisor=Pairs, layout=Halves, cos_first=true, "
     "odd_dim=ZeroColumn))",
     [] { return std::make_shared<SinusoidalTimestepsImpl>(6, 5); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<SinusoidalTimestepsImpl&>(module).forward(ids.select(1, 0));
     }},
    {"SinusoidalTimestepsSequential", "mlp.0.weight mlp.0.bias mlp.2.weight mlp.2.bias", "",
     "posenc::SinusoidalTimesteps(d_model=7, hidden=5, channels=4, sequential=mlp, "
     "sinusoid=(dim=7, frequency=ExpDividedLast, index=Half, divisor=Pairs, layout=Halves, "
     "cos_first=true, odd_dim=ZeroColumn))",
     [] {
       return std::make_shared<SinusoidalTimestepsImpl>(
           SinusoidalTimestepsOptions(7, 5).channels(4).sequential("mlp"));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<SinusoidalTimestepsImpl&>(module).forward(ids.select(1, 0) / 2);
     }},
    {"MultiheadAttention", "in_proj_weight in_proj_bias out_proj.weight out_proj.bias", "",
     "posenc::MultiheadAttention(embed_dim=8, num_heads=2)",
     [] { return std::make_shared<MultiheadAttentionImpl>(8, 2); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       const auto x = as_vectors(module, ids);
       return dynamic_cast<MultiheadAttentionImpl&>(module).forward(x, x, x);
     }},
    {"MultiheadAttentionSeparate",
     "q_proj_weight k_proj_weight v_proj_weight in_proj_bias out_proj.weight out_proj.bias", "",
     "posenc::MultiheadAttention(embed_dim=8, num_heads=2, kdim=3, dropout=0.5)",
     [] {
       return std::make_shared<MultiheadAttentionImpl>(
           MultiheadAttentionOptions(8, 2).kdim(3).dropout(0.5));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       const auto x = as_vectors(module, ids);
       return dynamic_cast<MultiheadAttentionImpl&>(module).forward(x, x.narrow(2, 0, 3), x);
     }},
    {"LayerNorm", "weight bias", "", "posenc::LayerNorm(d_model=8)",
     [] { return std::make_shared<LayerNormImpl>(8); }, on_vectors<LayerNormImpl>},
    {"LayerNormWithoutBias", "weight", "", "posenc::LayerNorm(d_model=8, bias=false)",
     [] { return std::make_shared<LayerNormImpl>(LayerNormOptions(8).bias(false)); },
     on_vectors<LayerNormImpl>},
    {"LayerScale", "lambda1", "", "posenc::LayerScale(d_model=8, init=0.5)",
     [] { return std::make_shared<LayerScaleImpl>(LayerScaleOptions(8).init(0.5)); },
     on_vectors<LayerScaleImpl>},
    {"TransformerEncoderLayer", layer_keys("", false), "",
     "posenc::TransformerEncoderLayer(d_model=8, num_heads=2, d_ff=5)",
     [] { return std::make_shared<TransformerEncoderLayerImpl>(small_layer()); },
     on_vectors<TransformerEncoderLayerImpl>},
    {"TransformerNorm", "weight bias", "", "posenc::TransformerNorm(d_model=8)",
     [] { return std::make_shared<TransformerNormImpl>(8); }, on_vectors<TransformerNormImpl>},
    {"TransformerNormOfGemma", "weight", "", "posenc::TransformerNorm(d_model=8, kind=RMSPlusOne)",
     [] {
       return std::make_shared<TransformerNormImpl>(
           TransformerNormOptions(8).kind(NormKind::RMSPlusOne));
     },
     on_vectors<TransformerNormImpl>},
    {"TransformerNormThatIsAffine", "weight bias", "",
     "posenc::TransformerNorm(d_model=8, kind=Affine)",
     [] {
       return std::make_shared<TransformerNormImpl>(
           TransformerNormOptions(8).kind(NormKind::Affine));
     },
     on_vectors<TransformerNormImpl>},
    {"ConvolutionalAttention",
     "in_proj_weight in_proj_bias depthwise_weight pointwise.weight pointwise.bias kernel.weight "
     "kernel.bias conv_out.weight conv_out.bias out_proj.weight out_proj.bias",
     "", "posenc::ConvolutionalAttention(embed_dim=8, num_heads=2, conv_kernel_size=3)",
     [] {
       return std::make_shared<ConvolutionalAttentionImpl>(
           ConvolutionalAttentionOptions(8, 2).conv_kernel_size(3));
     },
     on_vectors<ConvolutionalAttentionImpl>},
    {"BottleneckEncoderLayer",
     "input.weight input.bias input_norm.weight input_norm.bias shared.weight shared.bias "
     "shared_norm.weight shared_norm.bias self_attn.q_proj_weight self_attn.k_proj_weight "
     "self_attn.v_proj_weight self_attn.in_proj_bias self_attn.out_proj.weight "
     "self_attn.out_proj.bias norm1.weight norm1.bias ffn.0.linear1.weight ffn.0.linear1.bias "
     "ffn.0.linear2.weight ffn.0.linear2.bias ffn.0.norm.weight ffn.0.norm.bias "
     "last_ffn.linear1.weight last_ffn.linear1.bias last_ffn.linear2.weight last_ffn.linear2.bias "
     "last_ffn.norm.weight last_ffn.norm.bias output.weight output.bias output_norm.weight "
     "output_norm.bias",
     "",
     "posenc::BottleneckEncoderLayer(d_model=8, num_heads=2, d_ff=5, "
     "bottleneck=(intra_bottleneck_size=6, num_feedforward_networks=2))",
     [] {
       return std::make_shared<BottleneckEncoderLayerImpl>(
           small_layer().bottleneck(BottleneckOptions(6).num_feedforward_networks(2)));
     },
     on_vectors<BottleneckEncoderLayerImpl>},
    {"WindowEncoder",
     "stages.0.layers.0.self_attn.in_proj_weight stages.0.layers.0.self_attn.in_proj_bias "
     "stages.0.layers.0.self_attn.relative_position_bias_table "
     "stages.0.layers.0.self_attn.out_proj.weight stages.0.layers.0.self_attn.out_proj.bias "
     "stages.0.layers.0.linear1.weight stages.0.layers.0.linear1.bias "
     "stages.0.layers.0.linear2.weight stages.0.layers.0.linear2.bias "
     "stages.0.layers.0.norm1.weight stages.0.layers.0.norm1.bias "
     "stages.0.layers.0.norm2.weight stages.0.layers.0.norm2.bias "
     "stages.0.downsample.reduction.weight stages.0.downsample.norm.weight "
     "stages.0.downsample.norm.bias norm.weight norm.bias",
     "", "posenc::WindowEncoder()",
     [] {
       const WindowOptions windows = WindowOptions({2, 2}).shift(1).needs_room(false);
       return std::make_shared<WindowEncoderImpl>(WindowEncoderOptions(
           {WindowStageOptions({WindowEncoderLayerOptions(small_layer().norm_first(true), windows)})
                .downsample(PatchMergingOptions(8))}));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {  // a map of one row
       return dynamic_cast<WindowEncoderImpl&>(module).forward(
           as_vectors(module, ids).unsqueeze(1));
     }},
    {"ConvolutionNeck",
     "conv1.weight layer_norm1.weight layer_norm1.bias conv2.weight layer_norm2.weight "
     "layer_norm2.bias",
     "", "posenc::ConvolutionNeck(d_model=8, channels=4)",
     [] { return std::make_shared<ConvolutionNeckImpl>(ConvolutionNeckOptions(8, 4)); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {  // a map of one row
       return dynamic_cast<ConvolutionNeckImpl&>(module).forward(
           as_vectors(module, ids).unsqueeze(1));
     }},
    {"ConvolutionBeside", "conv.weight conv.bias norm.weight norm.bias", "",
     "posenc::ConvolutionBeside(d_model=8, conv_kernel_size=3)",
     [] {
       return std::make_shared<ConvolutionBesideImpl>(
           small_layer().dropout(0.0).disentangled(DisentangledOptions(4).conv_kernel_size(3)));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       const auto x = as_vectors(module, ids);
       return dynamic_cast<ConvolutionBesideImpl&>(module).forward(x, x.flip(1));
     }},
    {"TransformerEncoderLayerOfGemma",
     "self_attn.in_proj_weight self_attn.out_proj.weight self_attn.q_norm.weight "
     "self_attn.k_norm.weight linear1.weight linear2.weight "
     "norm1.weight norm2.weight post_norm1.weight post_norm2.weight",
     "",
     "posenc::TransformerEncoderLayer(d_model=8, num_heads=2, d_ff=5, feed_forward=Gated, "
     "norm_first=true, post_norms=true, norm_kind=RMS, bias=false, num_kv_heads=1, head_dim=6, "
     "rotary=(...), qk_norm=true, attention_scale=0.5, window=2)",
     [] {
       return std::make_shared<TransformerEncoderLayerImpl>(
           small_layer()
               .norm_first(true)
               .bias(false)
               .feed_forward(FeedForward::Gated)
               .post_norms(true)
               .norm_kind(NormKind::RMS)
               .num_kv_heads(1)
               .head_dim(6)
               .rotary(RotaryEmbeddingOptions(rotary_preset("llama", 6)))
               .qk_norm(true)
               .attention_scale(0.5)
               .window(2));
     },
     on_vectors<TransformerEncoderLayerImpl>},
    {"TransformerEncoderLayerOfXmod",
     layer_keys("", false) +
         " adapter1.weight adapter1.bias adapter2.weight adapter2.bias adapter_norm.weight "
         "adapter_norm.bias",
     "",
     "posenc::TransformerEncoderLayer(d_model=8, num_heads=2, d_ff=5, residual_scale=0.5, "
     "adapter=(width=3, norm=Own))",
     [] {
       return std::make_shared<TransformerEncoderLayerImpl>(
           small_layer().residual_scale(0.5).adapter(AdapterOptions(3).norm(AdapterNorm::Own)));
     },
     on_vectors<TransformerEncoderLayerImpl>},
    {"TransformerDecoderLayer", layer_keys("", true), "",
     "posenc::TransformerDecoderLayer(d_model=8, num_heads=2, d_ff=5, activation=GELU, "
     "norm_first=true)",
     [] {
       return std::make_shared<TransformerDecoderLayerImpl>(
           small_layer().activation(Activation::GELU).norm_first(true));
     },
     on_memory<TransformerDecoderLayerImpl>},
    {"ScaledTransformerEncoderLayer",
     layer_keys("", false) + " layer_scale1.lambda1 layer_scale2.lambda1", "",
     "posenc::TransformerEncoderLayer(d_model=8, num_heads=2, d_ff=5, layer_scale=0.5)",
     [] { return std::make_shared<TransformerEncoderLayerImpl>(small_layer().layer_scale(0.5)); },
     on_vectors<TransformerEncoderLayerImpl>},
    {"ScaledTransformerDecoderLayer",
     layer_keys("", true) + " layer_scale1.lambda1 layer_scale2.lambda1 layer_scale3.lambda1", "",
     "posenc::TransformerDecoderLayer(d_model=8, num_heads=2, d_ff=5, layer_scale=0.5)",
     [] { return std::make_shared<TransformerDecoderLayerImpl>(small_layer().layer_scale(0.5)); },
     on_memory<TransformerDecoderLayerImpl>},
    {"TransformerEncoder",
     layer_keys("layers.0.", false) + " " + layer_keys("layers.1.", false) +
         " norm.weight norm.bias",
     "", "posenc::TransformerEncoder(num_layers=2, norm=true)",
     [] {
       return std::make_shared<TransformerEncoderImpl>(
           TransformerEncoderOptions(small_layer(), 2).norm(true));
     },
     on_vectors<TransformerEncoderImpl>},
    {"TransformerDecoder", layer_keys("layers.0.", true) + " " + layer_keys("layers.1.", true), "",
     "posenc::TransformerDecoder(num_layers=2)",
     [] {
       return std::make_shared<TransformerDecoderImpl>(TransformerDecoderOptions(small_layer(), 2));
     },
     on_memory<TransformerDecoderImpl>},
    {"RelativePositionBias", "weight", "",
     "posenc::RelativePositionBias(index=Buckets(num_buckets=8, max_distance=20), num_heads=2)",
     [] { return std::make_shared<RelativePositionBiasImpl>(relative::Buckets{8, 20}, 2); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<RelativePositionBiasImpl&>(module).at_positions(ids, ids);
     }},
    {"RelativeAttention", "weight", "",
     "posenc::RelativeAttention(index=Clamp(left=2, right=1), head_dim=8)",
     [] {
       return std::make_shared<RelativeAttentionImpl>(
           RelativeAttentionOptions(relative::Clamp{2, 1}, 8));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       const auto heads = as_vectors(module, ids).unsqueeze(1);
       return dynamic_cast<RelativeAttentionImpl&>(module).forward(heads, heads);
     }},
    {"RotaryEmbedding", "", "", "posenc::RotaryEmbedding(rotary=(dim=8))",
     [] { return std::make_shared<RotaryEmbeddingImpl>(rotary_preset("llama", 8)); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       const auto heads = torch::one_hot(ids, 8).to(torch::kFloat).unsqueeze(1);
       return std::get<0>(dynamic_cast<RotaryEmbeddingImpl&>(module).forward(heads, {}, 3));
     }},
    {"PolarEmbedding", "learned_bias inv_freq", "",
     "posenc::PolarEmbedding(dim=8, heads=1, base=500)",
     [] { return std::make_shared<PolarEmbeddingImpl>(PolarEmbeddingOptions(8, 1).base(500)); },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       auto& self = dynamic_cast<PolarEmbeddingImpl&>(module);
       const auto heads = torch::one_hot(ids, 8).to(self.learned_bias.scalar_type()).unsqueeze(1);
       return std::get<1>(self.forward({}, heads, 3));
     }},
    {"RMSNorm", "weight", "", "posenc::RMSNorm(d_model=8)",
     [] { return std::make_shared<RMSNormImpl>(8); }, on_vectors<RMSNormImpl>},
    {"GemmaRMSNorm", "weight", "", "posenc::RMSNorm(d_model=8",
     [] { return std::make_shared<RMSNormImpl>(RMSNormOptions::gemma(8)); },
     on_vectors<RMSNormImpl>},
    {"GatedFeedForward", "gate_proj.weight up_proj.weight down_proj.weight", "",
     "posenc::GatedFeedForward(d_model=8, d_ff=5",
     [] { return std::make_shared<GatedFeedForwardImpl>(8, 5); }, on_vectors<GatedFeedForwardImpl>},
    {"FourierFeatures", "", "",
     "posenc::FourierFeatures(channels=3, multires=2, include_input=false)",
     [] {
       return std::make_shared<FourierFeaturesImpl>(
           FourierFeaturesOptions(3, 2).include_input(false));
     },
     [](torch::nn::Module& module, const torch::Tensor& ids) {
       return dynamic_cast<FourierFeaturesImpl&>(module).forward(ids.to(torch::kFloat));
     }},
    {"AudioEmbeddings", "conv1.weight conv1.bias conv2.weight conv2.bias position_encoding.pe", "",
     "posenc::AudioEmbeddings(num_mel_bins=3, d_model=6, num_frames=8)",  // 8 features of 3 ids
     [] { return std::make_shared<AudioEmbeddingsImpl>(AudioEmbeddingsOptions(3, 6, 8)); },
     on_vectors<AudioEmbeddingsImpl>},
    {"VisionEmbeddings",
     "cls_token position_embeddings patch_embeddings.projection.weight "
     "patch_embeddings.projection.bias",
     "",
     "posenc::VisionEmbeddings(image_height=2, image_width=3, patch_height=1, patch_width=1, "
     "d_model=4, num_channels=1)",
     [] { return std::make_shared<VisionEmbeddingsImpl>(one_pixel_patches()); }, on_image},
    {"VisionEmbeddingsInTable", "conv.weight position_embeddings.weight", "",
     "posenc::VisionEmbeddings(image_height=2, image_width=3, patch_height=1, patch_width=1, "
     "d_model=4, num_channels=1, patch_bias=false, class_tokens=0, position_table=Embedding, "
     "names=(patches=conv))",
     [] {
       vision::Names names;
       names.patches = "conv";
       return std::make_shared<VisionEmbeddingsImpl>(
           one_pixel_patches().names(names).class_tokens(0).patch_bias(false).position_table(
               vision::PositionTable::Embedding));
     },
     on_image},
};

}  // namespace posenc::testing
