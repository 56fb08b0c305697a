#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/positions/rotary/rotary_preset.h"

namespace posenc::testing {

/// A model, what it computes, and what a frozen one computes that is made now, or loaded from the
/// file that it was saved in.
struct FreezableModel {
  std::string name;
  std::shared_ptr<torch::nn::Module> model;
  std::function<torch::Tensor()> run;
  using Run = std::function<torch::Tensor()>;
  std::function<Run(const FreezeOptions& options, const std::string& file)> freeze_with;

  Run freeze() const { return freeze_with({}, ""); }
};

/// A model that is frozen now; one that was saved in `file` and loaded from it, unless that is
/// empty.
template <typename Holder, typename Load>
auto frozen_by(const Holder& model, const FreezeOptions& options, const std::string& file,
               const Load& load) {
  auto frozen = posenc::freeze(model, options);
  if (file.empty()) return frozen;
  save_frozen(frozen, file);
  return load(file, LoadFrozenOptions());
}

inline torch::Tensor flat(const EncoderOutput& out) {
  std::vector<torch::Tensor> parts = {out.last_hidden_state.flatten()};
  if (out.pooled.defined()) parts.push_back(out.pooled.flatten());
  for (const auto& states : out.hidden_states) parts.push_back(states.flatten());
  return torch::cat(parts);
}

inline FreezableModel of_stack(const std::string& name, const TransformerEncoderOptions& options,
                               const torch::Tensor& position_ids = {}) {
  auto stack = drawn(TransformerEncoder(options));
  const TransformerLayerOptions& layer = options.layer();
  const auto x = torch::randn({2, 7, layer.d_model()});
  const std::optional<relative::Grid> grid = options.grid_bias() || layer.grid_bias()
                                                 ? std::optional<relative::Grid>({2, 3})
                                                 : std::nullopt;
  const auto segments = layer.transformer_xl() && layer.transformer_xl()->segments()
                            ? torch::tensor({{0, 0, 1, 1, 1, 0, 0}, {1, 0, 0, 0, 0, 0, 1}})
                            : torch::Tensor();
  const auto mask = AttentionMask::key_padding(torch::ones({2, 7}, torch::kBool));
  return {name, stack.ptr(),
          [=] {
            TransformerEncoderRecord record;
            return TransformerEncoder(stack)->forward_with(x, mask, record, position_ids, {},
                                                           segments, grid);
          },
          [=](const FreezeOptions& freezing, const std::string& file) -> FreezableModel::Run {
            return [=, frozen = frozen_by(stack, freezing, file, load_frozen_transformer_encoder)] {
              TransformerEncoderRecord record;
              return frozen.forward_with(x, mask, record, position_ids, segments, grid);
            };
          }};
}

inline FreezableModel of_encoder(const std::string& config, const torch::Tensor& input,
                                 const EncoderInputs& given = {}) {
  auto encoder = drawn(Encoder(encoder_options_from_hf(config)));
  const auto inputs = EncoderInputs(given).output_hidden_states(true);
  return {config, encoder.ptr(), [=] { return flat(Encoder(encoder)->forward(input, inputs)); },
          [=](const FreezeOptions& freezing, const std::string& file) -> FreezableModel::Run {
            return [=, frozen = frozen_by(encoder, freezing, file, load_frozen_encoder)] {
              return flat(frozen.forward(input, inputs));
            };
          }};
}

inline FreezableModel of_classifier(const std::string& name, const ClassifierOptions& options,
                                    const torch::Tensor& ids) {
  auto model = drawn(Classifier(options));
  return {name, model.ptr(), [=] { return Classifier(model)->forward(ids).logits; },
          [=](const FreezeOptions& freezing, const std::string& file) -> FreezableModel::Run {
            return [=, frozen = frozen_by(model, freezing, file, load_frozen_classifier)] {
              return frozen.forward(ids).logits;
            };
          }};
}

inline FreezableModel of_decoder(const std::string& name, const DecoderOptions& options) {
  auto model = drawn(Decoder(options));
  const auto run = [](auto&& any) {
    const auto ids = torch::tensor({{3, 4, 5, 6, 7}, {8, 9, 10, 3, 1}});
    const auto mask = torch::tensor({{1, 1, 1, 1, 1}, {1, 1, 1, 1, 0}});
    const auto logits = any.forward(ids, DecoderInputs().attention_mask(mask)).logits;
    const auto of_texts = score(any, {{3, 4, 5, 6, 7}, {8, 9}});
    return torch::cat({logits.index({mask.ne(0)}).flatten(),
                       torch::tensor(of_texts[0], torch::kFloat),
                       torch::tensor(of_texts[1], torch::kFloat)});
  };
  return {name, model.ptr(), [=] { return run(*Decoder(model).ptr()); },
          [=](const FreezeOptions& freezing, const std::string& file) -> FreezableModel::Run {
            return [=, frozen = frozen_by(model, freezing, file, load_frozen_decoder)] {
              return run(frozen);
            };
          }};
}

inline FreezableModel of_transformer(const std::string& name, const TransformerOptions& options) {
  auto model = drawn(Transformer(options));
  const auto src = torch::tensor({{3, 4, 5, 6}, {7, 8, 9, 3}});
  const auto tgt = torch::tensor({{1, 5, 9}, {1, 4, 4}});
  return {name, model.ptr(),
          [=] {
            return Transformer(model)->decode(tgt, Transformer(model)->encode(src),
                                              AttentionMask::causal());
          },
          [=](const FreezeOptions& freezing, const std::string& file) -> FreezableModel::Run {
            return [=, frozen = frozen_by(model, freezing, file, load_frozen_transformer)] {
              return frozen.decode(tgt, frozen.encode(src), AttentionMask::causal());
            };
          }};
}

/// Stacks of each kind of layer.
inline std::vector<FreezableModel> freezable_stacks() {
  using LayerOptions = TransformerLayerOptions;
  const auto rotary = [](const char* preset, int64_t dim) {
    return RotaryEmbeddingOptions(rotary_preset(preset, dim));
  };
  const auto layer = LayerOptions(8, 2).d_ff(7);
  const auto gemma = LayerOptions(LayerOptions(8, 2).d_ff(7))
                         .norm_first(true)
                         .bias(false)
                         .feed_forward(FeedForward::Gated)
                         .post_norms(true)
                         .norm_kind(NormKind::RMS)
                         .num_kv_heads(1)
                         .head_dim(8)
                         .qk_norm(true)
                         .attention_scale(0.5)
                         .layer_scale(0.7)
                         .window(2);
  const auto yarn = rotary_preset("llama", 8)
                        .scaling(rotary::Yarn{4.0, 4.0, 32.0, 1.0, true, std::nullopt, 0.0, 0.0});
  return {
      of_stack("plain", TransformerEncoderOptions(layer, 2).norm(true)),
      of_stack("order", TransformerEncoderOptions(layer, 2).order({1, 0, 1})),
      of_stack("X-MOD",
               TransformerEncoderOptions(
                   LayerOptions(layer).adapter(AdapterOptions(3).norm(AdapterNorm::Own)), 2)),
      of_stack("X-MOD with norms of what is added",
               TransformerEncoderOptions(
                   LayerOptions(layer).adapter(AdapterOptions(3).norm_before_residual(false)), 2)),
      of_stack(
          "ESMC",
          TransformerEncoderOptions(
              LayerOptions(layer).norm_first(true).qk_norm(true).qk_norm_whole(true).residual_scale(
                  0.7),
              2)
              .norm(true)
              .final_norm_bias(false)),
      of_stack("GPT-NeoX", TransformerEncoderOptions(
                               LayerOptions(layer).norm_first(true).parallel(Parallel::TwoNorms), 2)
                               .norm(true)),
      of_stack("Cohere", TransformerEncoderOptions(LayerOptions(layer)
                                                       .norm_first(true)
                                                       .qk_norm(true)
                                                       .qk_norm_per_head(true)
                                                       .rotary(rotary("cohere", 4))
                                                       .parallel(Parallel::SharedNorm),
                                                   2)),
      of_stack("Phi",
               TransformerEncoderOptions(
                   LayerOptions(layer).norm_first(true).qk_norm(true).qk_norm_bias(true).parallel(
                       Parallel::SharedNorm),
                   2)),
      of_stack("BLOOM", TransformerEncoderOptions(
                            LayerOptions(layer).norm_first(true).residual_of_norm(true), 2)
                            .norm(true)),
      of_stack("Nemotron", TransformerEncoderOptions(LayerOptions(layer)
                                                         .norm_first(true)
                                                         .norm_kind(NormKind::LayerPlusOne)
                                                         .activation(Activation::ReLUSquared),
                                                     2)),
      of_stack("OLMo", TransformerEncoderOptions(
                           LayerOptions(layer).norm_first(true).norm_affine(false).qkv_clip(0.3), 2)
                           .norm(true)),
      of_stack("Gemma 2", TransformerEncoderOptions(
                              LayerOptions(gemma).qk_norm(false).attention_softcap(0.5), 2)
                              .norm(true)),
      of_stack("Hunyuan",
               TransformerEncoderOptions(
                   LayerOptions(gemma).qk_norm_after_rotary(true).rotary(rotary("llama", 8)), 2)
                   .norm(true)),
      of_stack("Ministral 3", TransformerEncoderOptions(LayerOptions(layer)
                                                            .norm_first(true)
                                                            .rotary(rotary("llama", 4))
                                                            .query_growth(QueryGrowth{2.0, 2}),
                                                        2)),
      of_stack(
          "norms of outputs alone",
          TransformerEncoderOptions(
              LayerOptions(layer).norm_first(true).post_norms(true).first_norm(false).second_norm(
                  false),
              2)),
      of_stack("ALiBi", TransformerEncoderOptions(layer, 2).alibi(relative::Alibi{})),
      of_stack("Falcon", TransformerEncoderOptions(layer, 2).alibi(relative::Alibi{
                             .counts_tokens = true, .factor = 0.5, .bfloat16 = true})),
      of_stack("T5", TransformerEncoderOptions(layer, 2).relative(relative::Buckets{8, 20})),
      of_stack("UMT5",
               TransformerEncoderOptions(LayerOptions(layer).relative(relative::Clamp{2, 1}), 2)),
      of_stack("BEiT",
               TransformerEncoderOptions(LayerOptions(layer).grid_bias(relative::Grid{2, 3}), 2)
                   .grid_bias(relative::Grid{3, 3})),
      of_stack("Gemma",
               TransformerEncoderOptions(LayerOptions(gemma).rotary(rotary("llama", 8)), 2)),
      of_stack("GLM", TransformerEncoderOptions(LayerOptions(gemma).rotary(rotary("glm", 8)), 2)),
      of_stack("YaRN", TransformerEncoderOptions(
                           LayerOptions(gemma).rotary(RotaryEmbeddingOptions(yarn)), 2)),
      of_stack("xPos", TransformerEncoderOptions(LayerOptions(gemma).rotary(rotary("xpos", 8)), 2)),
      of_stack(
          "DINOv3",
          TransformerEncoderOptions(LayerOptions(16, 2).d_ff(7).rotary(rotary("dinov3", 8)), 2),
          torch::rand({7, 2})),
      of_stack("FNet",
               TransformerEncoderOptions(LayerOptions(8, 1).d_ff(7).mixing(Mixing::Fourier), 2)),
      of_stack("ConvBERT",
               TransformerEncoderOptions(
                   LayerOptions(layer).mixing(Mixing::Convolution).conv_kernel_size(3), 2)),
      of_stack(
          "MobileBERT",
          TransformerEncoderOptions(
              LayerOptions(layer).bottleneck(BottleneckOptions(6).num_feedforward_networks(2)), 2)),
      of_stack("DeBERTa", TransformerEncoderOptions(
                              LayerOptions(layer).disentangled(DisentangledOptions(5)
                                                                   .position_buckets(3)
                                                                   .norm_relative_embeddings(true)
                                                                   .conv_kernel_size(3)
                                                                   .conv_groups(2)),
                              2)),
      of_stack("XLNet",
               TransformerEncoderOptions(
                   LayerOptions(layer).qkv_bias(false).out_bias(false).transformer_xl(
                       TransformerXLOptions(SinusoidOptions(8)).segments(true).clamp_len(3)),
                   2)),
      of_stack("conformer", TransformerEncoderOptions(LayerOptions(layer)
                                                          .conformer(ConformerOptions(3))
                                                          .rotary(rotary("wav2vec2_conformer", 4)),
                                                      2)
                                .norm(true)),
  };
}

/// Encoders with embeddings of each kind.
inline std::vector<FreezableModel> freezable_encoders() {
  const std::string sizes =
      R"("hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 7,
      "vocab_size": 12, "max_position_embeddings": 20, "pad_token_id": 1, )";
  const auto of = [&](const std::string& more) { return "{" + sizes + more + "}"; };
  const std::string image = R"("image_size": 8, "patch_size": 2, "num_channels": 3, )";
  const auto ids = torch::tensor({{3, 4, 5, 6, 7}, {8, 9, 10, 3, 1}});
  const auto tokens = EncoderInputs().attention_mask(ids.ne(1).to(torch::kLong));
  const auto pixels = torch::randn({2, 3, 8, 8});
  return {
      of_encoder(of(R"("model_type": "bert", "type_vocab_size": 2)"), ids, tokens),
      of_encoder(of(R"("model_type": "roberta")"), ids, tokens),
      of_encoder(of(R"("model_type": "esm", "position_embedding_type": "rotary",
                       "token_dropout": true, "mask_token_id": 9)"),
                 ids, tokens),
      of_encoder(of(R"("model_type": "embedding_gemma2_text", "sliding_window": 1,
                       "sliding_window_pattern": 2, "head_dim": 4, "global_head_dim": 6,
                       "num_key_value_heads": 2, "embedding_dim": 5,
                       "hidden_size_per_layer_input": 3)"),
                 ids, tokens),
      of_encoder(of(R"("model_type": "modernbert", "local_attention": 2)"), ids, tokens),
      of_encoder(of(R"("model_type": "albert", "embedding_size": 6)"), ids, tokens),
      of_encoder(of(image + R"("model_type": "vit")"), pixels),
      of_encoder(of(image + R"("model_type": "beit", "use_relative_position_bias": true,
                               "use_mean_pooling": true)"),
                 pixels),
      of_encoder(of(image + R"("model_type": "siglip_vision_model")"), pixels),
      of_encoder(R"({"model_type": "swin", "image_size": 16, "patch_size": 2, "embed_dim": 8,
                     "depths": [2, 1], "num_heads": [2, 4], "window_size": 4})",
                 torch::randn({2, 3, 16, 16})),
      of_encoder(R"({"model_type": "swinv2", "image_size": 16, "patch_size": 2, "embed_dim": 8,
                     "depths": [2, 1], "num_heads": [2, 4], "window_size": 4})",
                 torch::randn({2, 3, 16, 16})),
      of_encoder(R"({"model_type": "sam_vision_model", "image_size": 12, "patch_size": 2,
                     "hidden_size": 8, "mlp_dim": 5, "num_hidden_layers": 2,
                     "num_attention_heads": 2, "window_size": 4, "output_channels": 8,
                     "global_attn_indexes": [1]})",
                 torch::randn({2, 3, 12, 12})),
  };
}

/// Heads, decoders, and Transformers.
inline std::vector<FreezableModel> freezable_tasks() {
  const auto ids = torch::tensor({{3, 4, 5, 6, 7}, {8, 9, 10, 3, 1}});
  auto head = EncoderHeadOptions(8, 12).dense(8).norm(1e-5).tied(true);
  const EncoderOptions encoder(EncoderEmbeddingsOptions(12, 8).position_rows(9),
                               TransformerEncoderOptions(TransformerLayerOptions(8, 2).d_ff(7), 1));
  const auto causal = TransformerLayerOptions(8, 2).d_ff(7).norm_first(true);
  const auto language_model = [](const TransformerLayerOptions& layer, int64_t positions = 0) {
    using embeddings::PositionIds;
    return EncoderOptions(EncoderEmbeddingsOptions(12, 8)
                              .type_vocab_size(0)
                              .norm(embeddings::Norm::None)
                              .position_ids(positions > 0 ? PositionIds::Arange : PositionIds::None)
                              .position_rows(std::max<int64_t>(positions, 1)),
                          TransformerEncoderOptions(layer, 2).norm(true))
        .causal(true);
  };
  EncoderOptions gpt2 = language_model(causal, 9);
  gpt2.embeddings()->types_from_tokens(true);
  return {
      of_decoder("tied, with tokens as types", DecoderOptions(gpt2).tied(true)),
      of_classifier("labels",
                    ClassifierOptions(encoder, head::Kind::Sequence,
                                      EncoderHeadOptions(8, 3).rows(head::Rows::Mean).dense(5)),
                    ids),
      of_classifier("words", ClassifierOptions(encoder, head::Kind::Masked, head), ids),
      of_classifier("on a decoder",
                    ClassifierOptions(EncoderOptions(encoder)
                                          .transformer(TransformerOptions(12, 12)
                                                           .num_heads(2)
                                                           .d_model(8)
                                                           .d_ff(7)
                                                           .output_bias(false)
                                                           .tie(Tying::ThreeWay))
                                          .pad_token_id(1),
                                      head::Kind::Question, EncoderHeadOptions(8, 2)),
                    ids),
      of_classifier("two dense layers",
                    ClassifierOptions(encoder, head::Kind::Token,
                                      EncoderHeadOptions(8, 3).dense(5).dense2(8)),
                    ids),
      of_decoder("tied",
                 DecoderOptions(language_model(TransformerLayerOptions(causal).window(2).rotary(
                                    RotaryEmbeddingOptions(rotary_preset("llama", 4)))))
                     .tied(true)
                     .logit_softcap(2.0)),
      of_decoder(
          "with positions",
          DecoderOptions(
              language_model(TransformerLayerOptions(causal).parallel(Parallel::SharedNorm), 9))
              .head_bias(true)
              .logit_scale(0.3)),
      of_transformer("Transformer", TransformerOptions(12, 12).num_heads(2).d_model(8).d_ff(7).tie(
                                        Tying::ThreeWay)),
      of_transformer("BART", TransformerOptions(12, 12)
                                 .num_heads(2)
                                 .d_model(8)
                                 .d_ff(7)
                                 .learned_positions(true)
                                 .position_offset(2)
                                 .max_len(9)
                                 .embedding_norm(embeddings::Norm::AfterSum)),
      of_transformer("M2M100", TransformerOptions(12, 12)
                                   .num_heads(2)
                                   .d_model(8)
                                   .d_ff(7)
                                   .padding_idx(1)
                                   .position_ids(embeddings::PositionIds::FromIds)
                                   .norm_first(true)),
  };
}

inline std::vector<FreezableModel> freezable_models() {
  auto models = freezable_encoders();
  for (const FreezableModel& model : freezable_tasks()) models.push_back(model);
  return models;
}

}  // namespace posenc::testing
