// Encoders of images in windows: what their configurations and weights have to be.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "posenc/models/encoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc::window_model_test {
namespace {

using nlohmann::json;
using testing::bit_equal;
using testing::Op;
using testing::within;

json small_swin(const std::string& type = "swin") {
  return {{"model_type", type}, {"image_size", 16},    {"patch_size", 2}, {"embed_dim", 8},
          {"depths", {2, 1}},   {"num_heads", {2, 4}}, {"window_size", 4}};
}

json small_sam() {
  return {{"model_type", "sam_vision_model"},
          {"image_size", 12},
          {"patch_size", 2},
          {"hidden_size", 8},
          {"mlp_dim", 5},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"window_size", 4},
          {"output_channels", 8},
          {"global_attn_indexes", {1}}};
}

json with(json config, const char* name, const json& value) {
  config[name] = value;
  return config;
}

EncoderOptions read(const json& config) { return encoder_options_from_hf(config.dump()); }

TEST(WindowConfig, HasTheStagesOfSwin) {
  const auto options = read(small_swin());
  const auto& stages = options.windows()->stages();
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].layers()[1].windows().shift(), 2);
  EXPECT_EQ(stages[1].layers()[0].layer().d_model(), 16);
  EXPECT_EQ(options.encoder().layer().d_model(), 16);
  EXPECT_EQ(options.encoder().num_layers(), 3);
  EXPECT_EQ(options.pooling(), encoder::Pooling::Mean);
}

TEST(WindowConfig, FitsWindowsOfSwinV2ToTheirMaps) {
  const auto options = read(with(small_swin("swinv2"), "window_size", 7));
  const auto& stages = options.windows()->stages();
  EXPECT_EQ(stages[0].layers()[1].windows().window().height, 7);
  EXPECT_EQ(stages[0].layers()[1].windows().shift(), 3);
  EXPECT_EQ(stages[1].layers()[0].windows().window().height, 4) << "a map of 4 x 4";
}

TEST(WindowConfig, RefusesWhatTransformersCannotRun) {
  const auto refused = [](const json& config, const char* text) {
    EXPECT_ERROR(read(config), c10::ValueError, text);
    const std::string message = testing::message_of([&] { read(config); });
    EXPECT_EQ(message.rfind("[encoder_options_from_hf]"), 0U) << "once, in front: " << message;
  };
  refused(with(small_swin(), "depths", json::array()), "depths must have the number of layers");
  refused(with(small_swin(), "depths", {1, 0}), "depths must have the number of layers");
  refused(with(small_swin(), "num_heads", {2}), "for each of the 2 stages of depths");
  refused(with(small_swin(), "num_heads", {2, 3}), "num_heads must divide embed_dim");
  refused(with(small_swin(), "window_size", 0), "window_size");
  refused(with(small_swin(), "mlp_ratio", 0.01), "a network of at least one channel");
  refused(with(small_swin("swinv2"), "use_absolute_embeddings", true), "must be false");
  refused(with(small_swin("donut-swin"), "use_absolute_embeddings", true), "must be false");
  refused(with(small_swin("swinv2"), "pretrained_window_sizes", {0, 1}), "must not be 1");
  refused(with(small_swin("swinv2"), "image_size", 2), "a patch for the map of the last stage");
  refused(with(small_sam(), "image_size", {12, 16}), "must be one number, of a square");
  refused(with(small_sam(), "num_attention_heads", 3), "must divide hidden_size 8");
  refused(with(small_sam(), "global_attn_indexes", 3), "must be a list of");
}

TEST(WindowModel, RefusesOtherImages) {
  Encoder swin(read(small_swin())), sam(read(small_sam()));
  EXPECT_ERROR(swin->forward(torch::randn({1, 4, 16, 16})), c10::ValueError,
               "must have the 3 channels");
  EXPECT_ERROR(swin->forward(torch::randn({1, 3, 16, 12})), c10::ValueError,
               "a map must be at least as large as its window, 4 x 4");
  EXPECT_ERROR(sam->forward(torch::randn({1, 3, 12, 14})), c10::ValueError,
               "must have the 12x12 pixels");
  EXPECT_ERROR(swin->forward(torch::randn({1, 3, 16, 16}),
                             EncoderInputs().attention_mask(torch::ones({1, 4}, torch::kLong))),
               c10::ValueError, "takes no attention_mask");
}

TEST(WindowModel, IsSavedAndLoaded) {
  const torch::NoGradGuard no_grad;
  for (const json& config : {small_swin(), small_swin("swinv2"), small_swin("donut-swin"),
                             with(small_swin("swinv2"), "qkv_bias", false), small_sam()}) {
    Encoder model(read(config));
    for (auto& parameter : model->parameters()) parameter.add_(torch::randn_like(parameter), 0.1);
    for (const auto& item : model->named_parameters()) {
      const bool has_key_bias = config["model_type"] != "swinv2";
      if (item.key().ends_with("in_proj_bias") && !has_key_bias) item.value().chunk(3)[1].zero_();
    }
    model->eval();
    const testing::TempDir folder;
    const std::string path = (folder.path() / "saved").string();
    save_pretrained(model, path);
    const auto images = torch::randn({2, 3, config.value("image_size", 0),
                                      12 + 4 * (config["model_type"] != "sam_vision_model")});
    const auto loaded = load_encoder(path);
    EXPECT_TRUE(bit_equal(Encoder(loaded)->forward(images).last_hidden_state,
                          model->forward(images).last_hidden_state))
        << config;
  }
}

// The convolutions of SAM's neck are torch's own, whose options a program may change.
TEST(WindowModel, NoticesOtherOptionsOfItsNeck) {
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({1, 3, 12, 12});
  const testing::TempDir folder;
  const std::string path = (folder.path() / "saved").string();
  const std::function<void(ConvolutionNeckImpl&)> changes[] = {
      [](ConvolutionNeckImpl& neck) { neck.conv2->options.stride(2); },
      [](ConvolutionNeckImpl& neck) { neck.conv2->options.padding(0); },
      [](ConvolutionNeckImpl& neck) { neck.conv2->options.padding(torch::kSame); },
      [](ConvolutionNeckImpl& neck) { neck.conv2->options.dilation(2); },
      [](ConvolutionNeckImpl& neck) { neck.conv2->options.padding_mode(torch::kReflect); }};
  for (const auto& change : changes) {
    Encoder sam(read(small_sam()));
    sam->eval();
    const auto frozen = freeze(sam);
    frozen.forward(images);
    change(*sam->windows->neck);
    EXPECT_ERROR(frozen.forward(images), c10::Error, "Got other options of encoder.neck.conv2");
    EXPECT_TRUE(within(Op::Layers, freeze(sam).forward(images).last_hidden_state,
                       sam->forward(images).last_hidden_state));
    EXPECT_ERROR(save_pretrained(sam, path), c10::ValueError,
                 "the options of encoder.neck.conv2 must be those that the encoder gives it");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WindowModel, RefusesATableOfAnotherWindow) {
  const testing::TempDir folder;
  const std::string path = (folder.path() / "saved").string();
  save_pretrained(Encoder(read(small_swin())), path);
  json config = json::parse(std::ifstream(path + "/config.json"));
  const auto written = [&](const char* name, const json& value) {
    std::ofstream(path + "/config.json") << with(config, name, value).dump();
  };
  written("window_size", 3);
  EXPECT_ERROR(load_encoder(path), c10::ValueError,
               "window_size in config.json must fit the weights:");
  written("embed_dim", 16);
  EXPECT_ERROR(load_encoder(path), c10::ValueError, "Got ");
  written("depths", {2, 2});
  EXPECT_ANY_THROW(load_encoder(path));
  written("depths", {1, 1});
  EXPECT_EQ(load_encoder(path)->windows->stage(0).layers->size(), 1U);
}

}  // namespace
}  // namespace posenc::window_model_test
