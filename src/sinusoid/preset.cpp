#include "posenc/sinusoid/preset.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/nearest.h"
#include "sinusoid/presets/recipes.h"

namespace posenc {

PresetValue::PresetValue(int value) : text(std::to_string(value)) {}
PresetValue::PresetValue(int64_t value) : text(std::to_string(value)) {}
PresetValue::PresetValue(double value) : text(fmt::format("{}", value)) {}

const Preset& find_preset(std::string_view name) {
  const auto& all = presets();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Preset& candidate) { return candidate.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const Preset& candidate : all) names.push_back(candidate.name);
  TORCH_CHECK_VALUE(false, "[preset] there is no preset `", std::string(name),
                    "`; the nearest are ", detail::nearest_text(name, names));
}

SinusoidOptions preset(std::string_view name, int64_t dim, const PresetParams& params) {
  const Preset& found = find_preset(name);
  const SinusoidOptions options = make_options(found, dim, params);
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
