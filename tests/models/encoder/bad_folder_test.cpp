// Which folders load_encoder() refuses, and what it says then.

#include <gtest/gtest.h>

#include <cmath>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

TEST(BadEncoderFolder, AnotherModelType) {
  const auto refused = [](const char* type, const std::string& text) {
    auto folder = TinyFolder::bert();
    folder.config["model_type"] = type;
    const auto path = folder.write();
    EXPECT_ERROR(load_encoder(path), c10::ValueError, "[load_encoder] " + path + "/config.json: ");
    EXPECT_ERROR(load_encoder(path), c10::ValueError, text);
  };
  refused("brt",
          "model_type must be that of an encoder; the nearest are bart, bert, beit. Got brt");
  refused("", "Got no model_type");
  refused("longformer",
          "model_type longformer is not supported: it needs attention in a sliding window");
  refused("marian", "model_type marian is an encoder-decoder: load_seq2seq() loads it");
  refused(
      "diffllama",
      "model_type diffllama is not supported: it is a decoder alone, and its rotary embedding is "
      "known "
      "(rotary_options_from_hf), its layers are not. docs/decoders.md has the decoders");
  refused("biogpt",
          "it is a decoder alone, and its embeddings are known "
          "(encoder_embeddings_options_from_hf), its layers are not");
  refused("vit_msn",
          "its embeddings are known (vision_embeddings_options_from_hf), its layers are not");
  EXPECT_ERROR(encoder_options_from_hf("{}"), c10::ValueError,
               "[encoder_options_from_hf] the configuration: model_type");
}

// And not the number of layers.
TEST(BadEncoderFolder, OneTensorThatTheLastLayerLacks) {
  for (const std::string part : {"attention.self.query.weight", "output.dense.bias"}) {
    auto folder = TinyFolder::bert();
    const std::string name = "encoder.layer.1." + part;
    folder.rename([&](const std::string& own) { return own == name ? "" : own; });
    EXPECT_ERROR(load_encoder(folder.write()), WeightsError, "'" + name + "'");
  }
}

TEST(BadEncoderFolder, SettingsThatPosencDoesNotHave) {
  const std::vector<std::tuple<const char*, json, const char*>> cases = {
      {"is_decoder", true, "is_decoder must be false, the only value that posenc has. Got true"},
      {"position_embedding_type", "relative_key", "position_embedding_type must be \"absolute\""},
      {"hidden_act", "xielu",
       "hidden_act must be the name of an activation of transformers that posenc has"},
      {"num_attention_heads", 3, "num_attention_heads must divide hidden_size 8. Got 3"},
      {"hidden_size", -8, "hidden_size must be an integer from 1 to 1048576. Got -8"},
      {"num_hidden_layers", 0, "num_hidden_layers must be an integer from 1 to 1000. Got 0"},
      {"layer_norm_eps", "small", "layer_norm_eps must be a number. Got \"small\""},
  };
  for (const auto& [name, value, text] : cases) {
    SCOPED_TRACE(name);
    auto folder = TinyFolder::bert();
    folder.config[name] = value;
    EXPECT_ERROR(load_encoder(folder.write()), c10::ValueError, text);
  }
}

// The folder of a new encoder.
TinyFolder folder_of(const json& config) {
  TinyFolder folder;
  folder.config = config;
  const TempDir whole;
  save_pretrained(Encoder(encoder_options_from_hf(folder.config.dump())), whole / "whole",
                  SavePretrainedOptions().allow_missing(true));
  for (const auto& item : load_safetensors(whole / "whole/model.safetensors").tensors)
    folder.tensors.insert(item.key(), item.value().clone());
  return folder;
}

TEST(BadEncoderFolder, StatisticsThatAreNotFinite) {
  TinyFolder folder = folder_of({{"model_type", "wav2vec2-conformer"},
                                 {"hidden_size", 8},
                                 {"num_attention_heads", 2},
                                 {"num_hidden_layers", 1},
                                 {"intermediate_size", 6},
                                 {"conv_depthwise_kernel_size", 3}});
  EXPECT_NO_THROW(load_encoder(folder.write()));
  for (const char* const part : {"running_mean", "running_var"}) {
    const std::string name = std::string("encoder.layers.0.conv_module.batch_norm.") + part;
    const torch::Tensor first = folder.tensors[name].select(0, 0);
    const torch::Tensor before = first.clone();
    first.fill_(NAN);
    EXPECT_ERROR(load_encoder(folder.write()), WeightsError, part);
    first.copy_(before);
  }
}

TEST(BadEncoderFolder, SettingsOfTheEmbeddings) {
  for (const auto& [name, value] : {std::pair<const char*, json>{"vocab_size", "many"},
                                    std::pair<const char*, json>{"layer_norm_eps", -1.0}}) {
    auto folder = TinyFolder::bert();
    folder.config[name] = value;
    const auto path = folder.write();
    EXPECT_ERROR(load_encoder(path), c10::ValueError,
                 "[load_encoder] " + path + "/config.json: " + name + " must ");
  }
}

// Sizes in a config.json that are not those of the weights: the settings, and a tensor.
struct OtherSize {
  const char* name;
  json value;
  const char* settings;
  const char* tensor;
};

void expect_other_sizes(const TinyFolder& folder, const std::vector<OtherSize>& cases) {
  EXPECT_NO_THROW(load_encoder(folder.write()));
  for (const auto& [name, value, settings, tensor] : cases) {
    SCOPED_TRACE(name);
    TinyFolder other = folder;
    other.config[name] = value;
    const auto path = other.write();
    EXPECT_ERROR(
        load_encoder(path), c10::ValueError,
        "[load_encoder] " + path + ": " + settings + " in config.json must fit the weights:");
    EXPECT_ERROR(load_encoder(path), c10::ValueError, tensor);
  }
}

TEST(BadEncoderFolder, SizesOfImages) {
  const auto folder = folder_of({{"model_type", "vit"},
                                 {"hidden_size", 8},
                                 {"num_attention_heads", 2},
                                 {"num_hidden_layers", 1},
                                 {"intermediate_size", 12},
                                 {"image_size", 12},
                                 {"patch_size", 4},
                                 {"num_channels", 3}});
  expect_other_sizes(
      folder,
      {{"patch_size", 6, "image_size, patch_size",
        "'embeddings.patch_embeddings.projection.weight' must have shape (8, 3, 6, 6). Got "
        "(8, 3, 4, 4)"},
       {"num_channels", 1, "num_channels", "must have shape (8, 1, 4, 4). Got (8, 3, 4, 4)"},
       {"image_size", 1 << 15, "image_size",
        "'embeddings.position_embeddings' must have shape (1, 67108865, 8). Got (1, 10, 8)"},
       {"pooler_output_size", 9, "pooler_output_size",
        "'pooler.dense.weight' must have shape (9, 8). Got (8, 8)"}});
}

TEST(BadEncoderFolder, SizesThatTheWeightsDoNotHave) {
  expect_other_sizes(
      TinyFolder::bert(),
      {{"vocab_size", 12, "vocab_size",
        "'embeddings.word_embeddings.weight' must have shape (12, 8). Got (11, 8)"},
       {"hidden_size", 1 << 20, "hidden_size", "must have shape (11, 1048576). Got (11, 8)"},
       {"intermediate_size", 1 << 20, "intermediate_size",
        "'encoder.layer.0.intermediate.dense.weight' must have shape (1048576, 8). Got (12, 8)"},
       {"max_position_embeddings", 10, "max_position_embeddings",
        "'embeddings.position_embeddings.weight' must have shape (10, 8). Got (9, 8)"},
       {"type_vocab_size", 3, "type_vocab_size",
        "'embeddings.token_type_embeddings.weight' must have shape (3, 8). Got (2, 8)"}});
  auto layers = TinyFolder::bert();
  layers.config["num_hidden_layers"] = 3;
  EXPECT_ERROR(load_encoder(layers.write()), c10::ValueError,
               "at most how many layers the weights have, which lack "
               "encoder.layer.2.attention.self.query.weight. Got 3");
  expect_other_sizes(folder_of({{"model_type", "dinov2"},
                                {"hidden_size", 8},
                                {"mlp_ratio", 4},
                                {"num_attention_heads", 2},
                                {"num_hidden_layers", 1},
                                {"image_size", 14}}),
                     {{"mlp_ratio", 3, "mlp_ratio",
                       "'encoder.layer.0.mlp.fc1.weight' must have shape (24, 8). Got (32, 8)"}});
}

TEST(BadEncoderFolder, WeightsThatAreNotAWholeModel) {
  auto folder = TinyFolder::bert();
  folder.config["quantization_config"] = {{"quant_method", "fp8"}};
  const auto path = folder.write();
  EXPECT_ERROR(load_encoder(path), c10::ValueError,
               "[load_encoder] " + path +
                   "/config.json: quantization_config must be left out: quantised weights are not "
                   "supported");
  folder.config["quantization_config"] = nullptr;
  EXPECT_NO_THROW(load_encoder(folder.write()));
  folder.config["text_config"] = {{"quantization_config", json::object()}};
  EXPECT_ERROR(load_encoder(folder.write()), c10::ValueError, "text_config.quantization_config");
  folder.config.erase("text_config");
  folder.write();
  write_bytes(folder / "adapter_config.json", "{}");
  EXPECT_ERROR(load_encoder(path), c10::ValueError,
               path + "/adapter_config.json: peft_type must be LORA. Got null");
}

TEST(BadEncoderFolder, FilesAndTensorsThatAreMissing) {
  const auto folder = TinyFolder::bert();
  const auto path = folder.write();
  EXPECT_CONTAINS(refusal([] { load_encoder("bert-base-uncased"); }),
                  "NotFound: [load_encoder] bert-base-uncased: must be a folder on this machine; "
                  "nothing is downloaded; if it is a model's name on Hugging Face, `hf download "
                  "bert-base-uncased --local-dir bert-base-uncased` makes the folder");
  std::filesystem::remove(folder / "model.safetensors");
  EXPECT_CONTAINS(refusal([&] { load_encoder(path); }), "must hold model.safetensors");
  std::filesystem::remove(folder / "config.json");
  EXPECT_CONTAINS(refusal([&] { load_encoder(path); }), "NotFound: [load_encoder] " + path);
  std::filesystem::create_symlink("config.json", folder / "config.json");
  EXPECT_CONTAINS(refusal([&] { load_encoder(path); }), "Io: [load_encoder] " + path);
  for (const std::string name :
       {"encoder.layer.1.output.dense.bias", "encoder.layer.0.attention.self.query.weight",
        "embeddings.position_embeddings.weight", "embeddings.LayerNorm.bias",
        "encoder.layer.1.output.LayerNorm.weight", "pooler.dense.weight", "pooler.dense.bias"}) {
    auto damaged = TinyFolder::bert();
    damaged.tensors.erase(name);
    const auto text = refusal([&] { load_encoder(damaged.write()); });
    EXPECT_CONTAINS(text, "MissingKeys: [load_encoder] ");
    EXPECT_CONTAINS(text, name);
  }
}

TEST(BadEncoderFolder, TensorsThatDoNotFit) {
  auto folder = TinyFolder::bert();
  folder.tensors["encoder.layer.1.attention.self.key.weight"] = torch::zeros({8, 7});
  const auto text = refusal([&] { load_encoder(folder.write()); });
  EXPECT_CONTAINS(text, "'encoder.layer.1.attention.self.key.weight' must have shape (8, 8)");
  auto broken = TinyFolder::bert();
  broken.tensors["encoder.layer.1.attention.self.key.bias"][3] = NAN;
  EXPECT_CONTAINS(refusal([&] { load_encoder(broken.write()); }), "must be finite numbers");
}

}  // namespace
}  // namespace posenc::testing
