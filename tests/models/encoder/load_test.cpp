// Which folders load_encoder() reads. The differential tests compare the outputs of whole models
// with transformers.

#include <gtest/gtest.h>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/encoder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

torch::Tensor some_ids() { return torch::tensor({{2, 5, 7, 3}, {2, 9, 3, 0}}); }

void expect_same_output(const std::string& a, const std::string& b) {
  const auto x = load_encoder(a)->forward(some_ids()), y = load_encoder(b)->forward(some_ids());
  EXPECT_TRUE(bit_equal(x.embeddings, y.embeddings));
  EXPECT_TRUE(bit_equal(x.last_hidden_state, y.last_hidden_state));
}

TEST(LoadEncoder, PacksTheWeightsOfTheFile) {
  const auto folder = TinyFolder::bert();
  auto model = load_encoder(folder.write());
  EXPECT_FALSE(model->is_training());
  const auto& layer = *model->encoder->layers->ptr<TransformerEncoderLayerImpl>(1);
  const std::string own = "encoder.layer.1.attention.self.";
  EXPECT_TRUE(bit_equal(
      layer.self_attn->in_proj_weight,
      torch::cat({folder.tensors[own + "query.weight"], folder.tensors[own + "key.weight"],
                  folder.tensors[own + "value.weight"]})));
  EXPECT_TRUE(bit_equal(layer.norm1->weight,
                        folder.tensors["encoder.layer.1.attention.output.LayerNorm.weight"]));
  EXPECT_TRUE(
      bit_equal(layer.norm2->bias, folder.tensors["encoder.layer.1.output.LayerNorm.bias"]));
  const auto out = model->forward(some_ids());
  EXPECT_EQ(out.pooled.sizes(), (std::vector<int64_t>{2, 8}));
  const auto row = out.last_hidden_state.select(1, 0);
  EXPECT_TRUE(bit_equal(out.pooled, torch::linear(row, folder.tensors["pooler.dense.weight"],
                                                  folder.tensors["pooler.dense.bias"])
                                        .tanh()));
}

TEST(LoadEncoder, TakesTheNamesOfOldFiles) {
  auto folder = TinyFolder::bert();
  const auto path = folder.write();
  TinyFolder old;
  old.config = folder.config;
  old.tensors = folder.tensors;
  old.rename([](std::string name) {
    const auto norm = name.find("LayerNorm.");
    if (norm == std::string::npos) return name;
    return name.substr(0, norm) + "LayerNorm." + (name.back() == 's' ? "beta" : "gamma");
  });
  old.tensors.insert("embeddings.position_ids", torch::arange(9).unsqueeze(0));
  expect_same_output(path, old.write());
}

TEST(LoadEncoder, LeavesOutTheHeadsOfAModel) {
  const auto folder = TinyFolder::bert();
  TinyFolder other;
  other.config = folder.config;
  other.tensors = folder.tensors;
  other.rename([](const std::string& name) {
    return name.rfind("pooler", 0) == 0 ? std::string() : "bert." + name;
  });
  other.add_pair("cls.predictions.transform.dense", {8, 8});
  expect_same_output(folder.write(), other.write());
  auto model = load_encoder(other.write());
  EXPECT_EQ(model->options.pooling(), encoder::Pooling::None) << "the file has no pooler";
  EXPECT_FALSE(model->forward(some_ids()).pooled.defined());
}

// As transformers, whether or not the encoder itself has a prefix.
TEST(LoadEncoder, LeavesOutAHeadBesideAnEncoderWithoutPrefix) {
  auto folder = TinyFolder::bert();
  const auto path = folder.write();
  TinyFolder other;
  other.config = folder.config;
  other.tensors = folder.tensors;
  other.add_pair("classifier", {3, 8});
  other.add("logit_scale", {1});
  other.add_pair("cls.predictions.transform.dense", {8, 8});
  expect_same_output(path, other.write());
}

TEST(LoadEncoder, StripsThePrefixOfAWrapper) {
  const auto folder = TinyFolder::bert();
  const auto path = folder.write();
  const auto plain = load_encoder(path)->forward(some_ids());
  for (const std::string prefix : {"module.", "0.auto_model.", "module.bert."}) {
    SCOPED_TRACE(prefix);
    TinyFolder wrapped;
    wrapped.config = folder.config;
    wrapped.tensors = folder.tensors;
    wrapped.rename([&](const std::string& name) { return prefix + name; });
    wrapped.add_pair("classifier", {3, 8});
    const auto other = wrapped.write();
    const std::string outer = prefix == "module.bert." ? "module." : prefix;
    const auto text = refusal([&] { load_encoder(other); });
    EXPECT_CONTAINS(text, "MissingKeys: [load_encoder] " + other);
    EXPECT_CONTAINS(text,
                    "'encoder.layer.0.attention.self.query.weight' is not in the file, which "
                    "has '" +
                        prefix +
                        "encoder.layer.0.attention.self.query.weight'; "
                        "LoadOptions().prefix(\"" +
                        outer + "\") reads it");
    const auto model = load_encoder(other, LoadOptions().prefix(outer));
    EXPECT_TRUE(bit_equal(Encoder(model)->forward(some_ids()).pooled, plain.pooled));
    const auto renamed = load_encoder(other, LoadOptions().key_map({{prefix + "*", "*"}}));
    EXPECT_TRUE(bit_equal(Encoder(renamed)->forward(some_ids()).pooled, plain.pooled));
  }
}

TEST(LoadEncoder, TakesOptions) {
  auto folder = TinyFolder::bert();
  folder.config["num_hidden_layers"] = 1;
  const auto path = folder.write();
  const auto first = load_encoder(path, LoadOptions().allow_unexpected(true));
  EXPECT_EQ(first->encoder->layers->size(), 1u);
  const auto dropped = load_encoder(path, LoadOptions().key_map({{"encoder.layer.1.*", ""}}));
  EXPECT_TRUE(bit_equal(Encoder(dropped)->forward(some_ids()).pooled,
                        Encoder(first)->forward(some_ids()).pooled));
  EXPECT_ERROR(load_encoder(path, LoadOptions().allow_missing(true)), c10::ValueError,
               "[load_encoder] allow_missing must be false");
  EXPECT_ERROR(load_encoder(path, LoadOptions().key_map({{KeySource::transposed("a.*"), "b.*"}})),
               c10::ValueError, "must rename one tensor, to its name in transformers, or drop it");
  EXPECT_CONTAINS(refusal([&] { load_encoder(path, LoadOptions().prefix("bert.")); }),
                  "'bert.encoder.layer.0.attention.self.query.weight' is not in the file");
}

TEST(LoadEncoder, CastsToFloat32) {
  auto folder = TinyFolder::bert();
  for (auto& item : folder.tensors) item.value() = item.value().to(torch::kHalf);
  const auto model = load_encoder(folder.write());
  EXPECT_TRUE(
      bit_equal(model->pooler->weight, folder.tensors["pooler.dense.weight"].to(torch::kFloat)));
}

// Layer i of n belongs to group i * groups / n; all inner layers of the group run.
TEST(LoadEncoder, ReadsTheGroupsOfAlbert) {
  const json config = {{"model_type", "albert"}, {"hidden_size", 8},
                       {"embedding_size", 4},    {"num_attention_heads", 2},
                       {"num_hidden_layers", 5}, {"num_hidden_groups", 2},
                       {"inner_group_num", 2}};
  const auto options = encoder_options_from_hf(config.dump());
  EXPECT_EQ(options.encoder().num_layers(), 4);
  EXPECT_EQ(options.encoder().order(), (std::vector<int64_t>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(options.encoder().layer().activation(), Activation::GELUTanh) << "the default";
}

// Fewer layers than the file has are its first ones.
TEST(LoadEncoder, LoadsTheFirstLayers) {
  auto folder = TinyFolder::bert();
  folder.config["num_hidden_layers"] = 1;
  const auto path = folder.write();
  auto shorter = load_encoder(path);
  folder.rename([](const std::string& name) {
    return name.rfind("encoder.layer.1.", 0) == 0 ? std::string() : name;
  });
  const auto x = shorter->forward(some_ids()),
             y = load_encoder(folder.write())->forward(some_ids());
  EXPECT_EQ(shorter->encoder->layers->size(), 1U);
  EXPECT_TRUE(bit_equal(x.last_hidden_state, y.last_hidden_state));
}

TEST(LoadEncoder, HasTheDefaultsOfOldConfigurations) {
  const auto bert = encoder_options_from_hf(R"({"model_type": "bert"})");
  EXPECT_EQ(bert.encoder().num_layers(), 12);
  EXPECT_EQ(bert.encoder().layer().d_ff(), 3072);
  EXPECT_EQ(bert.encoder().layer().layer_norm_eps(), 1e-12);
  EXPECT_EQ(bert.embeddings()->vocab_size(), 30522);
  const auto clip = encoder_options_from_hf(R"({"model_type": "clip_text_model"})");
  EXPECT_TRUE(clip.causal());
  EXPECT_EQ(clip.eos_token_id(), 49407);
  EXPECT_EQ(clip.encoder().layer().activation(), Activation::QuickGELU);
  EXPECT_EQ(
      encoder_options_from_hf(R"({"model_type": "clip_text_model", "eos_token_id": 2})").pooling(),
      encoder::Pooling::LargestToken);
  EXPECT_EQ(encoder_options_from_hf(R"({"model_type": "mpnet"})").encoder().relative(),
            relative::Index(relative::Buckets{}));
  EXPECT_EQ(bert.encoder().layer().dropout(), 0.1);
  for (const char* type : {"albert", "deit", "dinov2", "ijepa", "rembert", "vit"}) {
    const auto options = encoder_options_from_hf(json({{"model_type", type}}).dump());
    EXPECT_EQ(options.encoder().layer().dropout(), 0.0) << type;
  }
}

// MPNet computes 32 buckets, whatever the size of its table.
TEST(LoadEncoder, ReadsTheTableOfMPNet) {
  const auto read = [](int64_t rows) {
    const json config = {{"model_type", "mpnet"}, {"relative_attention_num_buckets", rows}};
    return encoder_options_from_hf(config.dump());
  };
  EXPECT_EQ(read(40).encoder().relative(), relative::Index(relative::Buckets{.spare_rows = 8}));
  EXPECT_ERROR(read(31), c10::ValueError,
               "relative_attention_num_buckets must be at least 32, the number of buckets that "
               "MPNet computes. Got 31");
}

TEST(LoadEncoder, ReadsEveryModelTypeWithoutSettings) {
  for (const auto& type : encoder_model_types()) {
    SCOPED_TRACE(type);
    json config = {{"model_type", type}};
    if (type == "esm") config.update({{"vocab_size", 33}, {"pad_token_id", 1}});  // no defaults
    if (type == "xmod") config["default_language"] = "en_XX";  // none, with which its class fails
    for (const char* inner : {"text_config", "encoder"}) config[inner] = json::object();
    EXPECT_NO_THROW(encoder_options_from_hf(config.dump()));
  }
}

// With qkv_bias false, transformers ignores the biases that a file of images' encoder has. Encoders
// of text have no such setting.
TEST(LoadEncoder, IgnoresBiasesThatTheConfigurationRulesOut) {
  TinyFolder folder;
  folder.config = {{"model_type", "vit"},    {"hidden_size", 8},        {"num_attention_heads", 2},
                   {"num_hidden_layers", 1}, {"intermediate_size", 12}, {"image_size", 12},
                   {"patch_size", 4},        {"num_channels", 3},       {"qkv_bias", false}};
  folder.add("embeddings.cls_token", {1, 1, 8});
  folder.add("embeddings.position_embeddings", {1, 10, 8});
  folder.add("embeddings.patch_embeddings.projection.weight", {8, 3, 4, 4});
  folder.add("embeddings.patch_embeddings.projection.bias", {8});
  const std::string layer = "encoder.layer.0.";
  for (const char* part : {"attention.query", "attention.key", "attention.value", "output.dense"}) {
    folder.add_pair(layer + "attention." + part, {8, 8});
  }
  folder.add_pair(layer + "intermediate.dense", {12, 8});
  folder.add_pair(layer + "output.dense", {8, 12});
  for (const auto& norm : {layer + "layernorm_before", layer + "layernorm_after"}) {
    folder.add_pair(norm, {8});
  }
  folder.add_pair("layernorm", {8});
  const auto bias = [](const Encoder& model) {
    return model->named_parameters()["encoder.layers.0.self_attn.in_proj_bias"];
  };
  EXPECT_EQ(bias(load_encoder(folder.write())).count_nonzero().item<int64_t>(), 0);
  auto text = TinyFolder::bert();
  text.config["qkv_bias"] = false;
  EXPECT_GT(bias(load_encoder(text.write())).count_nonzero().item<int64_t>(), 0);
}

// A quantised file has scales besides its weights, and an adapter's has only what it adds.

}  // namespace
}  // namespace posenc::testing
