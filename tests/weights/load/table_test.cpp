// Computed tables: longer, shorter, from another machine, and from another recipe.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "posenc/positions/nn/grid_positional_encoding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

StateDict one(const std::string& name, const at::Tensor& tensor) {
  StateDict tensors;
  tensors.insert(name, tensor.clone());
  return tensors;
}

at::Tensor recipe(int64_t rows) { return sinusoid_table(SinusoidOptions(6), rows).unsqueeze(0); }

TEST(Table, LongerAndShorterOnesOfTheRecipeAreTaken) {
  for (const int64_t rows : {1, 7, 10, 11, 500}) {
    PositionalEncoding module(6, 10);
    const auto report = load_state_dict(*module, one("pe", recipe(rows)));
    ASSERT_EQ(report.tables.size(), 1u);
    EXPECT_EQ(report.tables[0].name, "pe");
    EXPECT_EQ(report.tables[0].rows, 10);
    EXPECT_EQ(report.tables[0].file_rows, rows);
    EXPECT_EQ(report.tables[0].max_abs, 0.0);
    EXPECT_TRUE(report.tables[0].as_computed);
    EXPECT_TRUE(identical(module->pe, recipe(10)));
  }
}

TEST(Table, BitsOfAnotherMachineAreKept) {
  PositionalEncoding module(6, 10);
  const auto other = recipe(20) * (1 + 1e-7);
  const auto report = load_state_dict(*module, one("pe", other));
  EXPECT_GT(report.tables[0].max_abs, 0.0);
  EXPECT_TRUE(report.tables[0].as_computed);
  EXPECT_TRUE(identical(module->pe, other.slice(1, 0, 10).contiguous()));
  load_state_dict(*module, one("pe", other.slice(1, 0, 4)));
  EXPECT_TRUE(identical(module->pe.slice(1, 0, 4).contiguous(), other.slice(1, 0, 4).contiguous()));
  // After the file's rows, the table follows the recipe, not the values of an earlier load.
  EXPECT_TRUE(identical(module->pe.slice(1, 4).contiguous(), recipe(10).slice(1, 4).contiguous()));
}

TEST(Table, ALearnedOneIsLoadedAndReported) {
  PositionalEncoding module(6, 10);
  auto learned = recipe(10);
  learned[0][3][2] += 0.25;
  const auto report = load_state_dict(*module, one("pe", learned));
  EXPECT_NEAR(report.tables[0].max_abs, 0.25, 1e-6);
  EXPECT_FALSE(report.tables[0].as_computed);
  EXPECT_TRUE(identical(module->pe, learned));
  learned[0][0][0] = NAN;
  EXPECT_FALSE(load_state_dict(*module, one("pe", learned)).tables[0].as_computed);
}

TEST(Table, ALearnedOneOfAnotherLengthIsRefused) {
  PositionalEncoding module(6, 10);
  const auto before = all_bits(*module);
  for (const int64_t rows : {4, 20}) {
    auto learned = recipe(rows);
    learned[0][3][2] += 0.25;
    const auto error = error_of([&] { load_state_dict(*module, one("pe", learned)); });
    EXPECT_EQ(error.code(), WeightsErrorCode::ShapeMismatch);
    EXPECT_CONTAINS(error.what(),
                    "whose common rows differ from the module's recipe by up to 0.25");
  }
  const auto narrow = sinusoid_table(SinusoidOptions(4), 10).unsqueeze(0);
  EXPECT_CONTAINS(refusal([&] { load_state_dict(*module, one("pe", narrow)); }),
                  "'pe' must have shape (1, 10, 6). Got (1, 10, 4)");
  EXPECT_EQ(all_bits(*module), before);
}

TEST(Table, OtherFormulasAreNotTheRecipe) {
  for (const char* name : {"opennmt", "fairseq", "tensor2tensor", "vitpose"}) {
    at::Tensor other;
    try {
      other = sinusoid_table(preset(name, 64), 200).unsqueeze(0);
    } catch (const c10::Error&) {
      continue;  // no such preset, or required parameters
    }
    PositionalEncoding module(64, 200);
    if (other.sizes() != module->pe.sizes() || at::allclose(other, module->pe, 0, 1e-4)) continue;
    EXPECT_FALSE(load_state_dict(*module, one("pe", other)).tables[0].as_computed) << name;
  }
}

TEST(Table, HalfPrecisionIsComparedAsRounded) {
  for (const auto type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    PositionalEncoding module(6, 10);
    module->to(type);
    const auto report = load_state_dict(*module, one("pe", recipe(12).to(type)));
    EXPECT_TRUE(report.tables[0].as_computed) << type;
    PositionalEncoding single(6, 10);
    const auto options = LoadOptions().cast(true);
    const auto cast = load_state_dict(*single, one("pe", recipe(12).to(type)), options);
    EXPECT_TRUE(cast.tables[0].as_computed) << type;
    EXPECT_TRUE(identical(single->pe, recipe(10).to(type).to(at::kFloat)));
  }
}

TEST(Table, EveryModuleReportsItsTable) {
  PositionEmbedding embedding(PositionEmbeddingOptions(6).max_len(8));
  PositionEmbedding longer(PositionEmbeddingOptions(6).max_len(20));
  EXPECT_TRUE(load_state_dict(*embedding, state_dict(*longer)).tables.at(0).as_computed);
  EXPECT_FALSE(embedding->embedding->weight.requires_grad());
  const auto buffered = PositionEmbeddingOptions(6).max_len(8).register_as(
      PositionEmbeddingOptions::RegisterAs::Buffer);
  PositionEmbedding buffer(buffered);
  const auto table =
      load_state_dict(*buffer, state_dict(*PositionEmbedding(buffered))).tables.at(0);
  EXPECT_EQ(table.name, "pos_enc");
  EXPECT_EQ(table.max_abs, 0.0);

  const auto grid = preset("mae_2d", 16, {{"height", 4}});
  GridPositionalEncoding patches(grid);
  const auto saved = state_dict(*GridPositionalEncoding(grid));
  EXPECT_EQ(load_state_dict(*patches, saved).tables.at(0).max_abs, 0.0);

  TokenAndPositionEmbedding whole(9, 6, 10);
  const auto report = load_state_dict(*whole, state_dict(*TokenAndPositionEmbedding(9, 6, 30)));
  EXPECT_EQ(report.tables.at(0).name, "position_encoding.pe");
  EXPECT_EQ(report.tables.at(0).file_rows, 30);
}

TEST(Table, AGrownModuleIsItsRecipeStill) {
  PositionalEncoding module(PositionalEncodingOptions(6, 10).grow(true));
  module->forward(at::zeros({1, 25, 6}));
  const TempDir dir;
  save_weights(*module, dir / "grown.safetensors");
  PositionalEncoding fresh(6, 10);
  const auto report = load_weights(*fresh, dir / "grown.safetensors");
  EXPECT_EQ(report.tables.at(0).file_rows, 25);
  EXPECT_TRUE(identical(fresh->pe, recipe(10)));
  EXPECT_EQ(load_weights(*module, dir / "grown.safetensors").tables.at(0).max_abs, 0.0);
}

}  // namespace
}  // namespace posenc::testing
