// The tables made by the real packages (tools/zoo/fixtures.py), on any machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc {
namespace {

using Json = nlohmann::json;

PresetParams params_of(const Json& values) {
  PresetParams params;
  for (const auto& [name, value] : values.items()) {
    if (value.is_boolean()) {
      params.emplace(name, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_integer()) {
      params.emplace(name, value.get<int64_t>());
    } else if (value.is_number()) {
      params.emplace(name, value.get<double>());
    } else {
      params.emplace(name, value.get<std::string>());
    }
  }
  return params;
}

// The largest magnitude of an angle: the error of float32 angles grows with it.
double farthest(const SinusoidOptions& options, int64_t rows) {
  const double last =
      options.start() + options.step() * static_cast<double>(std::max<int64_t>(rows, 1));
  double scale = std::max(1.0, std::abs(options.angle_scale()));
  for (const sinusoid::Coordinate& c : options.coordinates()) {
    scale = std::max(scale, std::abs(c.factor));
  }
  if (options.frequency() == sinusoid::Frequency::Linear) scale *= options.max_frequency();
  if (options.frequency() == sinusoid::Frequency::Periods) {
    scale = std::max(scale, 2 * std::numbers::pi / options.min_period());
  }
  return std::max({std::abs(options.start()), std::abs(last), 1.0}) * scale;
}

class PresetFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(PresetFixture, IsThePackagesTable) {
  const auto path =
      std::filesystem::path(POSENC_FIXTURES_DIR) / "presets" / (GetParam() + ".safetensors");
  const SafetensorsFile file = load_safetensors(path.string());
  const Json cases = Json::parse(file.metadata.at("cases"));
  ASSERT_FALSE(cases.empty());
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Json& one = cases[k];
    SCOPED_TRACE(one.dump());
    const auto options =
        preset(one["preset"].get<std::string>(), one["dim"], params_of(one["params"]));
    const at::Tensor ours = sinusoid_table(options, one["length"]);
    const at::Tensor theirs = file.tensors["table" + std::to_string(k)];
    ASSERT_EQ(ours.sizes(), theirs.sizes());
    if (options.arithmetic() == sinusoid::Arithmetic::Float64) {
      EXPECT_TRUE(testing::bit_equal(ours, theirs));
    } else {
      EXPECT_TRUE(testing::within_foreign(farthest(options, theirs.size(0)), ours, theirs));
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Preset& entry : presets()) {
    if (entry.source.rfind("notebook ", 0) != 0) names.push_back(entry.name);  // have their own
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, PresetFixture, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace posenc
