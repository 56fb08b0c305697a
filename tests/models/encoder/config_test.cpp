// Configurations of encoders as people and older releases write them.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/models/encoder.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/rotary_config.h"
#include "posenc/models/vision_embeddings_preset.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

EncoderOptions of(const json& config) { return encoder_options_from_hf(config.dump()); }

TEST(EncoderConfig, DistilBertTakesTheUsualNames) {
  const auto options = of({{"model_type", "distilbert"},
                           {"hidden_size", 32},
                           {"num_attention_heads", 4},
                           {"num_hidden_layers", 3}});
  EXPECT_EQ(options.encoder().layer().num_heads(), 4);
  EXPECT_EQ(options.encoder().layer().d_model(), 32);
  EXPECT_EQ(options.encoder().num_layers(), 3);
}

TEST(EncoderConfig, BartTakesTheUsualNames) {
  const auto options = of({{"model_type", "bart"}, {"d_model", 512}, {"num_attention_heads", 8}});
  EXPECT_EQ(options.encoder().layer().num_heads(), 8);
  EXPECT_EQ(options.embeddings()->d_model(), 512);
  const auto generic = of({{"model_type", "bart"}, {"hidden_size", 512}, {"num_hidden_layers", 2}});
  EXPECT_EQ(generic.encoder().layer().d_model(), 512);
  EXPECT_EQ(generic.encoder().num_layers(), 2);
  EXPECT_EQ(generic.embeddings()->d_model(), 512);
}

// BloomConfig has no such setting, but takes it for hidden_size: the files of BLOOM itself.
TEST(EncoderConfig, BloomTakesTheNameOfItsFirstFiles) {
  const json config = {
      {"model_type", "bloom"}, {"n_embed", 24}, {"num_attention_heads", 3}, {"n_layer", 5}};
  const auto options = of(config);
  EXPECT_EQ(options.encoder().layer().d_model(), 24);
  EXPECT_EQ(options.encoder().layer().num_heads(), 3);
  EXPECT_EQ(options.encoder().num_layers(), 5);
  EXPECT_EQ(options.embeddings()->d_model(), 24);
  json both = config;
  both["hidden_size"] = 48;
  EXPECT_ERROR(of(both), c10::ValueError, "n_embed and hidden_size are two names of one setting");
}

// XLNetConfig takes a d_head of zero for none, and XLNetModel every clamp_len below 1.
TEST(EncoderConfig, XlnetTakesNumbersThatSayNothing) {
  json config = {{"model_type", "xlnet"}, {"d_model", 8}, {"n_head", 2},    {"n_layer", 1},
                 {"d_inner", 12},         {"d_head", 0},  {"clamp_len", -7}};
  EXPECT_EQ(of(config).encoder().layer().transformer_xl()->clamp_len(), 0);
  config["d_head"] = 3;
  EXPECT_ERROR(of(config), c10::ValueError, "d_head must be d_model / n_head, 4. Got 3");
}

// XLMRobertaXLOutput has none.
TEST(EncoderConfig, XlmRobertaXLDropsOutNothingAfterTheFeedForward) {
  const auto layer =
      of({{"model_type", "xlm-roberta-xl"}, {"hidden_dropout_prob", 0.5}}).encoder().layer();
  EXPECT_EQ(layer.dropouts()->output, 0.0);
  EXPECT_EQ(layer.dropouts()->attention_output, 0.5);
}

json small(const char* type, const json& more) {
  json config = {{"model_type", type},       {"hidden_size", 16},      {"num_attention_heads", 4},
                 {"num_hidden_layers", 4},   {"intermediate_size", 8}, {"vocab_size", 9},
                 {"num_key_value_heads", 4}, {"pad_token_id", 1}};
  config.update(more);
  return config;
}

// "".split("|") has one word, which DeBERTa's scale counts.
TEST(EncoderConfig, TheScaleOfDebertaCountsTheWordsThatPythonFinds) {
  struct Case {
    const char* terms;
    double products;
    bool position_to_content;
  };
  for (const auto& [terms, products, position_to_content] :
       {Case{"", 2.0, false}, Case{"c2p", 2.0, false}, Case{"c2p|P2C\n", 3.0, true},
        Case{"c2p|p2c|", 4.0, true}, Case{"| c2p", 3.0, false}}) {
    const auto layer = of(small("deberta", {{"pos_att_type", terms}})).encoder().layer();
    EXPECT_DOUBLE_EQ(*layer.attention_scale(), 1.0 / std::sqrt(products * 4.0)) << terms;
    EXPECT_EQ(layer.disentangled()->position_to_content(), position_to_content) << terms;
  }
}

std::vector<std::optional<int64_t>> windows_of(const json& config) {
  const auto options = of(config).encoder();
  std::vector<std::optional<int64_t>> windows;
  for (size_t i = 0; i < static_cast<size_t>(options.num_layers()); ++i) {
    windows.push_back(options.layer_at(i).window());
  }
  return windows;
}

// What a window means depends on the class and on the direction of the attention.
TEST(EncoderConfig, WindowsAreHalfWidths) {
  const std::optional<int64_t> none;
  using Windows = std::vector<std::optional<int64_t>>;
  EXPECT_EQ(windows_of(small("modernbert", {{"local_attention", 9}})), (Windows{none, 4, 4, none}));
  EXPECT_EQ(windows_of(small("modernbert", {{"global_attn_every_n_layers", 2}})),
            (Windows{none, 64, none, 64}));
  const json qwen = {{"use_sliding_window", true}, {"sliding_window", 6}, {"max_window_layers", 3}};
  EXPECT_EQ(windows_of(small("qwen3", qwen)), (Windows{none, none, none, 5})) << "causal";
  json both_ways = qwen;
  both_ways["is_causal"] = false;
  EXPECT_EQ(windows_of(small("qwen3", both_ways)), (Windows{none, none, none, 6}));
  EXPECT_EQ(windows_of(small("qwen2", {{"sliding_window", 6}})), (Windows{none, none, none, none}));
  EXPECT_EQ(windows_of(small("mistral", {{"sliding_window", 6}})), (Windows{5, 5, 5, 5}));
  EXPECT_EQ(windows_of(small("mistral", {{"sliding_window", nullptr}})),
            (Windows{none, none, none, none}));
  json gemma = {{"sliding_window", 6}, {"sliding_window_pattern", 3}};
  EXPECT_EQ(windows_of(small("gemma3_text", gemma)), (Windows{5, 5, none, 5}));
  gemma["use_bidirectional_attention"] = true;
  EXPECT_EQ(windows_of(small("gemma3_text", gemma)), (Windows{3, 3, none, 3}));
  EXPECT_FALSE(of(small("gemma3_text", gemma)).causal());
  EXPECT_TRUE(of(small("llama", json::object())).causal());
  EXPECT_FALSE(of(small("llama", {{"is_causal", false}})).causal());
}

TEST(EncoderConfig, WrongSettingsOfLayersAreRefusedByName) {
  const std::pair<json, const char*> cases[] = {
      {small("llama", {{"num_key_value_heads", 3}}),
       "num_key_value_heads must divide num_attention_heads 4. Got 3"},
      {small("llama", {{"head_dim", 1 << 21}}), "head_dim must be at most 1048576. Got 2097152"},
      {small("llama", {{"hidden_act", "xielu"}}), "hidden_act must be the name of an activation"},
      {small("modernbert", {{"layer_types", {"full_attention"}}}),
       "layer_types must be a list of the type of each of num_hidden_layers 4 layers"},
      {small("modernbert", {{"layer_types", {"full_attention", "a", "b", "c"}}}),
       "layer_types must have full_attention and sliding_attention only"},
      {small("modernbert", {{"local_attention", -2}}), "local_attention must be"},
      {small("qwen3", {{"layer_types", std::vector<std::string>(4, "sliding_attention")}}),
       "use_sliding_window must be true for layers of type sliding_attention"},
      {small("mistral", {{"sliding_window", 0}}), "sliding_window must be"},
      {small("gemma3_text", {{"query_pre_attn_scalar", 0}}),
       "query_pre_attn_scalar must be positive"},
      {small("gemma2", {{"attn_logit_softcapping", -30.0}}),
       "attn_logit_softcapping must be positive. Got -30"},
      {small("gemma2", {{"use_bidirectional_attention", true}}),
       "use_bidirectional_attention must be false or null"},
      {small("smollm3", {{"no_rope_layers", {1, 0}}}),
       "no_rope_layers must be a number for each of num_hidden_layers 4 layers"},
      {small("exaone4", {{"sliding_window_pattern", "LGX"}}),
       "sliding_window_pattern must be a number, or a text of L and G"},
      {small("phi3", {{"resid_pdrop", 1.5}}), "resid_pdrop must lie in [0, 1)"},
      {small("qwen3_moe", json::object()), "it needs a mixture of experts"},
      {small("convbert", {{"num_attention_heads", 3}, {"head_ratio", 1}}),
       "head_ratio must leave a number of heads"},
      {small("convbert", {{"conv_kernel_size", 4}}), "conv_kernel_size must be odd. Got 4"},
      {small("convbert", {{"num_groups", 3}}),
       "num_groups must divide hidden_size and intermediate_size. Got 3"},
      {small("deberta", {{"talking_head", true}}), "talking_head must be false. Got true"},
      {small("deberta", {{"pos_att_type", 3}}),
       "pos_att_type must be a list of c2p and p2c. Got 3"},
      {small("deberta-v2", {{"relative_attention", true}, {"position_buckets", 1}}),
       "position_buckets must be at least 2"},
      {small("deberta-v2", {{"conv_kernel_size", 2}}), "conv_kernel_size must be odd, or 0. Got 2"},
      {small("deberta-v2", {{"conv_kernel_size", 3}, {"conv_act", "none"}}),
       "conv_act must be the name of an activation of transformers that posenc has"},
      {small("deberta-v2", {{"pooler_hidden_size", 5}}), "pooler_hidden_size must be"},
      {small("fnet", {{"use_tpu_fourier_optimizations", true}}),
       "use_tpu_fourier_optimizations must be false with a max_position_embeddings of at most "
       "4096"},
      {small("mobilebert", {{"intra_bottleneck_size", 6}}),
       "num_attention_heads must divide intra_bottleneck_size 6. Got 4"},
      {small("mobilebert", {{"intra_bottleneck_size", 8}, {"key_query_shared_bottleneck", false}}),
       "key_query_shared_bottleneck must be true without use_bottleneck_attention"},
      {small("mobilebert", {{"normalization_type", "none"}}),
       "normalization_type must be no_norm or layer_norm"},
      {small("flaubert", {{"pre_norm", true}}), "pre_norm must be false"},
      {small("xlm", {{"causal", true}}), "causal must be false"}};
  for (const auto& [config, message] : cases) {
    EXPECT_ERROR(of(config), c10::ValueError, message);
  }
}

// X-MOD without a language of its own, DPR's readers whose padding counts, ESMC's heads.
TEST(EncoderConfig, ThoseOfRetrievalModelsAreReadAsTheirClassesReadThem) {
  const json xmod = {{"languages", {"de_DE", "sw"}}, {"pre_norm", true}};
  EXPECT_ERROR(of(small("xmod", xmod)), c10::ValueError,
               "default_language must be one of languages [\"de_DE\",\"sw\"]: the adapters of one "
               "language are loaded");
  json chosen = xmod;
  chosen["default_language"] = "sw";
  const auto layers = of(small("xmod", chosen)).encoder();
  EXPECT_TRUE(layers.norm() && layers.layer().norm_first());
  EXPECT_EQ(layers.layer().adapter()->width(), 8);
  EXPECT_ERROR(of(small("bert", {{"pre_norm", true}})), c10::ValueError, "pre_norm must be false");
  EXPECT_ERROR(of(small("esmc", {{"num_key_value_heads", 2}})), c10::ValueError,
               "num_key_value_heads must be num_attention_heads 4. Got 2");
  const auto dpr = [](const char* name) {
    return of(small("dpr", {{"architectures", {name}}, {"projection_dim", 5}}));
  };
  EXPECT_TRUE(dpr("DPRContextEncoder").masks_padding());
  EXPECT_FALSE(dpr("DPRReader").masks_padding());
  EXPECT_EQ(dpr("DPRQuestionEncoder").pooler_dim(), 5);
  EXPECT_EQ(dpr("DPRQuestionEncoder").pooling(), encoder::Pooling::LinearOfFirst);
}

// UltraBERT's first files.
TEST(EncoderConfig, UltraBertTakesAWindowAndABaseOfEachLayer) {
  const json old = {{"attention_windows", {0, 3, nullptr, 5}}, {"rope_theta", {100, 10, 100, 10}}};
  const auto options = of(small("ultrabert", old)).encoder();
  const auto full = options.layer_at(0), sliding = options.layer_at(3);
  EXPECT_EQ(full.window(), std::nullopt);
  EXPECT_EQ(sliding.window(), 3);
  EXPECT_EQ(options.layer_at(2).window(), std::nullopt);
  EXPECT_EQ(full.rotary()->rotary().base(), 100.0);
  EXPECT_EQ(sliding.rotary()->rotary().base(), 10.0);
  EXPECT_ERROR(of(small("ultrabert", {{"attention_windows", 3}})), c10::ValueError,
               "attention_windows must be a list of the window of each layer");
}

TEST(EncoderConfig, QwenVisionTakesTheUsualNames) {
  const std::string start = R"({"model_type": "qwen2_5_vl_vision", "hidden_size": 1024, )";
  EXPECT_EQ(rotary_options_from_hf(start + R"("num_attention_heads": 8})").dim(), 128);
  EXPECT_EQ(rotary_options_from_hf(start + R"("num_heads": 8})").dim(), 128);
}

// What the older object has replaces the newer one's, and what it lacks has the class's default.
TEST(EncoderConfig, TheOlderObjectOfClipReplacesTheOther) {
  for (const char* type : {"clip", "clipseg", "chinese_clip"}) {
    SCOPED_TRACE(type);
    const json config = {
        {"model_type", type},
        {"text_config", {{"hidden_size", 64}, {"num_attention_heads", 2}, {"vocab_size", 50}}},
        {"text_config_dict", {{"hidden_size", 64}, {"num_attention_heads", 4}}}};
    const auto options = of(config);
    EXPECT_EQ(options.encoder().layer().num_heads(), 4);
    EXPECT_EQ(options.encoder().layer().d_model(), 64);
    const auto vocab = of({{"model_type", type}}).embeddings()->vocab_size();
    EXPECT_EQ(options.embeddings()->vocab_size(), vocab) << "the default, not 50";
    EXPECT_EQ(encoder_embeddings_options_from_hf(config.dump()).vocab_size(), vocab);
    json alone = config, null = config;
    alone.erase("text_config");
    EXPECT_EQ(of(alone).encoder().layer().num_heads(), 4);
    null["text_config_dict"] = nullptr;
    EXPECT_EQ(of(null).encoder().layer().num_heads(), 2);
    EXPECT_EQ(of(null).embeddings()->vocab_size(), 50);
  }
  EXPECT_ERROR(of({{"model_type", "clip"}, {"text_config_dict", {{"num_attention_heads", 5}}}}),
               c10::ValueError, "text_config_dict.num_attention_heads must divide hidden_size 512");
  const json siglip = {{"model_type", "siglip"},
                       {"text_config", {{"num_attention_heads", 2}}},
                       {"text_config_dict", {{"num_attention_heads", 4}}}};
  EXPECT_EQ(of(siglip).encoder().layer().num_heads(), 2) << "its class knows no such object";
}

TEST(EncoderConfig, TheOlderObjectOfImagesReplacesTheOther) {
  const json config = {{"model_type", "clip"},
                       {"vision_config", {{"image_size", 64}, {"patch_size", 8}}},
                       {"vision_config_dict", {{"patch_size", 16}}}};
  const auto options = vision_embeddings_options_from_hf(config.dump());
  EXPECT_EQ(options.patch_height(), 16);
  EXPECT_EQ(options.image_height(), 224);
}

TEST(EncoderConfig, ANameTwiceIsAnError) {
  EXPECT_ERROR(
      encoder_options_from_hf(R"({"model_type": "bert", "hidden_size": 8, "hidden_size": 16})"),
      c10::ValueError,
      "[encoder_options_from_hf] the configuration: must have each name once in its settings. Got "
      "'hidden_size' twice");
  EXPECT_ERROR(
      encoder_options_from_hf(R"({"model_type": "clip", "text_config": {"a": 1, "a": 1}})"),
      c10::ValueError, "Got 'a' twice");
  EXPECT_NO_THROW(encoder_options_from_hf(R"({"model_type": "clip", "a": 1,
                                              "text_config": {"a": 1}})"));
}

// With more groups than layers, the groups of the last ones do nothing.
TEST(EncoderConfig, AlbertMayHaveMoreGroupsThanLayers) {
  const json config = {
      {"model_type", "albert"}, {"num_hidden_layers", 2}, {"num_hidden_groups", 3}};
  EXPECT_EQ(of(config).encoder().order(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(of(config).encoder().num_layers(), 3);
}

}  // namespace
}  // namespace posenc::testing
