// What frozen models compute depends neither on the process's default dtype nor on autocast nor on
// the number of threads, where they are frozen and where they run: a model of each type.

#include <c10/core/DefaultDtype.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "inference/models.h"
#include "modules/drawn_module.h"
#include "posenc/inference/score.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"
#include "support/autocast.h"
#include "support/threads.h"

namespace posenc::frozen_scope_test {
namespace {

using testing::Autocast;
using testing::bit_equal;
using testing::drawn;
using Json = nlohmann::json;

// The process's default dtype is float64 while this exists.
class DefaultDouble {
 public:
  DefaultDouble() { c10::set_default_dtype(caffe2::TypeMeta::Make<double>()); }
  ~DefaultDouble() { c10::set_default_dtype(caffe2::TypeMeta::Make<float>()); }
};

// A small model of this type, as config.json has it.
Json config_of(const std::string& type) {
  const Json text = {{"hidden_size", 32},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 4},
                     {"intermediate_size", 40},
                     {"vocab_size", 60},
                     {"pad_token_id", 0},
                     {"max_position_embeddings", 80}};
  Json config = {{"model_type", type}};
  const auto with = [&](const Json& own) { config.update(own); };
  const auto is_one_of = [&](const std::vector<std::string>& types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (is_one_of({"bart", "mbart", "plbart"})) {
    with({{"d_model", 32}, {"encoder_layers", 2}, {"encoder_attention_heads", 4}});
    with({{"encoder_ffn_dim", 40}, {"vocab_size", 60}, {"max_position_embeddings", 80}});
  } else if (is_one_of({"t5", "mt5", "umt5"})) {
    with({{"d_model", 32}, {"d_kv", 8}, {"d_ff", 40}, {"num_layers", 2}, {"num_heads", 4}});
    with({{"vocab_size", 60}});
  } else if (type == "distilbert") {
    with({{"dim", 32}, {"n_layers", 2}, {"n_heads", 4}, {"hidden_dim", 40}, {"vocab_size", 60}});
  } else if (is_one_of({"xlm", "flaubert"})) {
    with({{"emb_dim", 32}, {"n_layers", 2}, {"n_heads", 4}, {"n_words", 60}, {"vocab_size", 60}});
  } else if (type == "bloom") {
    with({{"hidden_size", 32}, {"n_layer", 2}, {"n_head", 4}, {"vocab_size", 60}});
  } else if (type == "mpt") {
    with({{"d_model", 32}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 60}});
  } else if (type == "xlnet") {
    with({{"d_model", 32}, {"n_layer", 2}, {"n_head", 4}, {"d_inner", 40}, {"vocab_size", 60}});
  } else if (is_one_of({"swin", "swinv2", "donut-swin"})) {
    with({{"embed_dim", 16}, {"depths", {2, 2}}, {"num_heads", {2, 4}}, {"window_size", 4}});
    with({{"image_size", 32}, {"patch_size", 2}});
  } else if (is_one_of({"sam", "sam_vision_model"})) {
    const Json vision = {
        {"hidden_size", 32}, {"num_hidden_layers", 2}, {"num_attention_heads", 4},
        {"image_size", 32},  {"patch_size", 4},        {"output_channels", 8},
        {"mlp_dim", 40},     {"window_size", 3},       {"global_attn_indexes", {1}}};
    type == "sam" ? with({{"vision_config", vision}}) : with(vision);
  } else {
    with(text);
    Json image = text;
    image.update({{"image_size", 16}, {"patch_size", 4}});
    with({{"image_size", 16}, {"patch_size", 4}});
    with({{"text_config", text}, {"vision_config", image}, {"encoder", text}});
  }
  if (is_one_of({"albert", "electra", "mobilebert", "roformer"})) with({{"embedding_size", 16}});
  if (type == "squeezebert") with({{"embedding_size", 32}});
  if (type == "rembert") with({{"input_embedding_size", 16}});
  if (type == "mobilebert") with({{"intra_bottleneck_size", 16}});
  if (type == "esm") with({{"mask_token_id", 4}});
  if (type == "xmod") with({{"default_language", "en_XX"}});
  if (type == "layoutlmv3") {
    with({{"coordinate_size", 5}, {"shape_size", 6}});
    with({{"has_relative_attention_bias", true}, {"has_spatial_attention_bias", true}});
  }
  if (is_one_of({"exaone4", "gemma", "gemma3_text", "helium", "qwen3", "llama", "eurobert",
                 "ministral", "ministral3", "mistral", "qwen2", "seed_oss", "stablelm",
                 "t5_gemma_module"}))
    with({{"num_key_value_heads", 2}, {"head_dim", 8}});
  if (is_one_of({"codegen", "gptj"})) with({{"rotary_dim", 4}});
  if (type == "gpt_neo") with({{"attention_types", {{{"global", "local"}, 1}}}});
  if (is_one_of({"deberta", "deberta-v2"})) {
    with({{"relative_attention", true}, {"pos_att_type", {"c2p", "p2c"}}});
    with({{"max_relative_positions", 40}});
  }
  if (type == "deberta-v2")
    with({{"position_buckets", 8}, {"conv_kernel_size", 3}, {"conv_act", "gelu"}});
  if (type == "wav2vec2-conformer") with({{"position_embeddings_type", "relative"}});
  if (is_one_of({"beit", "data2vec-vision"}))
    with({{"use_relative_position_bias", true}, {"use_mean_pooling", true}});
  return config;
}

struct Given {
  torch::Tensor input;
  EncoderInputs inputs;
};

// Inputs with padding where there is any.
Given given_for(const EncoderOptions& options) {
  if (options.patches())
    return {torch::randn({2, options.patches()->num_channels(), options.patches()->image_height(),
                          options.patches()->image_width()}),
            {}};
  const int64_t batch = 3, length = 40;
  auto tokens = torch::ones({batch, length}, torch::kLong);
  tokens[1].narrow(0, 31, 9).fill_(0);
  Given given;
  given.inputs.attention_mask(tokens);
  if (options.embeddings()) {
    given.input = torch::randint(5, 60, {batch, length}) * tokens;
  } else {
    given.inputs.inputs_embeds(torch::randn({batch, length, 32}));
  }
  return given;
}

std::vector<torch::Tensor> results_of(const EncoderOutput& out) {
  std::vector<torch::Tensor> all = {out.embeddings, out.last_hidden_state};
  if (out.pooled.defined()) all.push_back(out.pooled);
  return all;
}

::testing::AssertionResult same_bits(const std::vector<torch::Tensor>& got,
                                     const std::vector<torch::Tensor>& expected) {
  if (got.size() != expected.size()) return ::testing::AssertionFailure() << "another number";
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].scalar_type() != torch::kFloat)
      return ::testing::AssertionFailure() << "result " << i << " is " << got[i].scalar_type();
    const auto equal = bit_equal(got[i], expected[i]);
    if (!equal) return ::testing::AssertionFailure() << "result " << i << " differs";
  }
  return ::testing::AssertionSuccess();
}

class EveryType : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(FrozenScope, EveryType, ::testing::ValuesIn(encoder_model_types()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(EveryType, IsFrozenAndRunsTheSameEverywhere) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(testing::seed(1));
  auto model = drawn(Encoder(encoder_options_from_hf(config_of(GetParam()).dump())));
  const Given given = given_for(model->options);
  const auto run = [&](const FreezeOptions& options = {}) {
    return results_of(freeze(model, options).forward(given.input, given.inputs));
  };
  const auto run_after = [&](const FrozenEncoder& frozen) {
    return results_of(frozen.forward(given.input, given.inputs));
  };
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8}) {
    const auto how = FreezeOptions().weights(weights);
    const auto expected = run(how);
    const FrozenEncoder before = freeze(model, how);
    {
      SCOPED_TRACE("float64 by default");
      const DefaultDouble guard;
      EXPECT_TRUE(same_bits(run(how), expected));
      EXPECT_TRUE(same_bits(run_after(before), expected));
    }
    {
      SCOPED_TRACE("autocast");
      const Autocast guard;
      EXPECT_TRUE(same_bits(run(how), expected));
      EXPECT_TRUE(same_bits(run_after(before), expected));
    }
  }
  // What LibTorch's products make, whose bits may depend on the number of threads.
  const bool has_neck = model->options.windows() && model->options.windows()->neck();
  const bool pools_by_attention = model->options.pooling() == encoder::Pooling::Attention;
  std::vector<torch::Tensor> first;
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    const testing::Threads guard(threads);
    auto got = run();
    if (has_neck || pools_by_attention) got.pop_back();
    if (first.empty()) first = got;
    EXPECT_TRUE(same_bits(got, first));
  }
}

// Sizes at which LibTorch would share a product or an activation between threads.
TEST(FrozenScope, PositionsHaveTheSameBitsForAnyNumberOfThreads) {
  const torch::NoGradGuard no_grad;
  Json deberta = config_of("deberta-v2");
  deberta.update({{"hidden_size", 192},
                  {"num_attention_heads", 3},
                  {"position_buckets", 256},
                  {"max_relative_positions", 512},
                  {"max_position_embeddings", 300},
                  {"share_att_key", true}});
  Json shared = deberta, swin = config_of("swinv2");
  shared.update({{"conv_act", "tanh"}, {"share_att_key", false}, {"hidden_size", 198}});
  swin.update({{"window_size", 16}, {"num_heads", {2, 4}}});
  Json bert = config_of("bert");
  bert.update({{"hidden_size", 384}});
  for (const Json& config : {deberta, shared, swin, bert}) {
    SCOPED_TRACE(config.dump());
    auto model = drawn(Encoder(encoder_options_from_hf(config.dump())));
    Given given = given_for(model->options);
    if (!model->options.patches())
      given = {
          torch::randint(5, 60, {130, model->options.encoder().layer().d_model() > 200 ? 2 : 9}),
          {}};
    std::vector<torch::Tensor> first;
    for (const int threads : {1, 2, 3}) {
      const testing::Threads guard(threads);
      const auto got = results_of(freeze(model).forward(given.input, given.inputs));
      if (first.empty()) first = got;
      EXPECT_TRUE(same_bits(got, first)) << threads;
    }
  }
}

// What a decoder gives: logits, and the log probabilities of texts and of what it finds.
std::vector<torch::Tensor> results_of(const FrozenDecoder& frozen) {
  const auto ids = torch::arange(5, 45).view({2, 20});
  std::vector<torch::Tensor> all = {frozen.forward(ids).logits};
  const std::vector<std::vector<int64_t>> texts = {{5, 6, 7, 8}, {9}, {5, 6, 11}};
  const PromptCache cache(frozen, {5, 6});
  for (const auto& found :
       generate(frozen, texts, GenerateOptions(0, 2).num_beams(2).max_new_tokens(5), &cache))
    all.push_back(torch::tensor(found[0].score, torch::kFloat));
  for (const auto& one : score(frozen, texts)) all.push_back(torch::tensor(one, torch::kFloat));
  return all;
}

class EveryDecoder : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(FrozenScope, EveryDecoder, ::testing::ValuesIn(decoder_model_types()),
                         [](const auto& info) { return info.param; });

TEST_P(EveryDecoder, IsFrozenAndRunsTheSameEverywhere) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(testing::seed(1));
  auto model = drawn(Decoder(decoder_options_from_hf(config_of(GetParam()).dump())));
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16}) {
    const auto how = FreezeOptions().weights(weights);
    const FrozenDecoder before = freeze(model, how);
    const auto expected = results_of(before);
    const auto expect_same = [&] {
      EXPECT_TRUE(same_bits(results_of(freeze(model, how)), expected));
      EXPECT_TRUE(same_bits(results_of(before), expected));
    };
    {
      SCOPED_TRACE("float64 by default");
      const DefaultDouble guard;
      expect_same();
    }
    {
      SCOPED_TRACE("autocast");
      const Autocast guard;
      expect_same();
    }
    for (const int threads : {1, 2, 4}) {
      SCOPED_TRACE(threads);
      const testing::Threads guard(threads);
      expect_same();
    }
  }
}

// What a Transformer gives: memory, logits, and the log probabilities of a target.
std::vector<torch::Tensor> results_of(const FrozenTransformer& frozen, const torch::Tensor& src,
                                      const torch::Tensor& tgt) {
  const auto mask = AttentionMask::padding(src, testing::kPad);
  const auto memory = frozen.encode(src, mask);
  std::vector<torch::Tensor> all = {memory,
                                    frozen.decode(tgt, memory, AttentionMask::causal(), mask)};
  const auto options = GenerateOptions(testing::kBegin, testing::kEnd).num_beams(2);
  for (const auto& one : generate(frozen, src, mask, GenerateOptions(options).max_new_tokens(5)))
    all.push_back(torch::tensor(one[0].score, torch::kFloat));
  const std::vector<std::vector<int64_t>> targets(static_cast<size_t>(src.size(0)), {1, 5, 4});
  for (const auto& one : score(frozen, src, mask, targets))
    all.push_back(torch::tensor(one, torch::kFloat));
  for (const auto& one : score_with_attention(frozen, src, mask, targets))
    all.push_back(one.attention);
  return all;
}

TEST(FrozenScope, ATransformerComputesTheSame) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 4; ++number) {
    testing::Dice dice(number);
    auto model = testing::any_model(dice, number);
    const auto src = testing::any_ids(dice, 3, 7, true), tgt = testing::any_ids(dice, 3, 5, false);
    const FrozenTransformer before = freeze(model);
    const auto expected = results_of(before, src, tgt);
    {
      const DefaultDouble guard;
      EXPECT_TRUE(same_bits(results_of(freeze(model), src, tgt), expected));
      EXPECT_TRUE(same_bits(results_of(before, src, tgt), expected));
    }
    const Autocast guard;
    EXPECT_TRUE(same_bits(results_of(freeze(model), src, tgt), expected));
    EXPECT_TRUE(same_bits(results_of(before, src, tgt), expected));
  }
}

TEST(FrozenScope, AClassifierComputesTheSame) {
  const torch::NoGradGuard no_grad;
  Json config = config_of("deberta-v2");
  const EncoderOptions options = encoder_options_from_hf(config.dump());
  auto model = drawn(Classifier(ClassifierOptions(
      options, head::Kind::Token,
      EncoderHeadOptions(32, 5).dense(32).activation(Activation::Tanh).norm(1e-5))));
  const Given given = given_for(options);
  const auto results = [&](const FrozenClassifier& frozen) {
    return std::vector<torch::Tensor>{frozen.forward(given.input, given.inputs).logits,
                                      frozen.logits(torch::ones({4, 32}, torch::kFloat))};
  };
  const FrozenClassifier before = freeze(model);
  const auto expected = results(before);
  {
    const DefaultDouble guard;
    EXPECT_TRUE(same_bits(results(freeze(model)), expected));
    EXPECT_TRUE(same_bits(results(before), expected));
  }
  const Autocast guard;
  EXPECT_TRUE(same_bits(results(freeze(model)), expected));
  EXPECT_TRUE(same_bits(results(before), expected));
}

}  // namespace
}  // namespace posenc::frozen_scope_test
