// Models of the Llama family, built from posenc's parts, against those that transformers makes.

#include <gtest/gtest.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "posenc/models/rotary_config.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

std::string llama_path(const std::string& name) { return POSENC_LIVE_DIR "/llama/" + name; }

struct LayerImpl : torch::nn::Module {
  LayerImpl(const RotaryOptions& rotary, bool qkv_bias) {
    attention = register_module(
        "self_attn",
        MultiheadAttention(
            MultiheadAttentionOptions(48, 6).num_kv_heads(2).bias(qkv_bias).out_bias(false).rotary(
                rotary)));
    mlp = register_module("mlp", GatedFeedForward(48, 80));
    norm1 = register_module("input_layernorm", RMSNorm(48));
    norm2 = register_module("post_attention_layernorm", RMSNorm(48));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto h = norm1->forward(x);
    x = x + attention->forward(h, h, h, AttentionMask::causal());
    return x + mlp->forward(norm2->forward(x));
  }
  torch::Tensor step(torch::Tensor x, KeyValueCache& cache) {
    x = x + attention->step(norm1->forward(x), cache);
    return x + mlp->forward(norm2->forward(x));
  }
  MultiheadAttention attention{nullptr};
  GatedFeedForward mlp{nullptr};
  RMSNorm norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(Layer);

struct ModelImpl : torch::nn::Module {
  ModelImpl(const RotaryOptions& rotary, bool qkv_bias) {
    embed = register_module("embed_tokens", torch::nn::Embedding(101, 48));
    for (int i = 0; i < 3; ++i) layers->push_back(Layer(rotary, qkv_bias));
    register_module("layers", layers);
    norm = register_module("norm", RMSNorm(48));
    head = register_module("lm_head",
                           torch::nn::Linear(torch::nn::LinearOptions(48, 101).bias(false)));
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    auto x = embed->forward(ids);
    for (const auto& layer : *layers) x = layer->as<LayerImpl>()->forward(x);
    return head->forward(norm->forward(x));
  }
  torch::Tensor step(const torch::Tensor& ids, std::vector<KeyValueCache>& caches) {
    auto x = embed->forward(ids);
    for (size_t i = 0; i < caches.size(); ++i) x = layers[i]->as<LayerImpl>()->step(x, caches[i]);
    return head->forward(norm->forward(x));
  }
  std::vector<KeyValueCache> caches(int64_t batch) const {
    std::vector<KeyValueCache> all;
    for (const auto& layer : *layers)
      all.push_back(layer->as<LayerImpl>()->attention->make_cache(batch, 64));
    return all;
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::ModuleList layers;
  RMSNorm norm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Model);

// From the names of a file to those of the modules.
const KeyMap kLlamaMap = {
    {{"model.layers.*.self_attn.q_proj.*", "model.layers.*.self_attn.k_proj.*",
      "model.layers.*.self_attn.v_proj.*"},
     "layers.*.self_attn.in_proj_*"},
    {"model.layers.*.self_attn.o_proj.weight", "layers.*.self_attn.out_proj.weight"},
    {"model.layers.*.self_attn.rotary_emb.inv_freq", "layers.*.self_attn.rotary.inv_freq"},
    {"model.*", "*"}};

class Llama : public ::testing::TestWithParam<const char*> {
 protected:
  static bool qkv_bias() { return std::string(GetParam()) == "qwen2"; }
  static Model model() {
    const std::string folder = llama_path(GetParam());
    Model model(rotary_options_from_hf(folder + "/config.json"), qkv_bias());
    const auto report =
        load_weights(model, folder + "/model.safetensors", LoadOptions().key_map(kLlamaMap));
    EXPECT_EQ(report.loaded.size(), model->named_parameters().size());
    model->eval();
    return model;
  }
  static StateDict said() {
    return load_safetensors(llama_path(std::string(GetParam()) + ".safetensors")).tensors;
  }
};
INSTANTIATE_TEST_SUITE_P(Model, Llama, ::testing::Values("llama", "qwen2"));

TEST_P(Llama, LogitsAreThoseOfTransformers) {
  const torch::NoGradGuard no_grad;
  const auto said = Llama::said();
  EXPECT_TRUE(within(Op::Logits, model()->forward(said["input_ids"]), said["logits"]));
}

// As transformers before 4.32 wrote it, with frequencies that it now ignores.
TEST_P(Llama, LoadsAnOldFile) {
  const torch::NoGradGuard no_grad;
  auto file = load_safetensors(llama_path(GetParam()) + "/model.safetensors").tensors;
  for (int layer = 0; layer < 3; ++layer)
    file.insert("model.layers." + std::to_string(layer) + ".self_attn.rotary_emb.inv_freq",
                torch::zeros({4}));
  auto model = Llama::model();
  const auto said = Llama::said();
  load_state_dict(model, file, LoadOptions().key_map(kLlamaMap));
  EXPECT_TRUE(within(Op::Logits, model->forward(said["input_ids"]), said["logits"]));
}

TEST_P(Llama, StepsTokenByTokenAsTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  auto model = Llama::model();
  const auto said = Llama::said();
  const auto ids = said["input_ids"];
  auto one = model->caches(ids.size(0)), some = model->caches(ids.size(0));
  for (int64_t i = 0; i < ids.size(1); ++i) {
    const auto logits = model->step(ids.slice(1, i, i + 1), one);
    EXPECT_TRUE(within(Op::Logits, logits, said["logits"].slice(1, i, i + 1))) << i;
  }
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 8}, {8, 9}, {9, 21}}) {
    const auto logits = model->step(ids.slice(1, begin, end), some);
    EXPECT_TRUE(within(Op::Logits, logits, said["logits"].slice(1, begin, end))) << begin;
  }
}

TEST_P(Llama, DecodesGreedilyWhatTransformersDoes) {
  const torch::NoGradGuard no_grad;
  auto model = Llama::model();
  const auto said = Llama::said();
  auto caches = model->caches(said["prompt"].size(0));
  auto ids = said["prompt"];
  std::vector<torch::Tensor> found;
  for (int64_t i = 0; i < said["greedy"].size(1); ++i) {
    ids = model->step(ids, caches).select(1, -1).argmax(-1).unsqueeze(1);
    found.push_back(ids);
  }
  EXPECT_TRUE(torch::cat(found, 1).equal(said["greedy"]));
}

RMSNormOptions norm_of(const std::string& name) {
  if (name == "gemma") return RMSNormOptions::gemma(24);
  if (name == "olmo2") return RMSNormOptions(24).round(RMSNormOptions::RoundTo::AfterWeight);
  return RMSNormOptions(24);
}

TEST(LlamaParts, NormsHaveTheBitsOfTransformers) {
  const torch::NoGradGuard no_grad;
  const auto said = load_safetensors(llama_path("parts.safetensors")).tensors;
  for (const std::string name : {"llama", "gemma", "olmo2"}) {
    for (const std::string dtype : {"float32", "bfloat16", "float16"}) {
      const std::string key = "norm." + name + "." + dtype + ".";
      RMSNorm norm(norm_of(name).eps(1e-5));
      norm->to(said[key + "x"].scalar_type());
      norm->weight.copy_(said[key + "weight"]);
      EXPECT_TRUE(bit_equal(norm->forward(said[key + "x"]), said[key + "out"])) << key;
    }
  }
  EXPECT_TRUE(RMSNorm(RMSNormOptions::gemma(3))->weight.equal(torch::zeros({3})));
  EXPECT_ERROR(RMSNorm(3)->forward(torch::ones({2, 4})), c10::ValueError, "x must be (..., 3)");
  EXPECT_ERROR(RMSNorm(3)->forward(torch::ones({3}, torch::kLong)), c10::TypeError, "Got Long");
}

TEST(LlamaParts, FeedForwardNetworksAreThoseOfTransformers) {
  const torch::NoGradGuard no_grad;
  const auto said = load_safetensors(llama_path("parts.safetensors")).tensors;
  for (const auto& [name, act] :
       {std::pair<std::string, std::string>{"llama", "silu"}, {"gemma", "gelu_pytorch_tanh"}}) {
    GatedFeedForward mlp(GatedFeedForwardOptions(24, 40).gate(activation_of(act)));
    LoadOptions options;
    options.prefix("mlp." + name + ".").allow_unexpected(true);
    load_state_dict(mlp, said, options);
    EXPECT_TRUE(
        within(Op::Linear, mlp->forward(said["mlp." + name + ".x"]), said["mlp." + name + ".out"]));
  }
  EXPECT_ERROR(GatedFeedForward(3, 4)->forward(torch::ones({2, 4})), c10::ValueError,
               "x must be (..., 3)");
}

TEST(GroupedQueries, AreThoseOfRepeatedHeads) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  MultiheadAttention grouped(MultiheadAttentionOptions(24, 6).num_kv_heads(2));
  MultiheadAttention whole(24, 6);
  const auto repeated = [](const torch::Tensor& t) {  // (2 * 4, ...) -> (6 * 4, ...)
    return t.unflatten(0, {2, 4}).repeat_interleave(3, 0).flatten(0, 1);
  };
  const auto rows = [&](const torch::Tensor& t) {
    return torch::cat({t.slice(0, 0, 24), repeated(t.slice(0, 24, 32)), repeated(t.slice(0, 32))});
  };
  grouped->in_proj_bias.normal_();
  whole->in_proj_weight.copy_(rows(grouped->in_proj_weight));
  whole->in_proj_bias.copy_(rows(grouped->in_proj_bias));
  whole->out_proj->weight.copy_(grouped->out_proj->weight);
  const auto x = torch::randn({2, 5, 24}), y = torch::randn({2, 7, 24});
  EXPECT_TRUE(within(Op::Linear, grouped->forward(x, x, x, AttentionMask::causal()),
                     whole->forward(x, x, x, AttentionMask::causal())));
  EXPECT_TRUE(within(Op::Linear, grouped->forward(x, y, y), whole->forward(x, y, y)));
  EXPECT_ERROR(MultiheadAttention(MultiheadAttentionOptions(24, 6).num_kv_heads(4)),
               c10::ValueError, "num_kv_heads must divide num_heads 6. Got 4");
  EXPECT_ERROR(grouped->forward(x, x, x, {}, torch::arange(5)), c10::ValueError,
               "position_ids are for a rotary embedding");
  MultiheadAttention last(MultiheadAttentionOptions(24, 6).batch_first(false));
  auto cache = last->make_cache(2, 5);
  EXPECT_ERROR(last->step(x, cache), c10::ValueError, "step() needs batch_first");
}

}  // namespace
}  // namespace posenc::testing
