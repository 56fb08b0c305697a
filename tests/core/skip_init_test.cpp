#include "posenc/core/skip_init.h"

#include <gtest/gtest.h>

#include "posenc/transformer/transformer.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::testing {
namespace {

TransformerOptions small() {
  return TransformerOptions(11, 9).d_model(8).num_heads(2).num_encoder_layers(1).d_ff(12);
}

TEST(SkipInit, ModulesHaveTheirTensorsAndTheirResults) {
  Transformer drawn(small()), skipped(nullptr);
  {
    const SkipInit skip;
    EXPECT_TRUE(SkipInit::is_active());
    skipped = Transformer(small());
  }
  EXPECT_FALSE(SkipInit::is_active());
  const auto from = state_dict(*drawn), to = state_dict(*skipped);
  ASSERT_EQ(from.keys(), to.keys());
  const torch::NoGradGuard no_grad;
  for (const auto& item : from) {
    ASSERT_EQ(to[item.key()].sizes(), item.value().sizes()) << item.key();
    EXPECT_EQ(to[item.key()].requires_grad(), item.value().requires_grad()) << item.key();
    to[item.key()].copy_(item.value());
  }
  const auto ids = torch::arange(6).view({2, 3});
  drawn->eval(), skipped->eval();
  EXPECT_TRUE(bit_equal(skipped->forward(ids, ids), drawn->forward(ids, ids)));
  auto* linear = skipped->decoder->layers[0]->as<TransformerDecoderLayerImpl>();
  EXPECT_EQ(linear->linear1->options.out_features(), 12) << "what it says of itself";
}

TEST(SkipInit, DrawsNothingLarge) {
  const auto count = [](auto&& make) {  // state of the generator after `make`
    torch::manual_seed(testing::seed(1));
    make();
    return torch::rand({}).item<double>();
  };
  torch::manual_seed(testing::seed(1));
  const double first = torch::rand({}).item<double>();
  const double drawn = count([] { OutputProjection made(8, 9); });
  const double skipped = count([] {
    const SkipInit skip;
    OutputProjection made(8, 9);
  });
  EXPECT_NE(drawn, first);
  EXPECT_EQ(skipped, first);
}

TEST(SkipInit, EndsWithTheLastOfSeveral) {
  const SkipInit outer;
  { const SkipInit inner; }
  EXPECT_TRUE(SkipInit::is_active());
}

}  // namespace
}  // namespace posenc::testing
