// save_pretrained() of an encoder-decoder: what it writes beside the weights, and what it refuses.
// The differential tests open the folders in transformers.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "posenc/models/save_pretrained.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kSavedVocab = 12, kSavedWidth = 8;

TransformerOptions marian_options() {
  return TransformerOptions(kSavedVocab, kSavedVocab)
      .d_model(kSavedWidth)
      .num_heads(2)
      .num_encoder_layers(1)
      .num_decoder_layers(2)
      .d_ff(6)
      .decoder_d_ff(10)
      .max_len(20)
      .dropout(0.1)
      .dropouts(LayerDropouts{.attention_output = 0.1, .output = 0.1})
      .activation(Activation::SiLU)
      .padding_idx(kSavedVocab - 1)
      .tie(Tying::ThreeWay)
      .sinusoid(preset("hf_marian", kSavedWidth));
}

// A model that was made by hand.
Seq2SeqModel small_marian(const TransformerOptions& options = marian_options()) {
  torch::manual_seed(3);
  Transformer model(options);
  model->eval();
  return {model, GenerateOptions(kSavedVocab - 1, 0).num_beams(3), kSavedVocab - 1, "marian"};
}

json json_in(const std::string& path) { return json::parse(read_bytes(path)); }

at::Tensor marian_logits(Transformer model) {
  const torch::NoGradGuard no_grad;
  return model->forward(torch::tensor({{3, 4, 5}}), torch::tensor({{2, 6}}), {},
                        AttentionMask::causal());
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// ACT2FN of transformers 5.23 has no name for these.
TEST(SaveSeq2Seq, AnActivationThatTransformersLacksIsRefused) {
  const TempDir out;
  for (const Activation activation : {Activation::ELU, Activation::LogSigmoid, Activation::SELU,
                                      Activation::Softplus, Activation::Softsign}) {
    EXPECT_ERROR(
        save_pretrained(small_marian(marian_options().activation(activation)), out / "new"),
        c10::ValueError,
        "activation of the model must be one that transformers has. Got " + to_string(activation));
    EXPECT_FALSE(fs::exists(out / "new"));
  }
  for (const Activation activation :
       {Activation::Identity, Activation::GELUTanh, Activation::Tanh}) {
    save_pretrained(small_marian(marian_options().activation(activation)), out / "new");
    EXPECT_EQ(load_seq2seq(out / "new").model->options.activation(), activation);
    fs::remove_all(out / "new");
  }
}

TEST(SaveSeq2Seq, AModelMadeByHandBecomesAFolderOfItsModelType) {
  const Seq2SeqModel made = small_marian();
  const TempDir out;
  save_pretrained(made, out / "new");
  EXPECT_EQ(
      files_in(out / "new"),
      (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors"}));
  const json config = json_in(out / "new/config.json");
  EXPECT_EQ(config["architectures"], json({"MarianMTModel"}));
  EXPECT_EQ(config["decoder_ffn_dim"], 10);
  EXPECT_EQ(config["activation_function"], "swish");
  EXPECT_EQ(config["pad_token_id"], kSavedVocab - 1);
  const json generation = json_in(out / "new/generation_config.json");
  EXPECT_EQ(generation["num_beams"], 3);
  EXPECT_EQ(generation["early_stopping"], "never");
  EXPECT_EQ(generation["decoder_start_token_id"], kSavedVocab - 1);
  const Seq2SeqModel again = load_seq2seq(out / "new");
  EXPECT_EQ(again.model->options.tie(), Tying::ThreeWay);
  EXPECT_TRUE(bit_equal(marian_logits(again.model), marian_logits(made.model)));
  EXPECT_EQ(again.generation.max_new_tokens(), made.generation.max_new_tokens());
}

TEST(SaveSeq2Seq, EachTyingIsKept) {
  for (const Tying tie :
       {Tying::None, Tying::EncoderDecoder, Tying::DecoderOutput, Tying::ThreeWay}) {
    SCOPED_TRACE(to_string(tie));
    const Seq2SeqModel made = small_marian(marian_options().tie(tie));
    const TempDir out;
    save_pretrained(made, out / "new");
    const Seq2SeqModel again = load_seq2seq(out / "new");
    EXPECT_EQ(again.model->options.tie(), tie);
    EXPECT_TRUE(bit_equal(marian_logits(again.model), marian_logits(made.model)));
    EXPECT_EQ(again.model->parameters().size(), made.model->parameters().size());
  }
}

TEST(SaveSeq2Seq, SettingsThatHaveNotChangedStayAsTheyAre) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  const std::string text =
      R"({"num_beams": 2,   "eos_token_id":[0, 3], "decoder_start_token_id":11, "my_own": 1})";
  write_bytes(out / "first/generation_config.json", text);
  json config = json_in(out / "first/config.json");
  config["my_own"] = "kept";
  write_bytes(out / "first/config.json", config.dump());
  Seq2SeqModel loaded = load_seq2seq(out / "first");
  save_pretrained(loaded, out / "second");
  EXPECT_EQ(read_bytes(out / "second/generation_config.json"), text);
  EXPECT_EQ(json_in(out / "second/config.json")["my_own"], "kept");
  loaded.generation.num_beams(1).do_sample(true).top_p(0.5).prefixes({{11, 4}});
  save_pretrained(loaded, out / "second");
  const json changed = json_in(out / "second/generation_config.json");
  EXPECT_EQ(changed["top_k"], 0) << "50 by default, once do_sample counts";
  EXPECT_EQ(changed["top_p"], 0.5);
  EXPECT_EQ(changed["my_own"], 1);
  EXPECT_EQ(changed["eos_token_id"], json({0, 3}));
  const auto again = load_seq2seq(out / "second").generation;
  EXPECT_TRUE(again.do_sample() && again.top_k() == 0 && again.prefixes().empty());
}

TEST(SaveSeq2Seq, SettingsThatGenerateDoesNotHaveStayAsTheyAre) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  const std::string text = R"({"num_beams": 2, "num_beam_groups": 2, "decoder_start_token_id": 1})";
  write_bytes(out / "first/generation_config.json", text);
  Seq2SeqModel loaded = load_seq2seq(out / "first");
  save_pretrained(loaded, out / "second");
  EXPECT_EQ(read_bytes(out / "second/generation_config.json"), text);
  const char* const rule = "num_beam_groups must be 1, the only value that posenc has. Got 2";
  EXPECT_ERROR(generate(loaded.model, torch::tensor({{3}}), {}, loaded.generation), c10::ValueError,
               rule);
  for (const auto& changed : {GenerateOptions(loaded.generation).num_beams(3),
                              GenerateOptions(loaded.generation).unsupported("")}) {
    loaded.generation = changed;
    EXPECT_ERROR(save_pretrained(loaded, out / "second"), c10::ValueError, rule);
  }
  loaded.origin.generation_config = R"({"num_beams": 3, "decoder_start_token_id": 1})";
  loaded.generation = GenerateOptions(1, 0).num_beams(3);
  save_pretrained(loaded, out / "second");
  EXPECT_EQ(load_seq2seq(out / "second").generation.num_beams(), 3);
}

TEST(SaveSeq2Seq, SettingsOfASearchInConfigJsonBecomeAFileOfTheirOwn) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  fs::remove(out / "first/generation_config.json");
  json config = json_in(out / "first/config.json");
  config["num_beams"] = 2;
  write_bytes(out / "first/config.json", config.dump());
  save_pretrained(load_seq2seq(out / "first"), out / "second");
  const json generation = json_in(out / "second/generation_config.json");
  EXPECT_EQ(generation["num_beams"], 2);
  EXPECT_FALSE(generation.contains("d_model"));
}

TEST(SaveSeq2Seq, FilesOfATokenizerAreCopied) {
  const TempDir out;
  const std::string bytes("a\0b\xff\n", 5);
  const auto path = [&](const std::string& name) { return out / name; };
  save_pretrained(small_marian(), path("first"));
  write_bytes(path("first/source.spm"), bytes);
  write_bytes(path("first/tokenizer_config.json"), "{}");
  write_bytes(path("first/README.md"), "not of the tokenizer");
  const Seq2SeqModel loaded = load_seq2seq(path("first"));
  save_pretrained(loaded, path("second"));
  EXPECT_EQ(read_bytes(path("second/source.spm")), bytes);
  EXPECT_EQ(read_bytes(path("second/tokenizer_config.json")), "{}");
  EXPECT_FALSE(fs::exists(path("second/README.md")));
  // A tokenizer that is there stays, unless another is asked for, which replaces all of it.
  fs::create_directory(path("third"));
  write_bytes(path("third/tokenizer.json"), "mine");
  save_pretrained(loaded, path("third"));
  EXPECT_EQ(read_bytes(path("third/tokenizer.json")), "mine");
  EXPECT_FALSE(fs::exists(path("third/source.spm")));
  save_pretrained(loaded, path("third"), SavePretrainedOptions().tokenizer_from(path("first")));
  EXPECT_EQ(read_bytes(path("third/source.spm")), bytes);
  EXPECT_FALSE(fs::exists(path("third/tokenizer.json")));
  save_pretrained(loaded, path("fourth"), SavePretrainedOptions().tokenizer_from(""));
  EXPECT_FALSE(fs::exists(path("fourth/source.spm")));
  fs::remove_all(path("first"));
  save_pretrained(loaded, path("fifth"));
  EXPECT_FALSE(fs::exists(path("fifth/source.spm")));
  EXPECT_ERROR(
      save_pretrained(loaded, path("fifth"), SavePretrainedOptions().tokenizer_from(path("first"))),
      c10::ValueError,
      "[save_pretrained] SavePretrainedOptions::tokenizer_from must be a folder with the files of "
      "a "
      "tokenizer. Got ");
}

TEST(SaveSeq2Seq, AfterAnErrorTheFolderIsWhatItWas) {
  const TempDir out;
  const Seq2SeqModel made = small_marian();
  fs::create_directories(out / "old/config.json");  // which cannot be written
  write_bytes(out / "old/model.safetensors", "as it was");
  EXPECT_THROW(save_pretrained(made, out / "old"), WeightsError);
  EXPECT_EQ(read_bytes(out / "old/model.safetensors"), "as it was");
  EXPECT_EQ(files_in(out / "old"), (std::vector<std::string>{"config.json", "model.safetensors"}));
  fs::create_directories(out / "tokenizer");
  fs::create_symlink("/proc/self/mem", out / "tokenizer/tokenizer.json");  // which cannot be read
  EXPECT_THROW(save_pretrained(made, out / "new/inner",
                               SavePretrainedOptions().tokenizer_from(out / "tokenizer")),
               WeightsError);
  EXPECT_FALSE(fs::exists(out / "new"));
}

TEST(SaveSeq2Seq, DoesNotReplaceItsSourceUnlessAllowed) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  const Seq2SeqModel loaded = load_seq2seq(out / "first");
  EXPECT_ERROR(save_pretrained(loaded, out / "first/."), c10::ValueError,
               "[save_pretrained] folder must not be the one that the model was loaded from");
  write_bytes(out / "first/vocab.json", "{}");
  save_pretrained(loaded, out / "first", SavePretrainedOptions().overwrite(true));
  EXPECT_EQ(read_bytes(out / "first/vocab.json"), "{}");
}

TEST(SaveSeq2Seq, OptionsThatTheModelTypeHasNotAreErrorsByName) {
  const TempDir out;
  const auto expect_error = [&](const Seq2SeqModel& model, const std::string& text,
                                const SavePretrainedOptions& options = {}) {
    EXPECT_ERROR(save_pretrained(model, out / "new", options), c10::ValueError, text);
    EXPECT_FALSE(fs::exists(out / "new"));
  };
  expect_error({Transformer(nullptr), GenerateOptions(0, 1), 0, "marian"},
               "the model must not be an empty holder");
  expect_error(small_marian(marian_options().norm_first(true)),
               "[save_pretrained] norm_first of the model must be that of model_type marian with "
               "its settings, 0. Got 1");
  expect_error(small_marian(marian_options().sinusoid(std::nullopt)), "sinusoid of the model");
  expect_error(small_marian(marian_options().alibi(relative::Alibi())), "alibi of the model");
  expect_error(small_marian(marian_options().head_dim(2)), "head_dim of the model");
  Seq2SeqModel model = small_marian();
  model.model_type = "bert";
  expect_error(model, "model_type must be that of an encoder-decoder");
  model = small_marian();
  model.generation.coverage_penalty(0.5);
  expect_error(model, "coverage_penalty of the search must be 0, since transformers has none");
  expect_error(small_marian(), "SavePretrainedOptions::rest_of must not be set",
               SavePretrainedOptions().rest_of("somewhere"));
}

TEST(SaveSeq2Seq, APaddingThatHasChangedIsInBothFiles) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  write_bytes(out / "first/generation_config.json",
              R"({"pad_token_id": 11, "decoder_start_token_id": 11, "eos_token_id": 0})");
  Seq2SeqModel loaded = load_seq2seq(out / "first");
  loaded.pad = 3;
  save_pretrained(loaded, out / "second");
  EXPECT_EQ(json_in(out / "second/config.json")["pad_token_id"], 3);
  const json generation = json_in(out / "second/generation_config.json");
  EXPECT_EQ(generation["pad_token_id"], 3);
  EXPECT_EQ(generation["decoder_start_token_id"], 11);
  EXPECT_EQ(load_seq2seq(out / "second").pad, 3);
}

// Numbers that transformers takes for values of another kind.
TEST(SaveSeq2Seq, OddSettingsCanBeSaved) {
  const TempDir out;
  save_pretrained(small_marian(), out / "first");
  const std::string text = R"({"decoder_start_token_id": 11.0, "eos_token_id": 0,
    "do_sample": 0, "max_length": 9.0, "suppress_tokens": [4.0, -1]})";
  write_bytes(out / "first/generation_config.json", text);
  Seq2SeqModel loaded = load_seq2seq(out / "first");
  save_pretrained(loaded, out / "second");
  EXPECT_EQ(read_bytes(out / "second/generation_config.json"), text);
  loaded.generation.num_beams(2);
  save_pretrained(loaded, out / "third");
  const auto again = load_seq2seq(out / "third").generation;
  EXPECT_EQ(again.num_beams(), 2);
  EXPECT_EQ(again.max_length(), loaded.generation.max_length());
  EXPECT_EQ(again.suppress_tokens(), loaded.generation.suppress_tokens());
}

}  // namespace
}  // namespace posenc::testing
