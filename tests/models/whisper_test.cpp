// Whisper in folders that the test writes: what is read, refused and saved. The differential tests
// open folders of transformers.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "models/bart_folder.h"
#include "models/frozen/frozen_folder.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/adapter_set.h"
#include "posenc/models/encoder.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

constexpr int64_t kHeardVocab = 11, kHeardWidth = 8, kHeardBins = 3, kHeardPositions = 5;
constexpr const char* kHeardTable = "model.decoder.embed_tokens.weight";
constexpr const char* kHeardPlaces = "model.encoder.embed_positions.weight";

// One layer each, tied.
class WhisperFolder : public BartFolder {
 protected:
  WhisperFolder() : BartFolder(kHeardWidth) {
    torch::manual_seed(1);
    config_ = {{"model_type", "whisper"},
               {"vocab_size", kHeardVocab},
               {"d_model", kHeardWidth},
               {"num_mel_bins", kHeardBins},
               {"encoder_layers", 1},
               {"decoder_layers", 1},
               {"encoder_attention_heads", 2},
               {"decoder_attention_heads", 4},
               {"encoder_ffn_dim", 5},
               {"decoder_ffn_dim", 7},
               {"max_source_positions", kHeardPositions},
               {"max_target_positions", 6},
               {"pad_token_id", 2},
               {"decoder_start_token_id", 2},
               {"eos_token_id", 3}};
    tensor(kHeardTable, {kHeardVocab, kHeardWidth});
    tensor("model.decoder.embed_positions.weight", {6, kHeardWidth});
    pair("model.encoder.conv1", {kHeardWidth, kHeardBins, 3});
    pair("model.encoder.conv2", {kHeardWidth, kHeardWidth, 3});
    for (const std::string stack : {"model.encoder.", "model.decoder."}) {
      pair(stack + "layer_norm", {kHeardWidth});
      layer_of(stack);
    }
    std::erase_if(tensors_, [](const auto& one) { return one.first.ends_with(".k_proj.bias"); });
  }

  void expect_missing(const std::string& name) {
    EXPECT_CONTAINS(refusal([&] { load(); }), "MissingKeys: [load_seq2seq]");
    EXPECT_CONTAINS(refusal([&] { load(); }), name);
  }
  static at::Tensor logits(const Seq2SeqModel& loaded) {
    const torch::NoGradGuard no_grad;
    auto model = loaded.model;
    return model->forward(sound(), torch::tensor({{2, 6}}), {}, AttentionMask::causal());
  }
  static at::Tensor sound() {
    return torch::arange(kHeardBins * 2 * kHeardPositions, torch::kFloat)
        .sin()
        .view({1, kHeardBins, 2 * kHeardPositions});
  }
};

TEST_F(WhisperFolder, KeysAndSettings) {
  const auto loaded = load();
  EXPECT_EQ(loaded.model_type, "whisper");
  EXPECT_EQ(loaded.pad, 2);
  EXPECT_EQ(loaded.generation.bos_id(), 2);
  const FolderInfo info = inspect_folder(folder_.path().string());
  EXPECT_TRUE(info.model_type == "whisper" && info.is_encoder_decoder && info.is_of_speech);
  const auto& model = loaded.model;
  EXPECT_EQ(model->options.tie(), Tying::DecoderOutput);
  EXPECT_EQ(model->options.activation(), Activation::GELU);
  const auto parameters = model->named_parameters();
  EXPECT_TRUE(bit_equal(parameters["src_features.conv2.weight"].detach(),
                        tensors_["model.encoder.conv2.weight"]));
  EXPECT_TRUE(bit_equal(parameters["tgt_embedding.position_embedding.weight"].detach(),
                        tensors_["model.decoder.embed_positions.weight"]));
  const auto bias = parameters["decoder.layers.0.multihead_attn.in_proj_bias"].detach().chunk(3);
  EXPECT_TRUE(bit_equal(bias[2], tensors_["model.decoder.layers.0.encoder_attn.v_proj.bias"]));
  EXPECT_TRUE(bit_equal(bias[1], torch::zeros({kHeardWidth})));
}

TEST_F(WhisperFolder, ComputesTheEncodersPositionsUnlessTheFileHasThem) {
  const auto table = [&] { return load().model->src_features->position_encoding->pe[0]; };
  EXPECT_TRUE(
      bit_equal(table(), sinusoid_table(preset("hf_whisper", kHeardWidth), kHeardPositions)));
  tensor(kHeardPlaces, {kHeardPositions, kHeardWidth});
  EXPECT_TRUE(bit_equal(table(), tensors_[kHeardPlaces]));
  tensor(kHeardPlaces, {kHeardPositions + 1, kHeardWidth});
  expect_value_error("max_source_positions in config.json must fit the weights:");
}

TEST_F(WhisperFolder, TheHeadIsTiedAsTheFileHasIt) {
  const auto expected = logits(load());
  const auto table = tensors_[kHeardTable];
  tensors_["proj_out.weight"] = table;
  EXPECT_EQ(load().model->options.tie(), Tying::DecoderOutput);
  tensors_.erase(kHeardTable);
  EXPECT_TRUE(bit_equal(logits(load()), expected));
  tensors_[kHeardTable] = table;
  tensors_["proj_out.weight"] = torch::randn_like(table);
  EXPECT_EQ(load().model->options.tie(), Tying::None);
  EXPECT_FALSE(bit_equal(logits(load()), expected));
  config_["tie_word_embeddings"] = false;
  EXPECT_TRUE(bit_equal(load().model->final_layer->weight.detach(), tensors_["proj_out.weight"]));
  tensors_.erase("proj_out.weight");
  expect_missing("proj_out.weight");
}

TEST_F(WhisperFolder, MayBeWithoutItsHeadsPrefix) {
  const auto expected = logits(load());
  std::map<std::string, at::Tensor> headless;
  for (const auto& [name, value] : tensors_) headless[name.substr(6)] = value;  // model.
  tensors_ = headless;
  EXPECT_TRUE(bit_equal(logits(load()), expected));
}

TEST_F(WhisperFolder, SettingsHaveOtherNames) {
  const auto expected = logits(load());
  for (const auto& [own, alias] : {std::pair{"d_model", "hidden_size"},
                                   {"encoder_attention_heads", "num_attention_heads"},
                                   {"encoder_layers", "num_hidden_layers"}}) {
    config_[alias] = config_[own];
    config_.erase(own);
    EXPECT_TRUE(bit_equal(logits(load()), expected)) << alias;
  }
  config_["scale_embedding"] = true;  // which no stack reads
  config_["use_weighted_layer_sum"] = true;
  EXPECT_TRUE(bit_equal(logits(load()), expected));
}

TEST_F(WhisperFolder, WhatIsMissingIsRefusedByName) {
  for (const char* name :
       {"model.encoder.conv1.bias", "model.decoder.embed_positions.weight",
        "model.encoder.layer_norm.weight", "model.encoder.layers.0.self_attn.q_proj.bias",
        "model.decoder.layers.0.encoder_attn.k_proj.weight", kHeardTable}) {
    SCOPED_TRACE(name);
    const auto value = tensors_[name];
    tensors_.erase(name);
    expect_missing(name);
    tensors_[name] = value;
  }
}

TEST_F(WhisperFolder, OtherClassesAndSizesAreRefusedByName) {
  for (const char* name : {"WhisperForAudioClassification", "WhisperForCausalLM"}) {
    config_["architectures"] = {name};
    expect_value_error(
        std::string("architectures must name WhisperForConditionalGeneration. Got ") + name);
  }
  config_["architectures"] = {"WhisperForConditionalGeneration"};
  const auto refused = [&](const char* setting, const json& value, const char* text) {
    const json before = config_[setting];
    config_[setting] = value;
    expect_value_error(text);
    config_[setting] = before;
  };
  refused("d_model", 7, "d_model must be even, and at least 4");
  config_["decoder_attention_heads"] = 2;
  refused("d_model", 2, "d_model must be even, and at least 4");
  refused("max_source_positions", nullptr, "max_source_positions must be left out or have a value");
  refused("num_mel_bins", 0, "num_mel_bins must be an integer");
  refused("pad_token_id", 11, "pad_token_id must be");
  refused("encoder_attention_heads", 3, "num_heads must divide d_model 8. Got 3");
  refused("decoder_layers", 2, "which lack model.decoder.layers.1.fc1.weight. Got 2");
  refused("num_mel_bins", 4, "'model.encoder.conv1.weight' must have shape (8, 4, 3)");
  config_["is_encoder_decoder"] = false;
  expect_value_error("is_encoder_decoder must be true. Got false");
  config_["is_encoder_decoder"] = true;
  for (const char* type : {"moonshine", "wav2vec2", "hubert", "wavlm", "data2vec-audio"}) {
    config_["model_type"] = type;
    expect_value_error(std::string("model_type ") + type +
                       " is not supported: it needs convolutions over samples of sound");
    EXPECT_ERROR(load_encoder(folder_.path().string()), c10::ValueError,
                 "convolutions over samples of sound");
  }
}

TEST_F(WhisperFolder, AnyGenerationConfigLoads) {
  write_bytes(folder_ / "generation_config.json",
              R"({"alignment_heads": [[0, 0]], "forced_decoder_ids": [[1, null], [2, 5]],
                  "lang_to_id": {"<|en|>": 4}, "task_to_id": {"transcribe": 5}, "max_length": 6,
                  "no_timestamps_token_id": 6, "return_timestamps": false, "eos_token_id": [3],
                  "decoder_start_token_id": 2, "begin_suppress_tokens": [4, 3],
                  "suppress_tokens": [7], "prev_sot_token_id": 8, "is_multilingual": true})");
  const auto generation = load().generation;
  EXPECT_EQ(generation.unsupported(), "");
  EXPECT_EQ(generation.suppress_tokens(), std::vector<int64_t>{7});
  write_bytes(folder_ / "generation_config.json",
              R"({"assistant_early_exit": 4, "bos_token_id": 2})");
  EXPECT_CONTAINS(load().generation.unsupported(), "assistant_early_exit");
}

TEST_F(WhisperFolder, SavedItIsTheSame) {
  tensor(kHeardPlaces, {kHeardPositions, kHeardWidth});
  for (const bool tied : {true, false}) {
    if (!tied) tensor("proj_out.weight", {kHeardVocab, kHeardWidth});
    config_["my_own"] = 1;
    const auto loaded = load();
    const TempDir out;
    save_pretrained(loaded, out / "new");
    const json config = json::parse(read_bytes(out / "new/config.json"));
    EXPECT_EQ(config["architectures"], json({"WhisperForConditionalGeneration"}));
    EXPECT_EQ(config["my_own"], 1);
    auto saved = load_safetensors(out / "new/model.safetensors").tensors;
    EXPECT_EQ(saved.size(), tensors_.size());
    for (const auto& [name, value] : tensors_) {
      ASSERT_TRUE(saved.contains(name)) << name;
      EXPECT_TRUE(bit_equal(saved[name], value)) << name;
    }
    EXPECT_TRUE(bit_equal(logits(load_seq2seq(out / "new")), logits(loaded)));
  }
}

// The class has nowhere to put it.
TEST_F(WhisperFolder, ABiasOfKeysIsNotSaved) {
  const auto loaded = load();
  const torch::NoGradGuard no_grad;
  loaded.model->named_parameters()["encoder.layers.0.self_attn.in_proj_bias"].fill_(0.5);
  const TempDir out;
  EXPECT_ERROR(save_pretrained(loaded, out / "new"), c10::ValueError,
               "model.encoder.layers.0.self_attn.k_proj.bias must be zeros: keys of model_type "
               "whisper have no bias");
}

TEST_F(WhisperFolder, MadeByHandItBecomesAFolder) {
  const auto loaded = load();
  const TempDir out;
  for (const int64_t pad : {int64_t{2}, int64_t{-1}}) {
    Transformer model(TransformerOptions(loaded.model->options)
                          .padding_idx(pad < 0 ? std::nullopt : std::optional(pad)));
    model->eval();
    const Seq2SeqModel made = {model, GenerateOptions(2, 3), pad, "whisper"};
    save_pretrained(made, out / "new");
    const auto again = load_seq2seq(out / "new");
    EXPECT_EQ(again.pad, pad);
    EXPECT_TRUE(bit_equal(logits(again), logits(made)));
  }
  // Its own sinusoid may be named.
  const AudioEmbeddingsOptions features = *loaded.model->options.src_features();
  const auto with = [&](const char* sinusoid) {
    const auto own = AudioEmbeddingsOptions(features).sinusoid(preset(sinusoid, kHeardWidth));
    Transformer model(TransformerOptions(loaded.model->options).src_features(own));
    model->eval();
    return Seq2SeqModel{model, GenerateOptions(2, 3), 2, "whisper"};
  };
  const auto named = with("hf_whisper");
  save_pretrained(named, out / "named");
  EXPECT_TRUE(bit_equal(logits(load_seq2seq(out / "named")), logits(named)));
  EXPECT_ERROR(save_pretrained(with("vaswani2017"), out / "other"), c10::ValueError,
               "src_features of the model must be that of model_type whisper");
  Transformer other(TransformerOptions(loaded.model->options).key_bias(true));
  other->eval();
  EXPECT_ERROR(save_pretrained({other, GenerateOptions(2, 3), 2, "whisper"}, out / "other"),
               c10::ValueError, "key_bias of the model must be that of model_type whisper");
}

TEST_F(WhisperFolder, FrozenFoldersAreTheModel) {
  const auto expected = logits(load());
  for (const auto& options : {FreezeOptions(), FreezeOptions().weights(WeightDtype::BFloat16),
                              FreezeOptions().weights(WeightDtype::Int8)}) {
    const TempDir out;
    freeze_folder(folder_.path().string(), out / "frozen", options, {}, true);
    const auto run = [&](const FrozenTransformer& model) {
      return model.decode(torch::tensor({{2, 6}}), model.encode(sound()), AttentionMask::causal());
    };
    const auto frozen = load_and_freeze_seq2seq(out / "frozen", {}, {});
    EXPECT_EQ(frozen.model_type, "whisper");
    EXPECT_EQ(frozen.pad, 2);
    const auto got = run(frozen.model);
    EXPECT_TRUE(bit_equal(got, run(freeze(load().model, options))));
    const double rough = options.weights() == WeightDtype::Float32 ? 1e-5 : 0.3;
    EXPECT_LT((got - expected).abs().max().item<double>(),
              rough * expected.abs().max().item<double>());
  }
}

TEST_F(WhisperFolder, AdaptersAreTrained) {
  const Seq2SeqModel loaded = load();
  const auto before = logits(loaded);
  const auto tuned = add_lora(loaded, LoraConfig(2).targets({"k_proj", "fc1"}));
  EXPECT_EQ(tuned.parameters().size(), 2U * 5U);
  for (auto& item : tuned.named_parameters())
    item.value().set_data(torch::randn_like(item.value()));
  EXPECT_FALSE(bit_equal(logits(loaded), before));
}

}  // namespace
}  // namespace posenc::testing
