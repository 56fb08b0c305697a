// posenc generate and encode with decoder-only language models: what they refuse, and how their
// ways of running agree. tests/differential/decoders.py compares them with transformers.
#include <torch/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVocab = 20, kWidth = 8, kWide = 12, kHeads = 4, kKeys = 2, kHead = 2;

// The config.json of a Llama, with other settings.
Json llama(const Json& changed = Json::object()) {
  Json config = {{"model_type", "llama"},
                 {"vocab_size", kVocab},
                 {"hidden_size", kWidth},
                 {"intermediate_size", kWide},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", kHeads},
                 {"num_key_value_heads", kKeys},
                 {"max_position_embeddings", 32},
                 {"eos_token_id", 3},
                 {"tie_word_embeddings", false}};
  config.update(changed);
  return config;
}

StateDict llama_tensors() {
  torch::manual_seed(5);
  StateDict tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef sizes) {
    tensors.insert(name, torch::randn(sizes) * 0.4);
  };
  add("model.embed_tokens.weight", {kVocab, kWidth});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add(layer + "self_attn.q_proj.weight", {kHeads * kHead, kWidth});
    add(layer + "self_attn.k_proj.weight", {kKeys * kHead, kWidth});
    add(layer + "self_attn.v_proj.weight", {kKeys * kHead, kWidth});
    add(layer + "self_attn.o_proj.weight", {kWidth, kHeads * kHead});
    add(layer + "mlp.gate_proj.weight", {kWide, kWidth});
    add(layer + "mlp.up_proj.weight", {kWide, kWidth});
    add(layer + "mlp.down_proj.weight", {kWidth, kWide});
    for (const char* const norm : {"input_layernorm.weight", "post_attention_layernorm.weight"})
      tensors.insert(layer + norm, torch::ones({kWidth}));
  }
  tensors.insert("model.norm.weight", torch::ones({kWidth}));
  add("lm_head.weight", {kVocab, kWidth});
  return tensors;
}

class GenerateDecoder : public InFolder {
 protected:
  std::string folder(const Json& config = llama(), const StateDict& tensors = llama_tensors()) {
    const std::string path = file("model" + std::to_string(folders_++));
    std::filesystem::create_directory(path);
    write_bytes(path + "/config.json", config.dump());
    save_safetensors(path + "/model.safetensors", tensors);
    return path;
  }
  Result generate(const std::string& model, const StateDict& inputs,
                  const std::vector<std::string>& more = {},
                  const char* command = "generate") const {
    std::vector<std::string> words = {command, model,      "--in", safetensors("in", inputs),
                                      "--out", file("out")};
    words.insert(words.end(), more.begin(), more.end());
    return posenc(words);
  }
  StateDict found(const std::string& model, const StateDict& inputs,
                  const std::vector<std::string>& more = {},
                  const char* command = "generate") const {
    const auto result = generate(model, inputs, more, command);
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors;
  }
  void expect_nothing(const std::string& model, const StateDict& inputs,
                      const std::vector<std::string>& more, const std::string& message) const {
    expect_refused(generate(model, inputs, more), "generate", message);
    EXPECT_FALSE(std::filesystem::exists(file("out"))) << message;
  }
  void expect_refused_folder(const Json& config, const StateDict& tensors,
                             const std::string& message) {
    const std::string model = folder(config, tensors);
    for (const std::vector<std::string>& more :
         std::vector<std::vector<std::string>>{{"--logits"}, {}})
      expect_nothing(model, in_, more, message);
  }

  const at::Tensor ids_ = torch::tensor({{7, 9, 5, 6}, {8, 6, 4, 1}});
  const StateDict in_ = dict({{"input_ids", ids_}});

 private:
  int folders_ = 0;
};

// A row is the row alone, whatever side its padding is on and whatever that holds.
TEST_F(GenerateDecoder, RowsAreThoseAlone) {
  const std::string model = folder();
  const auto padded = dict({{"input_ids", torch::tensor({{999, -1, 7, 9, 5}, {8, 6, 4, 999, 0}})},
                            {"attention_mask", torch::tensor({{0, 0, 1, 1, 1}, {1, 1, 1, 0, 0}})}});
  const auto left = dict({{"input_ids", torch::tensor({{7, 9, 5}})}});
  const auto right = dict({{"input_ids", torch::tensor({{8, 6, 4}})}});
  for (const char* const command : {"generate", "encode"}) {
    const bool encodes = std::string(command) == "encode";
    const std::vector<std::string> more =
        encodes ? std::vector<std::string>() : std::vector<std::string>{"--logits"};
    const auto both = found(model, padded, more, command);
    const std::vector<std::string> names =
        encodes ? std::vector<std::string>{"last_hidden_state"}
                : std::vector<std::string>{"logits", "last_hidden_state"};
    for (const std::string& name : names) {
      EXPECT_TRUE(both[name].isfinite().all().item<bool>()) << name;
      EXPECT_TRUE(torch::allclose(both[name][0].slice(0, 2),
                                  found(model, left, more, command)[name][0], 1e-5, 1e-6))
          << command << " " << name;
      EXPECT_TRUE(torch::allclose(both[name][1].slice(0, 0, 3),
                                  found(model, right, more, command)[name][0], 1e-5, 1e-6))
          << command << " " << name;
    }
  }
  const std::vector<std::string> set = {"--set", "max_new_tokens=4", "--set", "eos_token_id=null"};
  const auto both = found(model, padded, set)["sequences"];
  ASSERT_EQ(both.sizes(), (torch::IntArrayRef{2, 9}));
  EXPECT_TRUE(torch::equal(both.narrow(1, 0, 5), padded["input_ids"]));
  EXPECT_TRUE(
      torch::equal(both[0].slice(0, 5), found(model, left, set)["sequences"][0].slice(0, 3)));
  EXPECT_TRUE(
      torch::equal(both[1].slice(0, 5), found(model, right, set)["sequences"][0].slice(0, 3)));
}

TEST_F(GenerateDecoder, ASeedDecidesSamplesWhateverTheThreads) {
  const std::string model = folder();
  for (const std::string how : {"", "--plain", "--int8"}) {
    const auto sampled = [&](const std::string& seed, const std::string& threads) {
      std::vector<std::string> more = {"--seed", seed, "--threads", threads};
      for (const char* const set : {"do_sample=true", "num_return_sequences=4", "temperature=2.5",
                                    "max_new_tokens=8", "eos_token_id=null"})
        more.insert(more.end(), {"--set", set});
      if (!how.empty()) more.push_back(how);
      return found(model, in_, more)["sequences"];
    };
    const at::Tensor first = sampled("7", "1");
    ASSERT_EQ(first.sizes(), (torch::IntArrayRef{8, 12}));
    for (const char* const threads : {"1", "2", "4"})
      EXPECT_TRUE(torch::equal(sampled("7", threads), first)) << how << " " << threads;
    EXPECT_FALSE(torch::equal(sampled("8", "1"), first)) << how;
    EXPECT_FALSE(torch::equal(first[0], first[1])) << how;
  }
}

TEST_F(GenerateDecoder, FrozenAndPlainAgree) {
  const std::string model = folder();
  const std::vector<std::string> set = {"--set", "num_beams=3", "--set", "num_return_sequences=2"};
  auto plain = set;
  plain.emplace_back("--plain");
  const auto frozen = found(model, in_, set), modules = found(model, in_, plain);
  EXPECT_EQ(frozen["sequences"].size(0), 4);
  EXPECT_TRUE(torch::equal(frozen["sequences"], modules["sequences"]));
  EXPECT_TRUE(torch::allclose(frozen["sequences_scores"], modules["sequences_scores"], 1e-5, 1e-5));
  EXPECT_EQ(found(model, in_, {"--set", "num_beams=1"}).size(), 1U);
  for (const char* const flag : {"--int8", "--bfloat16"}) {
    EXPECT_EQ(generate(model, in_, {flag}).status, 0);
    EXPECT_EQ(generate(model, in_, {flag, "--plain"}).status, 2);
  }
}

// What posenc freeze writes takes the place of the folder, and says what does not fit it.
TEST_F(GenerateDecoder, TakesTheFrozenFolder) {
  const std::string model = folder(llama({{"sliding_window", nullptr}}));
  write_bytes(model + "/tokenizer.json",
              R"({"added_tokens": [], "model": {"type": "WordLevel", "unk_token": "a", "vocab": )"
              R"({"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}, )"
              R"("pre_tokenizer": {"type": "Whitespace"}})");
  const auto text = text_file("prompts", "b c\ne\n");
  const std::vector<std::string> beams = {"--set", "num_beams=3"};
  int number = 0;
  for (const std::vector<std::string>& dtypes :
       std::vector<std::vector<std::string>>{{}, {"--int8", "--int8-block", "64"}}) {
    const std::string frozen = file("frozen" + std::to_string(number++));
    std::vector<std::string> freeze = {"freeze", model, frozen};
    freeze.insert(freeze.end(), dtypes.begin(), dtypes.end());
    ASSERT_EQ(posenc(freeze).status, 0);
    EXPECT_FALSE(std::filesystem::exists(frozen + "/model.safetensors"));
    const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
    const auto own = found(model, in_, with({"--logits"}, dtypes));
    const auto of_beams = found(model, in_, with(beams, dtypes));
    const auto hidden = found(model, in_, dtypes, "encode");
    const Result lines = posenc(with({"generate", model, "--text", text}, dtypes));
    EXPECT_EQ(lines.status, 0) << lines.err;
    for (const auto& same : {std::vector<std::string>(), dtypes}) {
      const auto got = found(frozen, in_, with({"--logits"}, same));
      EXPECT_TRUE(bit_equal(got["logits"], own["logits"]));
      EXPECT_TRUE(bit_equal(got["last_hidden_state"], own["last_hidden_state"]));
      const auto again = found(frozen, in_, with(beams, same));
      EXPECT_TRUE(torch::equal(again["sequences"], of_beams["sequences"]));
      EXPECT_TRUE(bit_equal(again["sequences_scores"], of_beams["sequences_scores"]));
      EXPECT_TRUE(bit_equal(found(frozen, in_, same, "encode")["last_hidden_state"],
                            hidden["last_hidden_state"]));
      EXPECT_EQ(posenc(with({"generate", frozen, "--text", text}, same)).out, lines.out);
    }
    EXPECT_NE(posenc({"inspect", frozen}).out.find("a decoder-only language model"),
              std::string::npos);
    std::filesystem::remove(file("out"));
    expect_nothing(frozen, in_, {"--plain"}, "must hold float32 weights. Got a frozen model");
    expect_refused(posenc({"freeze", frozen, file("again")}), "freeze",
                   "must hold float32 weights. Got a frozen model");
    if (!dtypes.empty()) continue;
    expect_nothing(frozen, in_, {"--int8"},
                   "must be left out, or be those with which it was frozen, weights=Float32. Got "
                   "weights=Int8");
    expect_refused(posenc({"generate", frozen, "--text", text, "--bfloat16"}), "generate",
                   "weights=Float32. Got weights=BFloat16");
  }
}

// Without its output layer a language model is an encoder.
TEST_F(GenerateDecoder, AFrozenFolderMayLackTheOutputLayer) {
  const std::string whole = folder(), layers = folder(llama({{"architectures", {"LlamaModel"}}}));
  ASSERT_EQ(posenc({"freeze", whole, file("one"), "--without-head"}).status, 0);
  ASSERT_EQ(posenc({"freeze", layers, file("two"), "--allow-unexpected"}).status, 0);
  const auto expected = found(whole, in_, {}, "encode")["last_hidden_state"];
  for (const char* const name : {"one", "two"}) {
    EXPECT_TRUE(bit_equal(found(file(name), in_, {}, "encode")["last_hidden_state"], expected));
    std::filesystem::remove(file("out"));
    expect_nothing(file(name), in_, {}, "must be a frozen Decoder. Got one of kind Encoder");
  }
}

// Each token has the largest logit after those before it.
TEST_F(GenerateDecoder, LogitsOfWhatWasFoundLeadToIt) {
  const std::string model = folder();
  const auto sequences =
      found(model, in_, {"--set", "max_new_tokens=6", "--set", "eos_token_id=null"})["sequences"];
  const auto logits = found(model, dict({{"input_ids", sequences}}), {"--logits"})["logits"];
  EXPECT_TRUE(torch::equal(logits.argmax(2).slice(1, 3, 9), sequences.slice(1, 4)));
}

TEST_F(GenerateDecoder, RefusesTensors) {
  const std::string model = folder();
  const auto with_mask = [&](const at::Tensor& mask) {
    return dict({{"input_ids", ids_}, {"attention_mask", mask}});
  };
  const std::vector<std::pair<StateDict, std::string>> cases = {
      {dict({{"ids", ids_}}), "`ids`"},
      {dict({{"input_ids", ids_}, {"decoder_input_ids", ids_}}), "`decoder_input_ids`"},
      {dict({{"input_ids", ids_.to(torch::kFloat)}}), "`input_ids` must be int64"},
      {dict({{"input_ids", ids_.narrow(1, 0, 0)}}), "`input_ids` must have tokens; it is (2, 0)"},
      {dict({{"input_ids", ids_ + 14}}),
       "`input_ids` must have ids in [0, 20), the model's vocabulary. Got"},
      {dict({{"input_ids", ids_ - 2}}), "Got -1 at index [1, 3]"},
      {with_mask(torch::ones({2, 3}, torch::kLong)),
       "`attention_mask` must have the shape of `input_ids`"},
      {with_mask(torch::tensor({{1, 1, 0, 1}, {1, 1, 1, 1}})),
       "row 0 of `attention_mask` must be nonzero for its tokens"},
      {with_mask(torch::tensor({{1, 1, 1, 1}, {0, 0, 0, 0}})),
       "row 1 of `attention_mask` must be nonzero for its tokens"}};
  for (const auto& [inputs, message] : cases) {
    expect_nothing(model, inputs, {}, message);
    expect_nothing(model, inputs, {"--logits"}, message);
  }
  expect_nothing(model, in_, {"--attention"},
                 "--attention and --coverage-penalty are for encoder-decoders");
}

TEST_F(GenerateDecoder, RefusesSettings) {
  const std::string model = folder();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"beams=3", "beams must be a setting of transformers' generate()"},
      {"num_beams=0", "num_beams must be an integer"},
      {"num_return_sequences=2", "num_return_sequences must be an integer"},
      {"max_new_tokens=0", "max_new_tokens must be an integer"},
      {"max_length=4", "--set max_length must"},
      {"repetition_penalty=0", "repetition_penalty must be above 0"},
      {"encoder_repetition_penalty=2",
       "encoder_repetition_penalty must not be set for a model without an encoder"},
      {"encoder_no_repeat_ngram_size=2", "encoder_no_repeat_ngram_size must not be set"},
      {"bad_words_ids=[[20]]", "bad_words_ids must have lists of tokens in [0, 20)"},
      {"stop_strings=\"end\"", "stop_strings must be null, the only value that posenc has"},
  };
  for (const auto& [set, message] : cases) expect_nothing(model, in_, {"--set", set}, message);
  expect_nothing(model, in_, {"--set", "num_beams=2", "--set", "num_return_sequences=3"},
                 "num_return_sequences must be an integer");
}

TEST_F(GenerateDecoder, RefusesTensorsOfFiles) {
  const auto changed = [](const std::string& name, const at::Tensor& value) {
    const StateDict all = llama_tensors();
    StateDict tensors;
    for (const auto& own : all)
      if (own.key() != name) tensors.insert(own.key(), own.value());
    if (value.defined()) tensors.insert(name, value);
    return tensors;
  };
  expect_refused_folder(llama(), changed("model.norm.weight", {}), "norm");
  expect_refused_folder(llama(), changed("lm_head.weight", {}), "lm_head.weight");
  expect_refused_folder(llama(), changed("model.layers.0.self_attn.q_proj.bias", torch::zeros({8})),
                        "model.layers.0.self_attn.q_proj.bias");
  expect_refused_folder(llama(), changed("model.norm.weight", torch::ones({9})), "norm");
  expect_refused_folder(llama({{"num_hidden_layers", 1}}), llama_tensors(), "layers.1.");
  expect_refused_folder(llama({{"num_hidden_layers", 3}}), llama_tensors(), "layers.2.");
  const std::string model = folder();
  std::filesystem::remove(model + "/model.safetensors");
  write_bytes(model + "/model.safetensors.index.json",
              R"({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}})");
  expect_nothing(model, in_, {}, "model-00001-of-00002.safetensors");
}

TEST_F(GenerateDecoder, RefusesConfigurations) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"model_type", "lama"}},
       "model_type must be that of a decoder-only language model that posenc has"},
      {{{"model_type", "mixtral"}}, "mixture of experts"},
      {{{"hidden_act", "swigloo"}}, "swigloo"},
      {{{"num_attention_heads", 3}}, "heads"},
      {{{"num_key_value_heads", 3}}, "heads"},
      {{{"rope_scaling", {{"rope_type", "spiral"}, {"factor", 2.0}}}}, "spiral"},
      {{{"hidden_size", nullptr}}, "hidden_size"},
      {{{"quantization_config", {{"quant_method", "gptq"}}}}, "gptq"},
      {{{"model_type", "qwen3"}, {"head_dim", 2}, {"layer_types", {"full_attention"}}},
       "layer_types"},
      {{{"model_type", "qwen3"}, {"head_dim", 2}, {"layer_types", {"full_attention", "half"}}},
       "half"},
  };
  for (const auto& [changed, message] : cases)
    expect_refused_folder(llama(changed), llama_tensors(), message);
}

TEST_F(GenerateDecoder, RefusesToDrawFromNaN) {
  StateDict tensors = llama_tensors();
  tensors["model.layers.0.mlp.down_proj.weight"].fill_(3e38F);  // whose products are infinite
  const std::string model = folder(llama(), tensors);
  for (const char* const set : {"do_sample=true", "do_sample=false"})
    expect_nothing(model, in_, {"--set", set}, "must have a logit that is a number");
}

TEST_F(GenerateDecoder, TextNeedsATokenizer) {
  const auto result = posenc({"generate", folder(), "--text", text_file("prompts", "Hello\n")});
  expect_refused(result, "generate", "tokenizer");
  EXPECT_EQ(posenc({"generate", folder()}).status, 2);
  EXPECT_EQ(posenc({"generate", folder(), "--in", safetensors("in", in_)}).status, 2) << "no --out";
  EXPECT_EQ(posenc({"generate", folder(), "--text", "-", "--plain"}).status, 2);
  EXPECT_EQ(posenc({"generate", folder(), "--chat", "--in", safetensors("in", in_)}).status, 2);
  EXPECT_EQ(posenc({"generate", folder(), "--text", "-", "--chat-template-kwargs", "{}"}).status,
            2);
}

}  // namespace
}  // namespace posenc::testing
