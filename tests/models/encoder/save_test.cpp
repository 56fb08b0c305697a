// save_pretrained(): what it refuses, the files that it leaves, and that load_encoder() reads them.
// The differential tests open the folders in transformers.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

torch::Tensor ids_to_save() { return torch::tensor({{2, 5, 7, 3}, {2, 9, 3, 0}}); }

json config_in(const std::string& folder) {
  return json::parse(read_bytes(folder + "/config.json"));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SavePretrained, WritesWhatWasLoaded) {
  auto folder = TinyFolder::bert();
  folder.config["torch_dtype"] = "float16";
  folder.config["my_own"] = "kept";
  auto model = load_encoder(folder.write());
  const TempDir out;
  save_pretrained(model, out / "new");
  EXPECT_EQ(names_in(out / "new"), (std::vector<std::string>{"config.json", "model.safetensors"}));
  const auto file = load_safetensors(out / "new/model.safetensors");
  EXPECT_EQ(file.metadata.at("format"), "pt");
  ASSERT_EQ(file.tensors.size(), folder.tensors.size());
  for (const auto& item : file.tensors)
    EXPECT_TRUE(bit_equal(item.value(), folder.tensors[item.key()])) << item.key();
  const json config = config_in(out / "new");
  EXPECT_EQ(config["architectures"], json({"BertModel"}));
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_FALSE(config.contains("torch_dtype"));
  EXPECT_EQ(config["my_own"], "kept");
  EXPECT_EQ(config["pad_token_id"], 0) << "a default that the file left out";
  EXPECT_TRUE(bit_equal(load_encoder(out / "new")->forward(ids_to_save()).pooled,
                        model->forward(ids_to_save()).pooled));
}

TEST(SavePretrained, KeepsTheClassThatHasNoDecoder) {
  json config = {{"model_type", "t5"}, {"architectures", {"T5EncoderModel"}},
                 {"vocab_size", 11},   {"d_model", 8},
                 {"d_kv", 4},          {"num_heads", 2},
                 {"num_layers", 1},    {"d_ff", 6}};
  const TempDir out;
  save_pretrained(Encoder(encoder_options_from_hf(config.dump())), out / "alone");
  EXPECT_EQ(config_in(out / "alone")["architectures"], json({"T5EncoderModel"}));
  save_pretrained(load_encoder(out / "alone"), out / "again");
  EXPECT_EQ(config_in(out / "again")["architectures"], json({"T5EncoderModel"}));
  config["architectures"] = {"T5ForConditionalGeneration"};
  EXPECT_ERROR(save_pretrained(Encoder(encoder_options_from_hf(config.dump())), out / "whole"),
               c10::ValueError, "a T5Model must have its decoder");
}

TEST(SavePretrained, SplitsLargeWeightsAndRemovesThoseOfAnEarlierSave) {
  auto model = load_encoder(TinyFolder::bert().write());
  const TempDir out;
  write_bytes(out / "tokenizer.json", "{}");
  const std::string path = out.path().string();
  save_pretrained(model, path);
  save_pretrained(model, path, SavePretrainedOptions().max_shard_bytes(3000));
  EXPECT_FALSE(fs::exists(out / "model.safetensors")) << "it would be found before the index";
  const json index = json::parse(read_bytes(out / "model.safetensors.index.json"));
  int64_t bytes = 0;
  for (const auto& item : load_encoder(path)->parameters()) bytes += item.nbytes();
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  EXPECT_TRUE(bit_equal(load_encoder(path)->forward(ids_to_save()).pooled,
                        model->forward(ids_to_save()).pooled));
  save_pretrained(load_encoder(path), path, SavePretrainedOptions().overwrite(true));
  EXPECT_EQ(names_in(path),
            (std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json"}));
}

TEST(SavePretrained, DoesNotReplaceItsSourceUnlessAllowed) {
  const auto folder = TinyFolder::bert();
  const std::string path = folder.write();
  auto model = load_encoder(path);
  const std::string before = read_bytes(path + "/model.safetensors");
  const auto text = message_of([&] { save_pretrained(model, path + "/."); });
  EXPECT_CONTAINS(text,
                  "[save_pretrained] folder must not be the one that the model was loaded from");
  EXPECT_EQ(read_bytes(path + "/model.safetensors"), before);
}

TEST(SavePretrained, KeepsTheRestOfAFolder) {
  auto folder = TinyFolder::bert();
  TinyFolder with_head = folder;
  with_head.config["architectures"] = {"BertForMaskedLM"};
  with_head.rename([](const std::string& name) { return "bert." + name; });
  with_head.add("cls.predictions.bias", {11});
  with_head.tensors.insert("cls.predictions.decoder.weight",
                           folder.tensors["embeddings.word_embeddings.weight"].clone());
  with_head.add("bert.encoder.layer.2.output.dense.weight", {8, 12});
  const std::string source = with_head.write();
  auto model = load_encoder(source);
  {
    const torch::NoGradGuard no_grad;
    model->embeddings->tokens->weight.mul_(2.0);
  }
  const TempDir out;
  save_pretrained(model, out / "new", SavePretrainedOptions().rest_of(source));
  const auto saved = load_safetensors(out / "new/model.safetensors").tensors;
  EXPECT_TRUE(bit_equal(saved["cls.predictions.bias"], with_head.tensors["cls.predictions.bias"]));
  EXPECT_TRUE(bit_equal(saved["bert.embeddings.word_embeddings.weight"],
                        model->embeddings->tokens->weight));
  EXPECT_FALSE(saved.contains("cls.predictions.decoder.weight")) << "it is tied to that table";
  EXPECT_FALSE(saved.contains("bert.encoder.layer.2.output.dense.weight"));
  EXPECT_EQ(config_in(out / "new")["architectures"], json({"BertForMaskedLM"}));
}

TEST(SavePretrained, TakesAHeadAndItsSettings) {
  auto model = load_encoder(TinyFolder::bert().write());
  StateDict head;
  head.insert("classifier.weight", torch::randn({3, 8}));
  const TempDir out;
  save_pretrained(model, out / "new",
                  SavePretrainedOptions()
                      .head(head)
                      .architecture("BertForSequenceClassification")
                      .config(R"({"id2label": {"0": "a", "1": "b", "2": "c"}})"));
  const auto saved = load_safetensors(out / "new/model.safetensors").tensors;
  EXPECT_TRUE(saved.contains("classifier.weight"));
  EXPECT_TRUE(saved.contains("bert.embeddings.word_embeddings.weight"));
  EXPECT_EQ(config_in(out / "new")["id2label"]["2"], "c");
  head.insert("bert.pooler.dense.weight", torch::randn({8, 8}));
  EXPECT_CONTAINS(message_of([&] {
                    save_pretrained(model, out / "other", SavePretrainedOptions().head(head));
                  }),
                  "Got bert.pooler.dense.weight");
  EXPECT_FALSE(fs::exists(out / "other"));
}

TEST(SavePretrained, SavesAnEncoderThatWasMadeOfOptions) {
  const auto config = TinyFolder::bert().config;
  Encoder model(encoder_options_from_hf(config.dump()));
  model->eval();
  model->extend_positions(20, PositionExtension::Repeat);
  const TempDir out;
  save_pretrained(model, out / "new");
  EXPECT_EQ(config_in(out / "new")["max_position_embeddings"], 20);
  EXPECT_TRUE(bit_equal(load_encoder(out / "new")->forward(ids_to_save()).pooled,
                        model->forward(ids_to_save()).pooled));
  Encoder by_hand(EncoderOptions(model->options).origin({}));
  EXPECT_CONTAINS(message_of([&] { save_pretrained(by_hand, out / "other"); }),
                  "Got no model_type");
  save_pretrained(by_hand, out / "other", SavePretrainedOptions().config(config.dump()));
  auto other = model->options;
  other.encoder().layer().activation(Activation::ReLU);
  Encoder changed(other);
  EXPECT_CONTAINS(message_of([&] { save_pretrained(changed, out / "third"); }),
                  "activation must be that of the encoder");
  other = model->options;
  other.encoder().relative(relative::Clamp{2, 2});  // which no config.json has
  Encoder clamped(other);
  EXPECT_CONTAINS(message_of([&] { save_pretrained(clamped, out / "fourth"); }),
                  "relative index must be that of the encoder");
}

TEST(SavePretrained, LeavesNoPartOutByMistake) {
  auto folder = TinyFolder::bert();
  folder.rename(
      [](const std::string& name) { return name.rfind("pooler", 0) == 0 ? std::string() : name; });
  auto model = load_encoder(folder.write());
  const TempDir out;
  const auto text = message_of([&] { save_pretrained(model, out / "new"); });
  EXPECT_CONTAINS(text, "[save_pretrained] the encoder must have a pooler to be a BertModel");
  EXPECT_FALSE(fs::exists(out / "new"));
  save_pretrained(model, out / "new", SavePretrainedOptions().allow_missing(true));
  EXPECT_FALSE(load_encoder(out / "new")->forward(ids_to_save()).pooled.defined());
}

json small_config(const char* type, const json& more) {
  json config = {{"model_type", type},       {"vocab_size", 11},
                 {"hidden_size", 8},         {"num_hidden_layers", 2},
                 {"num_attention_heads", 2}, {"intermediate_size", 12},
                 {"pad_token_id", 0},        {"max_position_embeddings", 9}};
  config.update(more);
  return config;
}

TEST(SavePretrained, RefusesSettingsOfOtherLayers) {
  Encoder model(encoder_options_from_hf(
      small_config("modernbert", {{"global_attn_every_n_layers", 2}, {"local_attention", 4}})
          .dump()));
  const TempDir out;
  const auto refusal = [&](const std::string& settings) {
    return message_of(
        [&] { save_pretrained(model, out / "new", SavePretrainedOptions().config(settings)); });
  };
  EXPECT_CONTAINS(refusal(R"({"local_attention": 8})"),
                  "window of layer 1 must be that of the encoder, 2. Got 4");
  EXPECT_CONTAINS(refusal(R"({"global_rope_theta": 7.0})"),
                  "the rotary embedding of layer 0 must be that of the encoder");
  EXPECT_FALSE(fs::exists(out / "new"));
}

// What an XLNet's config.json and weights have no place for.
TEST(SavePretrained, RefusesOtherPositionsAndBiasesThanXlnets) {
  const auto of_xlnet = encoder_options_from_hf(small_config("xlnet", {{"d_inner", 12}}).dump());
  const TempDir out;
  const auto refusal = [&](const std::function<void(TransformerLayerOptions&)>& change) {
    EncoderOptions options = of_xlnet;
    change(options.encoder().layer());
    Encoder model(options);
    return message_of([&] { save_pretrained(model, out / "new"); });
  };
  EXPECT_EQ(refusal([](TransformerLayerOptions&) {}), "");
  fs::remove_all(out / "new");
  EXPECT_CONTAINS(refusal([](TransformerLayerOptions& layer) {
                    layer.transformer_xl()->sinusoid().base(50.0);
                  }),
                  "transformer_xl of layer 0 must be that of the encoder");
  EXPECT_CONTAINS(refusal([](TransformerLayerOptions& layer) {
                    layer.transformer_xl()->mask_embedding(false);
                  }),
                  "transformer_xl of layer 0 must be that of the encoder");
  EXPECT_CONTAINS(refusal([](TransformerLayerOptions& layer) { layer.qkv_bias(true); }),
                  "qkv_bias of layer 0 must be that of the encoder, 1. Got 0");
  EXPECT_CONTAINS(refusal([](TransformerLayerOptions& layer) { layer.out_bias(true); }),
                  "out_bias of layer 0 must be that of the encoder, 1. Got 0");
  EXPECT_FALSE(fs::exists(out / "new"));
}

// Options of the modules in a layer, of which config.json knows only what the layer gives them.
TEST(SavePretrained, RefusesModulesWithOptionsOfTheirOwn) {
  const TempDir out;
  const auto refusal = [&](const char* type, const std::function<void(EncoderImpl&)>& change) {
    Encoder model(encoder_options_from_hf(small_config(type, {{"d_inner", 12}}).dump()));
    change(*model);
    return message_of([&] { save_pretrained(model, out / "new"); });
  };
  EXPECT_EQ(refusal("bert", [](EncoderImpl&) {}), "");
  fs::remove_all(out / "new");
  const auto layer = [](EncoderImpl& model) -> TransformerEncoderLayerImpl& {
    return model.encoder->layers->at<TransformerEncoderLayerImpl>(1);
  };
  EXPECT_CONTAINS(
      refusal("bert", [&](EncoderImpl& model) { layer(model).self_attn->options.scale(0.5); }),
      "the options of encoder.layers.1.self_attn must be those that the encoder gives it");
  EXPECT_CONTAINS(
      refusal("bert", [&](EncoderImpl& model) { layer(model).norm2->options.eps(0.5); }),
      "the options of encoder.layers.1.norm2 must be those");
  EXPECT_CONTAINS(
      refusal("bert", [](EncoderImpl& model) { model.embeddings->options.layer_norm_eps(0.5); }),
      "the options of embeddings must be those");
  EXPECT_CONTAINS(refusal("xlnet",
                          [](EncoderImpl& model) {
                            auto& own = model.encoder->layers->at<TransformerEncoderLayerImpl>(0);
                            own.transformer_xl_attn->options.positions().clamp_len(2);
                          }),
                  "the options of encoder.layers.0.self_attn must be those");
  EXPECT_FALSE(fs::exists(out / "new"));
}

// Its layers have no prefix of their own, so that all names look like those of a layer.
TEST(SavePretrained, KeepsTheLanguagesOfXlm) {
  const TempDir out;
  Encoder model(encoder_options_from_hf(
      small_config("xlm", {{"n_langs", 2}, {"use_lang_emb", true}}).dump()));
  EXPECT_CONTAINS(message_of([&] { save_pretrained(model, out / "new"); }),
                  "a XLMModel must have its lang_embeddings");
  save_pretrained(model, out / "new", SavePretrainedOptions().allow_missing(true));
  auto tensors = load_safetensors(out / "new/model.safetensors").tensors;
  tensors.insert("lang_embeddings.weight", torch::randn({2, 8}));
  save_safetensors(out / "new/model.safetensors", tensors);
  save_pretrained(model, out / "whole", SavePretrainedOptions().rest_of(out / "new"));
  const auto saved = load_safetensors(out / "whole/model.safetensors").tensors;
  ASSERT_TRUE(saved.contains("lang_embeddings.weight"));
  EXPECT_TRUE(bit_equal(saved["lang_embeddings.weight"], tensors["lang_embeddings.weight"]));
}

TEST(SavePretrained, WritesConvolutionsInGroups) {
  const auto config = small_config("squeezebert", {{"embedding_size", 8},
                                                   {"q_groups", 2},
                                                   {"k_groups", 4},
                                                   {"v_groups", 1},
                                                   {"post_attention_groups", 2},
                                                   {"intermediate_groups", 4},
                                                   {"output_groups", 2}});
  Encoder model(encoder_options_from_hf(config.dump()));
  const TempDir out;
  EXPECT_CONTAINS(message_of([&] { save_pretrained(model, out / "new"); }),
                  "query.weight must be zero between the 2 groups of the convolution");
  const torch::NoGradGuard no_grad;
  const auto keep_groups = [](const torch::Tensor& weight, int64_t groups) {
    const auto blocks = torch::eye(groups).repeat_interleave(weight.size(0) / groups, 0);
    weight.mul_(blocks.repeat_interleave(weight.size(1) / groups, 1));
  };
  for (const auto& item : *model->encoder->layers) {
    auto* layer = item->as<TransformerEncoderLayerImpl>();
    keep_groups(layer->self_attn->in_proj_weight.narrow(0, 0, 8), 2);
    keep_groups(layer->self_attn->in_proj_weight.narrow(0, 8, 8), 4);
    keep_groups(layer->self_attn->out_proj->weight, 2);
    keep_groups(layer->linear1->weight, 4);
    keep_groups(layer->linear2->weight, 2);
  }
  model->eval();
  save_pretrained(model, out / "new");
  const auto saved = load_safetensors(out / "new/model.safetensors").tensors;
  EXPECT_EQ(saved["encoder.layers.0.intermediate.conv1d.weight"].sizes(),
            (std::vector<int64_t>{12, 2, 1}));
  EXPECT_TRUE(bit_equal(load_encoder(out / "new")->forward(ids_to_save()).pooled,
                        model->forward(ids_to_save()).pooled));
}

TEST(SavePretrained, WritesTheFrequenciesOfEsm) {
  Encoder model(encoder_options_from_hf(
      small_config("esm", {{"position_embedding_type", "rotary"}, {"mask_token_id", 1}}).dump()));
  for (const auto& layer : *model->encoder->layers)
    layer->as<TransformerEncoderLayerImpl>()->self_attn->rotary->inv_freq.mul_(1.5);
  model->eval();
  const TempDir out;
  EXPECT_CONTAINS(message_of([&] { save_pretrained(model, out / "new"); }),
                  "a EsmModel must have its contact_head");
  save_pretrained(model, out / "new", SavePretrainedOptions().allow_missing(true));
  EXPECT_TRUE(bit_equal(load_encoder(out / "new")->forward(ids_to_save()).pooled,
                        model->forward(ids_to_save()).pooled));
}

// What the class has beside the encoder comes from the folder that the model came from.
TEST(SavePretrained, KeepsTheContactHeadOfEsm) {
  const TempDir out;
  Encoder model(encoder_options_from_hf(
      small_config("esm", {{"position_embedding_type", "rotary"}, {"mask_token_id", 1}}).dump()));
  save_pretrained(model, out / "old", SavePretrainedOptions().allow_missing(true));
  auto file = load_safetensors(out / "old/model.safetensors");
  const std::string name = "contact_head.regression.weight";
  file.tensors.insert(name, torch::randn({1, 4}));
  save_safetensors(out / "old/model.safetensors", file.tensors, file.metadata);
  save_pretrained(load_encoder(out / "old"), out / "new");
  EXPECT_TRUE(
      bit_equal(load_safetensors(out / "new/model.safetensors").tensors[name], file.tensors[name]));
}

TEST(SavePretrained, NamesAFileThatIsNoFolder) {
  auto model = load_encoder(TinyFolder::bert().write());
  const TempDir out;
  write_bytes(out / "file", "x");
  EXPECT_CONTAINS(message_of([&] { save_pretrained(model, out / "file"); }),
                  "[save_pretrained] " + (out / "file") + ": cannot be made a folder");
}

}  // namespace
}  // namespace posenc::testing
