#include "posenc/positions/sinusoid/preset.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <utility>

#include "core/named.h"
#include "positions/sinusoid/presets/recipe.h"

namespace posenc {

PresetValue::PresetValue(int value) : text(std::to_string(value)) {}
PresetValue::PresetValue(int64_t value) : text(std::to_string(value)) {}
PresetValue::PresetValue(double value) : text(fmt::format("{}", value)) {}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> rows = [] {
    std::vector<Preset> list;
    for (const auto& [recipe, systems] : recipes::families()) {
      for (const recipes::System& system : systems) {
        Preset row{system.name, system.source, system.storage, recipe.name};
        for (const recipes::Parameter& parameter : recipe.parameters) {
          row.params.push_back(parameter.text);
        }
        row.bound = recipe.bound;
        for (const char* name : system.also) {
          row.also.push_back(std::string("transformers 5.23.0, ") + name);
        }
        row.former_name = system.former_name;
        list.push_back(std::move(row));
      }
    }
    return list;
  }();
  return rows;
}

const Preset& find_preset(std::string_view name) {
  return detail::find_named(presets(), name, "[preset] ",
                            "there is no preset `{}`; the nearest are {}");
}

SinusoidOptions preset(std::string_view name, int64_t dim, const PresetParams& params) {
  const Preset& found = find_preset(name);
  const SinusoidOptions options = recipes::make_options(found, dim, params);
  // validate() would suggest .odd_dim(), which is for the preset to decide.
  const bool halves_must_fit =
      options.odd_dim() == sinusoid::OddDim::Error && options.axes() == 1 && !options.raw_first();
  TORCH_CHECK_VALUE(!halves_must_fit || dim % 2 == 0, "[preset] `", found.name,
                    "`: dim must be even. Got ", dim);
  try {
    options.validate();
  } catch (const c10::ValueError& error) {
    TORCH_CHECK_VALUE(false, "[preset] `", found.name, "`: ", error.what_without_backtrace());
  }
  return options;
}

}  // namespace posenc
