// posenc-budget: each rule of the fused rotation has a case that breaks it
// The fused rotation compared with the composition that defines it: forward, gradients, in place,
// into other tensors. Random shapes, types, layouts and numbers of threads.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <tuple>

#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "positions/functional/rotary/compose.h"
#include "positions/functional/rotary/fusable.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::functional::rotary_fused_test {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::Dice;
using posenc::testing::Threads;
using rotary::Arithmetic;
using rotary::CosLayout;
using rotary::CosType;
using rotary::HeadAxis;
using rotary::Pairing;

struct Case {
  torch::Tensor q, k;
  RotaryCosSin table;
  RotaryOptions options;
  RotaryFuncOptions how;
};

// Leaves out combinations that no system uses and the kernel does not support: arithmetic that
// would widen the result, and complex products of pairs that are not adjacent or of rows that are
// not a multiple of eight pairs.
RotaryOptions random_options(Dice& dice, torch::Dtype dtype) {
  const auto pairing = dice.any({Pairing::Halves, Pairing::Adjacent, Pairing::AdjacentToHalves});
  RotaryOptions o(dice.any<int64_t>({2, 6, 16, 22, 64, 80, 128}), pairing);
  o.cos_layout(dice.any({CosLayout::Halves, CosLayout::Single}));
  if (pairing != Pairing::AdjacentToHalves && dice.coin()) o.cos_layout(CosLayout::Pairs);
  if (pairing == Pairing::Adjacent && o.dim() % 4 == 0 && dice.below(4) == 0)
    o.planes(rotary::Planes::Axial).cos_layout(CosLayout::HalvesPerAxis);
  o.cos_type(dice.any({CosType::Input, CosType::Float32}));
  o.arithmetic(dice.any({Arithmetic::Input, Arithmetic::Promoted}));
  if (dtype != torch::kDouble && dice.below(3) == 0) o.arithmetic(Arithmetic::Float32);
  if (dtype == torch::kBFloat16 && dice.below(6) == 0) o.arithmetic(Arithmetic::BFloat16);
  if (dtype != torch::kDouble && pairing == Pairing::Adjacent && o.dim() % 16 == 0 &&
      dice.below(3) == 0 && has_separate_complex_product()) {
    o.arithmetic(Arithmetic::Complex).cos_type(CosType::Float32);
    o.cos_layout(dice.any({CosLayout::Complex, CosLayout::Single}));
  }
  o.reversed(o.arithmetic() != Arithmetic::Complex && dice.below(4) == 0);
  o.part(dice.any({rotary::Part::Whole, rotary::Part::First, rotary::Part::Last}));
  return o;
}

// Heads of `width` channels with the axes in the order of `axis`; some of them are split from rows,
// as in attention.
torch::Tensor heads(Dice& dice, int64_t batch, int64_t count, int64_t length, int64_t width,
                    HeadAxis axis, torch::Dtype dtype) {
  const bool first = axis == HeadAxis::BeforeLength, swapped = dice.coin();
  std::vector<int64_t> sizes = {count, length, width};
  if (first == swapped) std::swap(sizes[0], sizes[1]);
  if (batch > 0) sizes.insert(sizes.begin(), batch);
  torch::Tensor x = torch::randn(sizes).to(dtype);
  if (dice.below(4) == 0) x = torch::cat({x, x}, -1).slice(-1, 0, width);
  return swapped ? x.transpose(-2, -3) : x;
}

Case random_case(Dice& dice, torch::Dtype dtype) {
  Case c{{}, {}, {}, random_options(dice, dtype), {}};
  const RotaryOptions& o = c.options;
  const bool whole = o.part() == rotary::Part::Whole;
  const int64_t width = o.rotary_dim() + (whole ? 0 : dice.below(40));
  const int64_t batch = dice.below(4), length = 1 + dice.below(50);
  c.how.head_axis(dice.any({HeadAxis::BeforeLength, HeadAxis::AfterLength}));
  const bool two_angles = o.cos_layout() == CosLayout::HalvesPerAxis ||
                          (o.cos_layout() == CosLayout::Pairs && o.pairing() != Pairing::Adjacent);
  c.how.inverse(dice.below(3) == 0 && !two_angles);
  const int64_t count = 1 + dice.below(6);
  if (dice.below(6) != 0) c.q = heads(dice, batch, count, length, width, *c.how.head_axis(), dtype);
  if (!c.q.defined() || dice.below(6) != 0) {
    c.k = heads(dice, batch, 1 + dice.below(3), length, width, *c.how.head_axis(), dtype);
  }
  const bool each = batch > 0 && dice.coin();
  auto shape = each ? std::vector<int64_t>{batch, length} : std::vector<int64_t>{length};
  if (o.axial()) shape.push_back(o.plane_count());
  c.table = rotary_cos_sin(o, torch::randint(0, 5000, shape, torch::kLong), dtype);
  return c;
}

// Zeros of both signs in it: a gradient has no -0.
torch::Tensor cotangent(const torch::Tensor& like) {
  auto values = torch::linspace(-3, 4, like.numel()).sin();
  for (const auto& [start, zero] : {std::pair{0, 0.0}, {3, -0.0}})
    if (start < values.numel()) values.slice(0, start, {}, 7).fill_(zero);
  return values.view(like.sizes()).to(like.dtype());
}

// The result of rotating q and k and the gradients of both.
std::vector<torch::Tensor> step(const Case& c, const std::function<QueryKey(const Case&)>& rotate) {
  Case own = c;
  std::vector<torch::Tensor> inputs, outputs, gradients;
  for (torch::Tensor* x : {&own.q, &own.k}) {
    if (x->defined()) inputs.push_back(*x = x->detach().requires_grad_());
  }
  const auto [q, k] = rotate(own);
  for (const torch::Tensor& y : {q, k}) {
    if (!y.defined()) continue;
    outputs.push_back(y);
    gradients.push_back(cotangent(y));
  }
  auto all = torch::autograd::grad(outputs, inputs, gradients);
  for (const torch::Tensor& y : outputs) all.push_back(y.detach());
  return all;
}

QueryKey composed(const Case& c) {
  return {rotated_heads(c.q, c.table, c.options, c.how),
          rotated_heads(c.k, c.table, c.options, c.how)};
}

QueryKey must_be_fused(const Case& c) {
  RotaryPlan plan;
  EXPECT_TRUE(is_fusable(c.q, c.k, c.table, c.options, c.how, Pass::Forward, plan));
  return functional::rotary(c.q, c.k, c.table, c.options, c.how);
}

std::string describe(const Case& c) {
  const RotaryOptions& o = c.options;
  return c10::str("dim ", o.dim(), " pairing ", static_cast<int>(o.pairing()), " layout ",
                  static_cast<int>(o.cos_layout()), " cos ", c.table.cos.scalar_type(),
                  " arithmetic ", static_cast<int>(o.arithmetic()), " part ",
                  static_cast<int>(o.part()), " axis ", static_cast<int>(head_axis_of(c.how)),
                  " q ", c.q.defined() ? c.q.sizes() : at::IntArrayRef(), " k ",
                  c.k.defined() ? c.k.sizes() : at::IntArrayRef());
}

class RotaryFused : public ::testing::TestWithParam<torch::Dtype> {};
INSTANTIATE_TEST_SUITE_P(Type, RotaryFused,
                         ::testing::Values(torch::kFloat, torch::kDouble, torch::kBFloat16,
                                           torch::kHalf));

TEST_P(RotaryFused, EqualsTheCompositionForwardAndBackward) {
  Dice dice(static_cast<uint32_t>(GetParam()) + 40);
  torch::manual_seed(testing::seed(41));
  for (int i = 0; i < 150; ++i) {
    const Case c = random_case(dice, GetParam());
    SCOPED_TRACE(c10::str("case ", i, " ", describe(c)));
    const auto ours = step(c, must_be_fused), theirs = step(c, composed);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t j = 0; j < ours.size(); ++j) {
      EXPECT_TRUE(bit_equal(ours[j], theirs[j])) << "tensor " << j;
      EXPECT_EQ(ours[j].scalar_type(), GetParam());
    }
  }
}

// The backward of LibTorch's complex view rejects a gradient whose pairs begin at odd places, such
// as that of a slice.
TEST(RotaryComposed, TakesAComplexGradientAtAnyPlace) {
  const auto options = RotaryOptions(16, Pairing::Adjacent)
                           .arithmetic(Arithmetic::Complex)
                           .cos_layout(CosLayout::Complex)
                           .cos_type(CosType::Float32)
                           .part(rotary::Part::Last);
  const Case c{torch::randn({1, 2, 5, 17}),
               {},
               rotary_cos_sin(options, torch::arange(5), torch::kFloat),
               options,
               {}};
  if (!has_separate_complex_product())
    GTEST_SKIP() << "ATen's complex product fuses here: no kernel";
  const auto ours = step(c, must_be_fused), theirs = step(c, composed);
  for (size_t j = 0; j < ours.size(); ++j) EXPECT_TRUE(bit_equal(ours[j], theirs[j])) << j;
}

TEST_P(RotaryFused, IsTheSameForAnyNumberOfThreads) {
  torch::manual_seed(testing::seed(42));
  const auto options = RotaryOptions(64, Pairing::Halves);
  Case c{torch::randn({2, 8, 150, 64}).to(GetParam()),
         torch::randn({2, 2, 150, 64}).to(GetParam()),
         {},
         options,
         {}};
  c.table = rotary_cos_sin(options, torch::arange(300).view({2, 150}), GetParam());
  const auto [q, k] = composed(c);
  for (const int threads : {1, 2, 3, 4}) {
    const Threads some(threads);
    const auto [rotated_q, rotated_k] = must_be_fused(c);
    EXPECT_TRUE(bit_equal(rotated_q, q) && bit_equal(rotated_k, k)) << threads;
  }
}

TEST_P(RotaryFused, TurnsInPlaceAndIntoOtherTensors) {
  Dice dice(static_cast<uint32_t>(GetParam()) + 50);
  torch::manual_seed(testing::seed(43));
  for (int i = 0; i < 60; ++i) {
    const Case c = random_case(dice, GetParam());
    SCOPED_TRACE(c10::str("case ", i, " ", describe(c)));
    const auto [q, k] = composed(c);
    const auto copy = [](const torch::Tensor& x) { return x.defined() ? x.clone() : x; };
    const auto check = [](const torch::Tensor& got, const torch::Tensor& want) {
      EXPECT_TRUE(!want.defined() || bit_equal(got, want));
    };
    const auto own_q = copy(c.q), own_k = copy(c.k);
    rotary_(own_q, own_k, c.table, c.options, c.how);
    check(own_q, q);
    check(own_k, k);
    const auto out_q = c.q.defined() ? torch::full_like(c.q, 7) : c.q;
    const auto out_k = c.k.defined() ? torch::full_like(c.k, 7) : c.k;
    rotary_out(out_q, out_k, c.q, c.k, c.table, c.options, c.how);
    check(out_q, q);
    check(out_k, k);
  }
}

// Every preset, whether or not the kernel supports it: the public function and its definition
// agree.
TEST(RotaryFused, EveryPresetIsAsComposed) {
  int64_t compared = 0;
  for (const RotaryPreset& preset : rotary_presets()) {
    SCOPED_TRACE(preset.name);
    const RotaryOptions o = rotary_preset(preset.name, 16);
    Case c{torch::randn({2, 3, 5, o.rotary_dim() + 4}),
           torch::randn({2, 3, 5, o.rotary_dim() + 4}),
           {},
           o,
           {}};
    c.how.head_axis(HeadAxis::BeforeLength);
    if (o.part() == rotary::Part::Whole) {
      c.q = c.q.slice(-1, 0, o.rotary_dim());
      c.k = c.k.slice(-1, 0, o.rotary_dim());
    }
    const auto angles = torch::rand({5, o.cos_width()}) * 6;
    c.table = {angles.cos(), angles.sin()};
    QueryKey got;
    try {
      got = functional::rotary(c.q, c.k, c.table, c.options, c.how);
    } catch (const c10::ValueError&) {
      continue;  // sections, which only a model gives
    }
    ++compared;
    const auto [q, k] = composed(c);
    EXPECT_TRUE(bit_equal(std::get<0>(got), q));
    EXPECT_TRUE(bit_equal(std::get<1>(got), k));
  }
  EXPECT_GT(compared, 30);
}

TEST(RotaryFusedLarge, EqualsTheComposition) {
  const auto options = RotaryOptions(128, Pairing::Halves);
  Case c{torch::randn({1, 32, 1100, 128}), torch::randn({1, 8, 1100, 128}), {}, options, {}};
  c.table = rotary_cos_sin(options, torch::arange(1100));
  for (const int threads : {1, 2}) {
    const Threads some(threads);
    const auto ours = step(c, must_be_fused), theirs = step(c, composed);
    for (size_t j = 0; j < ours.size(); ++j) EXPECT_TRUE(bit_equal(ours[j], theirs[j]));
  }
}

// Rows that the kernel looks up in a cache give the same results and gradients as rows that are
// gathered first.
TEST_P(RotaryFused, LooksRowsUpByPosition) {
  Dice dice(static_cast<uint32_t>(GetParam()) + 60);
  torch::manual_seed(testing::seed(44));
  for (int i = 0; i < 40; ++i) {
    Case c = random_case(dice, GetParam());
    if (c.options.axial()) continue;  // whose positions are several numbers
    SCOPED_TRACE(c10::str("case ", i, " ", describe(c)));
    const torch::Tensor& x = c.q.defined() ? c.q : c.k;
    const int64_t length = x.size(c.how.head_axis() == HeadAxis::BeforeLength ? -2 : -3);
    const bool each = x.dim() == 4 && dice.coin();
    const auto shape =
        each ? std::vector<int64_t>{x.size(0), length} : std::vector<int64_t>{length};
    const auto ids = torch::randint(0, 90, shape, dice.coin() ? torch::kLong : torch::kInt);
    Case cached = c;
    cached.table = rotary_cos_sin(c.options, torch::arange(90), GetParam());
    cached.how.position_ids(ids);
    c.table = {torch::embedding(cached.table.cos, ids), torch::embedding(cached.table.sin, ids)};
    RotaryPlan plan;
    EXPECT_TRUE(is_fusable(c.q, c.k, cached.table, c.options, c.how, Pass::Forward, plan, ids));
    const auto by_position = [](const Case& own) {
      return functional::rotary(own.q, own.k, own.table, own.options, own.how);
    };
    const auto [q, k] = by_position(cached);
    const auto [want_q, want_k] = composed(c);
    EXPECT_TRUE(!q.defined() || bit_equal(q, want_q));
    EXPECT_TRUE(!k.defined() || bit_equal(k, want_k));
    const auto ours = step(cached, by_position), theirs = step(c, composed);
    for (size_t j = 0; j < ours.size(); ++j) EXPECT_TRUE(bit_equal(ours[j], theirs[j])) << j;
    const auto copy = [](const torch::Tensor& t) { return t.defined() ? t.clone() : t; };
    const auto own_q = copy(c.q), own_k = copy(c.k);
    rotary_(own_q, own_k, cached.table, c.options, cached.how);
    EXPECT_TRUE(!q.defined() || bit_equal(own_q, q));
    EXPECT_TRUE(!k.defined() || bit_equal(own_k, k));
  }
}

// If q and k share memory with each other or with the outputs, the composition is used.
TEST(RotaryFused, LooksBeforeItWrites) {
  const auto options = RotaryOptions(8, Pairing::AdjacentToHalves);
  const auto table = rotary_cos_sin(options, torch::arange(5));
  const auto x = torch::randn({1, 3, 5, 8});
  const Case c{x, {}, table, options, {}};
  const auto want = std::get<0>(composed(c));
  const auto memory = torch::zeros({1, 4, 5, 8});
  memory.slice(1, 0, 3).copy_(x);
  const auto from = memory.slice(1, 0, 3), to = memory.slice(1, 1, 4);
  rotary_out(to, {}, from, {}, table, options);  // a head further
  EXPECT_TRUE(bit_equal(to.contiguous(), want));

  const Case swap{torch::randn({1, 3, 5, 8}), torch::randn({1, 3, 5, 8}), table, options, {}};
  const auto [rotated_q, rotated_k] = composed(swap);
  const auto q = swap.q.clone(), other = swap.k.clone();
  rotary_out(other, q, q, other, table, options);  // each where the other comes from
  EXPECT_TRUE(bit_equal(other, rotated_q));
  EXPECT_TRUE(bit_equal(q, rotated_k));

  // An output row of the first sequence overlaps an input row of the second.
  const auto lines = torch::randn({96});
  const auto here = lines.as_strided({2, 1, 2, 8}, {40, 32, 32, 1}, /*storage_offset=*/0);
  const auto beside = lines.as_strided({2, 1, 2, 8}, {40, 32, 32, 1}, /*storage_offset=*/8);
  const auto two = rotary_cos_sin(options, torch::arange(2));
  const Case moved{here.clone(), {}, two, options, {}};
  rotary_out(beside, {}, here, {}, two, options);
  EXPECT_TRUE(bit_equal(beside.contiguous(), std::get<0>(composed(moved))));

  // Two heads of k overlap the next row of q's output.
  const auto k = lines.as_strided({1, 2, 2, 8}, {96, 20, 32, 1}, /*storage_offset=*/8);
  const auto q_out = lines.as_strided({1, 1, 2, 8}, {96, 32, 32, 1}, /*storage_offset=*/0);
  const Case pair{torch::randn({1, 1, 2, 8}), k.clone(), two, options, {}};
  const auto k_out = torch::empty({1, 2, 2, 8});
  rotary_out(q_out, k_out, pair.q, k, two, options);
  EXPECT_TRUE(bit_equal(q_out.contiguous(), std::get<0>(composed(pair))));
  EXPECT_TRUE(bit_equal(k_out, std::get<1>(composed(pair))));
}

TEST(RotaryFused, LooksAtTheLayoutOfWhatItWrites) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(3));
  const auto square = torch::randn({1, 3, 3, 8});
  const Case c{square.clone(), {}, table, options, {}};
  const auto want = std::get<0>(composed(c));
  rotary_out(square.transpose(1, 2), {}, square, {}, table, options);  // the same first element
  EXPECT_TRUE(bit_equal(square.transpose(1, 2).contiguous(), want));
  const auto by_channel = torch::zeros({1, 3, 8, 3}).transpose(2, 3);
  rotary_out(by_channel, {}, c.q, {}, table, options);
  EXPECT_TRUE(bit_equal(by_channel.contiguous(), want));
}

// A single projection to q, k and v, rotated in place, with either order of the axes.
TEST(RotaryFused, TurnsPartsOfAPackedProjection) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(5));
  for (const HeadAxis axis : {HeadAxis::AfterLength, HeadAxis::BeforeLength}) {
    const auto all = torch::randn({2, 5, 3 * 4, 8}), before = all.clone();
    const auto part = [&](const torch::Tensor& from, int64_t i) {
      const auto heads = from.slice(2, 4 * i, 4 * i + 4);
      return axis == HeadAxis::AfterLength ? heads : heads.transpose(1, 2);
    };
    const Case c{part(before, 0), part(before, 1), table, options, {}};
    Case own = c;
    own.how.head_axis(axis);
    const auto [q, k] = composed(own);
    rotary_(part(all, 0), part(all, 1), table, options, own.how);
    EXPECT_TRUE(part(all, 0).equal(q) && part(all, 1).equal(k));
    EXPECT_TRUE(part(all, 2).equal(part(before, 2)));
  }
}

TEST(RotaryFused, HasASecondDerivative) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(4), torch::kDouble);
  const auto twice = [&](bool fused) {
    const auto q = torch::linspace(-1, 1, 32, torch::kDouble).view({1, 4, 8}).requires_grad_();
    const Case c{q, {}, {table.cos, table.sin}, options, {}};
    const auto y = std::get<0>(fused ? must_be_fused(c) : composed(c));
    const auto first = torch::autograd::grad({y.pow(3).sum()}, {q}, {}, true, true)[0];
    return torch::autograd::grad({first.pow(2).sum()}, {q})[0];
  };
  EXPECT_TRUE(testing::within(testing::Op::Gradient, twice(true), twice(false)));
}

TEST(RotaryFused, NoticesThatItsTableChanged) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(4));
  const auto q = torch::randn({1, 4, 8}).requires_grad_();
  const auto y = std::get<0>(functional::rotary(q, {}, table, options));
  table.cos.zero_();
  EXPECT_ERROR(y.sum().backward(), c10::Error, "modified by an inplace operation");
}

// They share the saved tensors, and each releases its own handle.
TEST(RotaryFused, QueriesAndKeysHaveBackwardsOfTheirOwn) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(4));
  const auto q = torch::randn({1, 4, 8}).requires_grad_();
  const auto k = torch::randn({1, 4, 8}).requires_grad_();
  torch::Tensor q_out, k_out;  // named, because a lambda cannot capture a structured binding
  std::tie(q_out, k_out) = must_be_fused({q, k, table, options, {}});
  q_out.sum().backward();
  EXPECT_FALSE(k.grad().defined());
  EXPECT_ERROR(q_out.sum().backward(), c10::Error, "backward through the graph a second time");
  k_out.sum().backward();
  EXPECT_TRUE(k.grad().equal(q.grad()));
  EXPECT_ERROR(k_out.sum().backward(), c10::Error, "backward through the graph a second time");
}

// Learned angles get a gradient, and other transforms see the operation.
TEST(RotaryFused, LeavesToTheCompositionWhatItCannotDo) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  auto table = rotary_cos_sin(options, torch::arange(4));
  table.cos.requires_grad_();
  const auto q = torch::randn({1, 4, 8});
  const auto y = std::get<0>(functional::rotary(q, {}, table, options));
  y.sum().backward();
  EXPECT_TRUE(table.cos.grad().defined());
}

// Whatever does not fit the kernel has the composition's bits.
TEST(RotaryFused, LeavesOtherShapesAndTypesToTheComposition) {
  const auto q = torch::randn({2, 3, 5, 22}), k = torch::randn({2, 3, 5, 22});
  auto complex = RotaryOptions(22, Pairing::Adjacent).arithmetic(Arithmetic::Complex);
  complex.cos_layout(CosLayout::Complex).cos_type(CosType::Float32);
  const auto part = RotaryOptions(16, Pairing::Halves).part(rotary::Part::First);
  const auto angles = torch::rand({5, 16}, torch::kDouble) * 6;
  const RotaryCosSin fitting = rotary_cos_sin(part, torch::arange(5));
  const auto by_column = fitting.sin.t().contiguous().t();
  for (const Case& c : {Case{q, k, rotary_cos_sin(complex, torch::arange(5)), complex, {}},
                        Case{q, k, {angles.cos(), angles.sin()}, part, {}},
                        Case{q, k.slice(0, 0, 1), fitting, part, {}},
                        Case{q, k, {fitting.cos, by_column}, part, {}},
                        Case{q, k.slice(-1, 0, 18), fitting, part, {}}}) {
    const auto got = functional::rotary(c.q, c.k, c.table, c.options, c.how), want = composed(c);
    EXPECT_TRUE(bit_equal(std::get<0>(got), std::get<0>(want))) << describe(c);
    EXPECT_TRUE(bit_equal(std::get<1>(got), std::get<1>(want))) << describe(c);
  }
}

TEST(RotaryFused, RefusesToWriteWhereAGradientIsRecorded) {
  const auto options = RotaryOptions(8, Pairing::Halves);
  const auto table = rotary_cos_sin(options, torch::arange(4));
  const auto q = torch::randn({1, 4, 8}).requires_grad_();
  const auto before = q.detach().clone();
  EXPECT_ERROR(rotary_(q, {}, table, options), c10::ValueError, "records no gradient");
  EXPECT_TRUE(bit_equal(q.detach(), before));
  EXPECT_ERROR(rotary_out(torch::empty_like(q).requires_grad_(), {}, before, {}, table, options),
               c10::ValueError, "records no gradient");
  const auto one = torch::randn({1, 1, 8}).expand({1, 4, 8});
  EXPECT_ERROR(rotary_(one, {}, table, options), c10::ValueError, "a place of its own");
}

}  // namespace
}  // namespace posenc::functional::rotary_fused_test
