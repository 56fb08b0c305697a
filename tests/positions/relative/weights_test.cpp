// relative_weights() and the rules that terms may be, beside the operations that they replace.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "posenc/positions/relative/scores.h"
#include "posenc/positions/relative/term.h"
#include "support/compare.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::relative_weights_test {
namespace {

using relative::Distances;
using relative::DistanceVectors;
using relative::Masking;
using relative::ScaleBy;
using relative::ScaleOf;
using relative::Scoring;
using relative::Term;
using testing::bit_equal;
using testing::Op;
using testing::Threads;

torch::Tensor wide(const torch::Tensor& x) {
  return x.defined() && x.is_floating_point() ? x.detach().to(torch::kDouble) : x;
}

Term wide(const Term& term) {
  if (const auto* pairs = std::get_if<at::Tensor>(&term)) return wide(*pairs);
  if (const auto* row = std::get_if<Distances>(&term)) return Distances{wide(row->entries)};
  const auto& vectors = std::get<DistanceVectors>(term);
  return DistanceVectors{wide(vectors.x), wide(vectors.rows), vectors.index};
}

// The tensors of a call.
struct Inputs {
  torch::Tensor q, k, mask;
  Term term;
  Scoring scoring;

  torch::Tensor weights() const { return relative_weights(q, k, term, mask, scoring); }
  torch::Tensor scores() const { return relative_scores(q, k, term, mask, scoring); }
  Inputs wider() const { return {wide(q), wide(k), wide(mask), wide(term), scoring}; }
  // Those that may have a gradient, which are given one.
  std::vector<torch::Tensor> require_grad() const {
    std::vector<torch::Tensor> all = {q, k};
    if (const auto* pairs = std::get_if<at::Tensor>(&term)) {
      if (pairs->defined()) all.push_back(*pairs);
    } else if (const auto* row = std::get_if<Distances>(&term)) {
      all.push_back(row->entries);
    } else {
      all.push_back(std::get<DistanceVectors>(term).x);
      all.push_back(std::get<DistanceVectors>(term).rows);
    }
    for (const torch::Tensor& one : all) one.requires_grad_();
    return all;
  }
};

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) { torch::manual_seed(seed); }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Inputs inputs() {
    Inputs in;
    const int64_t batch = 1 + below(3), heads = 1 + below(3), width = 1 + below(20);
    const int64_t queries = 1 + below(4) * below(60), keys = 1 + below(70);
    in.q = heads_of(batch, heads, queries, width);
    in.k = heads_of(below(4) == 0 ? 1 : batch, below(4) == 0 ? 1 : heads, keys, width);
    in.scoring.scale_of = static_cast<ScaleOf>(below(6));
    in.scoring.scale_by = static_cast<ScaleBy>(below(3));
    in.scoring.products = 1 + below(3);
    in.scoring.scales_term = below(3) == 0;
    in.scoring.masking = static_cast<Masking>(below(4));
    in.term = term(batch, heads, queries, keys, width);
    if (below(3) > 0) in.mask = mask(batch, heads, queries, keys, in.scoring.masking);
    const auto* pairs = std::get_if<at::Tensor>(&in.term);
    if (pairs != nullptr && !pairs->defined() && in.scoring.scale_of == ScaleOf::ProductInOneSum)
      in.scoring.scale_of = ScaleOf::Scores;  // which needs no term
    return in;
  }

 private:
  torch::Tensor heads_of(int64_t batch, int64_t heads, int64_t length, int64_t width) {
    if (below(2) == 0) return torch::randn({batch, heads, length, width});
    const auto rows = torch::randn({batch, length, heads, width}).transpose(1, 2);
    return below(3) == 0 ? torch::randn({batch, heads, width, length}).transpose(2, 3) : rows;
  }
  int64_t or_one(int64_t size) { return below(3) == 0 ? 1 : size; }

  Term term(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t width) {
    switch (below(5)) {
      case 0: return {};
      case 1: return Distances{torch::randn({heads, queries + keys - 1})};
      case 2: {
        const int64_t before = below(3), after = below(3);
        auto rows = torch::randn({heads, queries + keys - 1 + before + after, width});
        if (below(2) == 0) rows = torch::randn({batch, rows.size(1), heads, width}).transpose(1, 2);
        return DistanceVectors{
            heads_of(batch, heads, queries, width), rows, {queries - 1 + before}};
      }
      case 3: return torch::randn({keys, queries}).t();
      default: return torch::randn({or_one(batch), or_one(heads), or_one(queries), or_one(keys)});
    }
  }

  torch::Tensor mask(int64_t batch, int64_t heads, int64_t queries, int64_t keys, Masking masking) {
    const std::vector<int64_t> sizes = {or_one(batch), or_one(heads), or_one(queries), keys};
    if (masking != Masking::FillLowest) return torch::randn(sizes);
    return torch::rand(sizes) < 0.6;
  }

  std::mt19937 random_;
};

constexpr int kDraws = 150;

TEST(RelativeWeights, AreTheSoftmaxOfTheScores) {
  Draw draw(testing::seed(41));
  for (int i = 0; i < kDraws; ++i) {
    const Inputs in = draw.inputs(), wider = in.wider();
    const auto expected = wider.scores().softmax(-1);
    EXPECT_TRUE(within(Op::Layers, in.weights(), expected.to(torch::kFloat))) << i;
    EXPECT_TRUE(within(Op::Layers, in.weights(), in.scores().softmax(-1))) << i;
    EXPECT_TRUE(within(Op::Layers, wider.weights(), expected)) << "the composition, " << i;
  }
}

TEST(RelativeScores, OfARuleAreThoseOfItsTensor) {
  Draw draw(testing::seed(42));
  for (int i = 0; i < kDraws; ++i) {
    const Inputs in = draw.inputs();
    const auto expected = in.wider().scores().to(torch::kFloat);
    const auto finite = [](const torch::Tensor& x) { return x.clamp_min(-1e6); };
    EXPECT_TRUE(within(Op::Sums, finite(in.scores()), finite(expected))) << i;
  }
}

TEST(RelativeWeights, HaveTheGradientOfTheComposition) {
  Draw draw(testing::seed(43));
  for (int i = 0; i < kDraws; ++i) {
    const Inputs in = draw.inputs(), wider = in.wider();
    const auto inputs = in.require_grad(), wide_inputs = wider.require_grad();
    const auto out = in.weights();
    EXPECT_EQ(out.grad_fn()->name(), "RelativeWeightsBackward");
    const auto cotangent = torch::randn_like(out);
    const auto got = torch::autograd::grad({out}, inputs, {cotangent});
    const auto expected = torch::autograd::grad({wider.scores().softmax(-1)}, wide_inputs,
                                                {cotangent.to(torch::kDouble)});
    for (size_t j = 0; j < got.size(); ++j)
      EXPECT_TRUE(within(Op::Layers, got[j], expected[j].to(torch::kFloat)))
          << i << ", input " << j;
  }
}

TEST(RelativeWeights, CanBeDifferentiatedTwice) {
  Draw draw(testing::seed(44));
  for (int i = 0; i < 40; ++i) {
    const Inputs in = draw.inputs(), wider = in.wider();
    const auto second = [](const Inputs& of, const torch::Tensor& out, const torch::Tensor& g) {
      const auto inputs = of.require_grad();
      torch::Tensor sum = torch::zeros({}, g.options());
      for (const auto& one : torch::autograd::grad({out}, inputs, {g}, true, true))
        sum = sum + one.square().sum();
      return torch::autograd::grad({sum}, inputs, {}, {}, false, /*allow_unused=*/true);
    };
    in.require_grad(), wider.require_grad();
    const auto out = in.weights();
    const auto cotangent = torch::randn_like(out);
    const auto got = second(in, out, cotangent);
    const auto expected = second(wider, wider.scores().softmax(-1), cotangent.to(torch::kDouble));
    for (size_t j = 0; j < got.size(); ++j) {
      ASSERT_EQ(got[j].defined(), expected[j].defined()) << i;
      if (!got[j].defined()) continue;
      const double most = expected[j].abs().max().item<double>();
      EXPECT_LE((got[j] - expected[j]).abs().max().item<double>(), 1e-4 * std::max(1.0, most)) << i;
    }
  }
}

TEST(RelativeWeights, NoticeAChangeBeforeTheirBackward) {
  const auto q = torch::randn({1, 2, 5, 4}).requires_grad_(), k = torch::randn({1, 2, 5, 4});
  auto out = relative_weights(q, k, {}, {}, {});
  {
    const torch::NoGradGuard no_grad;
    k.add_(1.0);
  }
  EXPECT_ERROR(out.sum().backward(), c10::Error, "modified by an inplace operation");
  out = relative_weights(q, k, {}, {}, {});
  out.sum().backward();
  EXPECT_ERROR(out.sum().backward(), c10::Error, "a second time");
}

// What the backward of the composition does not read may change before it, or be an inference
// tensor.
TEST(RelativeWeights, SaveOnlyWhatTheirBackwardNeeds) {
  const auto drawn = [] { return torch::randn({2, 5, 4}); };
  const auto tokens = [] { return torch::rand({5, 5}) < 0.5; };
  Scoring fills;
  fills.masking = Masking::FillLowest;
  for (const bool is_inference : {false, true}) {
    torch::Tensor q, k, mask, allowed;
    {
      const c10::InferenceMode mode(is_inference);
      q = drawn(), k = drawn(), mask = torch::randn({5, 5}), allowed = tokens();
    }
    const auto term = torch::randn({2, 5, 5}).requires_grad_(), own = drawn().requires_grad_();
    const auto other = drawn(), made = own * 1.0;
    const auto first = relative_weights(q, k, term, mask, {}),
               second = relative_weights(made, other, {}, mask, {}),
               third = relative_weights(own, other, {}, allowed, fills),
               expected = relative_scores(own, other, {}, allowed, fills).softmax(-1);
    if (!is_inference) {
      const torch::NoGradGuard no_grad;
      q.add_(1.0), k.add_(1.0), made.add_(1.0), mask.add_(1.0), allowed.logical_not_();
    }
    const auto cotangent = torch::randn({2, 5, 5});
    first.backward(cotangent);
    EXPECT_TRUE(term.grad().defined());
    second.backward(cotangent);
    EXPECT_TRUE(within(Op::Layers, torch::autograd::grad({third}, {own}, {cotangent})[0],
                       torch::autograd::grad({expected}, {own}, {cotangent})[0]));
  }
}

// A mask with a gradient of its own gets one from the composition.
TEST(RelativeWeights, LearnAMask) {
  const auto q = torch::randn({1, 2, 5, 4}), k = torch::randn({1, 2, 6, 4});
  const auto mask = torch::randn({1, 1, 5, 6}).requires_grad_();
  const auto cotangent = torch::randn({1, 2, 5, 6});
  const auto got =
      torch::autograd::grad({relative_weights(q, k, {}, mask, {})}, {mask}, {cotangent})[0];
  const auto expected = torch::autograd::grad({relative_scores(q, k, {}, mask, {}).softmax(-1)},
                                              {mask}, {cotangent})[0];
  EXPECT_TRUE(within(Op::Layers, got, expected));
}

TEST(RelativeWeights, DoNotDependOnTheThreads) {
  Draw draw(testing::seed(45));
  for (int i = 0; i < 20; ++i) {
    const Inputs in = draw.inputs();
    torch::Tensor one, three;
    {
      const Threads threads(1);
      one = in.weights();
    }
    {
      const Threads threads(3);
      three = in.weights();
    }
    EXPECT_TRUE(bit_equal(one, three)) << i;
  }
}

// Scores that are made float32 stay it until they are weights, whatever the mask.
TEST(RelativeWeights, OfHalfPrecisionInFloat32) {
  const auto half = [](std::vector<int64_t> sizes) {
    return (4.0 * torch::randn(sizes)).to(torch::kBFloat16);
  };
  const auto q = half({2, 3, 9, 16}), k = half({2, 3, 30, 16});
  const auto term = 10.0 * torch::randn({3, 9, 30});
  for (const Masking masking : {Masking::AfterTerm, Masking::FillLowest}) {
    Scoring scoring;
    scoring.masking = masking;
    scoring.in_float32 = true;
    const auto expected = relative_scores(q, k, term, {}, scoring).softmax(-1).to(torch::kBFloat16);
    EXPECT_TRUE(bit_equal(relative_weights(q, k, term, {}, scoring), expected));
  }
}

TEST(RelativeWeights, OfOtherDtypesAreOfTheComposition) {
  const auto q = torch::randn({2, 3, 9, 8}), k = torch::randn({2, 3, 11, 8});
  const Distances term = {torch::randn({3, 19})};
  const auto expected = relative_weights(q, k, term, {}, {});
  for (const auto dtype : {torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    const auto got =
        relative_weights(q.to(dtype), k.to(dtype), Distances{term.entries.to(dtype)}, {}, {});
    EXPECT_EQ(got.scalar_type(), dtype);
    EXPECT_LE((got.to(torch::kFloat) - expected).abs().max().item<double>(), 0.05);
  }
}

TEST(RelativeWeights, TakeVectorsOfAnyWidth) {
  const auto q = torch::randn({2, 3, 5, 4}), k = torch::randn({2, 3, 7, 4});
  for (const int64_t width : {0, 1, 2, 4, 9}) {
    const DistanceVectors term = {
        torch::randn({2, 3, 5, width}), torch::randn({3, 11, width}), {4}};
    const auto pairs = relative_term(term.x, term.rows, 7, term.index);
    EXPECT_TRUE(within(Op::Layers, relative_weights(q, k, term, {}, {}),
                       relative_weights(q, k, pairs, {}, {})));
    EXPECT_TRUE(within(Op::Sums, relative_scores(q, k, term, {}, {}),
                       relative_scores(q, k, pairs, {}, {})));
  }
  const DistanceVectors none = {torch::randn({2, 3, 1, 4}), torch::randn({0, 4}), {0}};
  EXPECT_EQ(relative_weights(q.narrow(2, 0, 1), k.narrow(2, 0, 0), none, {}, {}).sizes(),
            at::IntArrayRef({2, 3, 1, 0}));
}

// No sequences, beside keys that all would share.
TEST(RelativeWeights, OfNoSequences) {
  const auto q = torch::randn({0, 3, 5, 4}), k = torch::randn({1, 3, 7, 4});
  const auto mask = torch::randn({0, 1, 5, 7}), number = torch::randn({});
  for (const auto scale_of : {ScaleOf::Scores, ScaleOf::ProductInOneSum}) {
    EXPECT_EQ(relative_weights(q, k, number, mask, {scale_of}).sizes(),
              at::IntArrayRef({0, 3, 5, 7}));
    EXPECT_EQ(relative_scores(q, k, number, mask, {scale_of}).sizes(),
              at::IntArrayRef({0, 3, 5, 7}));
  }
}

TEST(RelativeWeights, TakeSizesOfNothing) {
  const auto none =
      relative_weights(torch::randn({0, 3, 5, 4}), torch::randn({0, 3, 5, 4}), {}, {}, {});
  EXPECT_EQ(none.sizes(), at::IntArrayRef({0, 3, 5, 5}));
  const auto no_keys =
      relative_weights(torch::randn({2, 3, 5, 4}), torch::randn({2, 3, 0, 4}), {}, {}, {});
  EXPECT_EQ(no_keys.sizes(), at::IntArrayRef({2, 3, 5, 0}));
  const auto flat = relative_weights(torch::randn({5, 4}), torch::randn({7, 4}), {}, {}, {});
  EXPECT_EQ(flat.sizes(), at::IntArrayRef({5, 7}));
  const auto no_width = relative_weights(torch::zeros({1, 2, 3, 0}), torch::zeros({1, 2, 4, 0}), {},
                                         {}, {ScaleOf::Nothing});
  EXPECT_TRUE(bit_equal(no_width, torch::full({1, 2, 3, 4}, 0.25)));
}

// Keys that are filled are those of the lowest score, also beside scores of -inf.
TEST(RelativeWeights, OfFilledKeysAreThoseOfTheScores) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Scoring fills;
  fills.masking = Masking::FillLowest;
  for (const int64_t keys : {3, 20}) {
    const auto q = torch::randn({2, 4, 5}), k = torch::randn({2, keys, 5});
    auto term = torch::randn({4, keys});
    term.select(0, 1).fill_(-kInf);
    term.select(0, 2).select(0, 1).fill_(NAN);
    auto allowed = torch::ones({4, keys}, torch::kBool);
    allowed.select(1, 1).fill_(false);
    for (const auto& mask : {allowed, torch::Tensor()}) {
      const auto got = relative_weights(q, k, term, mask, fills),
                 expected = relative_scores(q, k, term, mask, fills).softmax(-1);
      EXPECT_TRUE(bit_equal(got.isnan(), expected.isnan()));
      EXPECT_TRUE(within(Op::Layers, got.nan_to_num(7.0), expected.nan_to_num(7.0)));
    }
  }
}

TEST(RelativeWeights, Errors) {
  const auto q = torch::zeros({2, 3, 5, 4}), k = torch::zeros({2, 3, 7, 4});
  EXPECT_ERROR(relative_weights(q, k.to(torch::kDouble), {}, {}, {}), c10::TypeError,
               "[relative_weights] q and k must have the same dtype");
  EXPECT_ERROR(relative_weights(q, k, Distances{torch::zeros({3, 12})}, {}, {}), c10::ValueError,
               "entries of distances must be (H, Q + K - 1)");
  EXPECT_ERROR(relative_weights(q, k, Distances{torch::zeros({2, 11})}, {}, {}), c10::ValueError,
               "Got [2, 11]");
  EXPECT_ERROR(relative_weights(q, k, Distances{}, {}, {}), c10::ValueError,
               "Got an undefined tensor");
  const auto vectors = [&](int64_t queries, int64_t rows, int64_t origin) {
    return DistanceVectors{torch::zeros({2, 3, queries, 4}), torch::zeros({rows, 4}), {origin}};
  };
  EXPECT_ERROR(relative_weights(q, k, vectors(1, 11, 4), {}, {}), c10::ValueError,
               "x of distance vectors must be (B, H, Q, D) for the queries of q");
  EXPECT_ERROR(relative_weights(q, k, vectors(5, 11, 5), {}, {}), c10::ValueError, "must reach");
  EXPECT_ERROR(relative_scores(q, k, vectors(5, 11, 3), {}, {}), c10::ValueError,
               "[relative_scores] the rows must reach");
  EXPECT_ERROR(relative_scores(q, k, DistanceVectors{}, {}, {}), c10::ValueError,
               "must be defined");
}

}  // namespace
}  // namespace posenc::relative_weights_test
