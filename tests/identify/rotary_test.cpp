// identify_rotary() against files that Python writes from transformers' own classes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/python.h"
#include "posenc/identify.h"
#include "posenc/io/load.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/state_dict.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/rotary_preset.h"
#include "posenc/sinusoid/table.h"
#include "support/seed.h"

namespace posenc::testing {
namespace {

// `rope` is a configuration's rope_parameters; each class is the system's own.
const char* const kScript = R"(
import torch
from transformers import CohereConfig, DeepseekV2Config, GPTNeoXConfig, GptOssConfig, Llama4TextConfig, LlamaConfig
from transformers.models.cohere.modeling_cohere import CohereRotaryEmbedding
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2RotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssRotaryEmbedding
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.hunyuan_v1_dense.configuration_hunyuan_v1_dense import HunYuanDenseV1Config
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.llama4.modeling_llama4 import Llama4TextRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
torch.set_num_threads(1)
saved = {}

def make(kind, config, rope, dim, most=4096, **more):
    rope.setdefault('rope_type', 'default')
    rope.setdefault('rope_theta', 10000.0)
    return kind(config(head_dim=dim, max_position_embeddings=most, rope_parameters=rope, **more))

def save(name, rotary, length, dtype=torch.float32):
    out = rotary(torch.zeros(1, dtype=dtype), torch.arange(length)[None])
    if not isinstance(out, tuple):
        saved[f'{name}.freqs_cis'] = out.contiguous()
    else:
        saved[f'{name}.cos'], saved[f'{name}.sin'] = out[0].contiguous(), out[1].contiguous()
    saved[f'{name}.inv_freq'] = rotary.inv_freq.clone()

def llama(name, rope, dim, length, dtype=torch.float32, **more):
    save(name, make(LlamaRotaryEmbedding, LlamaConfig, rope, dim, **more), length, dtype)

llama('plain', {'rope_theta': 500000.0}, 64, 300)
llama('short', {}, 128, 16)
llama('half', {'rope_theta': 1000000.0}, 128, 500, torch.bfloat16)
llama('float16', {}, 80, 500, torch.float16)
llama('linear', {'rope_type': 'linear', 'factor': 4.0}, 64, 300)
llama('linear_half', {'rope_type': 'linear', 'factor': 2.5, 'rope_theta': 500000.0}, 128, 300, torch.bfloat16)
llama('llama3', {'rope_type': 'llama3', 'rope_theta': 500000.0, 'factor': 8.0, 'low_freq_factor': 1.0,
                 'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192}, 128, 300)
llama('llama32', {'rope_type': 'llama3', 'rope_theta': 500000.0, 'factor': 32.0, 'low_freq_factor': 1.0,
                  'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192}, 64, 300, torch.bfloat16)
llama('yarn', {'rope_type': 'yarn', 'rope_theta': 1000000.0, 'factor': 4.0,
               'original_max_position_embeddings': 32768}, 128, 300)
llama('yarn_half', {'rope_type': 'yarn', 'factor': 16.0, 'original_max_position_embeddings': 4096}, 128, 300, torch.bfloat16)
llama('yarn_mscale', {'rope_type': 'yarn', 'factor': 40.0, 'original_max_position_embeddings': 4096,
                      'mscale': 1.0, 'mscale_all_dim': 1.0}, 64, 300)
llama('dynamic', {'rope_type': 'dynamic', 'factor': 4.0}, 64, 600, most=256)
factors = [round(1 + 0.05 * i, 2) for i in range(32)]
llama('longrope', {'rope_type': 'longrope', 'factor': 32.0, 'short_factor': factors, 'long_factor': factors,
                   'original_max_position_embeddings': 4096}, 64, 300)
llama('proportional', {'rope_type': 'proportional', 'rope_theta': 1000000.0, 'partial_rotary_factor': 0.25}, 64, 300)
save('pairs', make(CohereRotaryEmbedding, CohereConfig, {'rope_theta': 75000.0}, 64), 300)
save('single', make(GptOssRotaryEmbedding, GptOssConfig, {'rope_type': 'yarn', 'rope_theta': 150000.0, 'factor': 32.0,
     'beta_fast': 32.0, 'beta_slow': 1.0, 'truncate': False, 'original_max_position_embeddings': 4096}, 64), 300)
save('alpha', make(HunYuanDenseV1RotaryEmbedding, HunYuanDenseV1Config,
                   {'rope_type': 'dynamic', 'alpha': 1000.0, 'factor': 1.0}, 128), 300)
odd = GPTNeoXConfig(hidden_size=128, num_attention_heads=2, rope_parameters={
    'rope_type': 'default', 'rope_theta': 10000.0, 'partial_rotary_factor': 0.334})
save('odd', GPTNeoXRotaryEmbedding(odd), 300)
save('complex', make(DeepseekV2RotaryEmbedding, DeepseekV2Config, {}, 64, qk_rope_head_dim=64), 300)
save('llama4', make(Llama4TextRotaryEmbedding, Llama4TextConfig, {'rope_type': 'llama3', 'rope_theta': 500000.0,
     'factor': 16.0, 'low_freq_factor': 1.0, 'high_freq_factor': 1.5, 'original_max_position_embeddings': 8192}, 128), 300)
plain = make(LlamaRotaryEmbedding, LlamaConfig, {'rope_theta': 500000.0}, 64)
angles = torch.outer(torch.arange(200).float(), plain.inv_freq)
saved['tune.rope.cache'] = torch.stack([angles.cos(), angles.sin()], -1)
saved['vllm.rotary_emb.cos_sin_cache'] = torch.cat([angles.cos(), angles.sin()], -1)
saved['gptj.rotary.embed_positions'] = create_sinusoidal_positions(200, 64)
saved['w2v.rotary.cos_sin'] = torch.stack([torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()])[:, :, None, None]
saved['cast.inv_freq'] = plain.to(torch.bfloat16).inv_freq
saved['batch.cos'] = saved['plain.cos'].expand(3, -1, -1).contiguous()
torch.save(saved, 'rotary.pt')
)";

class IdentifyRotary : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TempDir dir;
    ASSERT_TRUE(run_python(dir, kScript));
    saved_ = new StateDict(load_tensors(dir / "rotary.pt"));
  }
  static void TearDownTestSuite() { delete saved_; }

  static RotaryIdentification found(const std::string& name) {
    return identify_rotary((*saved_)[name], name);
  }

  static inline StateDict* saved_ = nullptr;
};

std::string described(const RotaryIdentification& found) {
  std::string text = found.verdict + " | " + found.options + " | max_abs " +
                     std::to_string(found.max_abs) + " | " + found.layout;
  for (const auto& [key, value] : found.params) text += " " + key + "=" + value;
  return text;
}

using Params = std::map<std::string, std::string>;
struct Case {
  std::string name, layout;
  Params params;
};

const Case kCases[] = {
    {"plain", "halves", {{"rope_theta", "500000"}, {"rope_type", "default"}, {"head_dim", "64"}}},
    {"short", "halves", {{"rope_theta", "10000"}, {"head_dim", "128"}}},
    {"half", "halves", {{"rope_theta", "1000000"}, {"rope_type", "default"}}},
    {"float16", "halves", {{"rope_theta", "10000"}, {"head_dim", "80"}}},
    {"linear", "halves", {{"rope_theta", "10000"}, {"rope_type", "linear"}, {"factor", "4"}}},
    {"linear_half", "halves", {{"rope_theta", "500000"}, {"factor", "2.5"}}},
    {"llama3",
     "halves",
     {{"rope_theta", "500000"},
      {"rope_type", "llama3"},
      {"factor", "8"},
      {"low_freq_factor", "1"},
      {"high_freq_factor", "4"},
      {"original_max_position_embeddings", "8192"}}},
    {"llama32", "halves", {{"rope_type", "llama3"}, {"factor", "32"}}},
    {"yarn",
     "halves",
     {{"rope_theta", "1000000"},
      {"rope_type", "yarn"},
      {"factor", "4"},
      {"original_max_position_embeddings", "32768"}}},
    {"yarn_half", "halves", {{"rope_type", "yarn"}, {"factor", "16"}}},
    {"yarn_mscale",
     "halves",
     {{"rope_type", "yarn"}, {"factor", "40"}, {"original_max_position_embeddings", "4096"}}},
    {"proportional",
     "halves",
     {{"rope_type", "proportional"}, {"rope_theta", "1000000"}, {"partial_rotary_factor", "0.25"}}},
    {"pairs", "pairs", {{"rope_theta", "75000"}}},
    {"single",
     "single",
     {{"rope_type", "yarn"},
      {"rope_theta", "150000"},
      {"factor", "32"},
      {"truncate", "false"},
      {"original_max_position_embeddings", "4096"}}},
    {"alpha", "halves", {{"rope_type", "dynamic"}, {"alpha", "1000"}, {"rope_theta", "10000"}}},
    {"odd", "halves", {{"head_dim", "21"}, {"rope_theta", "10000"}}},
};

TEST_F(IdentifyRotary, FindsTheParametersOfTransformersClasses) {
  for (const Case& c : kCases) {
    for (const std::string part : {"cos", "sin", "inv_freq"}) {
      const RotaryIdentification got = found(c.name + "." + part);
      SCOPED_TRACE(c.name + "." + part + ": " + described(got));
      EXPECT_TRUE(got.rotary);
      EXPECT_EQ(got.holds, part);
      EXPECT_FALSE(got.presets.empty()) << "no equal bits";
      EXPECT_EQ(got.layout, part == "inv_freq" ? "" : c.layout);
      EXPECT_NE(got.verdict.find("cannot be determined"), std::string::npos);
      for (const auto& [key, value] : c.params) {
        ASSERT_EQ(got.params.count(key), 1U) << key;
        EXPECT_EQ(got.params.at(key), value) << key;
      }
    }
  }
}

TEST_F(IdentifyRotary, FindsDynamicScalingByTheLengthOfTheTable) {
  for (const std::string part : {"cos", "sin"}) {
    const RotaryIdentification got = found("dynamic." + part);
    SCOPED_TRACE(described(got));
    EXPECT_FALSE(got.presets.empty());
    EXPECT_EQ(got.params.at("rope_type"), "dynamic");
    EXPECT_EQ(got.params.at("factor"), "4");
    EXPECT_EQ(got.params.at("max_position_embeddings"), "256");
  }
}

// Cosines of small angles do not determine the factors of low frequencies.
TEST_F(IdentifyRotary, FindsLongRopesFactorsWhereTheyShow) {
  for (const std::string part : {"sin", "inv_freq"}) {
    const RotaryIdentification got = found("longrope." + part);
    SCOPED_TRACE(described(got));
    EXPECT_EQ(got.presets.empty(), part == "sin");  // whose factor 1.19 is known to a few bits only
    ASSERT_EQ(got.params.count("short_factor"), 1U);
    EXPECT_EQ(got.params.at("rope_type"), "longrope");
    EXPECT_EQ(got.params.at("rope_theta"), "10000");
    EXPECT_EQ(got.params.at("short_factor").substr(0, 15), "1,1.05,1.1,1.15");
  }
  const RotaryIdentification cos = found("longrope.cos");
  EXPECT_TRUE(cos.rotary && cos.params.empty()) << described(cos);
  EXPECT_NE(cos.verdict.find("no known scaling"), std::string::npos);
}

TEST_F(IdentifyRotary, ReadsComplexAndCombinedCaches) {
  const struct {
    const char *name, *holds, *layout, *nearest, *base;
    bool equal;
  } cases[] = {
      {"complex.freqs_cis", "freqs_cis", "complex", "deepseek_v2", "10000", true},
      {"llama4.freqs_cis", "freqs_cis", "complex", "deepseek_v2", "500000", true},
      {"tune.rope.cache", "cos_sin", "single", "gpt_oss", "500000", true},
      {"vllm.rotary_emb.cos_sin_cache", "cos_sin", "single", "gpt_oss", "500000", true},
      {"gptj.rotary.embed_positions", "sin_cos", "single", "gpt_oss", "10000", true},
      {"w2v.rotary.cos_sin", "cos_sin", "halves", "llama", "500000", true},
      {"cast.inv_freq", "inv_freq", "", "llama", "500000", true},
      {"batch.cos", "cos", "halves", "llama", "500000", true},
  };
  for (const auto& c : cases) {
    const RotaryIdentification got = found(c.name);
    SCOPED_TRACE(std::string(c.name) + ": " + described(got));
    EXPECT_TRUE(got.rotary);
    EXPECT_EQ(got.holds, c.holds);
    EXPECT_EQ(got.layout, c.layout);
    EXPECT_EQ(got.nearest, c.nearest);
    ASSERT_EQ(got.params.count("rope_theta"), 1U);
    EXPECT_EQ(got.params.at("rope_theta"), c.base);
    EXPECT_EQ(!got.presets.empty(), c.equal);
  }
  EXPECT_EQ(found("llama4.freqs_cis").params.at("high_freq_factor"), "1.5");
}

// Shapes that only a name makes rotary.
TEST_F(IdentifyRotary, SidesAndFrequenciesNeedTheirName) {
  EXPECT_FALSE(identify_rotary((*saved_)["vllm.rotary_emb.cos_sin_cache"], "pe").rotary);
  EXPECT_FALSE(identify_rotary((*saved_)["plain.inv_freq"]).rotary);
  EXPECT_TRUE(identify_rotary((*saved_)["plain.cos"]).rotary);
}

TEST_F(IdentifyRotary, AnotherCpusBitsAreNear) {
  const at::Tensor f = (*saved_)["plain.inv_freq"].to(at::kDouble);
  const at::Tensor angles = at::outer(at::arange(300, at::kDouble), f);
  const RotaryIdentification got =
      identify_rotary(at::cat({angles, angles}, 1).cos().to(at::kFloat));
  EXPECT_TRUE(got.rotary);
  EXPECT_TRUE(got.presets.empty());
  EXPECT_EQ(got.nearest, "llama");
  EXPECT_EQ(got.params.at("rope_theta"), "500000");
  EXPECT_GT(got.max_ulp, 0);
  EXPECT_NE(got.verdict.find("rounded as on another CPU"), std::string::npos) << got.verdict;
}

TEST_F(IdentifyRotary, TablesOfNoKnownScalingAreNamedAsThat) {
  const at::Tensor f =
      at::pow(0.83, at::arange(32, at::kDouble)) *
      (1 - 0.3 * at::sin(at::arange(32, at::kDouble)).abs() * at::linspace(0, 1, 32, at::kDouble));
  const at::Tensor sorted = std::get<0>(f.sort(0, /*descending=*/true));
  const RotaryIdentification got =
      identify_rotary(at::outer(at::arange(200, at::kDouble), sorted).cos().to(at::kFloat));
  EXPECT_TRUE(got.rotary) << got.verdict;
  EXPECT_TRUE(got.params.empty());
  EXPECT_NE(got.verdict.find("no known scaling"), std::string::npos);
}

// The C++ that it prints rebuilds the table.
TEST_F(IdentifyRotary, PrintsOptionsThatRebuild) {
  EXPECT_EQ(found("plain.cos").options, "posenc::rotary_preset(\"llama\", 64).base(500000)");
  EXPECT_EQ(found("llama3.cos").options,
            "posenc::rotary_preset(\"llama\", 128).base(500000).scaling("
            "posenc::rotary::Llama3{8, 1, 4, 8192})");
  const auto options =
      rotary_preset("llama", 128).base(500000).scaling(posenc::rotary::Llama3{8, 1, 4, 8192});
  const auto table = rotary_cos_sin(options, at::arange(300));
  EXPECT_TRUE(at::equal(table.cos, (*saved_)["llama3.cos"][0]));
}

TEST(IdentifyNoRotary, OtherTensorsAreNone) {
  at::manual_seed(seed(5));
  const at::Tensor positions = at::arange(64, at::kFloat);
  at::Tensor padded = at::randn({50, 32});
  padded[0].zero_();
  at::Tensor dct = (at::outer(positions, positions.slice(0, 0, 32) + 0.5F) * (M_PI / 64)).cos();
  std::map<std::string, at::Tensor> others = {
      {"random.rope", at::randn({60, 64})},
      {"ones.rotary", at::ones({40, 32})},
      {"zeros.rotary", at::zeros({40, 32})},
      {"norm.freq", at::ones({64})},
      {"embedding.rope.weight", padded},
      {"mask", at::ones({40, 40}).tril()},
      {"dct", dct},
      {"dft.real", (at::outer(positions, positions) * (2 * M_PI / 64)).cos()},
      {"dft.imag", (at::outer(positions, positions) * (2 * M_PI / 64)).sin()},
      {"hann", at::hann_window(64).unsqueeze(0).expand({8, 64}).contiguous()},
      {"slopes.freq.up", at::pow(0.5, at::arange(8, at::kFloat)).flip(0).contiguous()},
      {"linspace.freq", at::linspace(1, 0, 32)},
      {"ids", at::arange(64)},
      {"nan.rotary", at::full({20, 16}, NAN)},
      {"small.rotary", at::ones({2, 2})},
      {"complex", at::complex(at::randn({20, 8}), at::randn({20, 8}))},
      {"noisy.cos", at::outer(positions, at::pow(0.8, positions)).cos() +
                        0.05 * at::randn({64, 64}) * (positions.unsqueeze(1) > 0)},
  };
  for (const Preset& preset : presets()) {
    try {
      others["table." + preset.name] = sinusoid_table(posenc::preset(preset.name, 64), 49);
    } catch (const c10::ValueError&) {  // needs parameters
    }
  }
  for (const auto& [name, tensor] : others) {
    const RotaryIdentification got = identify_rotary(tensor, name);
    EXPECT_FALSE(got.rotary) << name << ": " << described(got);
    EXPECT_EQ(got.verdict, "not a rotary embedding");
  }
  EXPECT_THROW(identify_rotary({}), c10::ValueError);
}

}  // namespace
}  // namespace posenc::testing
