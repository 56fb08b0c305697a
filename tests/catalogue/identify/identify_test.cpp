#include "posenc/catalogue/identify.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "support/exhaustive.h"
#include "support/seed.h"

namespace posenc {
namespace {

bool names(const Identification& found, const std::string& name) {
  return std::find(found.presets.begin(), found.presets.end(), name) != found.presets.end();
}

std::string described(const Identification& found) {
  std::string text = found.verdict + " | " + found.options + " | " + found.shape + " |";
  for (const std::string& name : found.presets) text += " " + name;
  return text + " | max_abs " + std::to_string(found.max_abs);
}

bool takes(const Preset& preset, const std::string& name) {
  return std::any_of(preset.params.begin(), preset.params.end(),
                     [&](const PresetParam& param) { return param.name == name; });
}

struct Case {
  SinusoidOptions options;
  int64_t length;
};

// Makes a preset with about `dim` channels and 50 rows; false if it rejects the dimension.
bool make(const Preset& preset, int64_t dim, std::vector<Case>& cases) {
  PresetParams params;
  int64_t length = 50;
  if (takes(preset, "height")) {
    params.emplace("height", 7), length = 49;
    if (takes(preset, "width")) params.emplace("width", 9), length = 63;
    if (takes(preset, "depth")) params.emplace("depth", 3), length = 189;
  }
  if (takes(preset, "multires")) params.emplace("multires", (dim - 3) / 6);
  if (takes(preset, "num_bands")) params.emplace("num_bands", (dim - 1) / 2);
  try {
    cases.push_back({posenc::preset(preset.name, dim, params), length});
    return true;
  } catch (const c10::ValueError&) {
    return false;
  }
}

TEST(Identify, NamesEveryPresetAtTellingDimensions) {
  for (const Preset& preset : presets()) {
    std::vector<Case> cases;
    for (const int64_t dim : {33, 36, 38, 64}) make(preset, dim, cases);
    if (testing::exhaustive()) {
      for (const int64_t dim : {18, 20, 27, 34, 37, 48, 63, 68, 70}) make(preset, dim, cases);
    }
    EXPECT_GE(cases.size(), 1u) << preset.name;
    for (const Case& c : cases) {
      const Identification found = identify(sinusoid_table(c.options, c.length));
      EXPECT_TRUE(found.sinusoid && names(found, preset.name))
          << preset.name << " " << c.options.dim() << ": " << described(found);
      EXPECT_EQ(found.max_abs, 0.0);
    }
  }
}

TEST(Identify, NamesEveryPresetInHalfPrecision) {
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kDouble}) {
    for (const Preset& preset : presets()) {
      std::vector<Case> cases;
      for (const int64_t dim : {36, 63}) make(preset, dim, cases);
      if (testing::exhaustive()) make(preset, 48, cases);
      for (const Case& c : cases) {
        const at::Tensor table = sinusoid_table(c.options, c.length, at::TensorOptions(dtype));
        const Identification found = identify(table);
        EXPECT_TRUE(found.sinusoid && names(found, preset.name))
            << dtype << " " << preset.name << " " << c.options.dim() << ": " << described(found);
      }
    }
  }
}

TEST(Identify, ReadsEveryShape) {
  const at::Tensor table = sinusoid_table(preset("fairseq", 34), 60);
  for (const at::Tensor& shaped :
       {table, table.unsqueeze(0), table.unsqueeze(1), table.t(), table.t().contiguous(),
        table.unsqueeze(0).expand({4, 60, 34})}) {
    const Identification found = identify(shaped);
    EXPECT_TRUE(names(found, "fairseq")) << shaped.sizes() << described(found);
  }
  const auto grid = preset("detr_2d", 64, {{"height", 7}, {"width", 9}});
  const at::Tensor cells = sinusoid_table(grid, 63).view({7, 9, 64});
  for (const at::Tensor& shaped :
       {cells, cells.unsqueeze(0), cells.permute({2, 0, 1}), cells.permute({2, 0, 1}).unsqueeze(0),
        cells.permute({2, 0, 1}).unsqueeze(0).contiguous()}) {
    const Identification found = identify(shaped);
    EXPECT_TRUE(names(found, "detr_2d")) << shaped.sizes() << described(found);
    EXPECT_EQ(found.params.at("height"), "7");
    EXPECT_EQ(found.params.at("width"), "9");
  }
}

TEST(Identify, RebuildsWithTheOptionsThatItPrints) {
  const auto grid = preset("detr_2d", 256, {{"height", 14}, {"width", 14}});
  const Identification found = identify(sinusoid_table(grid, 196));
  EXPECT_EQ(found.options, "posenc::preset(\"detr_2d\", 256, {{\"height\", 14}, {\"width\", 14}})");
  EXPECT_EQ(found.length, 196);
  const at::Tensor part = sinusoid_table(preset("fairseq", 36), 99).slice(0, 2);
  EXPECT_EQ(identify(part).params.at("start"), "2");
}

TEST(Identify, FindsParameters) {
  const struct {
    const char* name;
    int64_t dim, length;
    PresetParams params;
  } cases[] = {
      {"fairseq", 36, 80, {{"padding_idx", 1}}},
      {"fairseq", 37, 80, {{"padding_idx", 0}}},
      {"m2m100", 38, 80, {{"padding_idx", 2}}},
      {"fairseq2", 36, 80, {{"legacy_pad_idx", 1}}},
      {"whisper", 68, 100, {{"max_timescale", 1000}}},
      {"hf_whisper", 68, 100, {{"max_timescale", 500000}}},
      {"x_transformers", 68, 100, {{"theta", 1000}}},
      {"keras_sine", 34, 100, {{"start_index", 5}, {"max_wavelength", 1000}}},
      {"tensor2tensor", 36, 100, {{"start_index", 3}}},
      {"xlnet", 36, 100, {{"attn_type", "uni"}}},
      {"ddpm_lucidrains", 36, 100, {{"start", 900}, {"step", 7.5}}},
      {"ddpm_lucidrains", 36, 100, {{"theta", 1000}}},
      {"diffusers_timesteps", 36, 100, {{"downscale_freq_shift", 0}, {"flip_sin_to_cos", 1}}},
      {"diffusers_timesteps", 36, 50, {{"scale", 1000}}},
      {"guided_diffusion", 36, 100, {{"start", 0.5}, {"step", 0.25}}},
      {"diffusers_1d_sincos", 36, 100, {{"start", -4}, {"step", 0.125}}},
      {"sam2_1d", 36, 100, {{"start", 3.25}}},
      {"mae_2d", 64, 196, {{"height", 14}, {"cls_token", 1}}},
      {"diffusers_2d_sincos", 64, 256, {{"height", 16}, {"width", 16}, {"base_size", 16}}},
      {"diffusers_2d_sincos",
       64,
       448,
       {{"height", 14}, {"width", 32}, {"base_size", 16}, {"interpolation_scale", 2}}},
      {"detr_2d", 64, 33 * 16, {{"height", 33}, {"width", 16}, {"normalize", 1}}},
      {"dab_detr_2d", 64, 21, {{"height", 3}, {"width", 7}, {"temperature", 10000}}},
      {"timm_2d", 64, 98, {{"height", 7}, {"width", 14}, {"temperature", 100}}},
      {"timm_2d", 64, 98, {{"height", 7}, {"width", 14}, {"interleave_sin_cos", 1}}},
      {"timm_2d", 64, 98, {{"height", 7}, {"width", 14}, {"reverse_coord", 1}}},
      {"loftr_2d", 64, 64, {{"height", 8}, {"width", 8}, {"temp_bug_fix", 0}}},
      {"moco_v3_2d", 64, 5, {{"height", 1}, {"width", 5}}},
      {"monai_2d", 64, 5, {{"height", 5}, {"width", 1}}},
      {"conditional_detr_points", 64, 100, {{"start", 0.25}, {"step", 0.00390625}}},
      {"nerf", 27, 100, {{"multires", 4}, {"start", 0}}},
      {"perceiver_fourier", 13, 100, {{"num_bands", 6}, {"max_resolution", 50}}},
  };
  for (const auto& c : cases) {
    const at::Tensor table = sinusoid_table(preset(c.name, c.dim, c.params), c.length);
    const Identification found = identify(table);
    EXPECT_TRUE(names(found, c.name)) << c.name << ": " << described(found);
    if (found.nearest != c.name) continue;
    PresetParams params;  // other parameters may give the same bits
    for (const auto& [name, value] : found.params) params.emplace(name, value);
    const at::Tensor again = sinusoid_table(preset(c.name, c.dim, params), found.length);
    EXPECT_TRUE(at::equal(again, table)) << c.name << ": " << described(found);
  }
}

TEST(Identify, ReadsPartsAndRowsInEmbeddings) {
  for (const char* name : {"annotated_transformer", "fairseq", "hf_marian", "ctrl"}) {
    const at::Tensor table = sinusoid_table(preset(name, 38), 120);
    for (const int64_t first : {1, 2, 57}) {
      const Identification found = identify(table.slice(0, first));
      EXPECT_TRUE(names(found, name)) << name << " " << described(found);
    }
    const at::Tensor token = at::randn({1, 38}) * 0.02;
    const Identification found = identify(at::cat({token, table}));
    EXPECT_TRUE(names(found, name)) << name << " " << described(found);
    EXPECT_EQ(found.leading_rows, 1);
    // Kimi K2.5's table begins with zeros and has, on some processors, the rest of ctrl's bits.
    const at::Tensor zeros_first = at::cat({at::zeros({1, 38}), table});
    const Identification padded = identify(zeros_first);
    EXPECT_TRUE(names(padded, name) ||
                (names(padded, "kimi_k25") &&
                 at::equal(sinusoid_table(preset("kimi_k25", 38), 120), zeros_first)))
        << name << " " << described(padded);
  }
  const at::Tensor middle = sinusoid_table(preset("espnet_rel", 36), 60).slice(0, 10, 90);
  EXPECT_TRUE(identify(middle).sinusoid);
}

TEST(Identify, TellsNearMissesApart) {
  const auto own = preset("annotated_transformer", 512);
  const at::Tensor table = sinusoid_table(own, 300);
  const Identification swapped =
      identify(sinusoid_table(preset("fairseq", 512).layout(sinusoid::Layout::Interleaved), 300));
  EXPECT_TRUE(swapped.sinusoid) << described(swapped);
  EXPECT_TRUE(swapped.presets.empty());
  EXPECT_NE(swapped.verdict.find("layout swapped"), std::string::npos) << described(swapped);

  const Identification learned = identify(table + at::randn({300, 512}) * 0.02);
  EXPECT_FALSE(learned.sinusoid);
  EXPECT_NE(learned.verdict.find("learned, began as"), std::string::npos) << described(learned);
  EXPECT_FALSE(learned.nearest.empty());

  const at::Tensor cells = sinusoid_table(preset("mae_2d", 768, {{"height", 14}}), 196);
  const Identification patches = identify(cells + at::randn({196, 768}) * 0.02);
  EXPECT_NE(patches.verdict.find("learned, began as"), std::string::npos) << described(patches);

  // A frequency one float apart, as MKL's kernels round it on other CPUs.
  const at::Tensor p = at::arange(300, at::kFloat).unsqueeze(1);
  at::Tensor f = at::exp(at::arange(0, 512, 2, at::kFloat) * -(std::log(10000.0) / 512));
  f = at::where(at::arange(256) % 5 == 0, f * (1 + 1.2e-7), f);
  const at::Tensor other = at::stack({at::sin(p * f), at::cos(p * f)}, 2).view({300, 512});
  const Identification rounded = identify(other);
  EXPECT_TRUE(rounded.sinusoid) << described(rounded);
  EXPECT_TRUE(rounded.presets.empty()) << described(rounded);
  EXPECT_NE(rounded.verdict.find("another CPU"), std::string::npos) << described(rounded);

  const Identification based = identify(sinusoid_table(SinusoidOptions(64).base(500000), 300));
  EXPECT_TRUE(based.sinusoid) << described(based);
  EXPECT_EQ(based.params.at("base"), "500000");

  EXPECT_EQ(identify(table).nearest, "vaswani2017");
  EXPECT_FALSE(names(identify(table), "notebook_000"));  // its former name

  // Shift 0 against 1.
  EXPECT_FALSE(names(identify(table), "fairseq"));
  EXPECT_FALSE(names(identify(sinusoid_table(preset("fairseq", 512), 300)), "hf_marian"));
}

// Tensors that are not sinusoids.
at::Tensor impostor(int kind, int64_t rows, int64_t dim) {
  const at::Tensor p = at::arange(rows, at::kFloat).unsqueeze(1);
  const at::Tensor f = at::pow(10000.0, -at::arange(0, dim, 2, at::kFloat) / dim);
  const at::Tensor angle = p * f;
  switch (kind) {
    case 0: return at::randn({rows, dim});
    case 1: return at::randn({rows, dim}) * 0.02;
    case 2: return at::rand({rows, dim});
    case 3: return at::rand({rows, dim}) * 2 - 1;
    case 4: return at::zeros({rows, dim});
    case 5: return at::ones({rows, dim});
    case 6: return at::eye(rows, dim);
    case 7: return at::cat({angle.cos(), angle.cos()}, 1);  // rotary caches
    case 8: return at::cat({angle.sin(), angle.sin()}, 1);
    case 9: return angle.cos().repeat_interleave(2, 1);
    case 10: return angle.sin().repeat_interleave(2, 1);
    case 11: return f;
    case 12: return at::tril(at::ones({rows, rows}));
    case 13: return at::triu(at::full({rows, rows}, -1e9), 1);
    case 14: return at::randint(0, 2, {rows, dim}).to(at::kFloat);
    case 15: return at::randint(0, 2, {rows, dim}).to(at::kFloat) * 2 - 1;
    case 16: {
      const at::Tensor x = at::randn({rows, dim});
      return x / x.norm(2, 1, true);
    }
    case 17: {
      const at::Tensor x = at::randn({rows, dim});
      return x / x.norm(2, 1, true) * std::sqrt(dim / 2.0);
    }
    case 18: return at::tensor({0.f, 1.f}).repeat({rows, dim / 2});
    case 19: return p.expand({rows, dim}) / rows;
    case 20: return at::full({rows, dim}, 0.5);
    case 21: return at::randn({rows, dim}).tanh();
    case 22: return at::randn({rows, dim}).sin();
    case 23: {  // random phases: every pair has norm 1
      const at::Tensor a = at::rand({rows, dim / 2}) * 6.2831853;
      return at::cat({a.sin(), a.cos()}, 1);
    }
    case 24: {  // not monotonic; a few, modulo 2 pi, always fit a recipe
      at::Tensor w = std::get<0>(at::rand({std::max<int64_t>(dim / 2, 8)}).sort()) * 3;
      const at::Tensor a = p * w.roll(2);
      return at::cat({a.sin(), a.cos()}, 1);
    }
    case 25: return at::full({rows, dim}, std::numeric_limits<float>::quiet_NaN());
    case 26: return at::randn({rows, dim, 3, 3}) * 0.05;
    case 27: return at::rand({rows, dim, 1}) - 0.5;
    case 28: return at::bartlett_window(rows).unsqueeze(1).expand({rows, dim});
    case 29: return at::randn({rows, 1}).expand({rows, dim});
    case 30: return at::linspace(-1, 1, rows * dim).view({rows, dim});
    case 31: return at::one_hot(at::randint(0, dim, {rows}), dim).to(at::kFloat);
    case 32: return at::randn({dim});
    case 33: return at::rand({2, dim});
    case 34: return at::rand({rows, 3});
    case 35: return std::get<0>(at::linalg_qr(at::randn({dim, dim})));
    case 36: return angle;
    case 37: return at::rand({rows, dim}).round() * 0.7071f;
    case 38: return at::stack({angle.cos(), angle.sin()}, 2);  // (L, D/2, 2)
    default: return at::arange(rows * dim).view({rows, dim});  // int64
  }
}

TEST(Identify, RaisesNoFalseAlarm) {
  for (int seed = 0; seed < 25; ++seed) {
    at::manual_seed(testing::seed(seed));
    for (int kind = 0; kind < 40; ++kind) {
      const int64_t rows = std::vector<int64_t>{3, 4, 9, 48, 200}[seed % 5];
      const int64_t dim = std::vector<int64_t>{4, 6, 36, 128, 10}[seed / 5];
      at::Tensor tensor = impostor(kind, rows, dim);
      if (seed % 3 == 1 && tensor.is_floating_point()) tensor = tensor.to(at::kBFloat16);
      if (seed % 3 == 2 && tensor.is_floating_point()) tensor = tensor.to(at::kHalf);
      const Identification found = identify(tensor);
      EXPECT_FALSE(found.sinusoid) << kind << " " << tensor.sizes() << " " << described(found);
      EXPECT_EQ(found.verdict.find("learned"), std::string::npos)
          << kind << " " << tensor.sizes() << " " << described(found);
    }
  }
}

// GPT-J's `embed_positions` has the bits of nemo_tts, but is used for rotation, not added.
TEST(Identify, KnowsARotaryCacheByItsPlace) {
  const at::Tensor table = sinusoid_table(preset("nemo_tts", 64), 40);
  for (const char* name : {"transformer.h.0.attn.embed_positions", "h.1.attention.cache",
                           "model.rotary_emb.table", "layers.0.RotaryEmbedding.sin_cos"}) {
    const Identification found = identify(table, name);
    EXPECT_FALSE(found.sinusoid) << name;
    EXPECT_TRUE(found.presets.empty()) << name;
    EXPECT_EQ(found.nearest, "nemo_tts") << name;
  }
  for (const char* name : {"pe", "encoder.embed_positions.weight", "attn", "attention_pos.pe"}) {
    EXPECT_TRUE(identify(table, name).sinusoid) << name;
  }
}

TEST(Identify, RejectsOnlyAnUndefinedTensor) {
  EXPECT_THROW(identify(at::Tensor()), c10::ValueError);
  EXPECT_FALSE(identify(at::empty({0, 64})).sinusoid);
  EXPECT_FALSE(identify(at::scalar_tensor(1.0)).sinusoid);
  EXPECT_FALSE(identify(at::ones({8, 8}, at::kComplexFloat)).sinusoid);
  EXPECT_FALSE(identify(at::eye(8).to_sparse()).sinusoid);
  EXPECT_FALSE(identify(at::ones({2, 2, 2, 2, 2, 2})).sinusoid);
}

}  // namespace
}  // namespace posenc
