#include "posenc/positions/functional/rotary.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include <set>

#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::message_of;
using posenc::testing::OnEachDevice;
using How = RotaryFuncOptions;
using rotary::HeadAxis;
using rotary::Pairing;

class Rotary : public OnEachDevice {
 protected:
  torch::Tensor randn(std::vector<int64_t> shape) const { return torch::randn(shape).to(device()); }
};
POSENC_ON_EACH_DEVICE(Rotary);

torch::Tensor rotate_half(const torch::Tensor& x) {
  const auto n = x.size(-1) / 2;
  return torch::cat({-x.slice(-1, n), x.slice(-1, 0, n)}, -1);
}

TEST_P(Rotary, HalvesAreLlamasTwoLines) {
  const auto options = rotary_preset("llama", 8);
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    const auto q = randn({2, 4, 5, 8}).to(dtype), k = randn({2, 2, 5, 8}).to(dtype);
    const auto ids = torch::arange(3, 8, torch::TensorOptions(device()).dtype(torch::kLong));
    const auto table = rotary_cos_sin(options, ids, dtype);
    const auto expected = q * table.cos + rotate_half(q) * table.sin;
    const auto [rotated, rotated_k] = rotary(q, k, options, How().offset(3));
    EXPECT_TRUE(bit_equal(rotated, expected));
    EXPECT_TRUE(bit_equal(rotated_k, k * table.cos + rotate_half(k) * table.sin));
    EXPECT_TRUE(bit_equal(std::get<0>(rotary(q, k, table, options)), expected));
    EXPECT_TRUE(bit_equal(std::get<0>(rotary(q, {}, options, How().position_ids(ids))), expected));
  }
}

TEST_P(Rotary, EachRowMayHaveItsOwnPositions) {
  const auto options = rotary_preset("cohere", 8);
  const auto q = randn({2, 3, 4, 8});
  const auto ids = torch::tensor({{0, 1, 2, 3}, {9, 9, 40, 41}}).to(device());
  const auto both = std::get<0>(rotary(q, {}, options, How().position_ids(ids)));
  for (const int64_t row : {0, 1}) {
    const auto own = std::get<0>(rotary(q[row], {}, options, How().position_ids(ids[row])));
    EXPECT_TRUE(bit_equal(both[row], own));
  }
}

TEST_P(Rotary, TheOrderOfAxesIsNoMatterOfBits) {
  const auto options = rotary_preset("llama", 8);
  const auto q = randn({2, 5, 3, 8});  // (B, L, H, D)
  const auto how = How().head_axis(HeadAxis::AfterLength);
  const auto after = std::get<0>(rotary(q, {}, options, how));
  const auto before = std::get<0>(rotary(q.transpose(1, 2), {}, options));
  EXPECT_TRUE(bit_equal(after, before.transpose(1, 2).contiguous()));
  EXPECT_TRUE(bit_equal(std::get<0>(rotary(q[0], {}, options, how)), after[0]));  // packed
}

// Every pairing, fused and composed: a leaf that requires a gradient is rotated by the composition.
TEST_P(Rotary, TheInverseGivesTheInput) {
  std::set<Pairing> pairings;
  for (const RotaryPreset& preset : rotary_presets()) {
    RotaryOptions options = rotary_preset(preset.name, 12);
    if (options.planes() == rotary::Planes::Doubled) continue;
    if (!options.sections().empty()) options.sections({2, 2, 2});
    pairings.insert(options.pairing());
    const int64_t channels = options.part() == rotary::Part::Whole ? 12 : 16;
    const auto q = randn({1, 2, 6, channels}), k = randn({1, 1, 6, channels});
    const auto angles = randn({6, 6});
    if (options.xpos_scale_base() != 0.0) continue;  // which has none
    if (preset.name == "vjepa2" || preset.name == "ernie_image") {
      const auto x = randn({1, 2, 6, options.rotary_dim()});
      const RotaryCosSin any{randn({6, options.cos_width()}), randn({6, options.cos_width()})};
      EXPECT_THROW(rotary(x, {}, any, options, How().inverse(true)), c10::ValueError);
      continue;
    }
    const auto row = [&](const torch::Tensor& t) {
      switch (options.cos_layout()) {
        case rotary::CosLayout::Pairs: return torch::stack({t, t}, -1).flatten(-2);
        case rotary::CosLayout::Halves: return torch::cat({t, t}, -1);
        case rotary::CosLayout::HalvesPerAxis: break;
        default: return t;
      }
      const auto by_axis = t.view({6, options.plane_count(), -1});
      return torch::cat({by_axis, by_axis}, -1).flatten(-2);
    };
    const RotaryCosSin table{row(angles.cos()), row(angles.sin())};
    const auto how = How().head_axis(HeadAxis::BeforeLength);
    const auto [there_q, there_k] = rotary(q, k, table, options, how);
    const auto back = How(how).inverse(true);
    const auto [back_q, back_k] = rotary(there_q, there_k, table, options, back);
    const bool rounds = options.arithmetic() == rotary::Arithmetic::BFloat16;
    const double most = rounds ? 0.1 : 1e-5;
    EXPECT_LT((back_q - q).abs().max().item<double>(), most) << preset.name;
    EXPECT_LT((back_k - k).abs().max().item<double>(), most) << preset.name;
    EXPECT_GT((there_q - q).abs().max().item<double>(), 1e-2) << preset.name;
    const auto strided = torch::stack({there_q, there_q}, -1).select(-1, 0);  // which is not fused
    const auto composed = std::get<0>(rotary(strided, {}, table, options, back));
    EXPECT_LT((composed - q).abs().max().item<double>(), most) << preset.name;
  }
  EXPECT_EQ(pairings.size(), 5U);
}

TEST_P(Rotary, TheInversesGradientIsTheRotation) {
  const auto options = rotary_preset("deepseek_v3", 8);
  const auto q = randn({1, 2, 3, 8}).requires_grad_();
  const auto g = randn({1, 2, 3, 8});
  std::get<0>(rotary(q, {}, options, How().offset(4).inverse(true))).backward(g);
  const auto rotated = std::get<0>(rotary(g, {}, options, How().offset(4)));
  EXPECT_LT((q.grad() - rotated).abs().max().item<double>(), 1e-5);
}

TEST_P(Rotary, TwoAnglesOfAPairHaveNoInverse) {
  const auto options = rotary_preset("hunyuan_vl", 8).sections({2, 1, 1});
  EXPECT_EQ(
      message_of([&] { rotary(randn({2, 3, 8}), {}, options, How().inverse(true)); }),
      "[rotary] inverse must be false with Planes::Doubled and the layouts of V-JEPA 2 and "
      "ERNIE-Image, where the two channels of a pair may rotate by different angles. Got true");
}

// LTX-2's halves in each of the heads that are joined, Kandinsky 5's rounding.
TEST_P(Rotary, HeadsThatAreJoinedRotateInParts) {
  auto options = RotaryOptions(24, Pairing::HalvesPerHead)
                     .cos_layout(rotary::CosLayout::Single)
                     .arithmetic(rotary::Arithmetic::Float32)
                     .joined_heads(3);
  const auto q = randn({2, 1, 5, 24}), angles = randn({5, 12});
  const RotaryCosSin table{angles.cos(), angles.sin()};
  const auto joined = std::get<0>(rotary(q, {}, table, options)).view({2, 5, 3, 8});
  const auto one = RotaryOptions(8, Pairing::Halves).cos_layout(rotary::CosLayout::Single);
  for (int64_t head = 0; head < 3; ++head) {
    const auto part = [&](const torch::Tensor& t) { return t.slice(-1, 4 * head, 4 * head + 4); };
    const auto x = q.slice(-1, 8 * head, 8 * head + 8);
    const auto apart = std::get<0>(rotary(x, {}, {part(table.cos), part(table.sin)}, one));
    EXPECT_TRUE(bit_equal(joined.select(2, head), apart.squeeze(1)));
  }
  options.arithmetic(rotary::Arithmetic::Addcmul);  // which may round once less
  const auto fused = std::get<0>(rotary(q, {}, table, options)).view({2, 5, 3, 8});
  EXPECT_LT((fused - joined).abs().max().item<double>(), 1e-6);
  options.arithmetic(rotary::Arithmetic::BFloat16);
  const auto rounded = std::get<0>(rotary(q, {}, table, options)).view({2, 5, 3, 8});
  EXPECT_TRUE(bit_equal(rounded, joined.to(torch::kBFloat16).to(torch::kFloat)));
}

TEST_P(Rotary, TheOtherChannelsPass) {
  const auto q = randn({1, 2, 6, 12});
  const auto first = std::get<0>(rotary(q, {}, rotary_preset("gpt_neox", 8)));
  EXPECT_TRUE(bit_equal(first.slice(-1, 8), q.slice(-1, 8).contiguous()));
  const auto rotated = std::get<0>(rotary(q.slice(-1, 0, 8), {}, rotary_preset("llama", 8)));
  EXPECT_TRUE(bit_equal(first.slice(-1, 0, 8).contiguous(), rotated));
  const auto last = std::get<0>(rotary(q, {}, rotary_preset("deepseek_v4", 8)));
  EXPECT_TRUE(bit_equal(last.slice(-1, 0, 4).contiguous(), q.slice(-1, 0, 4).contiguous()));
}

TEST_P(Rotary, ArithmeticsRoundDifferently) {
  const auto q = randn({1, 4, 64, 64}).to(torch::kBFloat16);
  const auto own = std::get<0>(rotary(q, {}, rotary_preset("llama", 64)));
  const auto in_float = std::get<0>(rotary(q, {}, rotary_preset("esm", 64)));
  const auto promoted = std::get<0>(rotary(q, {}, rotary_preset("olmo", 64)));
  EXPECT_EQ(in_float.scalar_type(), torch::kBFloat16);
  EXPECT_FALSE(torch::equal(own, in_float));
  EXPECT_FALSE(torch::equal(in_float, promoted));
  const auto widened = std::get<0>(
      rotary(q, {}, rotary_preset("codegen", 64), How().head_axis(HeadAxis::BeforeLength)));
  EXPECT_EQ(widened.scalar_type(), torch::kFloat);
}

TEST_P(Rotary, TheGradientIsTheRotationBack) {
  for (const char* name : {"llama", "cohere", "deepseek_v3"}) {
    const auto options = rotary_preset(name, 8);
    const auto q = randn({1, 2, 3, 8}).requires_grad_();
    const auto g = randn({1, 2, 3, 8});
    std::get<0>(rotary(q, {}, options, How().offset(4))).backward(g);
    const auto f = [&](const torch::Tensor& x) {
      return (std::get<0>(rotary(x, {}, options, How().offset(4))) * g).sum();
    };
    const torch::NoGradGuard no_grad;
    const auto step = randn({1, 2, 3, 8});
    const auto slope = (f(q + 0.5 * step) - f(q - 0.5 * step)).item<double>();  // f is linear
    EXPECT_NEAR(slope, (q.grad() * step).sum().item<double>(), 1e-4) << name;
  }
}

TEST_P(Rotary, InPlaceAndIntoGivenTensors) {
  const auto options = rotary_preset("llama", 8);
  const auto q = randn({2, 4, 5, 8}), k = randn({2, 2, 5, 8});
  const auto ids = torch::arange(5, torch::TensorOptions(device()).dtype(torch::kLong));
  const auto table = rotary_cos_sin(options, ids);
  const auto [expected_q, expected_k] = rotary(q, k, table, options);
  const auto q_out = torch::empty_like(q), k_out = torch::empty_like(k);
  rotary_out(q_out, k_out, q, k, table, options);
  EXPECT_TRUE(bit_equal(q_out, expected_q));
  EXPECT_TRUE(bit_equal(k_out, expected_k));
  rotary_(q, k, table, options);
  EXPECT_TRUE(bit_equal(q, expected_q));
  EXPECT_TRUE(bit_equal(k, expected_k));
}

TEST_P(Rotary, ConvertedWeightsGiveTheSameScores) {
  const int64_t heads = 2, width = 12, in = 5;
  for (const int64_t rotating : {12, 8}) {
    const auto wq = randn({heads * width, in}), wk = randn({heads * width, in});
    const auto x = randn({7, in});
    const auto scores = [&](const torch::Tensor& a, const torch::Tensor& b, const char* name) {
      const auto project = [&](const torch::Tensor& w) {
        return x.matmul(w.t()).view({7, heads, width}).transpose(0, 1);
      };
      const auto [q, k] = rotary(project(a), project(b), rotary_preset(name, rotating));
      return q.matmul(k.transpose(1, 2));
    };
    const auto convert = [&](const torch::Tensor& w) {
      return convert_rotary_weight(w, heads, Pairing::Adjacent, Pairing::Halves, rotating);
    };
    const auto meta = scores(wq, wk, "glm"), hf = scores(convert(wq), convert(wk), "gpt_neox");
    EXPECT_LT((meta - hf).abs().max().item<double>(), 1e-4);
    EXPECT_GT((meta - scores(wq, wk, "gpt_neox")).abs().max().item<double>(), 1e-2);
    EXPECT_TRUE(bit_equal(
        convert_rotary_weight(convert(wq), heads, Pairing::Halves, Pairing::Adjacent, rotating),
        wq));
    EXPECT_TRUE(bit_equal(convert(wq).select(1, 0).contiguous(),
                          convert(wq.select(1, 0).contiguous())));  // a bias
  }
}

TEST_P(Rotary, ConversionOfOtherShapesIsAnError) {
  const auto refused = [&](const torch::Tensor& w, int64_t heads, Pairing to,
                           int64_t rotating = 0) {
    return message_of([&] { convert_rotary_weight(w, heads, Pairing::Adjacent, to, rotating); });
  };
  EXPECT_EQ(refused(randn({10, 2}), 3, Pairing::Halves),
            "[convert_rotary_weight] weight must be (heads * Dh, in) or (heads * Dh) with 3 heads. "
            "Got [10, 2]");
  EXPECT_EQ(refused(randn({12, 2}), 3, Pairing::Halves, 3),
            "[convert_rotary_weight] rotary_dim must be even and at most 4. Got 3");
  EXPECT_EQ(refused(randn({12, 2}), 3, Pairing::AdjacentToHalves),
            "[convert_rotary_weight] pairings must be Halves and Adjacent");
}

TEST_P(Rotary, WrongInputsAreErrors) {
  const auto options = rotary_preset("llama", 8);
  const auto q = randn({2, 4, 5, 8});
  const auto refused = [&](const torch::Tensor& a, const torch::Tensor& b, const How& how = {}) {
    return message_of([&] { rotary(a, b, options, how); });
  };
  EXPECT_EQ(refused({}, {}), "[rotary] q or k must be a tensor");
  EXPECT_EQ(refused(q.to(torch::kLong), {}), "[rotary] q must be floating-point. Got Long");
  EXPECT_EQ(refused(q[0][0], {}), "[rotary] q must be (B, H, L, Dh) or (H, L, Dh). Got [5, 8]");
  EXPECT_EQ(refused(q, q.slice(-1, 0, 6)),
            "[rotary] k must have 8 channels in its last axis, which rotate. Got [2, 4, 5, 6]");
  EXPECT_EQ(
      message_of([&] { rotary(q, {}, rotary_preset("glm", 10)); }),
      "[rotary] q must have at least 10 channels in its last axis, which rotate. Got [2, 4, 5, "
      "8]");
  EXPECT_EQ(refused(q, q.to(torch::kHalf)),
            "[rotary] q and k must have one dtype. Got Float and Half");
  EXPECT_EQ(refused(q, {}, How().offset(-1)),
            "[rotary] offset must not be negative, and positions must be below 2^31. Got -1 for 5 "
            "tokens");
  constexpr int64_t kLimit = int64_t{1} << 31;
  EXPECT_EQ(refused(q, {}, How().offset(kLimit - 5)), "");
  EXPECT_EQ(refused(q, {}, How().offset(kLimit - 4)),
            "[rotary] offset must not be negative, and positions must be below 2^31. Got "
            "2147483644 for 5 tokens");
  const auto ids = torch::arange(5, torch::TensorOptions(device()).dtype(torch::kLong));
  EXPECT_EQ(refused(q, {}, How().offset(1).position_ids(ids)),
            "[rotary] position_ids are absolute: offset must be 0 beside them. Got 1");
  EXPECT_EQ(refused(q, {}, How().position_ids(ids.slice(0, 0, 4))),
            "[rotary] cos and sin must have the batch and length of q and k. Got [4, 8] for [2, 4, "
            "5, 8]");
  EXPECT_EQ(refused(q, {}, How().position_ids(ids.slice(0, 0, 1))),  // nor does one row broadcast
            "[rotary] cos and sin must have the batch and length of q and k. Got [1, 8] for [2, 4, "
            "5, 8]");
}

TEST_P(Rotary, WrongTablesAreErrors) {
  const auto options = rotary_preset("llama", 8);
  const auto q = randn({2, 4, 5, 8});
  const auto refused = [&](const RotaryCosSin& table, const How& how = {}) {
    return message_of([&] { rotary(q, {}, table, options, how); });
  };
  const RotaryCosSin good{randn({5, 8}), randn({5, 8})};
  EXPECT_EQ(refused(good), "");
  EXPECT_EQ(
      refused({randn({5, 4}), randn({5, 4})}),
      "[rotary] cos and sin must be floating-point (L, W), (B, L, W) or (B, H, L, W), W = 8. Got "
      "Float [5, 4]");
  EXPECT_EQ(refused({randn({3, 5, 8}), randn({3, 5, 8})}),
            "[rotary] cos and sin must have the batch and length of q and k. Got [3, 5, 8] for [2, "
            "4, 5, 8]");
  EXPECT_EQ(refused(good, How().offset(2)),
            "[rotary] cos and sin begin at the first token: offset must be 0 beside them. Got 2");
  const auto long_ids = torch::TensorOptions(device()).dtype(torch::kLong);
  const auto at = [&](const torch::Tensor& ids) { return refused(good, How().position_ids(ids)); };
  EXPECT_EQ(at(torch::tensor({0, 1, 2, 3, 5}, long_ids)),
            "[rotary] every position must lie in [0, rows) = [0, 5). Got 5 at index [4]");
  EXPECT_EQ(at(torch::tensor({0, -1, 2, 3, 4}, long_ids)),
            "[rotary] every position must lie in [0, rows) = [0, 5). Got -1 at index [1]");
  EXPECT_EQ(at(torch::tensor({0, 1}, long_ids)),
            "[rotary] cos and sin must have the batch and length of q and k. Got [2, 8] for [2, 4, "
            "5, 8]");
  EXPECT_EQ(at(torch::zeros({3, 5}, long_ids)),
            "[rotary] cos and sin must have the batch and length of q and k. Got [3, 5, 8] for [2, "
            "4, 5, 8]");
  EXPECT_EQ(at(torch::ones({5}, torch::TensorOptions(device()))),
            "[rotary] positions must be integers. Got Float");
  EXPECT_EQ(refused({}, How().position_ids(torch::arange(5, long_ids))),
            "[rotary] cos and sin must be tensors");
}

TEST_P(Rotary, WrongOutputsAreErrorsAndNothingIsWritten) {
  const auto options = rotary_preset("llama", 8);
  const auto q = randn({2, 4, 5, 8});
  const RotaryCosSin table{randn({5, 8}), randn({5, 8})};
  const auto refused = [&](const torch::Tensor& out, const torch::Tensor& in,
                           const RotaryOptions& how) {
    return message_of([&] { rotary_out(out, {}, in, {}, table, how); });
  };
  EXPECT_EQ(refused({}, q, options), "[rotary] q must be given exactly when its input is");
  EXPECT_EQ(refused(torch::empty_like(q).to(torch::kHalf), q, options),
            "[rotary] q must be Float. Got Half");
  EXPECT_EQ(refused(torch::empty_like(q)[0], q, options),
            "[rotary] q must have the shape and device of its input, [2, 4, 5, 8]. Got [4, 5, 8]");
  EXPECT_EQ(refused(q, q, rotary_preset("codegen", 8)),
            "[rotary] Arithmetic::Widened changes the dtype: there is no rotation in place. Got "
            "Float");
  const auto leaf = q.clone().requires_grad_();
  EXPECT_EQ(message_of([&] { rotary_(leaf, {}, table, options); }),
            "[rotary] a rotation into q records no gradient: use rotary(), or at::NoGradGuard. Got "
            "a tensor that requires one");
  EXPECT_TRUE(bit_equal(leaf.detach(), q));
}

// Pairs can be viewed as complex numbers only if they begin at even offsets.
TEST(RotaryComplex, ReadsPairsAtAnyPlace) {
  const auto options = RotaryOptions(6, Pairing::Adjacent)
                           .arithmetic(rotary::Arithmetic::Complex)
                           .cos_layout(rotary::CosLayout::Complex)
                           .cos_type(rotary::CosType::Float32);
  const auto even = torch::randn({1, 2, 5, 6});
  const auto odd = torch::zeros({61}).slice(0, 1).view({1, 2, 5, 6}).copy_(even);
  const auto gaps = torch::zeros({1, 2, 5, 7}).slice(-1, 0, 6).copy_(even);
  const auto want = std::get<0>(rotary(even, {}, options));
  EXPECT_TRUE(bit_equal(std::get<0>(rotary(odd, {}, options)), want));
  EXPECT_TRUE(bit_equal(std::get<0>(rotary(gaps, {}, options)), want));
}

// Only the engine compares a gradient with the result and converts it.
TEST(RotaryBackward, ANodeThatIsCalledByHandChecksItsGradient) {
  const auto options = rotary_preset("llama", 8);
  const auto q = torch::randn({1, 2, 5, 8}).requires_grad_();
  const auto y = std::get<0>(rotary(q, {}, options));
  auto& node = *y.grad_fn();
  const torch::NoGradGuard no_grad;
  EXPECT_ERROR(node({torch::ones({4, 2, 5, 8})}), c10::Error, "[rotary] backward needs a gradient");
  const auto of_floats = node({torch::ones({1, 2, 5, 8})})[0];
  const auto of_doubles = node({torch::ones({1, 2, 5, 8}, torch::kDouble)})[0];
  EXPECT_TRUE(bit_equal(of_doubles, of_floats));
}

// The function and the module read one description alike.
TEST(RotaryAxes, AreThoseOfTheOptions) {
  const auto q = torch::randn({2, 9, 4, 16});
  for (const char* preset : {"llama4", "llama"}) {
    const auto options = rotary_preset(preset, 16);
    const auto own = How().head_axis(options.head_axis());
    EXPECT_TRUE(
        bit_equal(std::get<0>(rotary(q, q, options)), std::get<0>(rotary(q, q, options, own))));
    const auto table = rotary_cos_sin(
        options, torch::arange(options.head_axis() == HeadAxis::AfterLength ? 9 : 4));
    const auto rotated = std::get<0>(rotary(q, q, table, options));
    EXPECT_TRUE(bit_equal(rotated, std::get<0>(rotary(q, q, options, own))));
    const auto in_place = q.clone();
    rotary_(in_place, {}, table, options);
    EXPECT_TRUE(bit_equal(in_place, rotated));
  }
}

}  // namespace
}  // namespace posenc::functional
