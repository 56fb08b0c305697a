// The rotary embeddings of packages other than transformers, computed by the packages themselves
// (tools/zoo/rotary_fixtures.py), possibly on another machine.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "posenc/models/rotary_config.h"
#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc {
namespace {

using Json = nlohmann::json;
using posenc::testing::bit_equal;
using posenc::testing::within_foreign;

// In some packages, cos and sin have additional axes of size 1 for broadcasting.
at::Tensor as_shaped(const at::Tensor& t, const at::Tensor& like) {
  return t.numel() == like.numel() ? t.reshape(like.sizes()) : t;
}

// The largest magnitude of an angle: the error of float32 angles grows with it.
double farthest(const RotaryOptions& options, const at::Tensor& ids) {
  const at::Tensor f = rotary_frequencies(options).inv_freq;
  const bool divides = options.frequency() == rotary::Frequency::PowerDivisor;
  const double most = divides ? 1.0 / f.min().item<double>() : f.max().item<double>();
  return std::max(1.0, ids.abs().max().item<double>() * options.position_scale() * most);
}

class RotaryFixture : public ::testing::TestWithParam<std::string> {
 protected:
  void check(const RotaryOptions& options, const StateDict& tensors, const std::string& prefix) {
    const auto named = [&](const char* name) { return tensors[prefix + name]; };
    const at::Tensor q = named(".q"), k = named(".k");
    RotaryCosSin table{named(".cos"), named(".sin")};
    if (tensors.contains(prefix + ".position_ids")) {
      const at::Tensor ids = named(".position_ids");
      const RotaryCosSin ours = rotary_cos_sin(options, ids, q.scalar_type());
      table.cos = as_shaped(table.cos, ours.cos);
      table.sin = as_shaped(table.sin, ours.sin);
      table.scale = ours.scale;
      EXPECT_TRUE(within_foreign(farthest(options, ids), ours.cos, table.cos));
      EXPECT_TRUE(within_foreign(farthest(options, ids), ours.sin, table.sin));
    }
    const auto how = functional::RotaryFuncOptions().head_axis(options.head_axis());
    const auto [rotated_q, rotated_k] = functional::rotary(q, k, table, options, how);
    // The rounding of the complex product, of addcmul() and of xPos' powers depends on the CPU, and
    // may change a bfloat16 result.
    if (options.arithmetic() == rotary::Arithmetic::Complex ||
        options.arithmetic() == rotary::Arithmetic::Addcmul || table.scale.defined()) {
      const double size = q.scalar_type() == at::kBFloat16 ? 32768.0 : 8.0;
      const auto near = [&](const at::Tensor& got, const at::Tensor& expected) {
        return within_foreign(size, got.to(at::kFloat), expected.to(at::kFloat));
      };
      EXPECT_TRUE(near(rotated_q, named(".rotated_q")));
      EXPECT_TRUE(near(rotated_k, named(".rotated_k")));
      return;
    }
    EXPECT_TRUE(bit_equal(rotated_q, named(".rotated_q")));
    EXPECT_TRUE(bit_equal(rotated_k, named(".rotated_k")));
  }
};

TEST_P(RotaryFixture, IsThePackagesOwn) {
  const auto path =
      std::filesystem::path(POSENC_FIXTURES_DIR) / "rotary" / (GetParam() + ".safetensors");
  const SafetensorsFile file = load_safetensors(path.string());
  const Json cases = Json::parse(file.metadata.at("cases"));
  ASSERT_EQ(cases.size(), 2U);
  for (std::size_t number = 0; number < cases.size(); ++number) {
    SCOPED_TRACE(cases[number].dump());
    PresetParams params;
    for (const auto& [name, value] : cases[number].items()) {
      params.emplace(name, value.get<std::string>());
    }
    check(rotary_options_from_params(GetParam(), params), file.tensors, std::to_string(number));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const RotaryPreset& preset : rotary_presets()) {
    // Those of transformers are compared with its classes by the differential tests.
    if (preset.source.rfind("transformers ", 0) != 0) names.push_back(preset.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, RotaryFixture, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

RotaryOptions of(const char* preset, const PresetParams& params) {
  return rotary_options_from_params(preset, params);
}

TEST(RotaryPackages, DeriveTheirAxesFromTheWidth) {
  using Dims = std::vector<int64_t>;
  EXPECT_EQ(rotary_preset("flux", 128).axis_dims(), (Dims{16, 56, 56}));
  EXPECT_EQ(rotary_preset("z_image", 128).axis_dims(), (Dims{32, 48, 48}));
  EXPECT_EQ(rotary_preset("flux", 96).axis_dims(), Dims());  // a model's own: equal parts
  EXPECT_EQ(rotary_preset("wan", 128).axis_dims(), (Dims{44, 42, 42}));
  EXPECT_EQ(rotary_preset("ltx", 64).axis_dims(), (Dims{20, 20, 20}));
  EXPECT_EQ(rotary_preset("ltx2_vae", 64).axis_dims(), (Dims{16, 24, 24}));
  EXPECT_EQ(rotary_preset("ltx2_vae", 40).axis_dims(), (Dims{8, 16, 16}));  // 10 leaves odd halves
  const auto cosmos = rotary_preset("cosmos", 128);
  EXPECT_EQ(cosmos.axis_dims(), (Dims{44, 42, 42}));
  EXPECT_EQ(cosmos.axis_bases()[0], 10000.0 * std::pow(2.0, 44.0 / 42.0));
  EXPECT_EQ(cosmos.axis_bases()[1], 10000.0);
  EXPECT_EQ(of("cosmos", {{"head_dim", 128}}).axis_bases(), cosmos.axis_bases());
  EXPECT_EQ(of("hunyuan_video", {{"head_dim", 128}}).base(), 256.0);
}

TEST(RotaryPackages, HaveTheParametersOfTheirClasses) {
  const auto pixels = of("timm_cat", {{"head_dim", 64}, {"in_pixels", "true"}, {"max_res", 512}});
  EXPECT_EQ(pixels.frequency(), rotary::Frequency::LogPixelBands);
  EXPECT_EQ(pixels.base(), 512.0);
  EXPECT_EQ(of("timm_dinov3", {{"head_dim", 64}, {"rotate_half", "false"}}).pairing(),
            rotary::Pairing::Adjacent);
  const auto audio = of("ltx2", {{"head_dim", 66}, {"num_axes", 1}});
  EXPECT_EQ(audio.axis_dims(), std::vector<int64_t>{66});
  EXPECT_EQ(of("timm_mrope", {{"head_dim", 64}, {"mrope_section", "0,3,4"}}).sections(),
            (std::vector<int64_t>{0, 3, 4}));
  const auto refusal = [](const char* preset, const PresetParams& params) {
    return posenc::testing::message_of([&] { of(preset, params); });
  };
  EXPECT_EQ(refusal("ltx2", {{"head_dim", 64}, {"num_axes", 33}}),
            "[rotary_options_from_params] num_axes must lie in [1, head_dim / 2], head_dim 64. Got "
            "33");
  EXPECT_EQ(refusal("kandinsky6", {{"head_dim", 64}, {"scale_factor", "1,2"}}),
            "[rotary_options_from_params] scale_factor must be a number for each axis. Got [1,2]");
  EXPECT_EQ(
      refusal("ltx2_split", {{"head_dim", 64}, {"num_attention_heads", 5}}),
      "[rotary_options_from_params] `ltx2_split`: [rotary] joined_heads must be positive, and "
      "dim = 64 a multiple of two channels for each. Got 5");
  EXPECT_EQ(refusal("llama", {{"head_dim", 64}, {"axes_dim", "16,56,56"}}).substr(0, 72),
            "[rotary_options_from_params] there is no parameter `axes_dim`; the neare");
  EXPECT_EQ(refusal("flux", {{"head_dim", 64}, {"axes_dim", 64}}),
            "[rotary_options_from_params] axes_dim must be a list of integers. Got 64");
  EXPECT_EQ(refusal("flux", {{"head_dim", 64}, {"axes_dim", "16,56,56"}}),
            "[rotary_options_from_params] axes_dim must be numbers that sum to head_dim, 64. Got "
            "[16,56,56]");
  EXPECT_EQ(refusal("cosmos", {{"head_dim", 64}, {"rope_scale", "2,1"}}),
            "[rotary_options_from_params] rope_scale must be a number for each axis. Got [2,1]");
  EXPECT_EQ(refusal("timm_cat", {{"head_dim", 64}, {"in_pixels", 1}}),
            "[rotary_options_from_params] in_pixels must be true or false. Got 1");
  EXPECT_EQ(
      refusal("x_transformers", {{"head_dim", 64}, {"interpolation_factor", 0}}),
      "[rotary_options_from_params] `x_transformers`: [rotary] angle_divisor must be positive "
      "and finite. Got 0");
}

}  // namespace
}  // namespace posenc
