#include "posenc/positions/sinusoid/preset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "posenc/positions/sinusoid/table.h"
#include "support/compare.h"
#include "support/presets.h"
#include "support/threads.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::case_of;
using testing::Threads;

// Runs `body` on every preset, naming it in failures.
template <typename Body>
void each(const Body& body) {
  for (const Preset& entry : presets()) {
    SCOPED_TRACE(entry.name);
    body(entry);
  }
}

TEST(Presets, HaveNamesOfTheirOwnAndASource) {
  std::set<std::string> seen, recipes, systems;
  std::string last;
  for (const Preset& entry : presets()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(seen.insert(entry.name).second);
    EXPECT_FALSE(entry.source.empty());
    EXPECT_FALSE(entry.storage.empty());
    for (const std::string& system : entry.also) {
      EXPECT_TRUE(systems.insert(system).second) << system;
    }
    for (const PresetParam& param : entry.params) EXPECT_FALSE(param.meaning.empty()) << param.name;
    // presets with the same recipe are adjacent
    if (entry.recipe != last) {
      EXPECT_TRUE(recipes.insert(entry.recipe).second) << entry.recipe;
    }
    last = entry.recipe;
  }
  EXPECT_GE(seen.size(), 121u);
  EXPECT_EQ(&find_preset("xlnet"), &find_preset("xlnet"));
}

TEST(Presets, KeepTheirFormerNames) {
  EXPECT_EQ(&find_preset("notebook_000"), &find_preset("vaswani2017"));
  EXPECT_EQ(find_preset("vaswani2017").former_name, "notebook_000");
  EXPECT_EQ(preset("notebook_000", 18), SinusoidOptions(18));
  EXPECT_ERROR(preset("notebook_000", 7), c10::ValueError,
               "`vaswani2017`: dim must be even. Got 7");
  for (const Preset& entry : presets()) {
    EXPECT_NE(entry.name, "notebook_000");
    EXPECT_TRUE(entry.former_name.empty() || &find_preset(entry.former_name) == &entry);
  }
}

// Widths at which similar recipes differ in bits; a preset that does not support one throws.
TEST(EveryPreset, MakesATableAtDistinguishingWidths) {
  each([](const Preset& entry) {
    int made = 0;
    for (const int64_t dim : {18, 20, 34, 36, 38, 48, 68, 70, 19, 35, 63, 129}) {
      SCOPED_TRACE(dim);
      const auto one = case_of(entry, dim);
      if (!one) continue;
      const auto table = sinusoid_table(one->options, one->length);
      EXPECT_EQ(table.sizes(), (std::vector<int64_t>{one->options.row_count(one->length),
                                                     one->options.channels()}));
      EXPECT_EQ(table.scalar_type(), torch::kFloat);
      EXPECT_TRUE(table.isfinite().all().item<bool>());
      EXPECT_GT(table.abs().max().item<double>(), 0.0);
      ++made;
    }
    EXPECT_GE(made, 1);
  });
}

TEST(EveryPreset, HasOneThreadsBits) {
  each([](const Preset& entry) {
    auto chosen = case_of(entry, 130, 700);
    for (const int64_t dim : {192, 63, 129}) {
      if (!chosen) chosen = case_of(entry, dim, 700);
    }
    ASSERT_TRUE(chosen);
    const auto table = [&](int count) {
      Threads threads(count);
      return sinusoid_table(chosen->options, chosen->length);
    };
    const auto first = table(1);
    for (const int count : {2, 3, 4}) EXPECT_TRUE(bit_equal(table(count), first)) << count;
  });
}

TEST(EveryPreset, SharesOptionsWithItsRecipe) {
  const Preset* first = nullptr;
  each([&](const Preset& entry) {
    if (!first || first->recipe != entry.recipe) first = &entry;
    for (const int64_t dim : {36, 48}) {
      const auto mine = case_of(entry, dim), theirs = case_of(*first, dim);
      ASSERT_EQ(mine.has_value(), theirs.has_value());
      if (mine) {
        EXPECT_EQ(mine->options, theirs->options);
      }
    }
  });
}

TEST(EveryPreset, ConvertsWithoutARoundingTooMany) {
  each([](const Preset& entry) {
    for (const int64_t dim : {36, 48}) {
      const auto one = case_of(entry, dim);
      if (!one) continue;
      const auto table = sinusoid_table(one->options, one->length);
      const auto half = convert_table(one->options, table, torch::kBFloat16);
      EXPECT_TRUE(bit_equal(half, table.to(torch::kBFloat16)));
      EXPECT_TRUE(bit_equal(convert_table(one->options, half, torch::kFloat), table));
    }
  });
}

// A dimension that the recipe does not support is an error, never a table.
TEST(EveryPreset, RefusesImpossibleDimensions) {
  each([](const Preset& entry) {
    for (const int64_t dim : {0, -2}) EXPECT_ANY_THROW(preset(entry.name, dim, {})) << dim;
  });
}

TEST(PresetDims, AreRefusedWhereTheSystemCannotHaveThem) {
  const auto error = [](const std::string& name, int64_t dim, const PresetParams& params = {}) {
    try {
      sinusoid_table(preset(name, dim, params), 7);
    } catch (const c10::ValueError& e) {
      return std::string(e.what_without_backtrace());
    }
    return std::string("no error");
  };
  using ::testing::IsSubstring;
  EXPECT_PRED_FORMAT2(IsSubstring, "the dimension must be larger", error("whisper", 2));
  EXPECT_PRED_FORMAT2(IsSubstring, "the dimension must be larger", error("fairseq", 2));
  EXPECT_PRED_FORMAT2(IsSubstring, "`fairseq`", error("fairseq", 2));
  EXPECT_PRED_FORMAT2(IsSubstring, "the dimension must be larger",
                      error("diffusers_timesteps", 2, {{"downscale_freq_shift", 1}}));
  EXPECT_EQ(error("diffusers_timesteps", 2, {{"downscale_freq_shift", 0}}), "no error");
  EXPECT_PRED_FORMAT2(IsSubstring, "must be even", error("annotated_transformer", 7));
  EXPECT_PRED_FORMAT2(IsSubstring, "must be even", error("whisper", 7));
  EXPECT_PRED_FORMAT2(IsSubstring, "a multiple of 4", error("mae_2d", 10, {{"height", 2}}));
  EXPECT_PRED_FORMAT2(
      IsSubstring, "a multiple of 16",
      error("diffusers_3d_sincos", 24, {{"height", 1}, {"width", 1}, {"depth", 7}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "(dim - 3) / 6", error("nerf", 64));
  EXPECT_PRED_FORMAT2(IsSubstring, "number of cells 9", error("mae_2d", 8, {{"height", 3}}));
}

TEST(PresetParams, AreCheckedByNameAndType) {
  EXPECT_ERROR(preset("whisper", 8, {{"max_timescal", 100}}), c10::ValueError, "max_timescale");
  EXPECT_ERROR(preset("whisper", 8, {{"max_timescal", 100}}), c10::ValueError,
               "`whisper` has no parameter `max_timescal`");
  EXPECT_ERROR(preset("xlm", 8, {{"base", 100}}), c10::ValueError, "it has none");
  EXPECT_ERROR(preset("mae_2d", 8), c10::ValueError, "`mae_2d` needs the parameter `height`");
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", 2.5}}), c10::ValueError, "Got 2.5");
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", 0}}), c10::ValueError, "Got 0");
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", "many"}}), c10::ValueError, "finite number");
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", 3}, {"cls_token", 2}}), c10::ValueError, "0 or 1");
  EXPECT_ERROR(preset("whisper", 8, {{"max_timescale", -1}}), c10::ValueError, "positive");
  EXPECT_ERROR(preset("whisper", 8, {{"max_timescale", "nan"}}), c10::ValueError, "finite");
  EXPECT_ERROR(preset("xlnet", 8, {{"attn_type", "both"}}), c10::ValueError, "bi or uni");
  EXPECT_ERROR(preset("fairseq", 8, {{"padding_idx", -2}}), c10::ValueError, "-1 for none");
  EXPECT_ERROR(preset("pi0_timesteps", 8, {{"min_period", 0}}), c10::ValueError, "positive");
  EXPECT_ERROR(preset("detr_2d", 8, {{"height", 2147483648.0}, {"width", 2}}), c10::ValueError,
               "at most 2^31 cells");
}

// Whether a value of the parameter, beside those that the shape needs, changes the options.
bool changes_options(const Preset& entry, const std::string& name) {
  for (const int64_t dim : {48, 63}) {
    const auto defaults = case_of(entry, dim);
    if (!defaults) continue;
    for (const char* value : {"0", "1", "2", "3", "uni"}) {
      PresetParams params = {{"depth", 2},
                             {"height", 5},
                             {"width", 7},
                             {"multires", (dim - 3) / 6},
                             {"num_bands", (dim - 1) / 2}};
      std::erase_if(params, [&](const auto& one) {
        return std::none_of(entry.params.begin(), entry.params.end(),
                            [&](const PresetParam& own) { return own.name == one.first; });
      });
      params.insert_or_assign(name, value);
      try {
        if (preset(entry.name, dim, params) != defaults->options) return true;
      } catch (const c10::ValueError& error) {
        const std::string text = error.what_without_backtrace();
        if (text.find(": " + name + " must be (dim") != std::string::npos) return true;
      }
    }
  }
  return false;
}

TEST(PresetParams, AllChangeTheOptions) {
  each([](const Preset& entry) {
    for (const PresetParam& param : entry.params) {
      EXPECT_TRUE(changes_options(entry, param.name)) << param.name;
    }
  });
}

TEST(PresetParams, AreWholeNumbersOfTheirRange) {
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", "3x"}}), c10::ValueError, "finite number. Got 3x");
  EXPECT_ERROR(preset("fairseq", 8, {{"padding_idx", "1e17"}}), c10::ValueError,
               "padding_idx must be an integer. Got 1e17");
  EXPECT_ERROR(preset("mae_2d", 8, {{"height", "2147483649"}}), c10::ValueError,
               "height must be an integer in [1, 2^31]. Got 2147483649");
}

TEST(PresetParams, ReachTheTable) {
  EXPECT_EQ(preset("whisper", 8, {{"max_timescale", 500.0}}).base(), 500.0);
  EXPECT_EQ(preset("whisper", 8, {{"max_timescale", "500"}}),
            preset("whisper", 8, {{"max_timescale", 500}}));
  const auto fairseq = sinusoid_table(preset("fairseq", 18, {{"padding_idx", 1}}), 5);
  EXPECT_TRUE(fairseq[1].eq(0).all().item<bool>());
  EXPECT_TRUE(bit_equal(fairseq[2], sinusoid_table(preset("fairseq", 18), 5)[2]));
  EXPECT_EQ(sinusoid_table(preset("xlnet", 18), 5).size(0), 10);
  EXPECT_EQ(sinusoid_table(preset("xlnet", 18, {{"attn_type", "uni"}}), 5).size(0), 6);
  EXPECT_EQ(sinusoid_table(preset("espnet_rel", 18), 5).size(0), 9);
  EXPECT_EQ(preset("pi0_timesteps", 18, {{"min_period", 0.5}, {"max_period", 2}}).base(), 4.0);
  EXPECT_EQ(preset("pi0_timesteps", 18, {{"min_period", 0.5}, {"max_period", 2}}).min_period(),
            0.5);
  EXPECT_EQ(preset("qwen2_5_omni_timesteps", 18).coordinates().at(0).factor, 1000.0);
  const auto kimi = sinusoid_table(preset("kimi_k25", 18), 5);
  EXPECT_EQ(kimi.size(0), 6);
  EXPECT_TRUE(kimi[0].eq(0).all().item<bool>());
  const auto grid = preset("mae_2d", 16, {{"height", 3}, {"cls_token", 1}});
  EXPECT_EQ(sinusoid_table(grid, 9).size(0), 10);
  EXPECT_TRUE(sinusoid_table(grid, 9)[0].eq(0).all().item<bool>());
}

}  // namespace
}  // namespace posenc
