// posenc-budget: one kind of adapters: read, merged, switched and trained
// Adapters of PEFT: what is refused, by name, and how they are merged, switched and trained. The
// differential tests compare random ones with PEFT.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/init.h>

#include <filesystem>

#include "core/low_rank.h"
#include "models/encoder/tiny_folder.h"
#include "posenc/models/adapter_set.h"
#include "posenc/models/classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/lora.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

constexpr const char* kQuery = "encoder.layer.0.attention.self.query";

torch::Tensor adapted_ids() { return torch::tensor({{2, 5, 7, 3}, {2, 9, 3, 0}}); }

/// An adapter of the queries of TinyFolder::bert().
struct TinyAdapter {
  json config = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 6}, {"target_modules", {"query"}}};
  StateDict tensors;

  TinyAdapter() {
    for (const char* layer : {"0", "1"})
      add(std::string("encoder.layer.") + layer + ".attention.self.query", 8, 8);
  }
  void add(const std::string& module, int64_t in, int64_t out, int64_t r = 2) {
    tensors.insert("base_model.model." + module + ".lora_A.weight", torch::randn({r, in}));
    tensors.insert("base_model.model." + module + ".lora_B.weight", torch::randn({out, r}));
  }
  std::string write() const {
    write_bytes(*dir / "adapter_config.json", config.dump());
    save_safetensors(*dir / "adapter_model.safetensors", tensors);
    return dir->path().string();
  }
  at::Tensor product(const std::string& module) const {
    return torch::matmul(tensors["base_model.model." + module + ".lora_B.weight"],
                         tensors["base_model.model." + module + ".lora_A.weight"]);
  }

  std::shared_ptr<TempDir> dir = std::make_shared<TempDir>();
};

LoadOptions with(const std::string& adapter, double scale = 1.0) {
  return LoadOptions().adapters({{adapter, scale}});
}

at::Tensor first_rows(const Encoder& model, int64_t begin) {
  return model->encoder->layers->ptr<TransformerEncoderLayerImpl>(0)
      ->self_attn->in_proj_weight.narrow(0, begin, 8);
}

TEST(Lora, IsAddedToRowsOfThePackedWeight) {
  const auto folder = TinyFolder::bert();
  const TinyAdapter adapter;
  const auto model = load_encoder(folder.write(), with(adapter.write(), 0.5));
  const auto expected =
      folder.tensors[std::string(kQuery) + ".weight"] + 0.5 * (6.0 / 2.0) * adapter.product(kQuery);
  EXPECT_TRUE(torch::allclose(first_rows(model, 0), expected, 1e-5, 1e-6));
  EXPECT_TRUE(
      bit_equal(first_rows(model, 8), folder.tensors["encoder.layer.0.attention.self.key.weight"]));
}

TEST(Lora, ConfigsOfOldReleasesHaveDefaults) {
  TinyAdapter adapter;
  adapter.config = {{"peft_type", "LORA"}, {"target_modules", {"query"}}};
  const LoraConfig config = read_lora_config(adapter.write());
  EXPECT_EQ(config.r(), 8);
  EXPECT_EQ(config.alpha(), 8.0);
  EXPECT_FALSE(config.rslora() || config.dora() || config.lora_bias());
  EXPECT_EQ(config.bias(), LoraBias::None);
}

TEST(Lora, SettingsThatChangeMoreAreRefusedByName) {
  const std::pair<const char*, json> bad[] = {{"peft_type", "IA3"},
                                              {"peft_type", nullptr},
                                              {"init_lora_weights", "pissa"},
                                              {"init_lora_weights", "pissa_niter_4"},
                                              {"init_lora_weights", "olora"},
                                              {"init_lora_weights", "corda"},
                                              {"init_lora_weights", "loftq"},
                                              {"init_lora_weights", "lora_ga"},
                                              {"use_qalora", true},
                                              {"alora_invocation_tokens", {1}},
                                              {"arrow_config", {{"top_k", 1}}},
                                              {"layer_replication", {{0, 1}}},
                                              {"target_parameters", {"a"}},
                                              {"use_bdlora", {{"a", 1}}},
                                              {"kasa_config", {{"a", 1}}},
                                              {"monteclora_config", {{"a", 1}}},
                                              {"megatron_config", {{"a", 1}}},
                                              {"trainable_token_indices", {1}},
                                              {"ensure_weight_tying", true},
                                              {"something_new", 3},
                                              {"r", 0},
                                              {"r", 1.5},
                                              {"lora_alpha", "much"},
                                              {"bias", "some"},
                                              {"use_dora", "yes"},
                                              {"rank_pattern", {{"query", 0}}},
                                              {"layers_to_transform", {-1}},
                                              {"modules_to_save", {1}}};
  for (const auto& [key, value] : bad) {
    SCOPED_TRACE(std::string(key) + " " + value.dump());
    TinyAdapter adapter;
    adapter.config[key] = value;
    EXPECT_ERROR(read_lora_config(adapter.write()), c10::ValueError, std::string(key) + " ");
  }
  for (const json& fine : {json("gaussian"), json("eva"), json(true), json(false)}) {
    TinyAdapter adapter;
    adapter.config["init_lora_weights"] = fine;
    EXPECT_NO_THROW(read_lora_config(adapter.write())) << fine;
  }
}

TEST(Lora, ExpressionsThatPythonRefusesOrPosencLacksAreRefused) {
  const std::pair<const char*, const char*> bad[] = {{"(?<=x)query", "lookbehind"},
                                                     {"(a)\\1", "references to groups"},
                                                     {"(?P=a)", "references to groups"},
                                                     {"(?>a)b", "atomic groups"},
                                                     {"a*+b", "possessive repeats"},
                                                     {"(a)?(?(1)b)", "conditions"},
                                                     {"(?x)a b", "of flags, only i, m and s"},
                                                     {"query(?i)", "global flags"},
                                                     {"query[", "unterminated character set"},
                                                     {"*query", "nothing to repeat"},
                                                     {"a**", "multiple repeat"},
                                                     {"(query", "missing )"},
                                                     {"query)", "unbalanced parenthesis"},
                                                     {"\\q", "bad escape"},
                                                     {"é", "characters outside ASCII"}};
  for (const auto& [text, why] : bad) {
    SCOPED_TRACE(text);
    TinyAdapter adapter;
    adapter.config["target_modules"] = text;
    EXPECT_ERROR(read_lora_config(adapter.write()), c10::ValueError,
                 std::string("must be a regular expression of Python: ") + why);
  }
}

TEST(Lora, ExpressionsArePythons) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  for (const char* text :
       {".*\\.(q|query)$", "(?i).*QUERY", ".*query\\Z", "(?P<any>.*)\\.query", "(?!.*key).*query",
        "[]e].*[a-z]{,4}uery", "enc.{3}r.*?query", "(?s:.*)\\.quer[^]x]", "(.*)*(.*)*query"}) {
    SCOPED_TRACE(text);
    TinyAdapter adapter;
    adapter.config["target_modules"] = text;
    EXPECT_NO_THROW(load_encoder(base, with(adapter.write())));
  }
  TinyAdapter other;
  other.config["target_modules"] =
      "query|[[:alpha:].]+";  // which is a set of characters, and a bracket
  EXPECT_ERROR(load_encoder(base, with(other.write())), c10::ValueError, "match no layer");
}

TEST(Lora, NamesOfAnyLengthMeetExpressions) {
  TinyAdapter adapter;
  adapter.config["target_modules"] = "(.*)+y";
  adapter.add(std::string(200'000, 'x') + "query", 8, 8);
  EXPECT_ERROR(load_encoder(TinyFolder::bert().write(), with(adapter.write())), c10::ValueError,
               "must have at most 1000 characters");
  adapter.config["rank_pattern"] = {{"(.|x)*", 2}};
  EXPECT_ERROR(load_adapter(adapter.write()), c10::ValueError, "must have at most 1000 characters");
}

TEST(Lora, EveryTensorAndTargetIsCounted) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  const auto refuses = [&](const TinyAdapter& adapter, const char* why) {
    SCOPED_TRACE(why);
    EXPECT_ERROR(load_encoder(base, with(adapter.write())), WeightsError, why);
  };
  TinyAdapter other;
  other.add("encoder.layer.7.attention.self.query", 8, 8);
  refuses(other, "must be a module of the model");
  TinyAdapter more;
  more.add("encoder.layer.0.attention.self.key", 8, 8);
  refuses(more, "must be a target of target_modules");
  TinyAdapter fewer;
  fewer.config["target_modules"] = {"query", "value"};
  refuses(fewer, "must have a part for each target");
  TinyAdapter wide;
  wide.tensors["base_model.model." + std::string(kQuery) + ".lora_A.weight"] = torch::randn({2, 9});
  refuses(wide, "must have 8 columns");
  TinyAdapter rank;
  rank.config["rank_pattern"] = {{"layer.1.*", 3}};
  refuses(rank, "r = 3");
  TinyAdapter half;
  half.tensors.erase("base_model.model." + std::string(kQuery) + ".lora_B.weight");
  refuses(half, "is not in the adapter");
  TinyAdapter infinite;
  infinite.tensors["base_model.model." + std::string(kQuery) + ".lora_B.weight"][0][0] = INFINITY;
  refuses(infinite, "must be finite numbers");
  TinyAdapter unknown;
  unknown.tensors.insert("base_model.model.encoder.layer.0.lora_C", torch::randn({2}));
  refuses(unknown, "must be a tensor of an adapter");
  TinyAdapter named;
  named.tensors.insert("encoder.layer.0.x", torch::randn({2}));
  refuses(named, "must have a name that begins with base_model.model.");
  TinyAdapter magnitude;
  magnitude.config["use_dora"] = true;
  refuses(magnitude, "lora_magnitude_vector");
  TinyAdapter bias;
  bias.config["lora_bias"] = true;
  refuses(bias, "lora_B.bias");
  TinyAdapter none;
  std::filesystem::remove(std::filesystem::path(none.write()) / "adapter_model.safetensors");
  EXPECT_ERROR(load_encoder(base, with(none.dir->path().string())), WeightsError,
               "must hold adapter_model.safetensors");
}

TEST(Lora, TargetsThatMatchNothingAreAnError) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  TinyAdapter none;
  none.config["target_modules"] = {"uery"};  // no ending after a dot
  EXPECT_ERROR(load_encoder(base, with(none.write())), c10::ValueError, "match no layer");
  TinyAdapter part;
  part.config["target_modules"] = "query";  // a pattern of the whole name
  EXPECT_ERROR(load_encoder(base, with(part.write())), c10::ValueError, "match no layer");
}

TEST(Lora, OfAHeadOnABareEncoderIsLeftOut) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  TinyAdapter adapter;
  const auto expected = load_encoder(base, with(adapter.write()))->forward(adapted_ids());
  TinyAdapter headed = adapter;
  headed.dir = std::make_shared<TempDir>();
  StateDict renamed;
  for (const auto& item : adapter.tensors)
    renamed.insert("base_model.model.bert." + item.key().substr(17), item.value());
  headed.tensors = renamed;
  headed.config["modules_to_save"] = {"classifier"};
  headed.tensors.insert("base_model.model.classifier.weight", torch::randn({3, 8}));
  headed.tensors.insert("base_model.model.classifier.bias", torch::randn({3}));
  EXPECT_TRUE(bit_equal(load_encoder(base, with(headed.write()))->forward(adapted_ids()).pooled,
                        expected.pooled));
  headed.config["task_type"] = "SEQ_CLS";  // of the class with the head, which is the adapter's
  const auto model = load_classifier(base, std::nullopt, with(headed.write()));
  EXPECT_TRUE(bit_equal(model->head->weight, headed.tensors["base_model.model.classifier.weight"]));
  EXPECT_EQ(model->options.labels().size(), 3U);
}

TEST(Lora, FoldersOfAdaptersNameTheirBase) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  TinyAdapter adapter;
  adapter.config["base_model_name_or_path"] = "nobody/nothing";
  EXPECT_ERROR(load_encoder(adapter.write()), WeightsError, "nobody/nothing");
  const auto expected = load_encoder(base, with(adapter.write()))->forward(adapted_ids()).pooled;
  EXPECT_TRUE(bit_equal(
      load_encoder(adapter.write(), LoadOptions().base(base))->forward(adapted_ids()).pooled,
      expected));
  adapter.config["base_model_name_or_path"] = base;
  EXPECT_TRUE(bit_equal(load_encoder(adapter.write())->forward(adapted_ids()).pooled, expected));
  EXPECT_ERROR(load_encoder(base, LoadOptions().base(base)), c10::ValueError, "base must be with");
}

TEST(Lora, MergesIntoAFolderThatIsNotThere) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  const TinyAdapter adapter;
  TempDir dir;
  const std::string out = dir / "merged";
  EXPECT_ERROR(merge_adapters(base, out, {}), c10::ValueError, "there must be an adapter");
  EXPECT_EQ(merge_adapters(base, out, with(adapter.write())).changed, 2);
  EXPECT_TRUE(bit_equal(load_encoder(out)->forward(adapted_ids()).pooled,
                        load_encoder(base, with(adapter.write()))->forward(adapted_ids()).pooled));
  EXPECT_ERROR(merge_adapters(base, out, with(adapter.write())), c10::ValueError, "not there yet");
}

TEST(Lora, LayersBeyondTheModelsAreKeptAndHaveNoAdapter) {
  auto folder = TinyFolder::bert();
  folder.config["num_hidden_layers"] = 1;
  const std::string base = folder.write();
  TempDir dir;
  const std::string out = dir / "merged";
  TinyAdapter all;
  EXPECT_ERROR(load_encoder(base, with(all.write())), WeightsError,
               "encoder.layer.1.attention.self.query' must be a module of the model");
  EXPECT_ERROR(merge_adapters(base, out, with(all.write())), WeightsError,
               "must be a module of the model");
  TinyAdapter first;
  first.tensors = StateDict();
  first.add(kQuery, 8, 8);
  EXPECT_EQ(merge_adapters(base, out, with(first.write())).changed, 1);
  const std::string later = "encoder.layer.1.attention.self.query.weight";
  EXPECT_TRUE(bit_equal(load_tensors(out + "/model.safetensors")[later], folder.tensors[later]));
  EXPECT_TRUE(bit_equal(load_encoder(out)->forward(adapted_ids()).pooled,
                        load_encoder(base, with(first.write()))->forward(adapted_ids()).pooled));
}

TEST(Lora, AnOutputLayerThatIsTiedNoMoreHasBothOfItsBiases) {
  auto folder = TinyFolder::bert();
  folder.rename([](const std::string& name) { return "bert." + name; });
  folder.config["architectures"] = {"BertForMaskedLM"};
  folder.add_pair("cls.predictions.transform.dense", {8, 8});
  folder.add_pair("cls.predictions.transform.LayerNorm", {8});
  folder.add("cls.predictions.bias", {11});
  TinyAdapter adapter;
  adapter.config = {
      {"peft_type", "LORA"}, {"r", 2}, {"target_modules", {"word_embeddings"}}, {"bias", "all"}};
  const std::string table = "bert.embeddings.word_embeddings", bias = "cls.predictions.bias",
                    root = "base_model.model.";
  adapter.tensors = StateDict();
  adapter.tensors.insert(root + table + ".lora_embedding_A", torch::randn({2, 11}));
  adapter.tensors.insert(root + table + ".lora_embedding_B", torch::randn({8, 2}));
  adapter.tensors.insert(root + bias, torch::randn({11}));
  TempDir dir;
  const std::string out = dir / "merged";
  EXPECT_EQ(merge_adapters(folder.write(), out, with(adapter.write())).untied,
            std::vector<std::string>{"cls.predictions.decoder.weight"});
  const StateDict merged = load_tensors(out + "/model.safetensors");
  EXPECT_TRUE(
      bit_equal(merged["cls.predictions.decoder.weight"], folder.tensors[table + ".weight"]));
  for (const std::string& name : {bias, std::string("cls.predictions.decoder.bias")})
    EXPECT_TRUE(bit_equal(merged[name], adapter.tensors[root + bias])) << name;
}

TEST(AdapterSet, SwitchesAndPutsTheBaseBack) {
  const auto folder = TinyFolder::bert();
  const std::string base = folder.write();
  const TinyAdapter a, b;
  auto model = load_encoder(base);
  const auto before = model->forward(adapted_ids()).pooled;
  AdapterSet set(model);
  set.add("a", load_adapter(a.write()));
  set.add("b", load_adapter(b.write()));
  set.activate({"a"});
  EXPECT_TRUE(bit_equal(model->forward(adapted_ids()).pooled,
                        load_encoder(base, with(a.write()))->forward(adapted_ids()).pooled));
  set.activate({"a", "b"}, {0.25, 2.0});
  const auto both = LoadOptions().adapters({{a.write(), 0.25}, {b.write(), 2.0}});
  EXPECT_TRUE(bit_equal(model->forward(adapted_ids()).pooled,
                        load_encoder(base, both)->forward(adapted_ids()).pooled));
  set.deactivate();
  EXPECT_TRUE(bit_equal(model->forward(adapted_ids()).pooled, before));
  EXPECT_ERROR(set.activate({"c"}), c10::ValueError, "must be of an adapter in the set");
  EXPECT_ERROR(set.activate({"a"}, {1.0, 2.0}), c10::ValueError, "scales must be one for each");
  EXPECT_ERROR(set.add("a", load_adapter(b.write())), c10::ValueError,
               "must not be empty or taken");
}

TEST(LoraTraining, TrainsTheAdapterAlone) {
  auto model = load_encoder(TinyFolder::bert().write());
  const auto before = model->forward(adapted_ids()).pooled.detach();
  {
    const auto tuned =
        add_lora(model, LoraConfig(2).targets({"query", "value", "output.dense"}).dropout(0.5));
    EXPECT_EQ(tuned.parameters().size(), 2U * 2U * 4U) << "query, value, two of output.dense";
    EXPECT_TRUE(torch::allclose(model->forward(adapted_ids()).pooled, before)) << "B is zero";
    EXPECT_ERROR(freeze(model), c10::ValueError, "must have no adapter in training");
    model->train();
    model->forward(adapted_ids()).pooled.sum().backward();
    for (const auto& item : tuned.named_parameters())
      EXPECT_TRUE(item.value().grad().defined()) << item.key();
    for (const auto& item : model->named_parameters())
      EXPECT_FALSE(item.value().grad().defined()) << item.key();
    EXPECT_ERROR(add_lora(model, LoraConfig(2).targets({"query"})), c10::ValueError,
                 "no other adapter in training");
  }
  model->eval();
  EXPECT_TRUE(bit_equal(model->forward(adapted_ids()).pooled, before)) << "the adapter has ended";
  EXPECT_TRUE(model->embeddings->tokens->weight.requires_grad());
  EXPECT_ERROR(add_lora(model, LoraConfig(2).targets({"word_embeddings"})), c10::ValueError,
               "a target must be a linear layer");
  EXPECT_ERROR(add_lora(model, LoraConfig(2).targets({"nothing"})), c10::ValueError,
               "match no layer");
}

TEST(LoraTraining, StaysWhenTheModelIsMoved) {
  auto model = load_encoder(TinyFolder::bert().write());
  const auto tuned = add_lora(model, LoraConfig(2).targets({"query"}));
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : tuned.parameters()) parameter.normal_();
  }
  const auto before = model->forward(adapted_ids()).pooled;
  model->to(torch::kCPU);  // which gives each parameter its data anew
  EXPECT_TRUE(bit_equal(model->forward(adapted_ids()).pooled, before));
  AdapterSet set(model);
  model->to(torch::kDouble);
  EXPECT_ERROR(tuned.parameters(), c10::ValueError, "Got other memory of ");
  EXPECT_ERROR(set.activate({}), c10::ValueError, "Got other memory of ");
}

/// A linear layer in training: rows 1 to 3 of a weight have an addition.
struct TrainedLinear {
  torch::Tensor x = torch::randn({5, 4}).requires_grad_(), weight = torch::randn({6, 4}),
                a = torch::randn({2, 4}).requires_grad_(),
                b = torch::randn({3, 2}).requires_grad_();

  TrainedLinear() {
    attach_additions(weight,
                     {{.begin = 1, .rows = 3, .a = a, .b = b, .magnitude = {}, .scale = 0.5}});
  }
  ~TrainedLinear() { attach_additions(weight, {}); }
  torch::Tensor forward() const { return linear_rows(x, weight, std::nullopt); }
  torch::Tensor expected() const {
    const auto added = torch::matmul(torch::matmul(x, a.t()), b.t()) * 0.5;
    return torch::matmul(x, weight.t()) + torch::constant_pad_nd(added, {1, 2});
  }
};

TEST(LoraTraining, GradientsOfGradientsAreThoseOfItsOperations) {
  const TrainedLinear layer;
  const auto second = [&](const torch::Tensor& y) {
    const std::vector<torch::Tensor> inputs = {layer.x, layer.a, layer.b};
    torch::Tensor sum = torch::zeros({});
    for (const auto& grad : torch::autograd::grad({y.pow(3).sum()}, inputs, {}, true, true))
      sum = sum + grad.pow(2).sum();
    return torch::autograd::grad({sum}, inputs);
  };
  const auto own = second(layer.forward()), expected = second(layer.expected());
  for (std::size_t i = 0; i < own.size(); ++i)
    EXPECT_TRUE(torch::allclose(own[i], expected[i], 1e-3, 1e-2)) << i;
}

TEST(LoraTraining, WhatChangesBeforeBackwardIsNoticed) {
  for (const auto& changed :
       {&TrainedLinear::x, &TrainedLinear::weight, &TrainedLinear::a, &TrainedLinear::b}) {
    const TrainedLinear layer;
    const auto y = layer.forward();
    {
      const torch::NoGradGuard no_grad;
      (layer.*changed).add_(1.0);
    }
    EXPECT_ERROR(y.sum().backward(), c10::Error, "modified by an inplace operation");
  }
}

TEST(LoraTraining, PartsOfAWeightHaveTheirRowsOfAnAddition) {
  const TrainedLinear layer;
  for (const auto& [begin, rows] :
       {std::pair(0, 6), std::pair(2, 1), std::pair(0, 2), std::pair(3, 3), std::pair(4, 2)})
    EXPECT_TRUE(torch::allclose(linear_rows(layer.x, layer.weight, std::nullopt, begin, rows),
                                layer.expected().narrow(1, begin, rows), 1e-5, 1e-5))
        << begin;
}

}  // namespace
}  // namespace posenc::testing
