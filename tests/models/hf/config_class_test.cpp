// All names of a setting are read: every alias of every model type gives what the class's own name
// does. tools/hf_config_classes.py --check compares the table with transformers.

#include "models/config/config_class.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "posenc/models/encoder.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "posenc/models/rotary_config.h"
#include "posenc/models/vision_embeddings_preset.h"
#include "support/compare.h"

namespace posenc::hf {
namespace {

using nlohmann::json;
using testing::message_of;

json embeddings(const EncoderEmbeddingsOptions& o) {
  return {o.vocab_size(),
          o.d_model(),
          o.embedding_dim().value_or(0),
          o.position_rows(),
          o.type_vocab_size(),
          o.dropout(),
          o.padding_idx().value_or(-1),
          o.layer_norm_eps(),
          o.scale().factor(o.d_model())};
}
json patches(const VisionEmbeddingsOptions& o) {
  return {o.image_height(), o.patch_height(),   o.d_model(),
          o.num_channels(), o.layer_norm_eps(), o.dropout()};
}

json of_text(const std::string& config) {
  return embeddings(encoder_embeddings_options_from_hf(config));
}
json of_images(const std::string& config) {
  return patches(vision_embeddings_options_from_hf(config));
}
json of_encoder(const std::string& config) {
  const EncoderOptions o = encoder_options_from_hf(config);
  const auto& layer = o.encoder().layer();
  return {layer.d_model(),
          layer.num_heads(),
          layer.d_ff(),
          o.encoder().num_layers(),
          layer.layer_norm_eps(),
          layer.dropout(),
          o.embeddings() ? embeddings(*o.embeddings()) : patches(*o.patches())};
}
json of_rotary(const std::string& config, const std::string& layer_type) {
  const RotaryOptions o = rotary_options_from_hf(config, layer_type);
  const auto* yarn = std::get_if<rotary::Yarn>(&o.scaling());
  const auto* dynamic = std::get_if<rotary::Dynamic>(&o.scaling());
  return {o.dim(), o.base(), yarn ? yarn->original_max_position : 0,
          dynamic ? static_cast<double>(dynamic->max_position) : 0};
}

// What is read, or the error; that names the key, so only that there is one counts.
json outcome(const std::function<json()>& read) {
  json result;
  const std::string error = message_of([&] { result = read(); });
  return error.empty() ? result : json("refused");
}

// Returns for how many aliases the setting has an effect.
int compare(const std::string& model_type, const json& more,
            const std::function<json(const std::string&)>& read) {
  int effective = 0;
  for (const auto& alias : ConfigClass::of(model_type).aliases()) {
    for (const json& value : {json(8), json(16), json(0.25), json({"full_attention"})}) {
      json own = more, other = more;
      own["model_type"] = other["model_type"] = model_type;
      own[std::string(alias.own)] = value;
      other[std::string(alias.name)] = value;
      json plain = more;
      plain["model_type"] = model_type;
      const json expected = outcome([&] { return read(own.dump()); });
      EXPECT_EQ(outcome([&] { return read(other.dump()); }), expected)
          << model_type << ": " << alias.name << " for " << alias.own << " = " << value;
      effective += expected != outcome([&] { return read(plain.dump()); });
    }
  }
  return effective;
}

TEST(ConfigClass, EveryAliasOfEveryEmbeddingsIsRead) {
  int effective = 0;
  for (const auto& model : encoder_embeddings_models())
    effective += compare(model.model_type, {}, of_text);
  EXPECT_GT(effective, 40);
}

TEST(ConfigClass, EveryAliasOfEveryVisionEmbeddingsIsRead) {
  for (const auto& model : vision_embeddings_models()) compare(model.model_type, {}, of_images);
}

TEST(ConfigClass, EveryAliasOfEveryEncoderIsRead) {
  int effective = 0;
  for (const auto& type : encoder_model_types()) {
    const json text = {{"text_config", json::object()}, {"encoder", json::object()}};
    effective += compare(type, text, of_encoder);
  }
  EXPECT_GT(effective, 20);
}

TEST(ConfigClass, EveryAliasOfEveryRotaryEmbeddingIsRead) {
  int effective = 0;
  const std::vector<json> parameters = {
      json(), {{"rope_type", "dynamic"}, {"factor", 2.0}, {"mrope_section", {1, 1, 2}}}};
  for (const auto& model : rotary_models()) {
    for (const json& rope : parameters) {
      for (const std::string layer : {"", "full_attention", "sliding_attention"}) {
        effective += compare(model.model_type, {{"rope_parameters", rope}},
                             [&](const std::string& config) { return of_rotary(config, layer); });
      }
    }
  }
  EXPECT_GT(effective, 100);
}

TEST(ConfigClass, EveryModelTypeHasOne) {
  std::vector<std::string> types = encoder_model_types();
  for (const auto& model : encoder_embeddings_models()) types.push_back(model.model_type);
  for (const auto& model : vision_embeddings_models()) types.push_back(model.model_type);
  for (const auto& model : rotary_models()) types.push_back(model.model_type);
  for (const auto& type : types) {
    const auto& own = ConfigClass::of(type);
    EXPECT_TRUE(own.has("hidden_size") || own.has("head_dim") || own.has("text_config") ||
                own.has("memory_attention_hidden_size") || own.has("descriptor_dim") ||
                own.has("embed_dim") || own.has("vision_config") || own.has("encoder"))
        << type;
  }
}

TEST(ConfigClass, TheDefaultIsUnderneath) {
  const auto& distilbert = ConfigClass::of("distilbert");
  EXPECT_EQ(distilbert.value_in({}, "num_attention_heads"), 12);
  EXPECT_EQ(distilbert.value_in({{"n_heads", 4}}, "num_attention_heads"), 4);
  EXPECT_EQ(distilbert.value_in({{"n_heads", nullptr}}, "num_attention_heads"), 12);
  EXPECT_TRUE(distilbert.value_in({{"pad_token_id", nullptr}}, "pad_token_id").is_null()) << "none";
  EXPECT_TRUE(ConfigClass::of("opt").has("word_embed_proj_dim"));
  EXPECT_TRUE(ConfigClass::of("opt").default_of("word_embed_proj_dim").is_null()) << "derived";
  EXPECT_FALSE(ConfigClass::of("bart").has("layer_norm_eps"));
  EXPECT_EQ(ConfigClass::of("clip").part_type("vision_config"), "clip_vision_model");
  EXPECT_EQ(ConfigClass::of("bert").part_type("text_config"), "");
}

TEST(ConfigClass, AnAliasIsThatOfItsClass) {
  const auto& bart = ConfigClass::of("bart");
  EXPECT_EQ(bart.key_in({{"hidden_size", 8}}, "d_model"), "hidden_size");
  EXPECT_EQ(bart.key_in({{"hidden_size", 8}}, "hidden_size"), "hidden_size");
  EXPECT_EQ(bart.key_in({{"d_model", 8}}, "hidden_size"), "d_model");
  EXPECT_EQ(bart.key_in(json::object(), "hidden_size"), "d_model") << "the class's own";
  EXPECT_EQ(ConfigClass::of("bert").key_in({{"d_model", 8}}, "hidden_size"), "hidden_size");
  EXPECT_TRUE(ConfigClass::of("no such model").aliases().empty());
}

// transformers takes one of them, depending on the class and sometimes on their order.
TEST(ConfigClass, TwoNamesThatContradictAreAnError) {
  const auto read = [](const std::string& settings) {
    return encoder_options_from_hf(R"({"model_type": "distilbert", )" + settings + "}")
        .encoder()
        .layer()
        .num_heads();
  };
  EXPECT_EQ(read(R"("n_heads": 4, "num_attention_heads": 4)"), 4);
  EXPECT_EQ(read(R"("num_attention_heads": null)"), 12) << "null is the default, as of own names";
  EXPECT_EQ(read(R"("n_heads": null, "num_attention_heads": 4)"), 4) << "as in transformers";
  EXPECT_ERROR(
      read(R"("n_heads": 4, "num_attention_heads": 6)"), c10::ValueError,
      "[encoder_options_from_hf] the configuration: num_attention_heads and n_heads are two "
      "names of one setting and must have the same value. Got 6 and 4");
  EXPECT_ERROR(read(R"("n_heads": 4, "num_attention_heads": null)"), c10::ValueError,
               "Got null and 4");
  EXPECT_ERROR(read(R"("num_attention_heads": 5)"), c10::ValueError,
               "num_attention_heads must divide dim 768. Got 5");
  EXPECT_ERROR(read(R"("n_heads": 5, "hidden_size": 64)"), c10::ValueError,
               "n_heads must divide hidden_size 64. Got 5");
  EXPECT_ERROR(rotary_options_from_hf(
                   R"({"model_type": "dbrx", "max_position_embeddings": 8, "max_seq_len": 9})"),
               c10::ValueError, "max_position_embeddings and max_seq_len are two names");
  EXPECT_ERROR(encoder_embeddings_options_from_hf(
                   R"({"model_type": "gpt2", "n_embd": 8, "hidden_size": 9})"),
               c10::ValueError, "hidden_size and n_embd are two names");
}

}  // namespace
}  // namespace posenc::hf
