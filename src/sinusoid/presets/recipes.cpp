#include "sinusoid/presets/recipes.h"

#include <c10/util/Exception.h>

#include <utility>

namespace posenc {
namespace {

using Recipe = SinusoidOptions (*)(int64_t dim, const PresetReader& params);

#define POSENC_NAMED_RECIPE(name) {#name, recipes::name},
const std::pair<const char*, Recipe> kRecipes[] = {POSENC_RECIPES(POSENC_NAMED_RECIPE)};
#undef POSENC_NAMED_RECIPE

}  // namespace

SinusoidOptions make_options(const Preset& preset, int64_t dim, const PresetParams& params) {
  for (const auto& [name, recipe] : kRecipes) {
    if (preset.recipe == name) return recipe(dim, PresetReader(preset, params));
  }
  TORCH_CHECK_VALUE(false, "[preset] `", preset.name, "`: there is no recipe `", preset.recipe,
                    "`; take a preset from presets()");
}

}  // namespace posenc
