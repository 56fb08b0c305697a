#include "posenc/models/vision_embeddings_preset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "posenc/positions/nn/vision_embeddings.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"

namespace posenc {
namespace {

using Json = nlohmann::json;
using testing::message_of;
using vision::PositionTable;

VisionEmbeddingsOptions of(const Json& config) {
  return vision_embeddings_options_from_hf(config.dump());
}

std::string refusal_of(const Json& config) {
  return message_of([&] { of(config); });
}

std::string keys_of(const VisionEmbeddingsOptions& options) {
  std::string joined;
  for (const auto& item : state_dict(*VisionEmbeddings(options))) joined += item.key() + " ";
  return joined;
}

TEST(VisionEmbeddingsPreset, ReadsSizes) {
  const auto options = of({{"model_type", "vit"},
                           {"image_size", {32, 48}},
                           {"patch_size", 8},
                           {"hidden_size", 12},
                           {"num_channels", 1},
                           {"hidden_dropout_prob", 0.25},
                           {"initializer_range", 0.5}});
  EXPECT_EQ(options.image_height(), 32);
  EXPECT_EQ(options.image_width(), 48);
  EXPECT_EQ(options.patch_height(), 8);
  EXPECT_EQ(options.patch_width(), 8);
  EXPECT_EQ(options.d_model(), 12);
  EXPECT_EQ(options.num_channels(), 1);
  EXPECT_EQ(options.dropout(), 0.25);
  EXPECT_EQ(options.initializer_range(), 0.5);
}

TEST(VisionEmbeddingsPreset, HasTheDefaultsOfTheModelType) {
  EXPECT_EQ(of({{"model_type", "clip_vision_model"}}).patch_height(), 32);
  EXPECT_EQ(of({{"model_type", "dinov2"}}).patch_height(), 14);
  EXPECT_TRUE(of({{"model_type", "dinov2"}}).mask_token());
  EXPECT_EQ(of({{"model_type", "dinov3_vit"}}).d_model(), 384);
  EXPECT_EQ(of({{"model_type", "dinov3_vit"}}).register_tokens(), 0);
  EXPECT_EQ(of({{"model_type", "pixio"}}).class_tokens(), 8);
  EXPECT_EQ(of({{"model_type", "beit"}}).position_table(), PositionTable::None);
  EXPECT_EQ(of({{"model_type", "internvl_vision"}}).position_table(), PositionTable::Parameter);
  EXPECT_EQ(of({{"model_type", "blip_2_vision_model"}}).d_model(), 1408);
  EXPECT_EQ(of({{"model_type", "blip_vision_model"}}).initializer_range(), 1e-10);
}

TEST(VisionEmbeddingsPreset, FindsTheVisionModelOfACompositeOne) {
  const Json inner = {{"hidden_size", 24}, {"image_size", 64}};
  EXPECT_EQ(of({{"model_type", "clip"}, {"vision_config", inner}}).d_model(), 24);
  EXPECT_EQ(of({{"model_type", "siglip"}, {"vision_config", inner}}).class_tokens(), 0);
  EXPECT_EQ(of({{"model_type", "blip-2"}, {"vision_config", inner}}).patch_height(), 14);
  EXPECT_EQ(of({{"model_type", "clip"}}).d_model(), 768);
  const auto llava = of({{"model_type", "llava"}});  // LlavaConfig gives these to CLIP's
  EXPECT_EQ(llava.d_model(), 1024);
  EXPECT_EQ(llava.image_height(), 336);
  EXPECT_EQ(llava.patch_height(), 14);
  Json named = inner;
  named["model_type"] = "siglip_vision_model";
  EXPECT_EQ(of({{"model_type", "llava"}, {"vision_config", named}}).class_tokens(), 0);
}

TEST(VisionEmbeddingsPreset, ReadsAFile) {
  const auto path = std::filesystem::temp_directory_path() / "posenc_vision_config.json";
  std::ofstream(path) << R"({"model_type": "deit", "hidden_size": 20})";
  EXPECT_EQ(vision_embeddings_options_from_hf(path.string()).d_model(), 20);
  EXPECT_TRUE(vision_embeddings_preset("deit", path.string()).distillation_token());
  std::filesystem::remove(path);
  EXPECT_THROW(vision_embeddings_options_from_hf(path.string()), std::exception);
}

TEST(VisionEmbeddingsPreset, KeysAreThoseOfTheFiles) {
  const auto keys = [](const char* model_type) {
    return keys_of(of({{"model_type", model_type}}));
  };
  EXPECT_EQ(keys("clip_vision_model"),
            "class_embedding patch_embedding.weight position_embedding.weight ");
  EXPECT_EQ(keys("siglip_vision_model"),
            "patch_embedding.weight patch_embedding.bias position_embedding.weight ");
  EXPECT_EQ(keys("dinov2_with_registers"),
            "cls_token mask_token register_tokens position_embeddings "
            "patch_embeddings.projection.weight patch_embeddings.projection.bias ");
  EXPECT_EQ(keys("dinov3_vit"),
            "cls_token mask_token register_tokens patch_embeddings.weight patch_embeddings.bias ");
  EXPECT_EQ(keys("eomt"),
            "cls_token register_tokens patch_embeddings.projection.weight "
            "patch_embeddings.projection.bias position_embeddings.weight ");
}

TEST(VisionEmbeddingsPreset, EveryModelTypeHasAEmbeddings) {
  std::set<std::string> presets, used;
  for (const auto& preset : vision_embeddings_presets()) {
    EXPECT_TRUE(presets.insert(preset.name).second);
    EXPECT_NO_THROW(position_resize_of(preset.resize));
  }
  for (const auto& model : vision_embeddings_models()) {
    SCOPED_TRACE(model.model_type);
    used.insert(model.preset);
    const Json config = {{"model_type", model.model_type}, {"hidden_size", 4}};
    EXPECT_GT(VisionEmbeddings(of(config))->parameters().size(), 1U);
    EXPECT_EQ(keys_of(vision_embeddings_preset(model.preset, config.dump())), keys_of(of(config)));
  }
  used.insert("timm_vit");  // no model type
  EXPECT_EQ(presets, used);
}

TEST(VisionEmbeddingsPreset, RefusesConfigurations) {
  EXPECT_EQ(refusal_of({{"model_type", "dino2"}}),
            "[vision_embeddings_options_from_hf] `model_type` must be one whose vision embeddings "
            "are known; the nearest are dinov2, deit, dpt. Got dino2");
  EXPECT_EQ(refusal_of({{"hidden_size", 4}}).substr(0, 94),
            "[vision_embeddings_options_from_hf] `model_type` must be one whose vision embeddings "
            "are known");
  EXPECT_EQ(refusal_of({{"model_type", "vit"}, {"image_size", {1, 2, 3}}}),
            "[vision_embeddings_options_from_hf] the configuration: image_size must be an integer "
            "or two, height and width. Got [1,2,3]");
  EXPECT_EQ(refusal_of({{"model_type", "clip_vision_model"}, {"patch_size", nullptr}}),
            "[vision_embeddings_options_from_hf] the configuration: patch_size must be an integer "
            "from 1 to 1048576. Got null");
  EXPECT_EQ(refusal_of({{"model_type", "vit"}, {"hidden_size", 0}}),
            "[vision_embeddings_options_from_hf] the configuration: hidden_size must be an integer "
            "from 1 to 1048576. Got 0");
  EXPECT_EQ(refusal_of({{"model_type", "vit"}, {"patch_size", 512}}),
            "[vision_embeddings_options_from_hf] the configuration: [VisionEmbeddings] images must "
            "have at "
            "least one patch of 512x512 pixels. Got 224x224");
  EXPECT_EQ(
      refusal_of({{"model_type", "dpt"}, {"is_hybrid", true}}),
      "[vision_embeddings_options_from_hf] the configuration: is_hybrid must be false, as its "
      "patches are made by another model. Got true");
  EXPECT_EQ(
      refusal_of({{"model_type", "clip"}, {"vision_config", 3}}),
      "[vision_embeddings_options_from_hf] the configuration: vision_config must be an object. "
      "Got 3");
  EXPECT_ERROR(vision_embeddings_preset("vit_b", "{}"), c10::ValueError,
               "[vision_embeddings_preset] there is no preset vit_b; the nearest are vit, ");
  EXPECT_ERROR(vision_embeddings_preset("clip", R"({"model_type": "vit"})"), c10::ValueError,
               "[vision_embeddings_preset] a configuration of vit needs the preset vit. Got clip");
  EXPECT_ERROR(vision_embeddings_preset("timm_vit", R"({"pos_embed": "rope"})"), c10::ValueError,
               "[vision_embeddings_preset] the configuration: pos_embed must be learn or none. Got "
               "\"rope\"");
}

// Made by timm itself (tools/zoo/vision_fixtures.py).
class TimmVision : public ::testing::Test {
 protected:
  SafetensorsFile file = load_safetensors(
      (std::filesystem::path(POSENC_FIXTURES_DIR) / "vision" / "timm_vit.safetensors").string());

  StateDict under(const std::string& prefix) const {
    StateDict found;
    for (const auto& item : file.tensors) {
      if (item.key().rfind(prefix, 0) == 0)
        found.insert(item.key().substr(prefix.size()), item.value());
    }
    return found;
  }
};

TEST_F(TimmVision, EmbeddingsAreItsOwn) {
  const Json cases = Json::parse(file.metadata.at("cases"));
  for (size_t number = 0; number < cases.size(); ++number) {
    SCOPED_TRACE(cases[number].dump());
    VisionEmbeddings embeddings(vision_embeddings_preset("timm_vit", cases[number].dump()));
    const std::string prefix = std::to_string(number) + ".";
    load_state_dict(*embeddings, under(prefix + "param."));
    for (const std::string at : {"0.", "1.", "2."}) {
      const auto out = embeddings->forward(file.tensors[prefix + at + "pixel_values"]);
      // The sums of a convolution are a matter of the CPU.
      EXPECT_TRUE(within(testing::Op::Layers, out, file.tensors[prefix + at + "out"]));
    }
  }
}

TEST_F(TimmVision, ResizedTablesAreItsOwn) {
  const Json resizes = Json::parse(file.metadata.at("resizes"));
  for (size_t number = 0; number < resizes.size(); ++number) {
    const Json& how = resizes[number];
    SCOPED_TRACE(how.dump());
    const Json old = how["old"].is_null() ? Json{0, 0} : how["old"];
    const std::string prefix = "resize." + std::to_string(number) + ".";
    const auto resized = functional::resize_positions(
        file.tensors[prefix + "table"], how["new"][0], how["new"][1],
        PositionResize::BicubicAntialiasKeepEqual, how["prefix"], old[0], old[1]);
    // An interpolation's bits depend on the CPU; those of this one are compared with the definition
    // in resize_positions_test.cpp.
    EXPECT_TRUE(within(testing::Op::Layers, resized, file.tensors[prefix + "out"]));
  }
}

TEST(TimmConfig, ArgumentsMayBeInModelArgs) {
  const auto options = vision_embeddings_preset(
      "timm_vit", R"({"architecture": "vit_tiny", "model_args": {"embed_dim": 24, "reg_tokens": 4,
      "no_embed_class": true, "pre_norm": true}})");
  EXPECT_EQ(options.d_model(), 24);
  EXPECT_EQ(options.position_prefix(), 0);
  EXPECT_EQ(keys_of(options),
            "cls_token reg_token pos_embed patch_embed.proj.weight norm_pre.weight norm_pre.bias ");
}

}  // namespace
}  // namespace posenc
