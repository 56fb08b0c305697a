// Scores and attention weights of products, against LibTorch's operations.

#include "kernels/weights.h"

#include <cmath>
#include <limits>
#include <random>

#include "kernels/isa/sets.h"
#include "support/seed.h"

namespace posenc::kernels::inference {
namespace {

using testing::bit_equal;
using testing::Op;

constexpr int64_t kWeightRows = 7;
constexpr float kNever = -std::numeric_limits<float>::infinity();
const int64_t kKeys[] = {1, 2, 15, 16, 17, 31, 32, 33, 49, 100, 144};

// What is added to a row of products, and how; tensors are rows of a wider one.
struct WeightsCase {
  torch::Tensor products, term, mask, allowed;
  WeightsRequest request = {};

  explicit WeightsCase(int64_t keys) {
    products = torch::randn({kWeightRows, keys + 3}).narrow(1, 0, keys);
    request.rows = kWeightRows;
    request.keys = keys;
    request.scale = 0.3F;
  }
  torch::Tensor rows() const {
    return torch::randn({kWeightRows, request.keys + 5}).narrow(1, 2, request.keys);
  }

  torch::Tensor scaled(const torch::Tensor& x) const {
    return request.divides ? x / request.scale : x * request.scale;
  }
  // The scores by LibTorch's operations, which round one after the other.
  torch::Tensor scores(const torch::Tensor& of) const {
    torch::Tensor x = request.scales_products ? scaled(of) : of;
    torch::Tensor added = term;
    if (term.defined() && request.scales_term) added = scaled(term);
    const bool with_term = mask.defined() && request.added_mask == AddedMask::WithTerm;
    if (with_term) added = added.defined() ? added + mask : mask;
    if (added.defined()) x = x + added;
    if (request.scales_sum) x = scaled(x);
    if (mask.defined() && !with_term) {
      x = x + mask;
      if (request.added_mask == AddedMask::Twice) x = x + mask;
    }
    return allowed.defined() ? x.masked_fill(allowed.logical_not(), request.fill) : x;
  }

  torch::Tensor run(const Kernels& use, bool in_place) const {
    const torch::Tensor from =
        torch::empty({kWeightRows, request.keys + 3}).narrow(1, 0, request.keys);
    from.copy_(products);
    const torch::Tensor out = in_place ? from : torch::full({kWeightRows, request.keys}, 7.0);
    WeightsRequest own = request;
    own.products = from.const_data_ptr<float>();
    own.products_stride = from.stride(0);
    const auto set = [](const torch::Tensor& x, const float*& at, int64_t& stride) {
      if (x.defined()) at = x.const_data_ptr<float>(), stride = x.stride(0);
    };
    set(term, own.term, own.term_stride);
    set(mask, own.mask, own.mask_stride);
    if (allowed.defined()) {
      own.allowed = allowed.const_data_ptr<bool>();
      own.allowed_stride = allowed.stride(0);
    }
    own.out = out.data_ptr<float>();
    own.out_stride = out.stride(0);
    use.weights.weigh(own, 0, 3);
    use.weights.weigh(own, 3, kWeightRows);
    return out.clone();
  }
};

// Draws how scores are put together.
void draw(WeightsCase& c, std::mt19937& random) {
  const auto below = [&](uint32_t n) { return random() % n; };
  WeightsRequest& r = c.request;
  r.divides = below(4) == 0;
  const auto scaled = below(3);
  r.scales_products = scaled == 0;
  r.scales_sum = scaled == 1;
  r.scales_term = below(3) == 0;
  switch (below(4)) {
    case 0: break;
    case 1: c.term = torch::randn({r.keys}).expand({kWeightRows, r.keys}); break;
    default: c.term = c.rows();
  }
  if (below(3) > 0) c.mask = c.rows();
  r.added_mask = static_cast<AddedMask>(below(3));
  if (below(4) == 0) c.allowed = torch::rand({kWeightRows, r.keys}) < 0.7;
}

constexpr int kCases = 32;

TEST(AttentionWeights, ScoresHaveTheBitsOfLibTorch) {
  torch::manual_seed(testing::seed(31));
  std::mt19937 random(testing::seed(31));
  for (const int64_t keys : kKeys) {
    for (int number = 0; number < kCases; ++number) {
      WeightsCase c(keys);
      draw(c, random);
      c.request.is_softmax = false;
      c.request.fill = std::numeric_limits<float>::lowest();
      const torch::Tensor expected = c.scores(c.products);
      on_each_set([&](const Kernels& use) {
        for (const bool in_place : {false, true})
          EXPECT_TRUE(bit_equal(c.run(use, in_place), expected)) << keys << ", " << number;
      });
    }
  }
}

TEST(AttentionWeights, AreTheSoftmaxOfTheScores) {
  torch::manual_seed(testing::seed(32));
  std::mt19937 random(testing::seed(32));
  for (const int64_t keys : kKeys) {
    for (int number = 0; number < kCases; ++number) {
      WeightsCase c(keys);
      draw(c, random);
      if (c.allowed.defined()) c.allowed.select(1, 0).fill_(true);  // no row is masked whole
      c.products = c.products * 4.0;
      const auto expected = c.scores(c.products).to(torch::kDouble).softmax(-1);
      for (const bool in_place : {false, true}) {
        expect_on_each_set(Op::Linear, expected,
                           [&](const Kernels& use) { return c.run(use, in_place); });
      }
    }
  }
}

TEST(AttentionWeights, OfCausalRowsAreZerosAfterThem) {
  torch::manual_seed(testing::seed(33));
  for (const int64_t keys : kKeys) {
    for (const int64_t first : {0, 9, 40}) {
      WeightsCase c(keys);
      c.request.scales_products = true;
      c.request.first_causal = first;
      const auto later = torch::arange(keys) > (torch::arange(kWeightRows).unsqueeze(1) + first);
      const auto expected = c.scores(c.products).to(torch::kDouble).masked_fill(later, kNever);
      expect_on_each_set(Op::Linear, expected.softmax(-1), [&](const Kernels& use) {
        const auto got = c.run(use, true);
        EXPECT_EQ((got.masked_select(later) != 0).sum().item<int64_t>(), 0);
        return got;
      });
    }
  }
}

TEST(AttentionWeights, OfMaskedRowsAreOfTheirKind) {
  for (const int64_t keys : kKeys) {
    WeightsCase c(keys);
    c.allowed = torch::ones({kWeightRows, keys}, torch::kBool);
    c.allowed.select(0, 4).fill_(false);
    const auto row = [&](const Kernels& use, MaskedRow kind) {
      c.request.masked_row = kind;
      c.request.fill = kind == MaskedRow::Alike ? std::numeric_limits<float>::lowest() : kNever;
      const auto got = c.run(use, false);
      EXPECT_TRUE(got.narrow(0, 0, 4).isfinite().all().item<bool>());
      return got.select(0, 4);
    };
    on_each_set([&](const Kernels& use) {
      EXPECT_TRUE(row(use, MaskedRow::NaN).isnan().all().item<bool>());
      EXPECT_TRUE(bit_equal(row(use, MaskedRow::Zeros), torch::zeros({keys})));
      EXPECT_TRUE(bit_equal(row(use, MaskedRow::Alike),
                            torch::full({keys}, 1.0F / static_cast<float>(keys))));
    });
  }
}

// -inf of a mask that is added hides any score from weights of MaskedRow::Alike, and only it does.
TEST(AttentionWeights, OfFilledScoresAreThoseOfTheLowestNumber) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  for (const int64_t keys : kKeys) {
    for (const AddedMask added : {AddedMask::AfterTerm, AddedMask::WithTerm, AddedMask::Twice}) {
      for (const bool has_term : {false, true}) {
        WeightsCase c(keys);
        c.request.masked_row = MaskedRow::Alike;
        c.request.scales_products = true;
        c.request.added_mask = added;
        if (has_term) c.term = c.rows();
        c.mask = c.rows();
        c.mask.masked_fill_(torch::rand({kWeightRows, keys}) < 0.3, kNever);
        c.mask.select(0, 1).fill_(kNever);
        c.mask.select(0, 2).fill_(0.5F);
        c.products.masked_fill_(c.mask.eq(kNever), std::nanf(""));
        c.products.select(0, 2).fill_(kNever);
        const auto expected = c.scores(c.products)
                                  .masked_fill(c.mask.eq(kNever), kLowest)
                                  .to(torch::kDouble)
                                  .softmax(-1);
        EXPECT_TRUE(expected.select(0, 2).isnan().all().item<bool>());
        const auto kept = torch::arange(kWeightRows) != 2;
        expect_on_each_set(Op::Linear, expected.index({kept}), [&](const Kernels& use) {
          const auto got = c.run(use, true);
          EXPECT_TRUE(got.select(0, 2).isnan().all().item<bool>());
          return got.index({kept}).contiguous();
        });
      }
    }
  }
}

// A number that is none reaches all of its row, and no other.
TEST(AttentionWeights, OfNotANumberAreNone) {
  for (const int64_t keys : kKeys) {
    for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      for (const MaskedRow kind : {MaskedRow::NaN, MaskedRow::Zeros, MaskedRow::Alike}) {
        WeightsCase c(keys);
        c.request.masked_row = kind;
        c.products.select(0, 2).fill_(kNever);
        c.products.select(0, 2).select(0, keys - 1).fill_(value);
        on_each_set([&](const Kernels& use) {
          const auto got = c.run(use, false);
          EXPECT_TRUE(got.select(0, 2).isnan().any().item<bool>()) << keys << ", " << value;
          EXPECT_FALSE(got.select(0, 1).isnan().any().item<bool>());
        });
      }
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::inference
