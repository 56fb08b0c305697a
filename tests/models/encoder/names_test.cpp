#include "models/encoder/names.h"

#include <gtest/gtest.h>

#include "core/torch_internals/without_memory.h"
#include "weights/load/key_map.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

// Settings that are not the default and with which a class has other rules.
const std::pair<const char*, json> kOthers[] = {{"convbert", {{"num_groups", 2}}},
                                                {"dinov3_vit", {{"use_gated_mlp", true}}},
                                                {"mobilebert", {{"use_bottleneck", false}}},
                                                {"umt5", {{"feed_forward_proj", "relu"}}}};

// Patterns of several rules match one name; the first has to be that of the tensor it is saved as.
void expect_read_as_written(json settings) {
  SCOPED_TRACE(settings.dump());
  std::optional<EncoderConfig> config;
  try {
    config.emplace(read_encoder_config(Settings::of_object("names_test", std::move(settings))));
  } catch (const c10::ValueError&) {
    return;  // a class that leaves a size to the file
  }
  const torch_internals::WithoutMemory guard;
  const Encoder model(config->options);
  const LoadOptions options = encoder_save_options(*config);
  for (const auto& item : model->named_parameters()) {
    const auto names = io::names_in_file(item.key(), options);
    EXPECT_TRUE(!names.empty() || item.key().rfind("encoder.", 0) != 0)
        << item.key() << " is hidden by the pattern of another rule";
    for (const std::string& in_file : names) {
      const auto match = io::find_rule(in_file, options.key_map());
      ASSERT_TRUE(match.has_value()) << in_file;
      EXPECT_EQ(io::fill_pattern(options.key_map()[match->rule].name, match->runs), item.key())
          << in_file;
    }
  }
}

TEST(EncoderNames, AFileIsReadAsItIsWritten) {
  for (const std::string& type : encoder_model_types())
    expect_read_as_written({{"model_type", type}});
  for (auto [type, settings] : kOthers) {
    settings["model_type"] = type;
    expect_read_as_written(settings);
  }
}

}  // namespace
}  // namespace posenc::testing
