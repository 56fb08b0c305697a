// Folders of decoder-only language models that the test writes: what is read, and what is refused.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <utility>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/decoder.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

constexpr const char* kLayer = "model.layers.1.";

class DecoderFolder : public ::testing::Test {
 protected:
  DecoderFolder() {
    torch::manual_seed(1);
    folder_.config = {{"model_type", "llama"},
                      {"vocab_size", 11},
                      {"hidden_size", 8},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"intermediate_size", 6},
                      {"tie_word_embeddings", true},
                      {"max_position_embeddings", 12}};
    folder_.add("model.embed_tokens.weight", {11, 8});
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      for (const auto& [name, rows] : {std::pair("q", 8), {"k", 4}, {"v", 4}, {"o", 8}})
        folder_.add(layer + "self_attn." + name + "_proj.weight", {rows, 8});
      folder_.add(layer + "mlp.gate_proj.weight", {6, 8});
      folder_.add(layer + "mlp.up_proj.weight", {6, 8});
      folder_.add(layer + "mlp.down_proj.weight", {8, 6});
      for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
        folder_.add(layer + norm + ".weight", {8});
    }
    folder_.add("model.norm.weight", {8});
  }

  Decoder load(const LoadOptions& options = {}) { return load_decoder(folder_.write(), options); }
  at::Tensor logits(const Decoder& model) {
    const torch::NoGradGuard no_grad;
    return Decoder(model)->forward(torch::tensor({{3, 4, 5}})).logits;
  }
  void drop(const std::string& dropped) {
    folder_.rename([&](const std::string& name) { return name == dropped ? "" : name; });
  }
  void expect_weights_error(const std::string& text) { EXPECT_ERROR(load(), WeightsError, text); }
  void expect_value_error(const std::string& text) { EXPECT_ERROR(load(), c10::ValueError, text); }

  TinyFolder folder_;
};

TEST_F(DecoderFolder, TheFileDecidesWhetherTheOutputLayerIsTheTable) {
  const at::Tensor table = folder_.tensors["model.embed_tokens.weight"];
  const Decoder tied = load();
  EXPECT_TRUE(tied->options.tied());
  folder_.tensors.insert("lm_head.weight", table.clone());
  EXPECT_TRUE(load()->options.tied());
  drop("model.embed_tokens.weight");
  const Decoder from_head = load();
  EXPECT_TRUE(from_head->options.tied());
  EXPECT_TRUE(bit_equal(logits(from_head), logits(tied)));
  folder_.tensors.insert("model.embed_tokens.weight", table + 1);
  const Decoder own = load();
  EXPECT_FALSE(own->options.tied());
  EXPECT_TRUE(bit_equal(own->lm_head->weight, table));
  folder_.config["tie_word_embeddings"] = false;
  EXPECT_FALSE(load()->options.tied());
  drop("lm_head.weight");
  expect_weights_error("lm_head.weight");
}

TEST_F(DecoderFolder, NamesMayHaveThePrefixOfTheClassOrNone) {
  const at::Tensor expected = logits(load());
  folder_.rename([](const std::string& name) { return name.substr(6); });
  EXPECT_TRUE(bit_equal(logits(load()), expected));
  folder_.rename([](const std::string& name) { return "wrapper.model." + name; });
  EXPECT_TRUE(bit_equal(logits(load(LoadOptions().prefix("wrapper."))), expected));
}

TEST_F(DecoderFolder, ATensorThatTheModelDoesNotComputeIsAnError) {
  folder_.add(kLayer + std::string("self_attn.rotary_emb.inv_freq"), {1});  // a buffer
  LoadReport report;
  load(LoadOptions().report(&report));
  EXPECT_EQ(report.ignored,
            std::vector<std::string>{"model.layers.1.self_attn.rotary_emb.inv_freq"});
  for (const std::string name :
       {"model.layers.1.self_attn.q_proj.bias", "model.layers.2.input_layernorm.weight",
        "score.weight", "model.other.weight", "lm_head.bias"}) {
    folder_.add(name, {8});
    expect_weights_error(name);
    load(LoadOptions().allow_unexpected(true));
    drop(name);
  }
  drop("model.layers.1.mlp.up_proj.weight");
  expect_weights_error("model.layers.1.mlp");
}

TEST_F(DecoderFolder, SizesHaveToBeThoseOfTheConfiguration) {
  folder_.add("lm_head.weight", {12, 8});
  expect_weights_error("must be (11, 8)");
  drop("lm_head.weight");
  folder_.config["num_hidden_layers"] = 3;
  expect_value_error("num_hidden_layers");
  folder_.config["num_hidden_layers"] = 2;
  folder_.config["vocab_size"] = 12;
  expect_value_error("vocab_size");
}

TEST_F(DecoderFolder, OtherModelsAreRefusedByName) {
  folder_.config["model_type"] = "bart";
  expect_value_error("load_seq2seq() loads it");
  folder_.config["model_type"] = "lama";
  expect_value_error("the nearest are");
  folder_.config["model_type"] = "bert";
  expect_value_error("model_type must be that of a decoder-only language model");
  for (const char* type : {"mixtral", "qwen3_moe", "deepseek_v3", "llama4_text", "gpt_oss"}) {
    folder_.config["model_type"] = type;
    expect_value_error("it needs a mixture of experts");
  }
  for (const char* type : {"mamba", "rwkv", "jamba2", "apertus", "chatglm"}) {
    folder_.config["model_type"] = type;
    expect_value_error("; the nearest are ");
    expect_value_error(std::string("Got ") + type);
  }
  folder_.config["model_type"] = "gemma3";
  folder_.config["text_config"] = {{"model_type", "gemma3_text"}};
  expect_value_error("whose language model, in text_config, is not loaded by itself");
  folder_.config.erase("text_config");
  folder_.config["model_type"] = "gemma";
  folder_.config["use_bidirectional_attention"] = true;
  expect_value_error("use_bidirectional_attention must be false or null");
  folder_.config.erase("use_bidirectional_attention");
  folder_.config["model_type"] = "llama";
  folder_.config["quantization_config"] = {{"quant_method", "gptq"}, {"bits", 4}};
  expect_value_error("only the model that they were made of. Got \"gptq\"");
  folder_.config.erase("quantization_config");
  for (const char* name : {"hidden_size", "rms_norm_eps", "attention_bias", "use_cache"}) {
    const nlohmann::json whole = folder_.config;
    folder_.config[name] = nullptr;
    expect_value_error(std::string(name) + " must be left out or have a value. Got null");
    folder_.config = whole;
  }
  folder_.config["is_causal"] = false;
  expect_value_error("must be causal");
  folder_.config["is_causal"] = true;
  folder_.config["is_decoder"] = true;
  load();
  folder_.config["add_cross_attention"] = true;
  expect_value_error("add_cross_attention");
}

TEST_F(DecoderFolder, InputsAreChecked) {
  Decoder model = load();
  const auto ids = torch::tensor({{3, 4, 5}, {1, 2, 0}});
  const auto with = [&](const torch::Tensor& mask) {
    return [&, mask] { return model->forward(ids, DecoderInputs().attention_mask(mask)); };
  };
  EXPECT_ERROR(with(torch::tensor({{1, 0, 1}, {1, 1, 1}}))(), c10::ValueError,
               "between them in row 0");
  EXPECT_ERROR(with(torch::tensor({{1, 1, 1}, {0, 0, 0}}))(), c10::ValueError,
               "Got no token in row 1");
  EXPECT_ERROR(with(torch::ones({2, 4}, torch::kLong))(), c10::ValueError,
               "attention_mask must be [2, 3]");
  EXPECT_ERROR(with(torch::ones({2, 3}))(), c10::TypeError, "must be bool or an integer type");
  EXPECT_ERROR(model->forward(torch::tensor({{3, 11}})), c10::ValueError,
               "Got 11 in row 0, column 1");
  EXPECT_ERROR(model->forward(torch::tensor({{3, -1}})), c10::ValueError, "Got -1");
  EXPECT_ERROR(model->forward(torch::zeros({2, 0}, torch::kLong)), c10::ValueError,
               "at least one column");
  auto caches = model->make_caches(2, 4);
  model->step(ids, caches);
  EXPECT_ERROR(model->step(ids, caches), c10::ValueError, "capacity");
  EXPECT_EQ(caches.back().length(), 3);
  EXPECT_ERROR(model->step(torch::tensor({{11}, {1}}), caches), c10::ValueError, "Got 11");
  EXPECT_EQ(caches.front().length(), 3);
}

TEST_F(DecoderFolder, GenerateRefusesWhatADecoderLacks) {
  Decoder model = load();
  const GenerateOptions options = GenerateOptions(0, 2).max_new_tokens(4);
  const std::vector<std::vector<int64_t>> prompts = {{3, 4}, {5}};
  EXPECT_EQ(generate(model, {}, options).size(), 0U);
  EXPECT_ERROR(generate(model, {{3}, {}}, options), c10::ValueError, "Got no token in prompt 1");
  EXPECT_ERROR(generate(model, {{11}}, options), c10::ValueError, "each token of a prompt");
  const auto expect = [&](const GenerateOptions& changed, const char* text) {
    EXPECT_ERROR(generate(model, prompts, changed), c10::ValueError, text);
  };
  expect(GenerateOptions(options).encoder_repetition_penalty(2.0), "encoder_repetition_penalty");
  expect(GenerateOptions(options).encoder_no_repeat_ngram_size(2), "encoder_no_repeat_ngram_size");
  expect(GenerateOptions(options).return_attention(true), "return_attention");
  expect(GenerateOptions(options).prefixes({{1}}), "prefixes");
  expect(GenerateOptions(options).max_new_tokens(std::nullopt).max_length(2), "max_length");
  model->train();
  expect(options, "eval mode");
}

TEST_F(DecoderFolder, LengthsAreThoseOfEachRowAlone) {
  Decoder model = load();
  GenerateOptions options = GenerateOptions(0, 0).eos_ids({}).max_new_tokens(std::nullopt);
  const auto lengths = [&] {
    std::vector<std::size_t> all;
    for (const auto& one : generate(model, {{3, 4, 5}, {5}}, options))
      all.push_back(one[0].tokens.size());
    return all;
  };
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{9, 11}));  // 12 columns, max_position_embeddings
  EXPECT_EQ((options.max_length(8), lengths()), (std::vector<std::size_t>{5, 7}));
  EXPECT_EQ((options.max_new_tokens(20), lengths()), (std::vector<std::size_t>{20, 20}));
}

TEST_F(DecoderFolder, SamplesOfOneTokenAreThoseOfGreedySearch) {
  Decoder model = load();
  const std::vector<std::vector<int64_t>> prompts = {{3, 4, 5}, {5}, {7, 7}};
  const auto greedy = generate(model, prompts, GenerateOptions(0, 6).max_new_tokens(8));
  const auto drawn = generate(
      model, prompts,
      GenerateOptions(0, 6).max_new_tokens(8).do_sample(true).top_k(1).num_return_sequences(3));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    for (const auto& one : drawn[i]) EXPECT_EQ(one.tokens, greedy[i][0].tokens);
}

TEST_F(DecoderFolder, IsSavedAsItWas) {
  for (const bool tied : {true, false}) {
    folder_.config["tie_word_embeddings"] = tied;
    if (!tied) folder_.add("lm_head.weight", {11, 8});
    const Decoder model = load();
    const TempDir out;
    save_pretrained(model, out / "saved");
    EXPECT_TRUE(bit_equal(logits(load_decoder(out / "saved")), logits(model)));
    const StateDict saved = load_tensors(out / "saved/model.safetensors");
    EXPECT_EQ(saved.size(), folder_.tensors.size());
    for (const auto& item : saved)
      EXPECT_TRUE(bit_equal(item.value(), folder_.tensors[item.key()])) << item.key();
  }
}

}  // namespace
}  // namespace posenc::testing
