#include "posenc/positions/nn/vision_embeddings.h"

#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/utils.h>

#include <limits>
#include <sstream>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"

namespace posenc {
namespace {

using testing::bit_equal;
using vision::MaskRule;
using vision::PositionRows;
using vision::PositionTable;

VisionEmbeddingsOptions small_vision() {
  return {/*image_size=*/6, /*patch_size=*/2, /*d_model=*/4};
}

torch::Tensor images(int64_t height = 6, int64_t width = 6) {
  return torch::randn({2, 3, height, width});
}

// The patches (B, N, D) by the convolution itself.
torch::Tensor patches_of(const VisionEmbeddings& embeddings, const torch::Tensor& pixels) {
  return torch::conv2d(pixels, embeddings->patches->weight(), embeddings->patches->bias(), {2, 2})
      .flatten(2)
      .transpose(1, 2);
}

torch::Tensor per_image(const torch::Tensor& token) { return token.expand({2, -1, -1}); }

std::string keys_of(const VisionEmbeddingsOptions& options) {
  const VisionEmbeddings embeddings(options);
  std::string joined;
  for (const auto& item : state_dict(*embeddings)) joined += item.key() + " ";
  return joined;
}

TEST(VisionEmbeddings, AddsPositionsToAllTokens) {
  VisionEmbeddings embeddings(small_vision().distillation_token(true).register_tokens(2));
  const auto pixels = images();
  const auto tokens =
      torch::cat({per_image(embeddings->class_token), per_image(embeddings->distillation_token),
                  per_image(embeddings->register_tokens), patches_of(embeddings, pixels)},
                 1);
  EXPECT_TRUE(bit_equal(embeddings->forward(pixels), tokens + embeddings->position_table));
  EXPECT_EQ(embeddings->position_table.sizes(), (std::vector<int64_t>{1, 13, 4}));
}

TEST(VisionEmbeddings, PutsRegistersAfterTheTokensThatHavePositions) {
  VisionEmbeddings embeddings(
      small_vision().register_tokens(2).position_rows(PositionRows::AllButRegisters));
  const auto pixels = images();
  const auto placed =
      torch::cat({per_image(embeddings->class_token), patches_of(embeddings, pixels)}, 1) +
      embeddings->position_table;
  const auto expected = torch::cat(
      {placed.slice(1, 0, 1), per_image(embeddings->register_tokens), placed.slice(1, 1)}, 1);
  EXPECT_TRUE(bit_equal(embeddings->forward(pixels), expected));
}

TEST(VisionEmbeddings, AddsPositionsToPatchesAlone) {
  VisionEmbeddings embeddings(small_vision()
                                  .class_token_dim(1)
                                  .position_table(PositionTable::Embedding)
                                  .position_rows(PositionRows::Patches));
  const auto pixels = images();
  const auto placed = patches_of(embeddings, pixels) + embeddings->position_embedding->weight;
  const auto expected = torch::cat({embeddings->class_token.expand({2, 1, 4}), placed}, 1);
  EXPECT_TRUE(bit_equal(embeddings->forward(pixels), expected));
  EXPECT_EQ(embeddings->class_token.dim(), 1);
}

TEST(VisionEmbeddings, NeedsNoPositions) {
  VisionEmbeddings embeddings(
      small_vision().position_table(PositionTable::None).register_tokens(0));
  const auto pixels = images(4, 10);
  const auto expected =
      torch::cat({per_image(embeddings->class_token), patches_of(embeddings, pixels)}, 1);
  EXPECT_TRUE(bit_equal(embeddings->forward(pixels), expected));
  EXPECT_FALSE(embeddings->positions(4, 10).defined());
}

TEST(VisionEmbeddings, NormalizesAndDropsLast) {
  VisionEmbeddings embeddings(small_vision().norm(true).dropout(0.5));
  const auto pixels = images();
  embeddings->eval();
  VisionEmbeddings plain(small_vision());
  load_state_dict(*plain, [&] {
    StateDict all = state_dict(*embeddings), some;
    for (const auto& item : all)
      if (item.key().rfind("pre_layrnorm", 0) != 0) some.insert(item.key(), item.value());
    return some;
  }());
  EXPECT_TRUE(
      bit_equal(embeddings->forward(pixels), embeddings->norm->forward(plain->forward(pixels))));
  embeddings->train();
  torch::manual_seed(3);
  const auto dropped = embeddings->forward(pixels);
  torch::manual_seed(3);
  const auto expected =
      embeddings->norm->forward(torch::dropout(plain->forward(pixels), 0.5, true));
  EXPECT_TRUE(bit_equal(dropped, expected));
}

TEST(VisionEmbeddings, ResizesPositionsByItsRule) {
  for (const auto rule : {PositionResize::Bicubic, PositionResize::BicubicAntialias}) {
    VisionEmbeddings embeddings(small_vision().resize(rule));
    const auto expected = functional::resize_positions(embeddings->position_table, 5, 3, rule, 1);
    EXPECT_TRUE(
        bit_equal(embeddings->positions(11, 7), expected));  // the last row of pixels is unused
    const auto pixels = images(11, 7);
    const auto tokens =
        torch::cat({per_image(embeddings->class_token), patches_of(embeddings, pixels)}, 1);
    EXPECT_TRUE(bit_equal(embeddings->forward(pixels), tokens + expected));
    EXPECT_TRUE(embeddings->positions(6, 6).is_same(embeddings->position_table));
  }
}

TEST(VisionEmbeddings, TakesItsOwnTableForWhatTheRuleDoes) {
  // A table for 2 x 8 patches is taken for 4 x 4: DINOv2 resizes the positions even for images of
  // its own size.
  const auto wide = small_vision().image_height(4).image_width(16);
  EXPECT_TRUE(VisionEmbeddings(wide)->positions(4, 16).defined());
  VisionEmbeddings same(wide), other(VisionEmbeddingsOptions(wide).resize_always(true));
  EXPECT_TRUE(same->positions(4, 16).is_same(same->position_table));
  EXPECT_TRUE(bit_equal(
      other->positions(4, 16),
      functional::resize_positions(other->position_table, 2, 8, PositionResize::Bicubic, 1)));
  const auto timm = VisionEmbeddingsOptions(wide).resize_always(true).resize(
      PositionResize::BicubicAntialiasKeepEqual);
  VisionEmbeddings knows(timm);
  EXPECT_TRUE(knows->positions(4, 16).is_same(knows->position_table));
  EXPECT_TRUE(
      bit_equal(knows->positions(16, 4),
                functional::resize_positions(knows->position_table, 8, 2, timm.resize(), 1, 2, 8)));
  const auto tall = small_vision().image_height(4).image_width(6).resize_always(true);
  EXPECT_ERROR(
      VisionEmbeddings(tall)->positions(4, 6), c10::ValueError,
      "[VisionEmbeddings] the table must have 2x2 positions for patches, the grid that it is "
      "resized from. Got 6");
}

TEST(VisionEmbeddings, MasksPatches) {
  const auto mask = torch::tensor({{1, 0, 0, 1, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}}) == 1;
  for (const auto rule : {MaskRule::Blend, MaskRule::Select}) {
    for (const int64_t dim : {2, 3}) {
      VisionEmbeddings embeddings(
          small_vision().mask_token(true).mask_token_dim(dim).mask_rule(rule));
      torch::nn::init::normal_(embeddings->mask_token);
      const auto pixels = images();
      const auto out = embeddings->forward(pixels, VisionEmbeddingsInputs().bool_masked_pos(mask));
      const auto patches = torch::where(mask.unsqueeze(-1), embeddings->mask_token.view({1, 1, 4}),
                                        patches_of(embeddings, pixels));
      const auto expected =
          torch::cat({per_image(embeddings->class_token), patches}, 1) + embeddings->position_table;
      EXPECT_TRUE(torch::equal(out, expected));
    }
  }
}

TEST(VisionEmbeddings, BlendingKeepsWhatIsNotFinite) {
  const auto mask = torch::ones({1, 9}, torch::kBool);
  auto pixels = torch::zeros({1, 3, 6, 6});
  pixels[0][0][0][0] = std::numeric_limits<float>::infinity();
  for (const auto rule : {MaskRule::Blend, MaskRule::Select}) {
    VisionEmbeddings embeddings(small_vision().mask_token(true).mask_rule(rule));
    const auto out = embeddings->forward(pixels, VisionEmbeddingsInputs().bool_masked_pos(mask));
    EXPECT_EQ(out.isfinite().all().item<bool>(), rule == MaskRule::Select);
  }
}

TEST(VisionEmbeddings, LeavesOutPatchesByNoise) {
  VisionEmbeddings embeddings(small_vision().mask_ratio(0.5).register_tokens(1).position_rows(
      PositionRows::AllButRegisters));
  const auto pixels = images();
  const auto noise = torch::rand({2, 9});
  const auto whole = embeddings->forward(pixels);
  const auto some = embeddings->forward(pixels, VisionEmbeddingsInputs().noise(noise));
  const auto chosen = noise.argsort(int64_t{1}, false).slice(1, 0, 4) + 2;
  ASSERT_EQ(some.sizes(), (std::vector<int64_t>{2, 6, 4}));
  for (int64_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(bit_equal(some[b].slice(0, 0, 2), whole[b].slice(0, 0, 2)));
    EXPECT_TRUE(bit_equal(some[b].slice(0, 2), whole[b].index_select(0, chosen[b])));
  }
}

TEST(VisionEmbeddings, KeysAreThoseOfTheNames) {
  EXPECT_EQ(keys_of(small_vision()),
            "cls_token position_embeddings patch_embeddings.projection.weight "
            "patch_embeddings.projection.bias ");
  vision::Names names;
  names.patches = "a.b.c";
  names.positions = "pos";
  names.class_token = "cls";
  EXPECT_EQ(keys_of(small_vision().names(names).patch_bias(false).position_table(
                PositionTable::Embedding)),
            "cls a.b.c.weight pos.weight ");
  names.patches = "conv";
  EXPECT_EQ(keys_of(small_vision()
                        .names(names)
                        .mask_token(true)
                        .register_tokens(0)
                        .distillation_token(true)
                        .position_table(PositionTable::None)
                        .norm(true)),
            "cls mask_token register_tokens distillation_token conv.weight conv.bias "
            "pre_layrnorm.weight pre_layrnorm.bias ");
}

TEST(VisionEmbeddings, ClonesNestedAndFlatProjections) {
  vision::Names flat;
  flat.patches = "conv";
  for (const auto& names : {vision::Names(), flat}) {
    VisionEmbeddings embeddings(
        small_vision().names(names).position_table(PositionTable::Embedding));
    embeddings->eval();
    const auto pixels = images();
    const auto before = embeddings->forward(pixels);
    const auto copy = std::dynamic_pointer_cast<VisionEmbeddingsImpl>(embeddings->clone());
    EXPECT_TRUE(bit_equal(copy->forward(pixels), before));
    {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : copy->parameters()) parameter.add_(1);
    }
    EXPECT_TRUE(bit_equal(embeddings->forward(pixels), before));
    EXPECT_FALSE(bit_equal(copy->forward(pixels), before));
    copy->to(torch::kDouble);
    EXPECT_EQ(copy->forward(pixels.to(torch::kDouble)).scalar_type(), torch::kDouble);
  }
}

TEST(VisionEmbeddings, InitialWeightsAreTruncatedNormalOrZeros) {
  torch::manual_seed(7);
  VisionEmbeddings embeddings(
      VisionEmbeddingsOptions(32, 4, 64).mask_token(true).register_tokens(2));
  EXPECT_NEAR(embeddings->patches->weight().std().item<double>(), 0.02, 0.002);
  EXPECT_NEAR(embeddings->position_table.std().item<double>(), 0.02, 0.002);
  for (const auto& zeros :
       {embeddings->mask_token, embeddings->register_tokens, embeddings->patches->bias()})
    EXPECT_EQ(zeros.count_nonzero().item<int64_t>(), 0);
  const auto before = embeddings->position_table.clone();
  embeddings->reset_parameters();
  EXPECT_FALSE(torch::equal(embeddings->position_table, before));
}

TEST(VisionEmbeddings, SinusoidIsFrozenAndStays) {
  const auto sinusoid = preset("mae_2d", 8, {{"height", 3}, {"cls_token", 1}});
  VisionEmbeddings embeddings(VisionEmbeddingsOptions(6, 2, 8).sinusoid(sinusoid));
  EXPECT_FALSE(embeddings->position_table.requires_grad());
  EXPECT_TRUE(bit_equal(embeddings->position_table[0], sinusoid_table(sinusoid, 9)));
  embeddings->reset_parameters();
  EXPECT_TRUE(bit_equal(embeddings->position_table[0], sinusoid_table(sinusoid, 9)));
}

TEST(VisionEmbeddings, PixelsAreCastWhereTheSystemDoes) {
  const auto pixels = images();
  VisionEmbeddings casts(small_vision().cast_pixels(true)), strict(small_vision());
  casts->to(torch::kBFloat16);
  EXPECT_TRUE(bit_equal(casts->forward(pixels), casts->forward(pixels.to(torch::kBFloat16))));
  EXPECT_ERROR(
      strict->forward(pixels.to(torch::kDouble)), c10::TypeError,
      "[VisionEmbeddings] pixel_values must have the dtype of the weight, Float. Got Double");
}

TEST(VisionEmbeddings, RunsInASequential) {
  torch::nn::Sequential model(VisionEmbeddings(small_vision()), LayerNorm(4));
  EXPECT_EQ(model->forward(images()).sizes(), (std::vector<int64_t>{2, 10, 4}));
}

TEST(VisionEmbeddings, PrintsItsOptions) {
  std::ostringstream text;
  text << *VisionEmbeddings(
      small_vision().class_tokens(2).register_tokens(3).dropout(0.5).norm(true));
  const std::string first = text.str().substr(0, text.str().find('\n'));
  EXPECT_EQ(
      first,
      "posenc::VisionEmbeddings(image_height=6, image_width=6, patch_height=2, patch_width=2, "
      "d_model=4, class_tokens=2, register_tokens=3, norm=true, dropout=0.5)(");
}

TEST(VisionEmbeddings, RefusesImages) {
  VisionEmbeddings embeddings(small_vision().resize(PositionResize::Refuse));
  EXPECT_ERROR(embeddings->forward(images()[0]), c10::ValueError,
               "[VisionEmbeddings] pixel_values must be (B, C, H, W). Got [3, 6, 6]");
  EXPECT_ERROR(
      embeddings->forward(torch::zeros({2, 4, 6, 6})), c10::ValueError,
      "[VisionEmbeddings] pixel_values must have the 3 channels of the options. Got 4 in [2, "
      "4, 6, 6]");
  EXPECT_ERROR(embeddings->forward(images(1, 6)), c10::ValueError,
               "[VisionEmbeddings] images must have at least one patch of 2x2 pixels. Got 1x6");
  EXPECT_ERROR(
      embeddings->forward(images(7, 6)), c10::ValueError,
      "[VisionEmbeddings] images must have 6x6 pixels, as PositionResize::Refuse leaves the "
      "positions as they are. Got 7x6");
  EXPECT_ERROR(
      VisionEmbeddings(small_vision().whole_patches(true))->forward(images(8, 7)), c10::ValueError,
      "[VisionEmbeddings] images must be a whole number of patches of 2x2 pixels. Got 8x7");
}

TEST(VisionEmbeddings, RefusesMasksAndNoise) {
  VisionEmbeddings plain(small_vision()), masks(small_vision().mask_token(true));
  const auto mask = torch::zeros({2, 9}, torch::kBool);
  EXPECT_ERROR(plain->forward(images(), VisionEmbeddingsInputs().bool_masked_pos(mask)),
               c10::ValueError, "[VisionEmbeddings] bool_masked_pos needs a mask token");
  EXPECT_ERROR(
      masks->forward(images(), VisionEmbeddingsInputs().bool_masked_pos(mask.to(torch::kInt))),
      c10::TypeError, "[VisionEmbeddings] bool_masked_pos must be bool. Got Int");
  EXPECT_ERROR(
      masks->forward(images(), VisionEmbeddingsInputs().bool_masked_pos(mask.slice(1, 1))),
      c10::ValueError,
      "[VisionEmbeddings] bool_masked_pos must have a number for each patch, [2, 9]. Got [2, "
      "8]");
  EXPECT_ERROR(plain->forward(images(), VisionEmbeddingsInputs().noise(mask)), c10::TypeError,
               "[VisionEmbeddings] noise must be floating-point. Got Bool");
  EXPECT_ERROR(plain->forward(images(), VisionEmbeddingsInputs().noise(torch::rand({1, 9}))),
               c10::ValueError,
               "[VisionEmbeddings] noise must have a number for each patch, [2, 9]");
}

TEST(VisionEmbeddings, RefusesOptions) {
  const auto refused = [](const VisionEmbeddingsOptions& options) {
    return testing::message_of([&] { VisionEmbeddings embeddings(options); });
  };
  EXPECT_EQ(refused(VisionEmbeddingsOptions(6, 0, 4)),
            "[VisionEmbeddings] patch_height must be positive. Got 0");
  EXPECT_EQ(refused(VisionEmbeddingsOptions(6, 2, -4)),
            "[VisionEmbeddings] d_model must be positive. Got -4");
  EXPECT_EQ(refused(small_vision().num_channels(0)),
            "[VisionEmbeddings] num_channels must be positive. Got 0");
  EXPECT_EQ(refused(small_vision().patch_width(7)),
            "[VisionEmbeddings] images must have at least one patch of 2x7 pixels. Got 6x6");
  EXPECT_EQ(refused(small_vision().dropout(1.0)),
            "[VisionEmbeddings] dropout must lie in [0, 1). Got 1");
  EXPECT_EQ(refused(small_vision().mask_ratio(1.0)),
            "[VisionEmbeddings] mask_ratio must lie in [0, 1). Got 1");
  EXPECT_EQ(refused(small_vision().initializer_range(0.0)),
            "[VisionEmbeddings] initializer_range must be positive. Got 0");
  EXPECT_EQ(refused(small_vision().class_tokens(-1)),
            "[VisionEmbeddings] class_tokens must not be negative. Got -1");
  EXPECT_EQ(refused(small_vision().class_tokens(2).class_token_dim(1)),
            "[VisionEmbeddings] class_token_dim must be 3, or 1 for one class token. Got 1 for 2");
  EXPECT_EQ(refused(small_vision().mask_token_dim(1)),
            "[VisionEmbeddings] mask_token_dim must be 2 or 3. Got 1");
  EXPECT_EQ(refused(small_vision().register_tokens(-2)),
            "[VisionEmbeddings] register_tokens must not be negative. Got -2");
  vision::Names dotted, empty;
  dotted.class_token = "cls.token";
  empty.patches = "a..b";
  EXPECT_EQ(
      refused(small_vision().names(dotted)),
      "[VisionEmbeddings] the name of the class token must be one without dots. Got `cls.token`");
  EXPECT_EQ(refused(small_vision().names(empty)),
            "[VisionEmbeddings] the name of the projection must be names with single dots between "
            "them. Got `a..b`");
  const auto sinusoid = preset("mae_2d", 4, {{"height", 2}, {"cls_token", 1}});
  EXPECT_EQ(
      refused(small_vision().sinusoid(sinusoid)),
      "[VisionEmbeddings] the sinusoid must have a row for each of the 10 tokens with a position, "
      "of width 4. Got 5 rows of width 4");
  EXPECT_EQ(refused(small_vision().sinusoid(sinusoid).position_table(PositionTable::None)),
            "[VisionEmbeddings] a sinusoid needs PositionTable::Parameter");
}

}  // namespace
}  // namespace posenc
