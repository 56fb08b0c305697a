// posenc-budget: one case for each way in which configurations specify a rotary embedding
#include "posenc/models/rotary_config.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/temp_dir.h"

#include <fstream>

namespace posenc {
namespace {

using posenc::testing::message_of;

RotaryOptions of(const std::string& json, const std::string& layer = "") {
  return rotary_options_from_hf(json, layer);
}
std::string refusal(const std::string& json, const std::string& layer = "") {
  return message_of([&] { rotary_options_from_hf(json, layer); });
}
// Llama with these rope_parameters.
std::string llama(const std::string& rope) {
  return R"({"model_type": "llama", "head_dim": 64, "rope_parameters": )" + rope + "}";
}

TEST(RotaryConfig, EveryModelHasAPreset) {
  std::set<std::string> types;
  for (const RotaryModel& model : rotary_models()) {
    EXPECT_EQ(find_rotary_preset(model.preset).name, model.preset);
    EXPECT_TRUE(types.insert(model.model_type).second) << model.model_type;
  }
  EXPECT_GT(types.size(), 180U);
}

TEST(RotaryConfig, ReadsTheKeysOfItsVersion) {
  const auto today = of(llama(R"({"rope_type": "linear", "factor": 4.0, "rope_theta": 500000.0})"));
  EXPECT_EQ(today.dim(), 64);
  EXPECT_EQ(today.base(), 500000.0);
  EXPECT_EQ(std::get<rotary::Linear>(today.scaling()).factor, 4.0);
  const auto before = of(R"({"model_type": "llama", "hidden_size": 128, "num_attention_heads": 2,
                             "rope_theta": 500000.0,
                             "rope_scaling": {"type": "linear", "factor": 4.0}})");
  EXPECT_EQ(before.dim(), 64);
  EXPECT_EQ(before.base(), 500000.0);
  EXPECT_EQ(std::get<rotary::Linear>(before.scaling()).factor, 4.0);
}

TEST(RotaryConfig, DefaultsAreThoseOfTheModelsClass) {
  EXPECT_EQ(of(R"({"model_type": "llama"})").dim(), 128);
  const auto neox = of(R"({"model_type": "gpt_neox"})");
  EXPECT_EQ(neox.dim(), 24);  // a quarter of 96
  EXPECT_EQ(neox.part(), rotary::Part::First);
  EXPECT_EQ(of(R"({"model_type": "gpt_neox", "rotary_pct": 0.5})").dim(), 48);
  EXPECT_EQ(of(R"({"model_type": "cohere"})").base(), 500000.0);
  const auto oss = of(R"({"model_type": "gpt_oss"})");
  EXPECT_FALSE(std::get<rotary::Yarn>(oss.scaling()).truncate);
  EXPECT_EQ(of(R"({"model_type": "llama", "head_dim": 0})").dim(), 128);
  EXPECT_EQ(of(R"({"model_type": "minimax_m2", "rotary_dim": 32})").dim(), 32);
}

TEST(RotaryConfig, OneForEachLayerType) {
  const std::string config = R"({"model_type": "gemma3_text"})";
  EXPECT_EQ(of(config, "sliding_attention").base(), 10000.0);
  EXPECT_EQ(of(config, "full_attention").base(), 1000000.0);
  EXPECT_EQ(refusal(config),
            "[rotary_options_from_hf] the configuration: `gemma3_text` has a rotary embedding for "
            "each layer type: "
            "layer_type must be one of sliding_attention, full_attention. Got no layer type");
  EXPECT_EQ(refusal(R"({"model_type": "llama"})", "full_attention"),
            "[rotary_options_from_hf] the configuration: `llama` has one rotary embedding for all "
            "layers: layer_type "
            "must be left out. Got full_attention");
  EXPECT_EQ(refusal(R"({"model_type": "laguna", "rope_parameters": {"full_attention": {}}})",
                    "full_attention"),
            "[rotary_options_from_hf] the configuration: rope_parameters.full_attention must be "
            "an object: `laguna` "
            "rotates these layers by it");
}

TEST(RotaryConfig, HeadWidthsOfLayers) {
  const std::string start = R"({"model_type": "gemma4_text", "head_dim": 64, )";
  EXPECT_EQ(of(start + R"("global_head_dim": 256})", "full_attention").dim(), 256);
  EXPECT_EQ(of(start + R"("global_head_dim": 256})", "sliding_attention").dim(), 64);
  const std::string layers = R"("layer_types": ["sliding_attention", "full_attention"],
                                "per_layer_config": {"1": {"head_dim": 96}}})";
  EXPECT_EQ(of(start + layers, "full_attention").dim(), 96);
  EXPECT_EQ(of(start + layers, "sliding_attention").dim(), 64);
  const std::string padded = R"("layer_types": ["sliding_attention", "full_attention"],
                                "per_layer_config": {"01": {"head_dim": 96}}})";  // of many layers
  EXPECT_EQ(of(start + padded, "full_attention").dim(), 96);
  EXPECT_EQ(of(start + padded, "sliding_attention").dim(), 64);
}

TEST(RotaryConfig, TheOriginalLengthIsTheClassesOwnWhereTheLengthHasItsOldName) {
  const auto original = [](const std::string& key) {
    const auto options = of(R"({"model_type": "bailing_hybrid", "qk_rope_head_dim": 64, ")" + key +
                            R"(": 128, "rope_parameters": {"rope_type": "yarn", "factor": 8.0}})");
    return std::get<rotary::Yarn>(options.scaling()).original_max_position;
  };
  EXPECT_EQ(original("max_position_embeddings"), 128);
  EXPECT_EQ(original("model_max_length"), 262144);
}

TEST(RotaryConfig, ACompositeModelStandsForItsText) {
  const auto inner = of(R"({"model_type": "qwen2_vl", "text_config": {"head_dim": 8,
      "hidden_size": 16, "num_attention_heads": 2,
      "rope_parameters": {"type": "mrope", "mrope_section": [1, 1, 2]}}})");
  EXPECT_EQ(inner.planes(), rotary::Planes::Chunked);
  EXPECT_EQ(inner.dim(), 8);
  const auto flat = of(R"({"model_type": "qwen2_vl", "hidden_size": 256, "num_attention_heads": 2,
      "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})");
  EXPECT_EQ(flat.dim(), 128);
}

TEST(RotaryConfig, MolmosLayersAreScaledOrNot) {
  const std::string config = R"({"model_type": "molmo2_text", "rope_scaling_layers": [1],
      "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}})";
  for (const std::string layer : {"", "scaled", "unscaled"}) {
    const auto options = rotary_options_from_hf(config, layer);
    EXPECT_EQ(options.base(), 5000.0);
    EXPECT_EQ(std::holds_alternative<rotary::Linear>(options.scaling()), layer != "unscaled");
  }
  EXPECT_EQ(message_of([&] { rotary_options_from_hf(config, "sliding_attention"); }),
            "[rotary_options_from_hf] the configuration: `molmo2_text` has layers of the types "
            "scaled, in "
            "rope_scaling_layers, and unscaled. Got sliding_attention");
}

// Zamba2's heads are twice as wide as its hidden size divided by them.
TEST(RotaryConfig, AWidthThatTheClassDerivesFollowsItsSettings) {
  EXPECT_EQ(of(R"({"model_type": "zamba2"})").dim(), 160);
  EXPECT_EQ(of(R"({"model_type": "zamba2", "hidden_size": 1024, "num_attention_heads": 8})").dim(),
            256);
}

TEST(RotaryConfig, InterleavingMayBeSwitchedOff) {
  EXPECT_EQ(of(R"({"model_type": "deepseek_v3"})").pairing(), rotary::Pairing::AdjacentToHalves);
  for (const char* off : {"false", "null"}) {  // as Python takes both
    const std::string config = R"({"model_type": "deepseek_v3", "rope_interleave": )";
    EXPECT_EQ(of(config + off + "}").pairing(), rotary::Pairing::Halves);
  }
}

TEST(RotaryConfig, ReadsAFile) {
  const posenc::testing::TempDir folder;
  std::ofstream(folder / "config.json") << llama(R"({"rope_theta": 7.0})");
  EXPECT_EQ(rotary_options_from_hf(folder / "config.json").base(), 7.0);
  EXPECT_NE(message_of([&] { rotary_options_from_hf(folder / "none.json"); }), "");
  std::ofstream(folder / "list.json") << "[]";
  EXPECT_EQ(
      message_of([&] { rotary_options_from_hf(folder / "list.json"); }),
      "[rotary_options_from_hf] " + (folder / "list.json") + ": must be a JSON object. Got array");
  std::ofstream(folder / "wide.json") << llama(R"({"rope_theta": "wide"})");
  EXPECT_EQ(message_of([&] { rotary_options_from_hf(folder / "wide.json"); }),
            "[rotary_options_from_hf] " + (folder / "wide.json") +
                ": rope_parameters.rope_theta must be a number. Got \"wide\"");
  const std::string long_file = folder / "long.json";
  std::ofstream(long_file) << "{}";
  std::filesystem::resize_file(long_file, 16'000'001);
  EXPECT_NE(message_of([&] {
              rotary_options_from_hf(long_file);
            }).find(long_file + ": must have at most 16000000 bytes. Got 16000001"),
            std::string::npos);
  EXPECT_EQ(
      refusal("{").find("[rotary_options_from_hf] the configuration: must have JSON in UTF-8"), 0U)
      << refusal("{");
}

TEST(RotaryConfig, UnknownNamesGiveTheNearest) {
  EXPECT_EQ(refusal(R"({"model_type": "lama"})").substr(0, 123),
            "[rotary_options_from_hf] the configuration: `model_type` must be one whose rotary "
            "embedding is known; "
            "the nearest are llama");
  EXPECT_EQ(refusal("{}").substr(0, 101),
            "[rotary_options_from_hf] the configuration: `model_type` must be one whose rotary "
            "embedding is known;");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "yarm"})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.rope_type must be a "
            "type of scaling that "
            "`llama` knows; the nearest are yarn, linear, dynamic. Got \"yarm\"");
  EXPECT_EQ(refusal(R"({"model_type": "phimoe", "rope_scaling": {"type": "linear"}})"),
            "[rotary_options_from_hf] the configuration: rope_scaling.type must be a type of "
            "scaling that `phimoe` "
            "knows; the nearest are longrope, default. Got \"linear\"");
}

TEST(RotaryConfig, ErrorsNameTheKey) {
  EXPECT_EQ(refusal(llama(R"({"rope_type": "linear"})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.factor is needed for "
            "rope_type linear");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "linear", "factor": "4"})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.factor must be a "
            "number. Got \"4\"");
  EXPECT_EQ(refusal(llama(R"({"rope_type": 3})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.rope_type must be a "
            "text. Got 3");
  EXPECT_EQ(
      refusal(llama("[]")),
      "[rotary_options_from_hf] the configuration: rope_parameters must be an object. Got []");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "hidden_size": 1.5})"),
            "[rotary_options_from_hf] the configuration: hidden_size must be an integer. Got 1.5");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "hidden_size": 1e16})"),
            "[rotary_options_from_hf] the configuration: hidden_size must be an integer. Got "
            "1e+16");
  EXPECT_EQ(
      refusal(llama("\"" + std::string(200, 'x') + "\"")),
      "[rotary_options_from_hf] the configuration: rope_parameters must be an object. Got \"" +
          std::string(119, 'x') + "...");
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\u00e9";
  EXPECT_TRUE(io::is_utf8(refusal(llama("\"" + accents + "\"")))) << "cut between characters";
  EXPECT_EQ(
      refusal(R"({"model_type": "llama", "num_attention_heads": 0})"),
      "[rotary_options_from_hf] the configuration: num_attention_heads must be positive. Got 0");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "head_dim": -2})"),
            "[rotary_options_from_hf] the configuration: head_dim must be positive. Got -2");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "longrope", "short_factor": 1})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.short_factor must be a "
            "list of numbers. "
            "Got 1");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "longrope"})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.short_factor must be a "
            "list of numbers for "
            "rope_type longrope. Got null");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "longrope", "short_factor": ["a"]})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.short_factor must be a "
            "list of numbers. "
            "Got [\"a\"]");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "yarn", "factor": 2, "truncate": 1})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.truncate must be true "
            "or false. Got 1");
  EXPECT_EQ(refusal(llama(R"({"rope_type": "linear", "factor": -1})")),
            "[rotary_options_from_hf] the configuration: `llama`: [rotary] factor must be positive "
            "and finite. Got -1");
  EXPECT_EQ(refusal(R"({"model_type": "qwen2_vl_text", "rope_parameters":
                        {"mrope_section": [1, 2.5, 3]}})"),
            "[rotary_options_from_hf] the configuration: rope_parameters.mrope_section must be a "
            "list of integers. Got [1,2.5,3]");
  EXPECT_EQ(refusal(R"({"model_type": "qwen2_vl_text", "rope_parameters": {"mrope_section": 3}})"),
            "[rotary_options_from_hf] the configuration: rope_parameters.mrope_section must be a "
            "list of integers. Got 3");
}

// The expected numbers are those of transformers 5.23 for the same configuration.

struct Expected {
  const char* config;
  const char* layer;
  int64_t dim;
  double base, factor;  ///< factor: of linear scaling, 1 for none
};

double linear_factor(const RotaryOptions& options) {
  const auto* linear = std::get_if<rotary::Linear>(&options.scaling());
  return linear == nullptr ? 1.0 : linear->factor;
}

void expect_all(const std::vector<Expected>& cases) {
  for (const Expected& expected : cases) {
    SCOPED_TRACE(std::string(expected.config) + " " + expected.layer);
    const RotaryOptions options = of(expected.config, expected.layer);
    EXPECT_EQ(options.dim(), expected.dim);
    EXPECT_EQ(options.base(), expected.base);
    EXPECT_EQ(linear_factor(options), expected.factor);
  }
}

TEST(RotaryConfig, ListsByLayer) {
  const std::string start = R"({"model_type": "step3p5", "rope_theta": [5e6, 1e4],
      "layer_types": ["full_attention", "sliding_attention"], )";
  const std::string lists = start + R"("partial_rotary_factors": [0.5, 1.0]})";
  const std::string scaled = start + R"("rope_scaling": {"rope_type": "linear", "factor": 4.0}})";
  const char* given = R"({"model_type": "step3p5", "rope_theta": 7.0,
      "rope_scaling": {"rope_type": "linear", "factor": 2.0},
      "rope_parameters": {"full_attention": {"rope_theta": 5.0}}})";
  expect_all(
      {{lists.c_str(), "full_attention", 64, 5e6, 1.0},
       {lists.c_str(), "sliding_attention", 128, 1e4, 1.0},
       {scaled.c_str(), "full_attention", 128, 5e6, 4.0},
       {scaled.c_str(), "sliding_attention", 128, 1e4, 1.0},
       {given, "full_attention", 128, 5.0, 1.0},
       {R"({"model_type": "step3p5", "rope_theta": 7777.0})", "full_attention", 128, 7777.0, 1.0}});
  EXPECT_EQ(refusal(R"({"model_type": "step3p5", "rope_theta": [5.0],
                        "layer_types": ["full_attention", "sliding_attention"]})",
                    "sliding_attention"),
            "[rotary_options_from_hf] the configuration: rope_theta must be a number for each of "
            "layer_types. Got "
            "[5.0]");
  EXPECT_NE(refusal(R"({"model_type": "step3p5"})", "sliding_attention"), "");
  const std::string beam = R"({"model_type": "beam", "rope_parameters": {
      "sliding_attention": {"rope_theta": 6.0}, "full_attention": )";
  EXPECT_EQ(of(beam + R"({"rope_theta": 5.0}}})", "full_attention").base(), 5.0);
  EXPECT_NE(refusal(beam + "null}}", "full_attention"), "");
}

TEST(RotaryConfig, FlatParametersOfModelsWithLayers) {
  expect_all(
      {{R"({"model_type": "gemma3_text", "rope_scaling": {"type": "linear", "factor": 2.0}})",
        "full_attention", 256, 1e6, 1.0},  // which reads rope_type only
       {R"({"model_type": "gemma3_text", "partial_rotary_factor": 0.75,
            "rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
        "full_attention", 192, 1e6, 2.0},
       {R"({"model_type": "modernbert", "rope_scaling": {"type": "linear", "factor": 2.0}})",
        "sliding_attention", 64, 1e4, 1.0},
       {R"({"model_type": "olmo3", "rope_scaling": {"type": "linear", "factor": 2.0}})",
        "full_attention", 128, 5e5, 1.0},
       {R"({"model_type": "deepseek_v4", "rope_parameters": {"type": "linear", "factor": 2.0,
            "rope_theta": 7.0, "partial_rotary_factor": 0.25}})",
        "compress", 64, 160000.0, 2.0},
       {R"({"model_type": "deepseek_v4", "rope_scaling": {"type": "linear", "factor": 2.0}})",
        "main", 64, 1e4, 1.0},
       {R"({"model_type": "dots3_note_text", "rope_theta": 7777.0,
            "rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
        "sliding_attention", 64, 7777.0, 2.0},
       {R"({"model_type": "dots3_note_text", "rope_parameters":
            {"rope_type": "linear", "factor": 2.0}})",
        "indexed_attention", 64, 8e7, 2.0},
       {R"({"model_type": "olmo3", "rope_parameters": {"full_attention": {"rope_theta": 5.0}},
            "rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
        "full_attention", 128, 5.0, 2.0},
       {R"({"model_type": "mimo_v2_flash", "rope_parameters": {"full_attention":
            {"rope_type": "linear", "factor": 2.0}}})",
        "full_attention", 192, 5e6, 2.0},  // the default share is of unscaled frequencies
       {R"({"model_type": "mimo_v2_flash", "rope_parameters": {"full_attention":
            {"rope_type": "default"}}})",
        "full_attention", 64, 5e6, 1.0}});
  const auto compressed = of(R"({"model_type": "deepseek_v4", "rope_scaling": {"type": "yarn",
      "factor": 4.0, "original_max_position_embeddings": 65536}})",
                             "compress");
  EXPECT_EQ(std::get<rotary::Yarn>(compressed.scaling()).attention_factor, 1.0);
  EXPECT_EQ(
      refusal(R"({"model_type": "mellum", "rope_scaling": {"factor": 2.0}})", "full_attention"),
      "[rotary_options_from_hf] the configuration: rope_scaling must be left out: `mellum` has "
      "rope_parameters by layer type. Got {\"factor\":2.0}");
  EXPECT_EQ(refusal(R"({"model_type": "modernbert", "rope_parameters": {"factor": 2.0}})",
                    "full_attention"),
            "[rotary_options_from_hf] the configuration: rope_parameters must be objects by "
            "layer type and nothing "
            "else. Got {\"factor\":2.0}");
}

TEST(RotaryConfig, KeysBesideTheParameters) {
  const char* audio = R"({"model_type": "nemotron3_5_transcribe_asr_audio",
      "rope_parameters": {"rope_type": "default", "rope_theta": 7777.0}})";
  expect_all(
      {{R"({"model_type": "moonshine_streaming", "rope_theta": 7777.0})", "", 32, 1e4, 1.0},
       {R"({"model_type": "nemotron3_5_transcribe_asr_audio", "rope_theta": 7.0})", "", 64, 1e4,
        1.0},
       {audio, "", 128, 7777.0, 1.0},
       {R"({"model_type": "cohere2_moe", "rope_scaling": {"type": "linear", "factor": 2.0}})", "",
        128, 1e4, 1.0},
       {R"({"model_type": "zaya", "partial_rotary_factor": 0.75})", "hybrid", 64, 5e6, 1.0},
       {R"({"model_type": "neomme", "partial_rotary_factor": 0.75})", "full_attention", 16, 1e6,
        1.0},
       {R"({"model_type": "diffusion_gemma_text", "partial_rotary_factor": 0.75})",
        "sliding_attention", 192, 1e4, 1.0},
       {R"({"model_type": "mistral4", "qk_rope_head_dim": 32, "rope_parameters":
            {"rope_type": "linear", "factor": 2.0}})",
        "", 32, 1e4, 2.0},
       {R"({"model_type": "jetmoe", "head_dim": 64})", "", 64, 1e4, 1.0},
       {R"({"model_type": "zamba2", "head_dim": 64})", "", 64, 1e4, 1.0},
       {R"({"model_type": "zamba2", "attention_head_dim": 8})", "", 8, 1e4, 1.0},
       {R"({"model_type": "zamba2", "hidden_size": 64, "num_attention_heads": 4})", "", 32, 1e4,
        1.0},
       {R"({"model_type": "zamba2"})", "", 160, 1e4, 1.0}});
  EXPECT_EQ(refusal(R"({"model_type": "jetmoe", "head_dim": 64, "kv_channels": 32})"),
            "[rotary_options_from_hf] the configuration: head_dim and kv_channels are two names of "
            "one setting and must have the same value. Got 64 and 32");
  EXPECT_EQ(of(R"({"model_type": "gpt_oss", "rope_theta": 7777.0})").base(), 7777.0);
  EXPECT_EQ(of(R"({"model_type": "openai_privacy_filter", "rope_theta": 7777.0})").base(), 7777.0);
  for (const char* model : {"dbrx", "bailing_hybrid"}) {
    const auto options = of(std::string(R"({"model_type": ")") + model +
                            R"(", "max_position_embeddings": 1000, "rope_parameters": {"rope_type":
                               "yarn", "factor": null, "original_max_position_embeddings": 100}})");
    EXPECT_EQ(std::get<rotary::Yarn>(options.scaling()).factor, 10.0) << model;
  }
  const auto sections = of(R"({"model_type": "hunyuan_vl_text", "head_dim": 16, "rope_parameters":
      {"rope_type": "xdrope", "alpha": 1000.0, "xdrope_section": [2, 1, 2, 3]}})");
  EXPECT_EQ(sections.sections(), (std::vector<int64_t>{2, 1, 2, 3}));
  const auto phi3 = of(R"({"model_type": "phi3", "hidden_size": 64, "num_attention_heads": 8,
      "original_max_position_embeddings": 100, "rope_scaling": {"type": "yarn",
      "short_factor": [1, 1, 1, 1], "long_factor": [2, 2, 2, 2]}})");
  EXPECT_EQ(std::get<rotary::LongRope>(phi3.scaling()).original_max_position, 100.0);
}

TEST(RotaryConfig, WhatTransformersRefuses) {
  for (const char* value : {"null", "0"}) {
    EXPECT_EQ(refusal(std::string(R"({"model_type": "gptj", "rotary_dim": )") + value + "}"),
              std::string(
                  "[rotary_options_from_hf] the configuration: rotary_dim must be positive. Got ") +
                  value);
  }
  for (const char* model : {"phi3", "phi4_multimodal"}) {
    EXPECT_EQ(refusal(std::string(R"({"model_type": ")") + model +
                      R"(", "rope_scaling": {"type": "linear", "factor": 2.0}})"),
              std::string("[rotary_options_from_hf] the configuration: rope_scaling.type must be "
                          "a type of scaling "
                          "that `") +
                  model + "` knows; the nearest are longrope, default. Got \"linear\"");
  }
}

TEST(RotaryConfig, YarnNeedsItsFactorIfOnlyAsNull) {
  EXPECT_EQ(refusal(llama(R"({"rope_type": "yarn", "original_max_position_embeddings": 512})")),
            "[rotary_options_from_hf] the configuration: rope_parameters.factor is needed for "
            "rope_type yarn");
  const auto null = of(llama(R"({"rope_type": "yarn", "factor": null,
                                 "original_max_position_embeddings": 512})"));
  EXPECT_EQ(std::get<rotary::Yarn>(null.scaling()).factor, 4.0);
}

TEST(RotaryConfig, ATruncateOfNullIsFalse) {
  const auto truncates = [](const std::string& more) {
    const auto options = of(llama(R"({"rope_type": "yarn", "factor": 4.0)" + more + "}"));
    return std::get<rotary::Yarn>(options.scaling()).truncate;
  };
  EXPECT_TRUE(truncates(""));
  EXPECT_FALSE(truncates(R"(, "truncate": null)"));
  EXPECT_FALSE(truncates(R"(, "truncate": false)"));
}

TEST(RotaryConfig, WidthsOfPatchesAndOfSound) {
  const auto dim = [](const std::string& json) { return of(json).dim(); };
  EXPECT_EQ(dim(R"({"model_type": "dinov3_vit"})"), 64);
  EXPECT_EQ(dim(R"({"model_type": "llama4_vision_model"})"), 48);
  EXPECT_EQ(dim(R"({"model_type": "sam2_video"})"), 256);
  EXPECT_EQ(dim(R"({"model_type": "sam2_video", "memory_attention_downsample_rate": 2,
                    "memory_attention_num_attention_heads": 4})"),
            32);
  EXPECT_EQ(dim(R"({"model_type": "vjepa2", "hidden_size": 22, "num_attention_heads": 1})"), 18);
  EXPECT_EQ(dim(R"({"model_type": "efficientloftr"})"), 256);
  EXPECT_EQ(dim(R"({"model_type": "clvp_encoder"})"), 32);
  EXPECT_EQ(dim(R"({"model_type": "clvp_encoder", "projection_dim": 1024})"), 42);
  EXPECT_EQ(dim(R"({"model_type": "seamless_m4t", "speech_encoder_attention_heads": 8})"), 128);
  EXPECT_EQ(dim(R"({"model_type": "lightglue", "descriptor_dim": 128})"), 32);
}

TEST(RotaryConfig, ParticularsOfPatchesAndOfSound) {
  EXPECT_EQ(of(R"({"model_type": "dinov3_vit"})").base(), 100.0);
  EXPECT_EQ(of(R"({"model_type": "dinov3_vit", "rope_theta": 50.0,
                   "rope_parameters": {"rope_theta": 7.0}})")
                .base(),
            50.0);
  EXPECT_EQ(of(R"({"model_type": "wav2vec2-bert", "rotary_embedding_base": 500})").base(), 500.0);
  EXPECT_EQ(of(R"({"model_type": "sam2_video", "rope_parameters": {"rope_theta": 7.0},
                   "memory_attention_rope_theta": 500.0})")
                .base(),
            500.0);
  EXPECT_EQ(of(R"({"model_type": "roformer", "rope_theta": 7.0})").base(), 10000.0);
  EXPECT_FALSE(of(R"({"model_type": "roformer"})").rotary_value());
  EXPECT_TRUE(of(R"({"model_type": "roformer", "rotary_value": true})").rotary_value());
  EXPECT_EQ(of(R"({"model_type": "sam3_vit_model", "window_size": 7})").grid().reference,
            (std::vector<int64_t>{7, 7}));
  EXPECT_EQ(refusal(R"({"model_type": "llama4_vision_model",
                        "rope_parameters": {"rope_type": "linear", "factor": 2.0}})"),
            "[rotary_options_from_hf] the configuration: rope_parameters.rope_type must be a "
            "type of scaling that "
            "`llama4_vision_model` knows; the nearest are default. Got \"linear\"");
  EXPECT_EQ(refusal(R"({"model_type": "sam2_video", "memory_attention_downsample_rate": 0})"),
            "[rotary_options_from_hf] the configuration: memory_attention_downsample_rate must "
            "be positive. Got 0");
}

TEST(RotaryConfig, ParametersByTheirNames) {
  const auto options = rotary_options_from_params(
      "llama", {{"head_dim", 64}, {"rope_type", "linear"}, {"factor", 2.5}});
  EXPECT_EQ(options.dim(), 64);
  EXPECT_EQ(std::get<rotary::Linear>(options.scaling()).factor, 2.5);
  const auto planes =
      rotary_options_from_params("qwen2_vl", {{"head_dim", 8}, {"mrope_section", "1,1,2"}});
  EXPECT_EQ(planes.sections(), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(
      message_of([] { rotary_options_from_params("llama", {{"head_dims", 64}}); }).substr(0, 88),
      "[rotary_options_from_params] there is no parameter `head_dims`; the nearest are "
      "head_dim");
  EXPECT_EQ(message_of([] { rotary_options_from_params("llama", {}); }),
            "[rotary_options_from_params] `llama` needs the parameter `head_dim`");
}

TEST(RotaryConfig, ReadsTheOrderOfPatches) {
  const auto merge = [](const std::string& model, const std::string& more = "") {
    return of(R"({"model_type": ")" + model + "\"" + more + "}").grid().merge;
  };
  EXPECT_EQ(merge("qwen3_vl_vision"), 2);
  EXPECT_EQ(merge("qwen3_vl_vision", R"(, "spatial_merge_size": 3)"), 3);
  EXPECT_EQ(merge("inkling2_vision", R"(, "adapter_merge_size": 4)"), 4);
  EXPECT_EQ(merge("paddleocr_vl_vision", R"(, "spatial_merge_size": 2)"), 1);
  EXPECT_EQ(merge("kimi_k25_vision"), 1);
  EXPECT_EQ(merge("muse_glimmer_vision", R"(, "merge_size": 2)"), 1);
  EXPECT_EQ(merge("video_llama_3_vision"), 0) << "its processor's";
}

// Llama 4 Scout's config.json: between the two wavelengths there is nothing.
TEST(RotaryConfig, ReadsLlama3WithEqualFactors) {
  const auto scout = of(R"({"model_type": "llama4", "text_config": {"head_dim": 128,
      "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 16.0,
      "low_freq_factor": 1.0, "high_freq_factor": 1.0,
      "original_max_position_embeddings": 8192}}})");
  const auto f = torch::pow(500000.0, torch::arange(0, 128, 2, torch::kFloat) / 128).reciprocal();
  const auto wavelength = f.reciprocal() * (2 * 3.141592653589793);
  const auto expected = torch::where(wavelength > 8192.0, f / 16.0, f);
  EXPECT_TRUE(posenc::testing::bit_equal(rotary_frequencies(scout).inv_freq, expected));
}

}  // namespace
}  // namespace posenc
