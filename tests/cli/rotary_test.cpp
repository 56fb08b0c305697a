#include "posenc/positions/functional/rotary.h"

#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "posenc/models/rotary_config.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

class Rotary : public InFolder {
 protected:
  std::string input(torch::Dtype dtype = torch::kFloat) const {
    return safetensors("in.safetensors", dict({{"position_ids", torch::arange(6).view({2, 3})},
                                               {"q", torch::randn({2, 4, 3, 8}).to(dtype)},
                                               {"k", torch::randn({2, 2, 3, 8}).to(dtype)}}));
  }
  Result rotary(std::vector<std::string> what) const {
    std::vector<std::string> command = {"rotary", "--in", file("in.safetensors"), "--out",
                                        file("out")};
    command.insert(command.end(), what.begin(), what.end());
    return posenc(command);
  }
};

TEST_F(Rotary, TurnsByAConfiguration) {
  const auto config = text_file("config.json", R"({"model_type": "cohere", "hidden_size": 16,
                                                   "num_attention_heads": 2})");
  input(torch::kBFloat16);
  const auto result = rotary({"--config", config});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  const auto in = load_safetensors(file("in.safetensors")).tensors;
  const auto out = load_safetensors(file("out")).tensors;
  const auto options = rotary_options_from_hf(config);
  const auto table = rotary_cos_sin(options, in["position_ids"], torch::kBFloat16);
  EXPECT_TRUE(bit_equal(out["cos"], table.cos));
  EXPECT_TRUE(bit_equal(out["sin"], table.sin));
  const auto [q, k] = functional::rotary(in["q"], in["k"], table, options);
  EXPECT_TRUE(bit_equal(out["q"], q));
  EXPECT_TRUE(bit_equal(out["k"], k));
}

TEST_F(Rotary, TurnsByTheKindOfLayerThatIsGiven) {
  const auto config = text_file("config.json", R"({"model_type": "gemma3_text", "head_dim": 8})");
  input();
  const auto in = load_safetensors(file("in.safetensors")).tensors;
  std::vector<torch::Tensor> rotated;
  for (const std::string type : {"sliding_attention", "full_attention"}) {
    const auto result = rotary({"--config", config, "--layer-type", type});
    ASSERT_EQ(result.status, 0) << result.err;
    const auto out = load_safetensors(file("out")).tensors;
    const auto options = rotary_options_from_hf(config, type);
    const auto table = rotary_cos_sin(options, in["position_ids"]);
    EXPECT_TRUE(bit_equal(out["cos"], table.cos)) << type;
    EXPECT_TRUE(bit_equal(out["q"], std::get<0>(functional::rotary(in["q"], {}, table, options))))
        << type;
    rotated.push_back(out["q"]);
  }
  EXPECT_FALSE(rotated[0].equal(rotated[1])) << "each kind has frequencies of its own";
}

TEST_F(Rotary, TurnsByAPreset) {
  input();
  const auto result = rotary({"--preset", "llama", "--param", "rope_type=linear", "--param",
                              "factor=4", "--precision", "exact"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto in = load_safetensors(file("in.safetensors")).tensors;
  const auto out = load_safetensors(file("out")).tensors;
  auto options = rotary_preset("llama", 8).scaling(rotary::Linear{4.0});
  const auto table = rotary_cos_sin(options.precision(Precision::Exact), in["position_ids"]);
  EXPECT_TRUE(bit_equal(out["cos"], table.cos));
}

TEST_F(Rotary, ReadsEitherOrderOfAxesWhereTheShapeTells) {
  const auto q = torch::randn({1, 5, 3, 16});  // (B, L, H, D)
  const auto ids = torch::arange(5).unsqueeze(0);
  const auto rotated = [&](const torch::Tensor& given) {
    safetensors("in.safetensors", dict({{"position_ids", ids}, {"q", given.contiguous()}}));
    EXPECT_EQ(rotary({"--preset", "llama4"}).status, 0);
    return load_safetensors(file("out")).tensors["q"];
  };
  EXPECT_TRUE(bit_equal(rotated(q), rotated(q.transpose(1, 2)).transpose(1, 2).contiguous()));
}

// With as many heads as tokens, the shape does not determine the axes.
TEST_F(Rotary, ReadsTheOrderOfAxesThatItIsGiven) {
  const auto q = torch::randn({1, 5, 5, 16});
  const auto ids = torch::arange(5).unsqueeze(0);
  const auto rotated = [&](const torch::Tensor& given, std::vector<std::string> how) {
    safetensors("in.safetensors", dict({{"position_ids", ids}, {"q", given.contiguous()}}));
    const auto result = rotary(std::move(how));
    EXPECT_EQ(result.status, 0) << result.err;
    return load_safetensors(file("out")).tensors["q"];
  };
  for (const std::string preset : {"llama", "llama4"}) {
    const bool before = preset == "llama";
    const auto own = rotated(q, {"--preset", preset});
    const auto options = rotary_preset(preset, 16);
    const auto how = functional::RotaryFuncOptions().head_axis(options.head_axis());
    EXPECT_TRUE(bit_equal(own, std::get<0>(functional::rotary(q, {}, options, how)))) << preset;
    const auto same = rotated(q, {"--preset", preset, "--layout", before ? "bhld" : "blhd"});
    EXPECT_TRUE(bit_equal(own, same)) << preset;
    const auto other =
        rotated(q.transpose(1, 2), {"--preset", preset, "--layout", before ? "blhd" : "bhld"});
    EXPECT_TRUE(bit_equal(own, other.transpose(1, 2).contiguous())) << preset;
  }
}

TEST_F(Rotary, RefusesAnotherOrderOfAxes) {
  const auto ids = torch::arange(5).unsqueeze(0);
  const auto refused = [&](const torch::Tensor& q, std::vector<std::string> how) {
    safetensors("in.safetensors", dict({{"position_ids", ids}, {"q", q}}));
    const auto result = rotary(std::move(how));
    EXPECT_EQ(result.status, 1);
    return result.err;
  };
  EXPECT_NE(
      refused(torch::ones({1, 5, 3, 16}), {"--preset", "llama", "--layout", "bhld"})
          .find("q must have the 5 tokens of position_ids along L of (B, H, L, Dh); `--layout "
                "blhd` reads (B, L, H, Dh). Got (1, 5, 3, 16)"),
      std::string::npos);
  EXPECT_NE(refused(torch::ones({1, 3, 5, 16}), {"--preset", "llama4", "--layout", "blhd"})
                .find("`--layout bhld`"),
            std::string::npos);
  EXPECT_NE(
      refused(torch::ones({3, 5, 16}), {"--preset", "llama", "--layout", "blhd"}).find("5 tokens"),
      std::string::npos);
  EXPECT_EQ(rotary({"--preset", "llama", "--layout", "hbld"}).status, 2);
}

TEST_F(Rotary, NeedsNoQueries) {
  safetensors("in.safetensors", dict({{"position_ids", torch::arange(6).view({2, 3})}}));
  ASSERT_EQ(rotary({"--preset", "llama", "--param", "head_dim=4"}).status, 0);
  const auto out = load_safetensors(file("out")).tensors;
  EXPECT_EQ(out.size(), 2U);
  EXPECT_EQ(out["cos"].sizes(), (std::vector<int64_t>{2, 3, 4}));
}

TEST_F(Rotary, TakesAGridWithTokensBeforeIt) {
  const auto q = torch::randn({1, 2, 5 + 2 * 3, 8});
  safetensors("in.safetensors", dict({{"grid", torch::tensor({2, 3})}, {"q", q}}));
  const auto result = rotary({"--preset", "dinov3", "--param", "rope_theta=100"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto out = load_safetensors(file("out")).tensors;
  const auto options = rotary_preset("dinov3", 8).base(100.0);
  const auto table = rotary_cos_sin(options, rotary_grid(options, {2, 3}));
  EXPECT_TRUE(bit_equal(out["cos"], table.cos));
  const auto how = functional::RotaryFuncOptions().prefix_tokens(5);
  EXPECT_TRUE(bit_equal(out["q"], std::get<0>(functional::rotary(q, {}, table, options, how))));
}

TEST_F(Rotary, TakesCosAndSin) {
  const auto cos = torch::rand({2, 4, 8}), sin = torch::rand({2, 4, 8});
  const auto q = torch::randn({2, 3, 4, 8});
  safetensors("in.safetensors", dict({{"cos", cos}, {"sin", sin}, {"q", q}}));
  const auto result = rotary({"--preset", "lightglue"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto options = rotary_preset("lightglue", 8);
  const auto expected = std::get<0>(functional::rotary(q, {}, {cos, sin}, options));
  EXPECT_TRUE(bit_equal(load_safetensors(file("out")).tensors["q"], expected));
}

TEST_F(Rotary, RotatesTheValuesOfClvp) {
  const auto v = torch::randn({1, 2, 3, 40});
  safetensors(
      "in.safetensors",
      dict({{"position_ids", torch::arange(3)}, {"q", torch::randn({1, 2, 3, 40})}, {"v", v}}));
  ASSERT_EQ(rotary({"--preset", "clvp", "--param", "head_dim=32"}).status, 0);
  const auto options = rotary_preset("clvp", 32);
  EXPECT_TRUE(bit_equal(load_safetensors(file("out")).tensors["v"],
                        std::get<0>(functional::rotary(v, {}, options))));
}

TEST_F(Rotary, TakesParametersOfOtherPackages) {
  const auto ids = torch::tensor({{0, 1, 2}, {0, 3, 4}});
  safetensors("in.safetensors", dict({{"position_ids", ids}}));
  const auto result = rotary({"--preset", "flux", "--param", "axes_dim=4,6,8", "--param",
                              "head_dim=18", "--param", "rope_theta=500"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto options = rotary_preset("flux", 18).axis_dims({4, 6, 8}).base(500);
  const auto out = load_safetensors(file("out")).tensors;
  EXPECT_TRUE(bit_equal(out["cos"], rotary_cos_sin(options, ids).cos));
}

TEST_F(Rotary, RefusesWhatItDoesNotKnow) {
  input();
  const auto config = text_file("config.json", R"({"model_type": "gemma3_text"})");
  EXPECT_EQ(rotary({"--config", config}).status, 1);
  EXPECT_NE(rotary({"--config", config}).err.find("layer_type must be one of"), std::string::npos);
  EXPECT_EQ(rotary({}).status, 2);
  EXPECT_EQ(rotary({"--config", config, "--preset", "llama"}).status, 2);
  EXPECT_EQ(rotary({"--preset", "llamma"}).status, 2);
  EXPECT_NE(rotary({"--preset", "llamma"}).err.find("llama"), std::string::npos);
  safetensors("in.safetensors", dict({{"q", torch::ones({1, 1, 1, 2})}}));
  EXPECT_NE(rotary({"--preset", "llama"}).err.find("position_ids"), std::string::npos);
  safetensors("in.safetensors", dict({{"grid", torch::ones({2})}}));
  EXPECT_NE(rotary({"--preset", "dinov3", "--param", "head_dim=8"}).err.find("must be int64"),
            std::string::npos);
  EXPECT_EQ(names(), (std::vector<std::string>{"config.json", "in.safetensors"}));
}

TEST_F(Rotary, IsListedWithItsModelTypes) {
  const auto list = nlohmann::json::parse(posenc({"presets", "--rotary", "--json"}).out);
  EXPECT_EQ(list.size(), rotary_presets().size());
  EXPECT_EQ(list[0]["name"], "llama");
  const auto types = list[0]["model_types"];
  EXPECT_NE(std::find(types.begin(), types.end(), "mistral"), types.end());
  const auto text = posenc({"presets"}).out;
  EXPECT_NE(text.find("rotary llama: afmoe"), std::string::npos);
  EXPECT_EQ(list[0]["also"][0], "diffusers 0.42.1 AnimaRotaryEmbedding");
  EXPECT_NE(text.find("diffusers 0.42.1 AnimaRotaryEmbedding"), std::string::npos);
  EXPECT_NE(text.find("annotated_transformer"), std::string::npos);
  EXPECT_EQ(posenc({"presets", "--rotary"}).out.find("annotated_transformer"), std::string::npos);
}

}  // namespace
}  // namespace posenc::testing
