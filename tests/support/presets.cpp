#include "support/presets.h"

#include <c10/util/Exception.h>

namespace posenc::testing {

std::optional<PresetCase> case_of(const Preset& entry, int64_t dim, int64_t length) {
  PresetParams params;
  const int64_t side = length < 700 ? 5 : 24;
  for (const PresetParam& param : entry.params) {
    if (param.name == "height") params.emplace("height", side);
    if (param.name == "width") params.emplace("width", side + 2);
    if (param.name == "depth") params.emplace("depth", 2);
    // the width determines the number of frequencies
    if (param.name == "multires") params.emplace("multires", (dim - 3) / 6);
    if (param.name == "num_bands") params.emplace("num_bands", (dim - 1) / 2);
  }
  try {
    auto options = preset(entry.name, dim, params);
    if (!options.grid().empty()) length = 1;
    for (const int64_t extent : options.grid()) length *= extent;
    return PresetCase{std::move(options), length};
  } catch (const c10::ValueError&) {
    return std::nullopt;
  }
}

std::vector<std::string> plain_presets() {
  std::vector<std::string> names;
  std::string last;
  for (const Preset& entry : presets()) {
    if (entry.recipe == last) continue;
    last = entry.recipe;
    const auto one = case_of(entry, 36);
    if (!one) continue;
    const SinusoidOptions& o = one->options;
    const bool plain = o.axes() == 1 && !o.raw_first() &&
                       o.position_range() == sinusoid::PositionRange::Up && o.start() == 0.0 &&
                       o.step() == 1.0 && !o.zero_row() && !o.cls_row() && !o.angle_by_length() &&
                       o.post() == sinusoid::Post::None &&
                       o.power_shape() == sinusoid::PowerShape::Row;
    if (plain) names.push_back(entry.name);
  }
  return names;
}

}  // namespace posenc::testing
