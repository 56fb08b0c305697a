#include "posenc/models/encoder_embeddings_preset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include "posenc/core/skip_init.h"
#include "posenc/positions/nn/encoder_embeddings.h"
#include "posenc/weights/error.h"
#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc {
namespace {

using embeddings::Norm;
using embeddings::Order;
using embeddings::PositionIds;
using embeddings::Projection;
using testing::message_of;

// A configuration of `model_type` with further settings; ESM has no sizes by default.
std::string config_of(const std::string& model_type, const std::string& settings = "") {
  return R"({"model_type": ")" + model_type + "\"" + (settings.empty() ? "" : ", ") + settings +
         (model_type == "esm" ? R"(, "vocab_size": 33, "pad_token_id": 1})" : "}");
}
std::string preset_refusal(const std::string& config) {
  return message_of([&] { encoder_embeddings_options_from_hf(config); });
}

TEST(EncoderEmbeddingsPreset, EveryModelTypeHasAPresetAndBuilds) {
  const SkipInit no_draws;
  const std::string small =
      R"("hidden_size": 8, "d_model": 8, "n_embd": 8, "dim": 8, "embedding_size": 8,
         "input_embedding_size": 8, "word_embed_proj_dim": 8, "coordinate_size": 1, "shape_size": 2)";
  std::set<std::string> presets, types;
  for (const EncoderEmbeddingsPreset& preset : encoder_embeddings_presets()) {
    EXPECT_TRUE(presets.insert(preset.name).second) << preset.name;
    EXPECT_FALSE(preset.formula.empty() || preset.source.empty());
    EXPECT_EQ(encoder_embeddings_preset(preset.name, "{" + small + "}").d_model(), 8);
  }
  for (const EncoderEmbeddingsModel& model : encoder_embeddings_models()) {
    EXPECT_TRUE(types.insert(model.model_type).second) << model.model_type;
    EXPECT_EQ(presets.count(model.preset), 1U) << model.preset;
    const std::string config = config_of(model.model_type, small);
    EncoderEmbeddings embeddings(encoder_embeddings_options_from_hf(config));
    EXPECT_EQ(embeddings->forward(torch::tensor({{5, 4, 3}})).sizes(),
              (std::vector<int64_t>{1, 3, 8}))
        << model.model_type;
    EXPECT_EQ(encoder_embeddings_preset(model.preset, config).vocab_size(),
              embeddings->options.vocab_size());
  }
  EXPECT_GE(types.size(), 77U);
}

TEST(EncoderEmbeddingsPreset, ReadsBert) {
  const auto options = encoder_embeddings_options_from_hf(config_of("bert", R"("vocab_size": 50,
      "hidden_size": 24, "max_position_embeddings": 40, "type_vocab_size": 3,
      "layer_norm_eps": 1e-5, "hidden_dropout_prob": 0.25, "pad_token_id": 7)"));
  EXPECT_EQ(options.vocab_size(), 50);
  EXPECT_EQ(options.d_model(), 24);
  EXPECT_EQ(options.position_rows(), 40);
  EXPECT_EQ(options.type_vocab_size(), 3);
  EXPECT_EQ(options.layer_norm_eps(), 1e-5);
  EXPECT_EQ(options.dropout(), 0.25);
  EXPECT_EQ(options.padding_idx(), 7);
  EXPECT_EQ(options.norm(), Norm::AfterSum);
  EXPECT_EQ(options.order(), Order::TypesFirst);
  EXPECT_EQ(options.projection(), Projection::None);
  EXPECT_EQ(options.position_ids(), PositionIds::Arange);
  EXPECT_FALSE(options.position_padding_idx());
  EXPECT_FALSE(encoder_embeddings_options_from_hf(config_of("bert", R"("pad_token_id": null)"))
                   .padding_idx());
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("bert")).padding_idx(), 0);
}

TEST(EncoderEmbeddingsPreset, FillsInTheDefaultsOfEachModelType) {
  const auto roberta = encoder_embeddings_options_from_hf(config_of("roberta"));
  EXPECT_EQ(roberta.vocab_size(), 50265);
  EXPECT_EQ(roberta.padding_idx(), 1);
  EXPECT_EQ(roberta.position_padding_idx(), 1);
  EXPECT_EQ(roberta.position_ids(), PositionIds::FromIds);
  const auto gpt2 = encoder_embeddings_options_from_hf(config_of("gpt2", R"("n_positions": 64)"));
  EXPECT_EQ(gpt2.position_rows(), 64);
  EXPECT_TRUE(gpt2.types_from_tokens());
  EXPECT_EQ(gpt2.names().tokens, "wte");
  const auto distilbert =
      encoder_embeddings_options_from_hf(config_of("distilbert", R"("dim": 24)"));
  EXPECT_EQ(distilbert.d_model(), 24);
  EXPECT_EQ(distilbert.layer_norm_eps(), 1e-12);
  EXPECT_EQ(distilbert.type_vocab_size(), 0);
  const auto mpnet = encoder_embeddings_options_from_hf(config_of("mpnet", R"("pad_token_id": 5)"));
  EXPECT_EQ(mpnet.padding_idx(), 1);
}

// OPTConfig and RoFormerConfig fill in hidden_size, not that of the class.
TEST(EncoderEmbeddingsPreset, TablesAreAsWideAsTheModelUnlessSaid) {
  for (const char* type : {"opt", "roformer"}) {
    for (const char* more : {R"("hidden_size": 64)", R"("hidden_size": 64, "embedding_size": null,
                                                        "word_embed_proj_dim": null)"}) {
      const auto options = encoder_embeddings_options_from_hf(config_of(type, more));
      EXPECT_EQ(options.embedding_dim(), 64) << type;
      EXPECT_EQ(options.projection(), Projection::None) << type;
    }
  }
}

// transformers reads null there, with which it cannot make the model.
TEST(EncoderEmbeddingsPreset, NullIsADefaultOnlyWhereTheClassHasNone) {
  EXPECT_EQ(
      encoder_embeddings_options_from_hf(config_of("bert", R"("hidden_size": null)")).d_model(),
      768);
  EXPECT_ERROR(encoder_embeddings_options_from_hf(config_of("bart", R"("d_model": null)")),
               c10::ValueError, "d_model must be an integer from 1 to 1048576. Got null");
  EXPECT_ERROR(encoder_embeddings_options_from_hf(config_of("bart", R"("dropout": null)")),
               c10::ValueError, "dropout must be a number. Got null");
}

TEST(EncoderEmbeddingsPreset, ReadsWhatFewModelsHave) {
  const auto bart = encoder_embeddings_options_from_hf(config_of(
      "bart", R"("d_model": 24, "max_position_embeddings": 40, "scale_embedding": true)"));
  EXPECT_EQ(bart.position_rows(), 42);
  EXPECT_EQ(bart.position_offset(), 2);
  EXPECT_EQ(bart.scale().factor(1), std::sqrt(24.0));
  EXPECT_EQ(bart.layer_norm_eps(), 1e-5);
  EXPECT_TRUE(encoder_embeddings_options_from_hf(config_of("bart")).scale().is_none());
  const auto electra = R"("hidden_size": 24, "embedding_size": 24)";
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("electra", electra)).projection(),
            Projection::None);
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("electra")).names().projection,
            "embeddings_project");
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("albert", electra)).projection(),
            Projection::Last);
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("fnet")).projection(),
            Projection::BeforeDropout);
  const auto opt =
      encoder_embeddings_options_from_hf(config_of("opt", R"("word_embed_proj_dim": 8)"));
  EXPECT_EQ(opt.projection(), Projection::Tokens);
  EXPECT_FALSE(opt.projection_bias());
  EXPECT_EQ(opt.embedding_dim(), 8);
  EXPECT_EQ(opt.position_ids(), PositionIds::FromMask);
  const auto ernie = R"("use_task_id": true, "task_type_vocab_size": 4)";
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("ernie", ernie)).task_type_vocab_size(),
            4);
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("ernie")).task_type_vocab_size(), 0);
  const auto big_bird =
      encoder_embeddings_options_from_hf(config_of("big_bird", R"("rescale_embeddings": true)"));
  EXPECT_TRUE(big_bird.scale().is_sqrt_dim());
  EXPECT_EQ(big_bird.norm(), Norm::AfterDropout);
  EXPECT_FALSE(encoder_embeddings_options_from_hf(config_of("modernbert")).norm_bias());
}

TEST(EncoderEmbeddingsPreset, OfACompositeModelTheTextModelIsUsed) {
  const auto inner = R"("text_config": {"model_type": "clip_text_model", "hidden_size": 16})";
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("clip", inner)).d_model(), 16);
  const auto old = R"("text_config": {"hidden_size": 16})";
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("clip", old)).names().tokens,
            "token_embedding");
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("clip")).d_model(), 512);
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("florence2")).names().tokens,
            "embed_tokens")
      << "BART";
}

TEST(EncoderEmbeddingsPreset, ReadsAFile) {
  const testing::TempDir folder;
  const std::string path = folder / "config.json";
  std::ofstream(path) << config_of("bert", R"("hidden_size": 24)");
  EXPECT_EQ(encoder_embeddings_options_from_hf(path).d_model(), 24);
  EXPECT_EQ(encoder_embeddings_preset("bert", path).d_model(), 24);
  EXPECT_THROW(encoder_embeddings_options_from_hf(folder / "none.json"), WeightsError);
}

TEST(EncoderEmbeddingsPreset, APresetNeedsNoModelType) {
  const auto options = encoder_embeddings_preset("roberta", R"({"hidden_size": 24})");
  EXPECT_EQ(options.d_model(), 24);
  EXPECT_EQ(options.padding_idx(), 1);
  EXPECT_EQ(encoder_embeddings_preset("bart", config_of("led")).position_offset(), 0);
  EXPECT_EQ(encoder_embeddings_preset("bert", config_of("my_bert")).vocab_size(), 30522);
}

// transformers' create_sinusoidal_embeddings() fills the table, which stays trainable.
TEST(EncoderEmbeddingsPreset, DistilBertsTableMayBeginAsASinusoid) {
  const std::string start = R"("dim": 32, "sinusoidal_pos_embds": )";
  EncoderEmbeddings embeddings(
      encoder_embeddings_options_from_hf(config_of("distilbert", start + "true")));
  const auto& table = embeddings->positions->weight;
  EXPECT_TRUE(table.requires_grad());
  EXPECT_TRUE(torch::allclose(table[1].slice(0, 0, 4),
                              torch::tensor({0.8415F, 0.5403F, 0.5332F, 0.8460F}), 0, 5e-5));
  const auto first = table.detach().clone();
  torch::NoGradGuard no_grad;
  embeddings->positions->weight.zero_();
  embeddings->reset_parameters();
  EXPECT_TRUE(torch::equal(table, first));
  EXPECT_FALSE(
      encoder_embeddings_options_from_hf(config_of("distilbert", start + "false")).sinusoid());
  EXPECT_ERROR(encoder_embeddings_options_from_hf(config_of("distilbert", start + "3")),
               c10::ValueError, "sinusoidal_pos_embds must be true or false. Got 3");
}

// Without a row, a class that adds the type 0 to each token fails; gte's has no table then.
TEST(EncoderEmbeddingsPreset, MostNeedATokenType) {
  for (const EncoderEmbeddingsModel& model : encoder_embeddings_models()) {
    const std::string config = config_of(model.model_type, R"("type_vocab_size": 0)");
    const std::string none = preset_refusal(config);
    const bool has_types =
        encoder_embeddings_options_from_hf(config_of(model.model_type)).type_vocab_size() > 0;
    EXPECT_EQ(!none.empty(), has_types && model.model_type != "gte") << model.model_type << none;
  }
  EXPECT_ERROR(encoder_embeddings_options_from_hf(config_of("bert", R"("type_vocab_size": 0)")),
               c10::ValueError, "type_vocab_size must be an integer from 1 to ");
  EXPECT_EQ(encoder_embeddings_options_from_hf(config_of("gte", R"("type_vocab_size": 0)"))
                .type_vocab_size(),
            0);
}

TEST(EncoderEmbeddingsPreset, RefusesWhatItDoesNotKnow) {
  const std::string unknown = preset_refusal(config_of("robertta"));
  EXPECT_NE(unknown.find("the nearest are roberta"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("Got robertta"), std::string::npos) << unknown;
  EXPECT_NE(preset_refusal("{}").find("Got no model_type"), std::string::npos);
  const auto nearest = message_of([] { encoder_embeddings_preset("brt", "{}"); });
  EXPECT_NE(nearest.find("there is no preset brt; the nearest are"), std::string::npos) << nearest;
  EXPECT_EQ(message_of([] { encoder_embeddings_preset("bert", config_of("roberta")); }),
            "[encoder_embeddings_preset] the model type roberta has the preset roberta. Got bert");
}

TEST(EncoderEmbeddingsPreset, RefusesBadSettings) {
  const std::pair<std::string, const char*> cases[] = {
      {config_of("bert", R"("vocab_size": 0)"), "vocab_size must be an integer from 1 to"},
      {config_of("bert", R"("hidden_size": "8")"), "hidden_size must be an integer"},
      {config_of("bert", R"("layer_norm_eps": "1e-5")"), "layer_norm_eps must be a number"},
      {config_of("bert", R"("vocab_size": 9, "pad_token_id": 9)"),
       "pad_token_id must be an integer from -9 to 8. Got 9"},
      {config_of("roberta", R"("pad_token_id": null)"),
       "pad_token_id must be a token: positions are counted from it. Got null"},
      {config_of("bart", R"("scale_embedding": 1)"), "scale_embedding must be true or false"},
      {config_of("trocr", R"("use_learned_position_embeddings": false)"),
       "use_learned_position_embeddings must be true: sinusoids are not supported. Got false"},
      {config_of("clip", R"("text_config": 3)"), "text_config must be an object. Got 3"},
      {config_of("bert", R"("layer_norm_eps": -1)"), "layer_norm_eps must not be negative. Got -1"},
      {config_of("bert", R"("hidden_dropout_prob": 1)"),
       "hidden_dropout_prob must lie in [0, 1). Got 1"},
      {"{", "the configuration"},
  };
  for (const auto& [config, message] : cases) {
    const std::string got = preset_refusal(config);
    EXPECT_NE(got.find("[encoder_embeddings_options_from_hf] "), std::string::npos) << got;
    EXPECT_NE(got.find(message), std::string::npos) << got << "\nlacks " << message;
  }
}

}  // namespace
}  // namespace posenc
