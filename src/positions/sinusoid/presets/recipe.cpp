#include "positions/sinusoid/presets/recipe.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "core/named.h"

namespace posenc::recipes {

const std::vector<Family>& families() {
  static const std::vector<Family> rows = [] {
    std::vector<Family> list = line_recipes();
    for (const auto& more : {grid_recipes(), tensorflow_recipes()}) {
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return rows;
}

Options make_options(const Preset& preset, int64_t dim, const PresetParams& params) {
  for (const auto& [name, value] : params) {
    TORCH_CHECK_VALUE(!preset.params.empty(), "[preset] `", preset.name, "` has no parameter `",
                      name, "`; it has none");
    detail::find_named(preset.params, name, "[preset] `" + preset.name,
                       "` has no parameter `{}`; the nearest are {}");
  }
  const auto& [recipe, systems] =
      *std::find_if(families().begin(), families().end(),
                    [&](const Family& family) { return family.recipe.name == preset.recipe; });
  Options options = recipe.options;
  options.dim(dim);
  for (const auto& [param, set] : recipe.parameters) {
    const auto given = params.find(param.name);
    const std::string& text = given == params.end() ? param.fallback : given->second.text;
    TORCH_CHECK_VALUE(given != params.end() || !text.empty(), "[preset] `", preset.name,
                      "` needs the parameter `", param.name, "`");
    set(options, {preset.name, param.name, text});
  }
  if (recipe.derive != nullptr) recipe.derive(options);
  return options;
}

}  // namespace posenc::recipes
