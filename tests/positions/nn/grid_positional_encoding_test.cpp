#include "posenc/positions/nn/grid_positional_encoding.h"

#include <gtest/gtest.h>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc::grid_positional_encoding_test {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;
using Options = GridPositionalEncodingOptions;

class Grid : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Grid);

struct System {
  const char* preset;
  int64_t dim;
  PresetParams params;
  int64_t cells, rows;
};

const System kSystems[] = {
    {"mae_2d", 20, {{"height", 5}}, 25, 25},
    {"mae_2d", 36, {{"height", 14}, {"cls_token", 1}}, 196, 197},
    {"vit_mae", 68, {{"height", 3}}, 9, 10},
    {"moco_v3_2d", 36, {{"height", 3}, {"width", 5}}, 15, 16},
    {"monai_2d", 20, {{"height", 3}, {"width", 5}}, 15, 15},
    {"diffusers_2d_sincos", 20, {{"height", 4}, {"width", 2}, {"base_size", 2}}, 8, 8},
    {"positional_encodings_2d", 7, {{"height", 2}, {"width", 3}}, 6, 6},
    {"simple_vit_3d", 20, {{"depth", 2}, {"height", 3}, {"width", 2}}, 12, 12},
};

TEST_P(Grid, AddsThePresetsTable) {
  for (const System& system : kSystems) {
    SCOPED_TRACE(system.preset);
    const auto sinusoid = preset(system.preset, system.dim, system.params);
    GridPositionalEncoding module(sinusoid);
    const auto table = sinusoid_table(sinusoid, system.cells);
    EXPECT_TRUE(bit_equal(module->pos_embed.detach(), table.unsqueeze(0)));
    EXPECT_EQ(table.size(0), system.rows);
    module->to(device());
    const auto x = torch::randn({2, system.rows, system.dim}).to(device());
    EXPECT_TRUE(bit_equal(module->forward(x), x + table.to(device())));
    EXPECT_TRUE(bit_equal(module->forward(x[1]), x[1] + table.to(device())));
    const auto patches = x.slice(1, system.rows - system.cells);
    EXPECT_TRUE(bit_equal(module->add_to_patches(patches),
                          module->forward(x).slice(1, system.rows - system.cells)));
  }
}

// get_2d_sincos_pos_embed of facebookresearch/mae, written out.
TEST(Grid, IsMaesOwnComputation) {
  const int64_t dim = 36, side = 7;
  const auto half = [&](const torch::Tensor& position) {
    auto omega = torch::arange(dim / 4, torch::kDouble);
    omega = omega / (dim / 4.0);
    omega = 1.0 / torch::pow(10000.0, omega);
    const auto angle = torch::outer(position.to(torch::kDouble).flatten(), omega);
    return torch::cat({torch::sin(angle), torch::cos(angle)}, 1);
  };
  const auto line = torch::arange(side, torch::kFloat);
  const auto column = line.unsqueeze(0).expand({side, side});
  const auto row = line.unsqueeze(1).expand({side, side});
  const auto table = torch::cat({half(column), half(row)}, 1);
  const auto with_cls = torch::cat({torch::zeros({1, dim}, torch::kDouble), table});
  GridPositionalEncoding module(preset("mae_2d", dim, {{"height", side}, {"cls_token", 1}}));
  EXPECT_TRUE(bit_equal(module->pos_embed.detach()[0], with_cls.to(torch::kFloat)));
}

TEST(Grid, KnowsWhatSineAndCosineOfZeroAre) {
  GridPositionalEncoding module(preset("vit_mae", 8, {{"height", 2}}));
  const auto zeros = torch::zeros({3, 5, 8});
  const auto out = module->forward(zeros);
  EXPECT_TRUE(bit_equal(out[2][0], torch::zeros({8})));  // class token
  EXPECT_TRUE(bit_equal(out[2][1], torch::tensor({0., 0., 1., 1., 0., 0., 1., 1.}, torch::kFloat)));
  // One cell to the right: the column's half changes, the row's does not.
  EXPECT_TRUE(bit_equal(out[2][2].slice(0, 4), out[2][1].slice(0, 4)));
  EXPECT_TRUE(bit_equal(out[2][2].slice(0, 0, 4), out[2][3].slice(0, 4)));
}

TEST_P(Grid, KeepsItsNameAndItsBitsThroughOtherTypes) {
  for (const auto how : {Options::RegisterAs::Parameter, Options::RegisterAs::Buffer}) {
    const auto sinusoid = preset("vit_mae", 20, {{"height", 3}});
    GridPositionalEncoding module(Options(sinusoid).key("position_embeddings").register_as(how));
    EXPECT_EQ(state_dict(*module).keys(), std::vector<std::string>{"position_embeddings"});
    EXPECT_EQ(module->parameters().size(), how == Options::RegisterAs::Parameter ? 1u : 0u);
    EXPECT_FALSE(module->pos_embed.requires_grad());
    module->to(device());
    const auto before = module->pos_embed.clone();
    module->to(torch::kBFloat16);
    EXPECT_TRUE(bit_equal(module->pos_embed, before.to(torch::kBFloat16)));
    module->to(torch::kFloat);
    EXPECT_TRUE(bit_equal(module->pos_embed, before));
  }
}

TEST(GridErrors, NameTheRuleAndTheValue) {
  const auto sinusoid = preset("mae_2d", 8, {{"height", 2}, {"cls_token", 1}});
  EXPECT_ERROR(GridPositionalEncoding(SinusoidOptions(8)), c10::ValueError,
               "[GridPositionalEncoding] the sinusoid must have a grid");
  EXPECT_ERROR(GridPositionalEncoding(SinusoidOptions(8).grid({2, 0})), c10::ValueError,
               "every extent of a grid must be positive. Got 0");
  EXPECT_ERROR(GridPositionalEncoding(SinusoidOptions(6).grid({2, 2})), c10::ValueError,
               "dim must be a multiple of 4. Got 6");
  EXPECT_ERROR(GridPositionalEncoding(Options(sinusoid).key("a.b")), c10::ValueError,
               "key must be a name without dots. Got `a.b`");
  EXPECT_ERROR(GridPositionalEncoding(Options(sinusoid).key("")), c10::ValueError,
               "key must be a name without dots. Got ``");
  GridPositionalEncoding module(sinusoid);
  EXPECT_ERROR(module->forward(torch::zeros({1, 4, 8})), c10::ValueError,
               "x must have 5 rows, one a row of the table. Got [1, 4, 8]");
  EXPECT_ERROR(module->forward(torch::zeros({1, 1, 8})), c10::ValueError, "x must have 5 rows");
  EXPECT_ERROR(module->add_to_patches(torch::zeros({1, 5, 8})), c10::ValueError,
               "x must have 4 rows");
  EXPECT_ERROR(module->forward(torch::zeros({1, 5, 6})), c10::ValueError,
               "x must have d_model 8 in its last axis. Got [1, 5, 6]");
  EXPECT_ERROR(module->forward(torch::zeros({8})), c10::ValueError,
               "x must be (B, R, D) or (R, D). Got [8]");
  EXPECT_ERROR(module->forward(torch::zeros({1, 5, 8}, torch::kLong)), c10::TypeError,
               "x must be real-valued");
}

}  // namespace
}  // namespace posenc::grid_positional_encoding_test
