#include "models/types/model_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/config/config_class.h"
#include "models/embeddings/presets.h"
#include "models/types/encoder_structures.h"
#include "support/compare.h"

namespace posenc::hf {
namespace {

using testing::message_of;

bool is_given(const char* text) { return *text != '\0'; }

TEST(ModelTypes, ARowHasWhatItsFieldsNeed) {
  for (const ModelType& row : model_types()) {
    SCOPED_TRACE(row.type);
    const bool is_encoder = row.layers != nullptr;
    EXPECT_TRUE(is_given(row.embeddings) || row.tables == nullptr) << "tables of what preset?";
    EXPECT_TRUE(is_given(row.vision) || row.patches == nullptr) << "patches of what preset?";
    // Windows read all of their options, patches too; a conformer has no embeddings.
    const bool reads_its_own = is_encoder && (row.layers->windows != nullptr ||
                                              row.type == std::string("wav2vec2-conformer"));
    EXPECT_TRUE(!is_encoder || (is_given(row.embeddings) != is_given(row.vision)) != reads_its_own)
        << "layers take the output of one kind of embeddings";
    // DINOv3 has no model with a head in transformers, and so no prefix.
    const bool has_prefix = is_encoder && row.type != std::string("dinov3_vit");
    EXPECT_EQ(has_prefix, is_given(row.prefix));
    EXPECT_TRUE(has_prefix || row.heads == nullptr) << "a head's file has a prefix";
    EXPECT_FALSE(is_encoder && is_given(row.lacks));
    EXPECT_TRUE(is_encoder || is_given(row.embeddings) || is_given(row.vision) ||
                is_given(row.rotary) || is_given(row.part) || is_given(row.lacks) ||
                row.seq2seq != nullptr)
        << "nothing is known";
    if (!is_given(row.part)) continue;
    const ModelType* part = find_model_type(ConfigClass::of(row.type).part_type(row.part));
    EXPECT_TRUE(part != nullptr && part->layers != nullptr) << row.part;
  }
}

TEST(ModelTypes, APresetIsReadAsAModelTypeThatHasIt) {
  for (const auto& preset : encoder_embeddings_preset_rows()) {
    const ModelType* row = find_model_type(preset.model_type, &ModelType::embeddings);
    ASSERT_NE(row, nullptr) << preset.name;
    EXPECT_STREQ(row->embeddings, preset.name);
    EXPECT_EQ(row->tables != nullptr, preset.name == std::string("distilbert")) << preset.name;
  }
  for (const auto& preset : vision_preset_rows()) {
    if (!is_given(preset.model_type)) continue;  // timm has no model types
    const ModelType* row = find_model_type(preset.model_type, &ModelType::vision);
    ASSERT_NE(row, nullptr) << preset.name;
    EXPECT_STREQ(row->vision, preset.name);
  }
}

TEST(ModelTypes, AreEachInOneFamily) {
  const auto all = model_types();
  const auto twice = std::adjacent_find(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::string_view(a.type) >= b.type;
  });
  EXPECT_TRUE(twice == all.end()) << twice->type;
}

TEST(ModelTypes, AreFoundByTheirWholeName) {
  EXPECT_STREQ(find_model_type("llama")->rotary, "llama");
  const std::string with_zero("llama\0", 6);
  for (const std::string& none : {std::string(), std::string("llam"), with_zero}) {
    EXPECT_EQ(find_model_type(none), nullptr) << none;
  }
  EXPECT_EQ(find_model_type("persimmon", &ModelType::embeddings), nullptr);
  EXPECT_EQ(find_model_type("bert", &ModelType::rotary), nullptr);
}

TEST(ModelTypes, AnErrorNamesTheNearest) {
  const auto refused = [](std::string_view type) {
    return message_of([&] { refuse_model_type("[f] ", "must be one", type, &ModelType::vision); });
  };
  EXPECT_EQ(refused("vits"), "[f] must be one; the nearest are vit, beit, deit. Got vits");
  EXPECT_NE(refused("").find(". Got no model_type"), std::string::npos);
}

}  // namespace
}  // namespace posenc::hf
