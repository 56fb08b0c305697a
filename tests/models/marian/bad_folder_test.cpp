// Folders that are not Marian models, or damaged ones: each error names the cause.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "models/marian/live.h"
#include "posenc/models/seq2seq.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

// A copy of a valid folder, for the test to damage.
class BadMarianFolder : public ::testing::Test {
 protected:
  void SetUp() override { copy("shared"); }
  void copy(const std::string& name) {
    namespace fs = std::filesystem;
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
    fs::copy(marian_path(name), folder_.path());
  }
  std::string path() const { return folder_.path().string(); }
  void remove(const std::string& name) { std::filesystem::remove(folder_ / name); }

  // Sets `key` in a JSON file of the folder.
  void set(const std::string& file, const std::string& key, const json& value) {
    auto all = json::parse(read_bytes(folder_ / file));
    all[key] = value;
    write_bytes(folder_ / file, all.dump());
  }
  template <typename Change>
  void change_weights(Change&& change) {
    auto tensors = load_safetensors(folder_ / "model.safetensors").tensors;
    change(tensors);
    save_safetensors(folder_ / "model.safetensors", tensors);
  }
  void expect_value_error(const std::string& text) {
    EXPECT_ERROR(load_seq2seq(path()), c10::ValueError, text);
  }
  // The weights are loaded all the same.
  void expect_search_error(const std::string& text) {
    const Seq2SeqModel loaded = load_seq2seq(path());
    EXPECT_ERROR(generate(loaded.model, torch::tensor({{5, 6}}), {}, loaded.generation),
                 c10::ValueError, text);
  }
  void expect_weights_error(const std::string& text) {
    EXPECT_CONTAINS(refusal([&] { load_seq2seq(path()); }), text);
  }

  TempDir folder_;
};

TEST_F(BadMarianFolder, ALackingFileIsNamed) {
  remove("config.json");
  expect_weights_error("NotFound: [load_seq2seq] " + path() + "/config.json");
  copy("shared");
  remove("model.safetensors");
  expect_weights_error("must hold model.safetensors, pytorch_model.bin or an index of shards");
  copy("separate");
  remove("model-00002-of-00010.safetensors");
  expect_weights_error("Shard: ");
  EXPECT_CONTAINS(refusal([] { load_seq2seq("/nowhere"); }), "NotFound: [load_seq2seq] /nowhere");
}

TEST_F(BadMarianFolder, WeightsThatAreNotAWholeModel) {
  set("config.json", "quantization_config", {{"quant_method", "fp8"}});
  expect_value_error("config.json: quantization_config must be left out");
  copy("shared");
  write_bytes(folder_ / "adapter_config.json", "{}");
  expect_value_error("peft_type must be LORA");
}

TEST_F(BadMarianFolder, NullWhereItIsNoValue) {
  set("config.json", "scale_embedding", nullptr);
  expect_value_error("scale_embedding must be left out or have a value. Got null");
  copy("shared");
  set("config.json", "encoder_layers", nullptr);
  expect_value_error("encoder_layers must be left out or have a value. Got null");
}

// transformers sets the name that is no field of the class last.
TEST_F(BadMarianFolder, OfTwoNamesOfASettingTheLaterCounts) {
  set("config.json", "num_attention_heads", 3);
  EXPECT_EQ(load_seq2seq(path()).model->options.num_heads(), 3);
}

TEST_F(BadMarianFolder, AnotherArchitecture) {
  set("config.json", "model_type", "bert");
  expect_value_error("config.json: model_type must be that of an encoder-decoder");
  set("config.json", "model_type", nullptr);
  expect_value_error("config.json: model_type must be that of an encoder-decoder");
  copy("shared");
  set("config.json", "is_encoder_decoder", false);
  expect_value_error("is_encoder_decoder must be true. Got false");
  copy("shared");
  set("config.json", "activation_function", "gelu_10");
  expect_value_error(
      "activation_function must be the name of an activation of transformers that posenc has. Got "
      "\"gelu_10\"");
}

TEST_F(BadMarianFolder, AVocabularyThatDoesNotFitTheWeights) {
  set("config.json", "vocab_size", 90);
  expect_value_error("pad_token_id must be a token in [0, 90)");
  set("config.json", "pad_token_id", 5);
  expect_value_error(
      "vocab_size in config.json must fit the weights:\n"
      "  'model.shared.weight' must have shape (90, 48). Got (98, 48)");
  copy("separate");
  set("config.json", "decoder_vocab_size", 62);
  expect_value_error(
      "decoder_vocab_size in config.json must fit the weights:\n"
      "  'model.decoder.embed_tokens.weight' must have shape (62, 48)");
  copy("shared");
  set("config.json", "tie_word_embeddings", false);
  set("config.json", "decoder_vocab_size", 90);
  expect_value_error(
      "decoder_vocab_size must be vocab_size 98 with "
      "share_encoder_decoder_embeddings. Got 90");
}

TEST_F(BadMarianFolder, SizesThatTheWeightsDoNotHave) {
  const std::vector<std::tuple<const char*, json, const char*>> cases = {
      {"d_model", 64, "d_model in config.json must fit the weights:"},
      {"encoder_ffn_dim", 32, "encoder_ffn_dim in config.json must fit the weights:"},
      {"decoder_ffn_dim", 1 << 20, "decoder_ffn_dim in config.json must fit the weights:"},
      {"encoder_layers", 3,
       "at most those of the weights, which lack model.encoder.layers.2.fc1.weight. Got 3"},
      {"decoder_layers", 999, "which lack model.decoder.layers.998.fc1.weight. Got 999"},
      {"encoder_attention_heads", 5, "num_heads must divide d_model 48. Got 5"},
      {"decoder_attention_heads", 7, "decoder_num_heads must divide d_model 48. Got 7"},
      {"d_model", -1, "d_model must be an integer from 1 to 1048576. Got -1"},
      {"encoder_layers", 2.5, "encoder_layers must be an integer from 1 to 1000. Got 2.5"},
      {"vocab_size", "98", "vocab_size must be an integer from 1 to 16777216. Got \"98\""},
      {"max_position_embeddings", 1e30, "max_position_embeddings must be an integer from 1"},
      {"scale_embedding", 1, "scale_embedding must be true or false. Got 1"},
      {"dropout", "much", "dropout must be a number. Got \"much\""},
      {"pad_token_id", 98, "pad_token_id must be a token in [0, 98), or several. Got 98"},
  };
  for (const auto& [key, value, text] : cases) {
    SCOPED_TRACE(key);
    copy("shared");
    set("config.json", key, value);
    expect_value_error(text);
  }
}

TEST_F(BadMarianFolder, AConfigurationThatIsNotAJsonObject) {
  const std::string rule = "config.json: must have JSON in UTF-8 as its settings. Got an error at ";
  for (const auto& [text, message] :
       {std::pair<std::string, std::string>{" ", rule + "byte 2"},
        {"{", rule + "byte 2"},
        {"{\"model_type\": \"marian\"} x", rule + "byte 26"},
        {std::string(65, '['), "config.json: must nest its settings no deeper than 64"},
        {"[]", "config.json: must be a JSON object. Got array"}}) {
    write_bytes(folder_ / "config.json", text);
    expect_value_error(message);
  }
  write_bytes(folder_ / "config.json", std::string(16'000'001, ' '));
  expect_value_error("must have at most 16000000 bytes");
}

TEST_F(BadMarianFolder, ASearchThatPosencDoesNotHave) {
  const std::vector<std::tuple<const char*, json, const char*>> cases = {
      {"no_repeat_ngram_size", 2.5, "no_repeat_ngram_size must be an integer"},
      {"do_sample", true, "do_sample must be false with beams. Got true"},
      {"repetition_penalty", 0, "repetition_penalty must be above 0. Got 0"},
      {"forced_bos_token_id", 98, "forced_bos_token_id must be a token in [0, 98)"},
      {"early_stopping", "soon", "early_stopping must be true, false or \"never\". Got \"soon\""},
      {"bad_words_ids", json::array({{1, 98}}),
       "bad_words_ids must have lists of tokens in [0, 98)"},
      {"bad_words_ids", 7, "bad_words_ids must be a list that is not empty. Got 7"},
      {"sequence_bias", json::array({{{1, 2}}}),
       "sequence_bias must have pairs of a list of tokens"},
      {"exponential_decay_length_penalty", 3, "exponential_decay_length_penalty must be a list"},
      {"eos_token_id", 98, "eos_token_id must be a token in [0, 98), or several. Got 98"},
      {"decoder_start_token_id", -1, "decoder_start_token_id must be a token in [0, 98)"},
      {"num_beams", 0, "num_beams must be an integer from 1 to 65536. Got 0"},
      {"num_beam_groups", 2, "num_beam_groups must be 1, the only value"},
      {"max_time", 1.5, "max_time must be null, the only value"},
      {"guidance_scale", 2.0, "guidance_scale must be 1.0, the only value"},
      {"token_healing", true, "token_healing must be false, the only value"},
      {"dola_layers", "low", "dola_layers must be null, the only value"},
      {"low_memory", true, "low_memory must be false with beams"},
      {"max_length", 0, "max_length must be an integer from 1"},
      {"length_penalty", "x", "length_penalty must be a number. Got \"x\""},
  };
  for (const auto& [key, value, text] : cases) {
    SCOPED_TRACE(key);
    copy("shared");
    set("generation_config.json", key, value);
    expect_search_error("generation_config.json: " + std::string(text));
  }
}

// As transformers 5.23: bos_token_id of the same file is next, never config.json's token.
TEST_F(BadMarianFolder, NoDecoderStart) {
  set("generation_config.json", "decoder_start_token_id", nullptr);
  set("generation_config.json", "bos_token_id", 5);
  set("config.json", "decoder_start_token_id", 19);
  EXPECT_EQ(load_seq2seq(path()).generation.bos_id(), 5);
  set("generation_config.json", "bos_token_id", nullptr);
  expect_search_error(
      "generation_config.json: decoder_start_token_id must be a token, or bos_token_id must be. "
      "Got null");
  remove("generation_config.json");
  EXPECT_EQ(load_seq2seq(path()).generation.bos_id(), 19);
  set("config.json", "decoder_start_token_id", nullptr);
  expect_value_error("decoder_start_token_id must be left out or have a value. Got null");
  auto config = json::parse(read_bytes(folder_ / "config.json"));
  config.erase("decoder_start_token_id");
  write_bytes(folder_ / "config.json", config.dump());
  set("config.json", "bos_token_id", 7);
  EXPECT_EQ(load_seq2seq(path()).generation.bos_id(), 7);
}

TEST_F(BadMarianFolder, SeveralSequencesPerSource) {
  set("generation_config.json", "num_beams", 3);
  set("generation_config.json", "num_return_sequences", 2);
  EXPECT_EQ(load_seq2seq(path()).generation.num_return_sequences(), 2);
  set("generation_config.json", "num_return_sequences", 4);
  expect_search_error("num_return_sequences must be an integer from 1 to 3. Got 4");
}

// MarianConfig's default, 58100, unless the vocabulary is smaller.
TEST_F(BadMarianFolder, NoPadding) {
  set("config.json", "pad_token_id", nullptr);
  expect_value_error("config.json: pad_token_id must be a token in [0, 98)");
}

TEST_F(BadMarianFolder, PatternsOfTheKeyMapThatNoNameTakesAreReported) {
  LoadReport report;
  load_seq2seq(path(),
               LoadOptions().key_map({{"gone.*", "*"}, {"model.*", "model.*"}}).report(&report));
  EXPECT_EQ(report.unused_patterns, std::vector<std::string>{"gone.*"});
}

// transformers generates without an end then, although MarianConfig's default is 0.
TEST_F(BadMarianFolder, TheSearchHasNoDefaultsOfTheConfiguration) {
  remove("generation_config.json");
  auto config = json::parse(read_bytes(folder_ / "config.json"));
  config.erase("eos_token_id");
  config.erase("forced_eos_token_id");
  write_bytes(folder_ / "config.json", config.dump());
  const auto generation = load_seq2seq(path()).generation;
  EXPECT_TRUE(generation.eos_ids().empty());
  EXPECT_TRUE(generation.forced_eos_ids().empty());
}

TEST_F(BadMarianFolder, WeightsThatLackATensor) {
  change_weights([](StateDict& tensors) { tensors.erase("model.decoder.layers.1.fc2.bias"); });
  expect_weights_error("MissingKeys: [load_seq2seq] " + path() + "/model.safetensors");
  expect_weights_error("model.decoder.layers.1.fc2.bias");
  copy("shared");
  change_weights([](StateDict& tensors) { tensors.erase("model.shared.weight"); });
  expect_weights_error("MissingKeys: [load_seq2seq]");
}

TEST_F(BadMarianFolder, WeightsOfAnotherShapeOrWithANameTooMany) {
  change_weights([](StateDict& tensors) {
    tensors["model.encoder.layers.0.self_attn.k_proj.weight"] = torch::zeros({48, 47});
  });
  expect_weights_error("'model.encoder.layers.0.self_attn.k_proj.weight' must have shape (48, 48)");
  copy("shared");
  change_weights([](StateDict& tensors) {
    tensors.insert("model.encoder.layers.0.fc1.scale", torch::zeros({2}));
  });
  expect_weights_error("'model.encoder.layers.0.fc1.scale'");
}

TEST_F(BadMarianFolder, WeightsThatAreNotFinite) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    copy("shared");
    change_weights([&](StateDict& tensors) {
      tensors["model.decoder.layers.0.encoder_attn.out_proj.bias"][3] = value;
    });
    expect_weights_error("Corrupt: [load_seq2seq] " + path());
    expect_weights_error("'model.decoder.layers.0.encoder_attn.out_proj.bias' must be finite");
  }
  copy("shared");
  change_weights([](StateDict& tensors) {
    tensors["final_logits_bias"][0][3] = -std::numeric_limits<double>::infinity();
  });
  EXPECT_NO_THROW(load_seq2seq(path())) << "a token that is never written";
  change_weights([](StateDict& tensors) {
    tensors["final_logits_bias"][0][3] = std::numeric_limits<double>::infinity();
  });
  expect_weights_error("'final_logits_bias' must be finite");
}

TEST_F(BadMarianFolder, ATruncatedFile) {
  const auto whole = read_bytes(folder_ / "model.safetensors");
  write_bytes(folder_ / "model.safetensors", whole.substr(0, whole.size() / 2));
  expect_weights_error("Truncated: [load_seq2seq]");
}

// Files have one of the names of the matrix that all three embeddings share.
TEST_F(BadMarianFolder, ATiedMatrixHasAnyOfItsNames) {
  const auto tokens = [&] {
    return load_seq2seq(path()).model->src_embedding->token_embedding->weight.detach();
  };
  const auto expected = tokens();
  for (const char* name : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "lm_head.weight"}) {
    SCOPED_TRACE(name);
    copy("shared");
    change_weights([&](StateDict& tensors) {
      tensors.insert(name, tensors["model.shared.weight"]);
      tensors.erase("model.shared.weight");
    });
    EXPECT_TRUE(bit_equal(tokens(), expected));
  }
}

TEST_F(BadMarianFolder, TiedCopiesThatDifferStayDifferent) {
  change_weights([](StateDict& tensors) {
    tensors.insert("lm_head.weight", tensors["model.shared.weight"] + 1.0);
  });
  const auto model = load_seq2seq(path()).model;
  EXPECT_EQ(model->options.tie(), Tying::EncoderDecoder);
  const auto tokens = model->src_embedding->token_embedding->weight.detach();
  EXPECT_TRUE(bit_equal(model->final_layer->weight.detach(), tokens + 1.0));
}

// Optional tensors, and the defaults of transformers.
TEST_F(BadMarianFolder, WithoutALogitsBiasItIsZero) {
  change_weights([](StateDict& tensors) { tensors.erase("final_logits_bias"); });
  const auto bias = load_seq2seq(path()).model->final_layer->bias;
  EXPECT_TRUE(bit_equal(bias, torch::zeros({98})));
}

// The defaults in MarianConfig and GenerationConfig.
TEST_F(BadMarianFolder, SettingsThatAreNotNamed) {
  auto config = json::parse(read_bytes(folder_ / "config.json"));
  for (const char* key : {"scale_embedding", "share_encoder_decoder_embeddings", "dropout",
                          "is_encoder_decoder", "tie_word_embeddings"})
    config.erase(key);
  write_bytes(folder_ / "config.json", config.dump());
  for (const char* key : {"num_beams", "max_length", "renormalize_logits", "early_stopping",
                          "length_penalty", "forced_eos_token_id", "bad_words_ids"})
    set("generation_config.json", key, nullptr);
  const auto marian = load_seq2seq(path());
  EXPECT_EQ(marian.model->options.scale().factor(48), 1.0);
  EXPECT_EQ(marian.model->options.tie(), Tying::ThreeWay);
  const auto& search = marian.generation;
  EXPECT_EQ(search.num_beams(), 1);
  EXPECT_FALSE(search.max_new_tokens() || search.max_length());
  EXPECT_EQ(search.early_stopping(), EarlyStopping::WhenUnlikely);
  EXPECT_EQ(search.length_penalty(), 1.0);
  EXPECT_FALSE(search.renormalize());
  EXPECT_TRUE(search.suppress_tokens().empty());
  EXPECT_TRUE(search.forced_eos_ids().empty());
  EXPECT_TRUE(search.bad_words_ids().empty());
}

// Read as they are; generate() ignores a bad word that ends a sequence, as transformers does.
TEST_F(BadMarianFolder, TokensThatAreNotWritten) {
  set("generation_config.json", "bad_words_ids", json::array({{7}, {0}, {9}}));
  set("generation_config.json", "suppress_tokens", json::array({0, 5}));
  const auto generation = load_seq2seq(path()).generation;
  EXPECT_EQ(generation.bad_words_ids(), (std::vector<std::vector<int64_t>>{{7}, {0}, {9}}));
  EXPECT_EQ(generation.suppress_tokens(), (std::vector<int64_t>{0, 5}));
}

TEST_F(BadMarianFolder, PositionsInTheFileAreTheModels) {
  const auto other = torch::randn({48, 48});
  change_weights([&](StateDict& tensors) {
    tensors.insert("model.encoder.embed_positions.weight", other.clone());
  });
  const auto model = load_seq2seq(path()).model;
  EXPECT_TRUE(bit_equal(model->src_embedding->position_encoding->pe[0], other));
  EXPECT_FALSE(bit_equal(model->tgt_embedding->position_encoding->pe[0], other));
}

TEST_F(BadMarianFolder, APositionTableOfAnotherLength) {
  const auto options = SinusoidOptions(preset("hf_marian", 48));
  for (const int64_t rows : {40, 56}) {
    change_weights([&](StateDict& tensors) {
      if (rows > 40) tensors.erase("model.decoder.embed_positions.weight");
      tensors.insert("model.decoder.embed_positions.weight", sinusoid_table(options, rows));
    });
    expect_value_error(
        "max_position_embeddings in config.json must fit the weights: "
        "model.decoder.embed_positions.weight must have 48 rows. Got " +
        std::to_string(rows));
  }
}

}  // namespace
}  // namespace posenc::testing
