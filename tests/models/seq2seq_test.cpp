// Encoder-decoders in folders that the test writes: what is read, and what is refused.

#include "posenc/models/seq2seq.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "models/bart_folder.h"
#include "posenc/inference/freeze.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

constexpr int64_t kSeq2SeqVocab = 11, kSeq2SeqWidth = 8, kSeq2SeqPositions = 6;

// A tiny BART: one layer each, the vocabulary as `model.shared.weight`.
class Seq2SeqFolder : public BartFolder {
 protected:
  Seq2SeqFolder() : BartFolder(kSeq2SeqWidth) {
    torch::manual_seed(1);
    config_ = {{"model_type", "bart"},         {"vocab_size", kSeq2SeqVocab},
               {"d_model", kSeq2SeqWidth},     {"encoder_layers", 1},
               {"decoder_layers", 1},          {"encoder_attention_heads", 2},
               {"decoder_attention_heads", 4}, {"encoder_ffn_dim", 5},
               {"decoder_ffn_dim", 7},         {"max_position_embeddings", kSeq2SeqPositions},
               {"decoder_start_token_id", 2},  {"is_encoder_decoder", true}};
    tensor("model.shared.weight", {kSeq2SeqVocab, kSeq2SeqWidth});
    for (const std::string stack : {"model.encoder.", "model.decoder."}) {
      tensor(stack + "embed_positions.weight", {kSeq2SeqPositions + 2, kSeq2SeqWidth});
      pair(stack + "layernorm_embedding", {kSeq2SeqWidth});
      layer_of(stack);
    }
  }

  at::Tensor logits(const Seq2SeqModel& loaded) {
    const torch::NoGradGuard no_grad;
    auto model = loaded.model;
    return model->forward(torch::tensor({{3, 4, 5}}), torch::tensor({{2, 6}}), {},
                          AttentionMask::causal());
  }
};

TEST_F(Seq2SeqFolder, KeysAndSettings) {
  const auto loaded = load();
  EXPECT_EQ(loaded.model_type, "bart");
  EXPECT_EQ(loaded.pad, 1) << "the default of BartConfig";
  EXPECT_EQ(loaded.generation.bos_id(), 2);
  const auto& model = loaded.model;
  EXPECT_FALSE(model->is_training());
  EXPECT_EQ(model->options.tie(), Tying::ThreeWay);
  EXPECT_EQ(model->options.activation(), Activation::GELU);
  const auto parameters = model->named_parameters();
  EXPECT_TRUE(bit_equal(parameters["tgt_embedding.position_embedding.weight"].detach(),
                        tensors_["model.decoder.embed_positions.weight"]));
  EXPECT_TRUE(bit_equal(parameters["src_embedding.norm.weight"].detach(),
                        tensors_["model.encoder.layernorm_embedding.weight"]));
  EXPECT_TRUE(bit_equal(parameters["final_layer.bias"].detach(), torch::zeros({kSeq2SeqVocab})));
}

TEST_F(Seq2SeqFolder, MatricesOfTheVocabularyAreTiedAsTheFileHasThem) {
  const auto shared = tensors_["model.shared.weight"];
  const auto expected = logits(load());
  for (const char* name : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "lm_head.weight"}) {
    SCOPED_TRACE(name);
    tensors_.erase("model.shared.weight");
    tensors_[name] = shared;
    EXPECT_TRUE(bit_equal(logits(load()), expected));
    tensors_["model.shared.weight"] = shared;
    EXPECT_EQ(load().model->options.tie(), Tying::ThreeWay);
    tensors_.erase(name);
  }
  const auto other = torch::randn_like(shared);
  tensors_["model.encoder.embed_tokens.weight"] = other;
  EXPECT_EQ(load().model->options.tie(), Tying::DecoderOutput);
  tensors_["model.decoder.embed_tokens.weight"] = other;
  EXPECT_EQ(load().model->options.tie(), Tying::EncoderDecoder);
  tensors_.erase("model.encoder.embed_tokens.weight");
  const auto model = load().model;  // encoder and head are one, but Tying has no such pair
  EXPECT_EQ(model->options.tie(), Tying::None);
  EXPECT_TRUE(bit_equal(model->final_layer->weight.detach(), shared));
  EXPECT_TRUE(bit_equal(model->src_embedding->token_embedding->weight.detach(), shared));
}

TEST_F(Seq2SeqFolder, WithoutTyingTheSharedMatrixStandsForAbsentOnesAlone) {
  config_["tie_word_embeddings"] = false;
  const auto expected = logits(load());
  const auto shared = tensors_["model.shared.weight"];
  tensors_.erase("model.shared.weight");
  tensors_["model.decoder.embed_tokens.weight"] = shared;
  EXPECT_CONTAINS(refusal([&] { load(); }), "MissingKeys: [load_seq2seq]");
  tensors_["model.encoder.embed_tokens.weight"] = shared;
  tensors_["lm_head.weight"] = shared;
  const auto loaded = load();
  EXPECT_EQ(loaded.model->options.tie(), Tying::None);
  EXPECT_TRUE(bit_equal(logits(loaded), expected));
}

TEST_F(Seq2SeqFolder, MayBeWithoutItsHead) {
  const auto expected = logits(load());
  std::map<std::string, at::Tensor> headless;
  for (const auto& [name, value] : tensors_) headless[name.substr(6)] = value;  // model.
  tensors_ = headless;
  EXPECT_TRUE(bit_equal(logits(load()), expected));
  tensor("encoder.version", {1});  // of fairseq, as in files of releases before 4
  tensor("decoder.version", {1});
  EXPECT_TRUE(bit_equal(logits(load()), expected));
}

// As transformers 5.23 reads a config.json without generation_config.json: FSMT's files have it.
TEST_F(Seq2SeqFolder, ADecoderInTheConfigurationHasSearchSettings) {
  config_["num_beams"] = 3;
  config_["length_penalty"] = nullptr;
  config_["decoder"] = {{"num_beams", 2}, {"no_repeat_ngram_size", 3}, {"length_penalty", 0.5}};
  const auto options = load().generation;
  EXPECT_EQ(options.num_beams(), 3);
  EXPECT_EQ(options.no_repeat_ngram_size(), 3);
  EXPECT_EQ(options.length_penalty(), 0.5);
  config_["decoder"] = json::object();
  config_["text_config"] = {{"no_repeat_ngram_size", 2}};
  EXPECT_EQ(load().generation.no_repeat_ngram_size(), 2);
}

TEST_F(Seq2SeqFolder, OtherModelsAreRefusedByName) {
  config_["model_type"] = "nllb-moe";
  expect_value_error("model_type nllb-moe is not supported: it needs a mixture of experts");
  config_["model_type"] = "switch_transformers";
  expect_value_error("mixture of experts");
  config_["model_type"] = "gpt2";
  expect_value_error("model_type must be that of an encoder-decoder. Got gpt2, a decoder alone");
  config_["model_type"] = "llama";
  expect_value_error("model_type must be that of an encoder-decoder. Got llama, a decoder alone");
  config_["model_type"] = "brt";
  expect_value_error("model_type must be that of an encoder-decoder; the nearest are bart");
  config_["model_type"] = "bart";
  config_["is_encoder_decoder"] = false;
  expect_value_error("is_encoder_decoder must be true. Got false");
}

TEST_F(Seq2SeqFolder, SettingsThatContradictTheWeights) {
  config_["max_position_embeddings"] = 7;
  expect_value_error("max_position_embeddings in config.json must fit the weights:");
  config_["max_position_embeddings"] = kSeq2SeqPositions;
  config_["vocab_size"] = 12;
  expect_value_error("'model.shared.weight' must have shape (12, 8). Got (11, 8)");
  config_["vocab_size"] = kSeq2SeqVocab;
  config_["decoder_layers"] = 2;
  expect_value_error("which lack model.decoder.layers.1.fc1.weight. Got 2");
  config_["decoder_layers"] = 1;
  tensors_.erase("model.decoder.layernorm_embedding.bias");
  EXPECT_CONTAINS(refusal([&] { load(); }), "model.decoder.layernorm_embedding.bias");
}

TEST_F(Seq2SeqFolder, LongerSequencesThanTheTable) {
  const auto loaded = load();
  auto model = loaded.model;
  const auto ids = torch::full({1, kSeq2SeqPositions + 1}, 3, torch::kLong);
  EXPECT_ERROR(model->encode(ids), c10::ValueError, "sequence length 7 exceeds max_len 6");
  EXPECT_ERROR(freeze(model).encode(ids), c10::ValueError, "sequence length 7 exceeds max_len 6");
  auto search = loaded.generation;
  search.max_new_tokens(kSeq2SeqPositions + 1);
  EXPECT_ERROR(generate(model, torch::tensor({{3, 4}}), search), c10::ValueError,
               "max_new_tokens must be at most the model's max_len 6. Got 7");
}

TEST_F(Seq2SeqFolder, PositionsThatCountTokensGrow) {
  config_["model_type"] = "m2m_100";
  for (const char* stack : {"model.encoder.", "model.decoder."}) {
    for (const char* leaf : {"weight", "bias"})
      tensors_.erase(stack + std::string("layernorm_embedding.") + leaf);
    tensors_.erase(stack + std::string("embed_positions.weight"));
    pair(stack + std::string("layer_norm"), {kSeq2SeqWidth});
  }
  const auto loaded = load();
  auto model = loaded.model;
  EXPECT_TRUE(model->final_layer->bias.numel() == 0 || !model->final_layer->bias.defined());
  const auto ids = torch::arange(2, 2 + 9).view({1, 9});
  const auto left = torch::cat({torch::full({1, 4}, 1, torch::kLong), ids}, 1);
  const auto mask = left.ne(1);
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(model);
  const auto alone = frozen.encode(ids);
  EXPECT_TRUE(alone.allclose(model->encode(ids), 1e-5, 1e-5));
  const auto padded = model->encode(left, AttentionMask::key_padding(mask)).narrow(1, 4, 9);
  EXPECT_TRUE(padded.allclose(alone, 1e-5, 1e-5)) << "padding on the left has no positions";
  model->encode(torch::full({1, 50}, 3, torch::kLong));
  EXPECT_TRUE(frozen.encode(ids).equal(alone)) << "the model's own table has grown";
  model->src_embedding->position_encoding->pe.zero_();
  EXPECT_ERROR(frozen.encode(ids), c10::Error,
               "other values in src_embedding.position_encoding.pe");
  config_["pad_token_id"] = nullptr;
  expect_value_error("pad_token_id must be a token, which has no position");
}

// A tiny T5 of two layers each.
class T5Folder : public Seq2SeqFolder {
 protected:
  T5Folder() {
    config_ = {{"model_type", "t5"}, {"vocab_size", 11}, {"d_model", 8},    {"d_kv", 4},
               {"num_heads", 2},     {"d_ff", 5},        {"num_layers", 2}, {"bos_token_id", 2}};
    tensors_.clear();
    tensor("shared.weight", {11, 8});
    for (const std::string stack : {"encoder", "decoder"}) {
      tensor(stack + ".final_layer_norm.weight", {8});
      tensor(stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight", {32, 2});
      for (const std::string number : {"0", "1"}) block(stack, number);
    }
  }
  void block(const std::string& stack, const std::string& number) {
    const std::string in = stack + ".block." + number + ".layer.";
    std::vector<std::string> attentions = {"0.SelfAttention."};
    if (stack == "decoder") attentions.emplace_back("1.EncDecAttention.");
    for (const std::string& name : attentions)
      for (const char* part : {"q", "k", "v", "o"}) tensor(in + name + part + ".weight", {8, 8});
    const std::string last = std::to_string(attentions.size());
    tensor(in + last + ".DenseReluDense.wi.weight", {5, 8});
    tensor(in + last + ".DenseReluDense.wo.weight", {8, 5});
    for (std::size_t i = 0; i <= attentions.size(); ++i)
      tensor(in + std::to_string(i) + ".layer_norm.weight", {8});
  }
};

// By default the decoder is as deep as the encoder is by the name that transformers reads first.
TEST_F(T5Folder, TheDecoderHasTheEarlierNumberOfLayers) {
  const auto layers = [&] {
    const auto model = load().model;
    return std::pair(model->options.num_encoder_layers(), model->options.num_decoder_layers());
  };
  EXPECT_EQ(layers(), std::pair(int64_t{2}, int64_t{2}));
  config_["num_hidden_layers"] = 1;
  EXPECT_EQ(layers(), std::pair(int64_t{1}, int64_t{2}));
  config_["num_decoder_layers"] = nullptr;
  EXPECT_EQ(layers(), std::pair(int64_t{1}, int64_t{2}));
  config_["num_decoder_layers"] = 1;
  EXPECT_EQ(layers(), std::pair(int64_t{1}, int64_t{1}));
  config_.erase("num_decoder_layers");
  config_.erase("num_layers");
  expect_value_error("which lack decoder.block.5.layer.0.SelfAttention.q.weight. Got 6");
}

// And not the number of layers.
TEST_F(T5Folder, OneTensorThatTheLastLayerLacks) {
  const std::string name = "decoder.block.1.layer.0.SelfAttention.q.weight";
  ASSERT_EQ(tensors_.erase(name), 1U);
  EXPECT_CONTAINS(refusal([&] { load(); }), "'" + name + "'");
}

TEST_F(T5Folder, PositionsBoundTheDefaultLengthOfASearchAlone) {
  const auto generated = [&](std::optional<int64_t> most) {
    auto loaded = load();
    loaded.generation.max_new_tokens(most);
    return generate(loaded.model, torch::full({1, 12}, 3, torch::kLong), loaded.generation)[0][0]
        .tokens.size();
  };
  EXPECT_EQ(generated(std::nullopt), 20u) << "nothing ends it";
  config_["max_position_embeddings"] = 9;
  EXPECT_EQ(generated(std::nullopt), 8u);
  EXPECT_EQ(generated(30), 30u);
}

TEST_F(Seq2SeqFolder, AReportHasTheNamesOfTheFile) {
  load();
  StateDict tensors;
  for (const auto& [name, value] : tensors_) tensors.insert("mine." + name, value);
  for (const char* name : {"mine.extra.weight", "mine.dropped", "step"})
    tensors.insert(name, torch::zeros({1}));
  tensors.insert("mine.model.encoder.version", torch::zeros({1}));
  save_safetensors(folder_ / "model.safetensors", tensors);
  LoadReport report;
  load_seq2seq(folder_.path().string(),
               LoadOptions()
                   .prefix("mine.")
                   .key_map({{"dropped", ""}, {"extra.*", "model.adapter.*"}})
                   .report(&report));
  EXPECT_EQ(report.unexpected, (std::vector<std::string>{"mine.extra.weight"}));
  std::sort(report.ignored.begin(), report.ignored.end());
  EXPECT_EQ(report.ignored,
            (std::vector<std::string>{"mine.dropped", "mine.model.encoder.version", "step"}));
}

}  // namespace
}  // namespace posenc::testing
