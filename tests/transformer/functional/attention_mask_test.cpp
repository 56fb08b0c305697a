// posenc-budget: the tests of one class

#include "posenc/transformer/functional/attention_mask.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "posenc/positions/functional/pad_sequences.h"
#include "support/compare.h"
#include "support/devices.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

using Access = AttentionMaskAccess;
using testing::bit_equal;
using testing::OnEachDevice;

constexpr float kNo = -std::numeric_limits<float>::infinity();
const AttentionShape kShape = {2, 3, 4, 5};  // B, H, L, S

torch::Tensor bias_of(const AttentionMask& mask, const torch::Tensor& like = torch::zeros({1})) {
  return Access::resolve(mask, kShape, like).bias.expand({2, 3, 4, 5});
}

// The bias for `may`: broadcastable, true where attention is allowed.
torch::Tensor expected(const torch::Tensor& may) {
  return torch::zeros({2, 3, 4, 5}).masked_fill(may.logical_not(), kNo);
}

torch::Tensor bits(std::vector<int64_t> shape) { return torch::rand(shape) < 0.5; }

TEST(AttentionMask, NoneIsNoMask) {
  EXPECT_TRUE(AttentionMask().is_none());
  EXPECT_FALSE(Access::resolve(AttentionMask(), kShape, torch::zeros({1})).bias.defined());
  EXPECT_FALSE(Access::resolve(AttentionMask(), kShape, torch::zeros({1})).is_causal);
  EXPECT_TRUE((AttentionMask() & AttentionMask()).is_none());
  EXPECT_FALSE(AttentionMask::causal().is_none());
}

TEST(AttentionMask, SaysWhatTrueMeans) {
  const auto may = bits({4, 5});
  const auto no = may.logical_not();
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed_pairs(may)), expected(may)));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::blocked_pairs(may)), expected(no)));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::attn_mask_torch_nn(may)), expected(no)));
  const auto all = bits({2, 3, 4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed(all)), expected(all)));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::blocked(all)), expected(all.logical_not())));
  const auto of_heads = all.flatten(0, 1);  // torch.nn's (B * H, L, S)
  EXPECT_TRUE(
      bit_equal(bias_of(AttentionMask::attn_mask_torch_nn(of_heads)), expected(all.logical_not())));
  const auto bias = torch::randn({4, 5}), everywhere = bias.expand({2, 3, 4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::additive_pairs(bias)), everywhere));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::additive(everywhere)), everywhere));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::attn_mask_torch_nn(bias)), everywhere));
}

// Hugging Face's attention_mask in all its dtypes, and torch.nn's key_padding_mask.
TEST(AttentionMask, ReadsPaddingAsOneKeyARow) {
  const auto tokens = torch::tensor({{1, 1, 0, 0, 0}, {1, 1, 1, 1, 0}});
  const auto bias = expected(tokens.view({2, 1, 1, 5}) != 0);
  for (const auto dtype : {torch::kLong, torch::kInt, torch::kShort, torch::kChar, torch::kByte,
                           torch::kUInt16, torch::kUInt32, torch::kUInt64, torch::kBool}) {
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::key_padding(tokens.to(dtype))), bias)) << dtype;
    const auto ids = (tokens * 7).to(dtype);
    if (dtype == torch::kBool) continue;
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::padding(ids, 0)), bias)) << dtype;
  }
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::key_padding(tokens * -3)), bias));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::key_padding_torch_nn(tokens == 0)), bias));
  const auto padded =
      functional::pad_sequences({torch::tensor({7, 8}), torch::tensor({1, 2, 3, 4})},
                                functional::PadSequencesOptions().max_len(5));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::key_padding(padded.mask)), bias));
}

// A pad id that does not fit the ids' dtype matches none of them.
TEST(AttentionMask, ComparesIdsAsInt64) {
  const auto ids = torch::full({2, 5}, 255, torch::kByte);
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::padding(ids, -1)),
                        expected((ids == 255).view({2, 1, 1, 5}))));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::padding(ids, 511)),
                        expected((ids == 255).view({2, 1, 1, 5}))));
}

// torch.nn's three axes are (B * H, L, S). With B = H = L = S, a (4, 4, 4) tensor could be a mask
// per head or per sequence, so it is an error.
TEST(AttentionMask, TorchNnMasksHaveBatchTimesHeads) {
  const AttentionShape square = {4, 4, 4, 4};
  const auto like = torch::zeros({1});
  const auto right = bits({16, 4, 4});
  const auto found = Access::resolve(AttentionMask::attn_mask_torch_nn(right), square, like).bias;
  EXPECT_TRUE(bit_equal(found == 0, right.logical_not().view({4, 4, 4, 4})));
  const auto real = torch::randn({16, 4, 4});
  EXPECT_TRUE(bit_equal(Access::resolve(AttentionMask::attn_mask_torch_nn(real), square, like).bias,
                        real.view({4, 4, 4, 4})));
  const char* blocks = "must be (B * H, L, S) = [16, 4, 4]. Got [4, 4, 4]";
  for (const auto& mask : {AttentionMask::attn_mask_torch_nn(bits({4, 4, 4})),
                           AttentionMask::attn_mask_torch_nn(torch::randn({4, 4, 4})),
                           AttentionMask() & AttentionMask::attn_mask_torch_nn(bits({4, 4, 4}))}) {
    EXPECT_ERROR(Access::resolve(mask, square, like), c10::ValueError, blocks);
    EXPECT_ERROR(Access::resolve(Access::queries(mask, 0, 4), square, like), c10::ValueError,
                 blocks);
    EXPECT_TRUE(Access::resolve(mask, {4, 1, 4, 4}, like).bias.defined())
        << "with one head they are one";
  }
  for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {4}, {4, 4, 4, 4}}) {
    EXPECT_ERROR(AttentionMask::attn_mask_torch_nn(bits(shape)), c10::ValueError,
                 "takes (L, S) or (B * H, L, S); (B, H, L, S) comes by blocked() or additive()");
    EXPECT_ERROR(AttentionMask::attn_mask_torch_nn(torch::randn(shape)), c10::ValueError,
                 "takes (L, S) or (B * H, L, S)");
  }
}

// With B = L = S, sizes do not reveal which axis is which.
TEST(AttentionMask, DoesNotTakeBatchesForQueries) {
  const AttentionShape square = {4, 1, 4, 4};
  const auto tokens = torch::tensor({{1, 1, 1, 1}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 0}});
  const auto bias =
      Access::resolve(AttentionMask::key_padding(tokens), square, torch::zeros({1})).bias;
  const auto may = (bias == 0).expand({4, 1, 4, 4}).select(1, 0);  // (B, L, S)
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t query = 0; query < 4; ++query) {
      EXPECT_TRUE(may[b][query].equal(tokens[b] != 0)) << b << ", " << query;
    }
  }
  for (const auto& two_axes : {tokens != 0, tokens.select(0, 0) != 0}) {
    EXPECT_ERROR(AttentionMask::allowed(two_axes), c10::ValueError, "by key_padding()");
    EXPECT_ERROR(AttentionMask::blocked(two_axes), c10::ValueError, "by key_padding()");
    EXPECT_ERROR(AttentionMask::additive(two_axes.to(torch::kFloat)), c10::ValueError,
                 "by key_padding()");
  }
}

TEST(AttentionMask, TakesEveryBroadcastableShape) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{1, 5}, {4, 1}, {4, 5}, {1, 1}}) {
    const auto may = bits(shape);
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed_pairs(may)), expected(may)));
  }
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{1, 4, 5}, {2, 1, 1, 5}, {1, 3, 4, 1}, {2, 3, 4, 5}}) {
    const auto may = bits(shape);
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed(may)), expected(may)));
  }
}

// The first of three axes is the batch, not the heads, unlike in right-aligned broadcasting.
TEST(AttentionMask, ReadsThreeAxesAsBatchesOrTorchNnsHeads) {
  const auto batches = bits({2, 4, 5}), all = bits({6, 4, 5});
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed(batches)), expected(batches.unsqueeze(1))));
  EXPECT_TRUE(bit_equal(bias_of(AttentionMask::allowed(all)), expected(all.view({2, 3, 4, 5}))));
}

TEST(AttentionMask, CausalCountsTheKeysBeforeTheFirstQuery) {
  for (const int64_t offset : {-2, 0, 1, 3, 4, 9}) {
    const auto may = torch::ones({4, 5}, torch::kBool).tril(offset);
    const auto resolved = Access::resolve(AttentionMask::causal(offset), kShape, torch::zeros({1}));
    EXPECT_EQ(resolved.is_causal, offset == 0);
    EXPECT_EQ(resolved.bias.defined(), offset < 4 && offset != 0) << "all keys are seen from 4 on";
    const auto everything = AttentionMask::allowed_pairs(torch::ones({1, 1}, torch::kBool));
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::causal(offset) & everything), expected(may)));
  }
}

TEST(AttentionMask, WindowsReachAsFarOnBothSides) {
  const auto everything = AttentionMask::allowed_pairs(torch::ones({1, 1}, torch::kBool));
  for (const int64_t width : {0, 1, 3, 4, 9}) {
    const auto may = torch::ones({4, 5}, torch::kBool).tril(width).triu(-width);
    const auto mask = AttentionMask::window(width);
    EXPECT_FALSE(mask.is_none());
    EXPECT_TRUE(bit_equal(bias_of(mask & everything), expected(may)));
    const auto resolved = Access::resolve(mask, kShape, torch::zeros({1}));
    EXPECT_FALSE(resolved.is_causal);
    EXPECT_EQ(resolved.bias.defined(), width < 4) << "all keys are seen from 4 on";
    EXPECT_TRUE(bit_equal(bias_of(AttentionMask::window(9) & mask & everything), expected(may)))
        << "the narrower of two";
    EXPECT_TRUE(
        bit_equal(bias_of(mask & AttentionMask::causal() & everything), expected(may.tril())));
    const auto later = torch::ones({4, 5}, torch::kBool).tril(width + 1).triu(1 - width);
    EXPECT_TRUE(bit_equal(bias_of(mask.after(1) & everything), expected(later)));
  }
  EXPECT_ERROR(AttentionMask::window(-1), c10::ValueError,
               "window() takes a width of at least 0. Got -1");
}

// No key is beyond the largest distance, also for queries that come after others.
TEST(AttentionMask, TheLargestDistancesHideNothing) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto everything = AttentionMask::allowed_pairs(torch::ones({1, 1}, torch::kBool));
  for (const auto& mask : {AttentionMask::window(kMost), AttentionMask::causal(kMost),
                           AttentionMask::window(kMost - 1), AttentionMask::causal(kMost - 1)}) {
    for (const auto& one :
         {mask, mask.after(1), mask.after(3).after(2), Access::queries(mask, 1, 3) & mask}) {
      EXPECT_TRUE(
          bit_equal(bias_of(one & everything), expected(torch::ones({1, 1}, torch::kBool))));
    }
  }
}

TEST(AttentionMask, CombinesWhatBothAllow) {
  const auto ids = torch::tensor({{7, 0, 3, 0, 0}, {1, 2, 3, 4, 0}});
  const auto may = bits({4, 5});
  const auto first = torch::randn({4, 5}), second = torch::randn({2, 3, 1, 5});
  const auto mask = AttentionMask::causal() & AttentionMask::padding(ids, 0) &
                    AttentionMask::allowed_pairs(may) & AttentionMask::additive_pairs(first) &
                    AttentionMask::additive(second) & AttentionMask::causal(2);
  const auto allowed =
      torch::ones({4, 5}, torch::kBool).tril() & (ids != 0).view({2, 1, 1, 5}) & may;
  EXPECT_TRUE(bit_equal(bias_of(mask), (first + second).masked_fill(allowed.logical_not(), kNo)));
}

// Code that removes tokens, as a frozen model does, may rely on these masks only: masks from any
// other maker keep all queries, whatever their shape.
TEST(AttentionMask, SaysWhichKeysArePadding) {
  const auto first = bits({2, 5}), second = bits({2, 5});
  const auto both = AttentionMask::key_padding(first) & AttentionMask::key_padding_torch_nn(second);
  EXPECT_TRUE(both.padding_keys().equal(first.logical_and(second.logical_not())));
  const auto as_keys = first.view({2, 1, 1, 5});
  for (const auto& other :
       {AttentionMask(), AttentionMask::allowed(as_keys), AttentionMask::blocked(as_keys),
        AttentionMask::attn_mask_torch_nn(first.unsqueeze(1)), AttentionMask::causal(),
        both & AttentionMask::key_padding(bits({2, 4}))}) {
    EXPECT_FALSE(other.padding_keys().defined());
  }
  const auto resolved = both.resolved(kShape, torch::zeros({1}));
  EXPECT_TRUE(resolved.padding_keys().equal(both.padding_keys()));
  const auto sequences = Access::sequences(resolved, torch::tensor({1, 1, 0}));
  EXPECT_TRUE(sequences.padding_keys()[2].equal(both.padding_keys()[0]));
  const auto told = Access::with_padding(AttentionMask::causal(), first);
  EXPECT_TRUE(told.padding_keys().equal(first));
  EXPECT_TRUE((told & both).padding_keys().equal(first & both.padding_keys()));
  EXPECT_TRUE(Access::resolve(told, kShape, torch::zeros({1})).is_causal) << "told, not hidden";
  EXPECT_TRUE(Access::without_keys(both).is_none());
  for (const auto& other : {AttentionMask::allowed(as_keys), AttentionMask::causal(1),
                            AttentionMask::additive(torch::randn({2, 4, 5}))}) {
    EXPECT_TRUE((both & other).padding_keys().equal(both.padding_keys()));
    EXPECT_TRUE(bit_equal(bias_of(Access::without_keys(both & other)), bias_of(other)));
  }
}

TEST(AttentionMask, QueriesSelectsRowsOfTheMask) {
  const auto mask = AttentionMask::causal(1) & AttentionMask::key_padding(bits({2, 5})) &
                    AttentionMask::allowed_pairs(bits({4, 5})) &
                    AttentionMask::additive(torch::randn({6, 4, 5})) &
                    AttentionMask::additive(torch::randn({2, 1, 5}));
  const auto whole = bias_of(mask);
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 4}, {0, 1}, {3, 1}, {1, 2}, {4, 0}}) {
    const auto some =
        Access::resolve(Access::queries(mask, first, count), {2, 3, count, 5}, torch::zeros({1}))
            .bias;
    EXPECT_TRUE(bit_equal(some.expand({2, 3, count, 5}), whole.narrow(2, first, count)));
  }
  EXPECT_ERROR(Access::queries(mask, 3, 2), c10::ValueError,
               "queries must lie in [0, 4). Got 3 to 4");
  EXPECT_ERROR(Access::queries(mask, -1, 1), c10::ValueError, "queries must lie in [0, 4)");
}

TEST(AttentionMask, IsResolvedOnce) {
  const auto like = torch::zeros({1}, torch::kBFloat16);
  const auto mask = AttentionMask::causal() & AttentionMask::allowed_pairs(bits({4, 5}));
  const auto once = mask.resolved(kShape, like);
  const auto bias = Access::resolve(once, kShape, like).bias;
  EXPECT_EQ(bias.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(bias.is_same(Access::resolve(once, kShape, like).bias))
      << "nothing is computed again";
  EXPECT_TRUE(bit_equal(bias, Access::resolve(mask, kShape, like).bias));
  const auto real = AttentionMask::additive_pairs(torch::randn({4, 5}));
  EXPECT_EQ(Access::resolve(real, kShape, like).bias.scalar_type(), torch::kFloat);
  EXPECT_TRUE(
      Access::resolve(AttentionMask::causal().resolved(kShape, like), kShape, like).is_causal);
  EXPECT_TRUE(AttentionMask().resolved(kShape, like).is_none());
}

// A bias that is resolved twice forbids what both did, and what is added to it does not count
// there.
TEST(AttentionMask, ResolvedAgainForbidsWhatItForbade) {
  const auto like = torch::zeros({1});
  auto tokens = torch::ones({2, 5}, torch::kBool), seen = torch::ones({4, 5}, torch::kBool);
  tokens.select(1, 4).fill_(false);
  seen.select(1, 0).fill_(false);
  auto bias = torch::randn({4, 5});
  bias.select(1, 4).fill_(NAN);
  const auto padding = AttentionMask::key_padding(tokens),
             pairs = AttentionMask::allowed_pairs(seen),
             added = AttentionMask::additive_pairs(bias);
  const auto twice = padding.resolved(kShape, like) & pairs;
  const auto found = Access::resolve(twice, kShape, like);
  EXPECT_TRUE(bit_equal(found.allowed.expand({2, 3, 4, 5}), bias_of(twice) != kNo));
  EXPECT_TRUE(
      bit_equal(bias_of(twice.resolved(kShape, like) & added), bias_of(padding & pairs & added)));
}

class AttentionMaskOnDevices : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(AttentionMaskOnDevices);

TEST_P(AttentionMaskOnDevices, IsMadeWhereTheInputIs) {
  const auto like = torch::zeros({1}).to(device());
  const auto mask = AttentionMask::causal(1) &
                    AttentionMask::padding(torch::ones({2, 5}, torch::kLong).to(device()), 0);
  EXPECT_EQ(Access::resolve(mask, kShape, like).bias.device(), device());
}

TEST(AttentionMaskErrors, RejectsOtherTypes) {
  for (const auto& wrong : {torch::ones({4, 5}), torch::ones({4, 5}, torch::kByte)}) {
    EXPECT_ERROR(AttentionMask::allowed(wrong), c10::TypeError, "allowed() takes a bool tensor");
    EXPECT_ERROR(AttentionMask::blocked(wrong), c10::TypeError, "blocked() takes a bool tensor");
    EXPECT_ERROR(AttentionMask::allowed_pairs(wrong), c10::TypeError, "allowed_pairs() takes a");
    EXPECT_ERROR(AttentionMask::blocked_pairs(wrong), c10::TypeError, "blocked_pairs() takes a");
    EXPECT_ERROR(AttentionMask::key_padding_torch_nn(wrong), c10::TypeError,
                 "key_padding_torch_nn() takes a bool tensor");
  }
  EXPECT_ERROR(AttentionMask::key_padding(torch::ones({4, 5})), c10::TypeError,
               "key_padding() takes a bool or integer tensor. Got Float");
  EXPECT_ERROR(AttentionMask::additive(bits({2, 4, 5})), c10::TypeError, "takes real numbers");
  EXPECT_ERROR(AttentionMask::additive_pairs(bits({4, 5})), c10::TypeError, "takes real numbers");
  EXPECT_ERROR(AttentionMask::attn_mask_torch_nn(torch::ones({4, 5}, torch::kByte)), c10::TypeError,
               "takes a bool tensor or real numbers");
  EXPECT_ERROR(AttentionMask::padding(torch::ones({4, 5}), 0), c10::TypeError, "takes ids");
  EXPECT_ERROR(AttentionMask::padding(bits({4, 5}), 0), c10::TypeError, "takes ids");
  const torch::Tensor none;
  for (const auto& maker : {AttentionMask::allowed, AttentionMask::blocked_pairs,
                            AttentionMask::additive, AttentionMask::attn_mask_torch_nn,
                            AttentionMask::key_padding, AttentionMask::key_padding_torch_nn}) {
    EXPECT_ERROR(maker(none), c10::TypeError, "Got an undefined tensor");
  }
  EXPECT_ERROR(AttentionMask::padding(none, 0), c10::TypeError, "Got an undefined tensor");
}

// A mask in another maker's type: the error says which maker takes it.
TEST(AttentionMaskErrors, NamesTheRightMaker) {
  const char* const for_integers = "Got Long; integers that are 0 for padding: key_padding()";
  const auto integers = torch::ones({4, 4}, torch::kLong);
  for (const auto& maker :
       {AttentionMask::allowed, AttentionMask::blocked, AttentionMask::additive,
        AttentionMask::allowed_pairs, AttentionMask::blocked_pairs, AttentionMask::additive_pairs,
        AttentionMask::attn_mask_torch_nn, AttentionMask::key_padding_torch_nn}) {
    EXPECT_ERROR(maker(integers), c10::TypeError, for_integers);
  }
  const char* const for_reals = "Got Float; numbers that are added to the scores: additive()";
  const auto reals = torch::ones({4, 4});
  for (const auto& maker : {AttentionMask::allowed, AttentionMask::blocked_pairs,
                            AttentionMask::key_padding, AttentionMask::key_padding_torch_nn}) {
    EXPECT_ERROR(maker(reals), c10::TypeError, for_reals);
  }
  EXPECT_ERROR(AttentionMask::padding(reals, 0), c10::TypeError, for_reals);
  EXPECT_ERROR(AttentionMask::additive(bits({4, 4})), c10::TypeError,
               "Got Bool; true for what may attend: allowed(), for what may not: blocked()");
  EXPECT_ERROR(AttentionMask::padding(bits({4, 4}), 0), c10::TypeError, "a token: key_padding()");
  EXPECT_ERROR(AttentionMask::key_padding(bits({2, 1, 4, 4})), c10::ValueError,
               "a mask with a query axis comes by allowed() or blocked(). Got [2, 1, 4, 4]");
  EXPECT_ERROR(AttentionMask::allowed_pairs(bits({2, 4, 4})), c10::ValueError,
               "comes by the maker of that name without _pairs. Got [2, 4, 4]");
}

TEST(AttentionMaskErrors, RejectsOtherShapes) {
  using Shapes = std::vector<std::vector<int64_t>>;
  const char* broadcast = "must broadcast to the scores (B, H, L, S) = [2, 3, 4, 5]";
  for (const auto& shape : Shapes{{5, 4}, {2, 5}}) {
    EXPECT_ERROR(bias_of(AttentionMask::allowed_pairs(bits(shape))), c10::ValueError, broadcast);
    EXPECT_ERROR(bias_of(AttentionMask::additive_pairs(torch::zeros(shape))), c10::ValueError,
                 broadcast);
  }
  for (const auto& shape : Shapes{{3, 4, 5}, {4, 4, 5}, {2, 4, 4, 5}, {2, 3, 4, 4}}) {
    EXPECT_ERROR(bias_of(AttentionMask::allowed(bits(shape))), c10::ValueError, broadcast);
    EXPECT_ERROR(bias_of(AttentionMask::additive(torch::zeros(shape))), c10::ValueError, broadcast);
  }
  for (const auto& shape : Shapes{{}, {5}, {4, 5}, {1, 2, 3, 4, 5}}) {
    EXPECT_ERROR(AttentionMask::allowed(bits(shape)), c10::ValueError, "(B, H, L, S); (L, S)");
    EXPECT_ERROR(AttentionMask::additive(torch::zeros(shape)), c10::ValueError, "(L, S) comes by");
  }
  for (const auto& shape : Shapes{{}, {5}, {2, 4, 5}, {2, 3, 4, 5}}) {
    EXPECT_ERROR(AttentionMask::blocked_pairs(bits(shape)), c10::ValueError,
                 "takes (L, S): a mask with a batch axis");
    EXPECT_ERROR(AttentionMask::key_padding(bits(shape)), c10::ValueError, "takes (B, S)");
    EXPECT_ERROR(AttentionMask::key_padding_torch_nn(bits(shape)), c10::ValueError, "(B, S)");
    EXPECT_ERROR(AttentionMask::padding(torch::ones(shape, torch::kLong), 0), c10::ValueError,
                 "takes ids (B, S)");
  }
  // Padding masks do not broadcast: a mask with one row or column belongs to another batch.
  for (const auto& shape : Shapes{{1, 5}, {2, 1}, {4, 5}, {5, 2}, {2, 4}}) {
    EXPECT_ERROR(bias_of(AttentionMask::key_padding(bits(shape))), c10::ValueError,
                 "a mask over keys must be (B, S) = [2, 5]. Got ");
  }
}

// Kernels read the bias by its memory, which a lazily negated tensor has without its sign.
TEST(AttentionMask, ANegatedBiasHasItsSign) {
  const auto real = torch::randn({2, 1, 4, 5});
  const auto negated = at::imag(at::conj(at::complex(torch::zeros_like(real), real)));
  ASSERT_TRUE(negated.is_neg());
  const auto found =
      Access::resolve(AttentionMask::additive(negated), kShape, torch::zeros({1})).bias;
  EXPECT_FALSE(found.is_neg());
  EXPECT_TRUE(bit_equal(found, -real));
}

TEST(AttentionMaskErrors, RejectsAnotherDevice) {
  const auto elsewhere = torch::zeros({1}, torch::kMeta);
  for (const auto& mask :
       {AttentionMask::allowed_pairs(bits({4, 5})), AttentionMask::key_padding(bits({2, 5})),
        AttentionMask::additive(torch::zeros({2, 4, 5}))}) {
    EXPECT_ERROR(Access::resolve(mask, kShape, elsewhere), c10::ValueError,
                 "must be on the device meta");
  }
}

// A bias that grows with the key's position, as Bloom's ALiBi: bfloat16 has eight bits for it.
TEST(AttentionMaskBias, OfFloat32IsNotRoundedToTheQuerysType) {
  const auto bias = torch::arange(5, torch::kFloat).view({1, 1, 1, 5}) + 1000.25;
  const auto like = torch::zeros({1}, torch::kBFloat16);
  const auto all = [&](const AttentionMask& mask) { return bias_of(mask, like); };
  EXPECT_TRUE(bit_equal(all(AttentionMask::additive(bias)), bias.expand({2, 3, 4, 5})));
  const auto half = torch::full({1, 1, 1, 1}, 0.25, torch::kBFloat16);
  const auto large = torch::full({1, 1, 1, 1}, 256.0, torch::kBFloat16);
  const auto sum = all(AttentionMask::additive(half) & AttentionMask::additive(large));
  EXPECT_EQ(sum.min().item<double>(), 256.25) << "the sum is not rounded either";
  EXPECT_EQ(all(AttentionMask::additive(half)).scalar_type(), torch::kBFloat16);
  const auto lowest = torch::full({1, 1, 1, 1}, std::numeric_limits<float>::lowest());
  const auto masked = all(AttentionMask::additive(lowest) & AttentionMask::causal());
  EXPECT_TRUE(masked.select(3, 0).isfinite().all().item<bool>());
  EXPECT_EQ(masked[0][0][0][1].item<float>(), kNo);
}

// Swin's windows of a grid: -inf between windows, -100 between neighbours by the roll alone.
TEST(AttentionMask, HasWindowsOfAGrid) {
  const AttentionShape shape = {1, 1, 16, 16};
  const auto bias = [&](const AttentionMask& mask) {
    return Access::resolve(mask, shape, torch::zeros({1})).bias[0][0];
  };
  const auto plain = bias(AttentionMask::window(4, 4, 2)),
             shifted = bias(AttentionMask::window(4, 4, 2, 1));
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      const auto window = [](int64_t token, int64_t roll) {
        return ((token / 4 + roll) % 4 / 2) * 2 + (token % 4 + roll) % 4 / 2;
      };
      const auto side = [](int64_t token) { return (token / 4 == 0) * 2 + (token % 4 == 0); };
      EXPECT_EQ(plain[i][j].item<float>(), window(i, 0) == window(j, 0) ? 0.0F : kNo);
      const float own = side(i) == side(j) ? 0.0F : -100.0F;
      EXPECT_EQ(shifted[i][j].item<float>(), window(i, 3) == window(j, 3) ? own : kNo);
    }
  }
  EXPECT_FALSE(AttentionMask::window(4, 4, 2).is_none());
  const auto added = torch::randn({16, 16});
  EXPECT_TRUE(
      bit_equal(bias(AttentionMask::window(4, 4, 2, 1) & AttentionMask::additive_pairs(added)),
                added + shifted));
  const auto keys = torch::arange(16).view({1, 16}) < 9;
  EXPECT_TRUE(bit_equal(bias(AttentionMask::key_padding(keys) & AttentionMask::window(4, 4, 2, 1)),
                        shifted.masked_fill(keys.logical_not(), kNo)));
}

TEST(AttentionMask, RefusesWindowsThatDoNotFit) {
  EXPECT_ERROR(AttentionMask::window(-4, 4, 2), c10::ValueError,
               "[AttentionMask] a grid must have positive sides");
  EXPECT_ERROR(AttentionMask::window(4, 5, 2), c10::ValueError, "must be multiples of 2");
  EXPECT_ERROR(AttentionMask::window(4, 4, 0), c10::ValueError,
               "the window must be positive. Got 0");
  EXPECT_ERROR(AttentionMask::window(4, 4, 2, 2), c10::ValueError, "a shift in [0, 2)");
  EXPECT_ERROR(AttentionMask::window(4, 4, 2, -1), c10::ValueError, "Got -1");
  const auto mask = AttentionMask::window(4, 4, 2, 1);
  EXPECT_ERROR(Access::resolve(mask, {1, 1, 16, 15}, torch::zeros({1})), c10::ValueError,
               "its 4 x 4 tokens as queries and keys. Got 16 queries and 15 keys");
  EXPECT_ERROR(mask.after(1), c10::ValueError, "cannot be moved by 1 others");
  EXPECT_EQ(mask.after(0).is_none(), false);
}

}  // namespace
}  // namespace posenc
