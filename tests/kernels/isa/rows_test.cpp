// Residual and norm, activations and top-k of a row, against their ATen counterparts in float64.

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/isa/sets.h"
#include "support/seed.h"

namespace posenc::kernels::inference {
namespace {

using testing::bit_equal;
using testing::Op;

constexpr int64_t kRows = 5;

TEST(InferenceRows, AddAndNormalise) {
  torch::manual_seed(testing::seed(1));
  for (const int64_t width : {1, 2, 15, 16, 17, 64, 100, 512}) {
    for (const bool added : {false, true}) {
      for (const bool biased : {false, true}) {
        for (const bool in_place : {false, true}) {
          // Well separated: the norm of two nearly equal numbers magnifies their rounding without
          // bound.
          const auto x = torch::randn({kRows, width}) * 2 + torch::linspace(-8, 10, width);
          const auto y = torch::randn({kRows, width});
          const auto weight = torch::randn({width}), bias = torch::randn({width});
          const auto sum = added ? x.to(torch::kDouble) + y : x.to(torch::kDouble);
          std::optional<torch::Tensor> b;
          if (biased) b = bias.to(torch::kDouble);
          const auto expected = at::layer_norm(sum, {width}, weight.to(torch::kDouble), b, 1e-3);
          expect_on_each_set(Op::Sums, expected, [&](const InferenceKernels& use) {
            const auto from = x.clone();
            const auto out = in_place ? from : torch::empty_like(x);
            const auto kept = in_place ? torch::Tensor() : torch::empty_like(x);
            AddNormRequest request = {};
            request.x = from.const_data_ptr<float>();
            request.y = added ? y.const_data_ptr<float>() : nullptr;
            request.width = width;
            request.sum = kept.defined() ? kept.data_ptr<float>() : nullptr;
            request.out = out.data_ptr<float>();
            request.weight = weight.const_data_ptr<float>();
            request.bias = biased ? bias.const_data_ptr<float>() : nullptr;
            request.eps = 1e-3F;
            use.add_norm.add_norm(request, 0, 2);
            use.add_norm.add_norm(request, 2, kRows);
            EXPECT_TRUE(!kept.defined() || bit_equal(kept, added ? x + y : x));
            return out;
          });
        }
      }
    }
  }
}

// In place, as for the heads of a query.
TEST(InferenceRows, RootMeanSquares) {
  torch::manual_seed(testing::seed(4));
  for (const int64_t width : {1, 15, 16, 64, 100}) {
    for (const bool added : {false, true}) {
      for (const bool plus_one : {false, true}) {
        const auto x = torch::randn({kRows, width}), y = torch::randn({kRows, width});
        const auto weight = torch::randn({width});
        const auto sum = added ? x.to(torch::kDouble) + y : x.to(torch::kDouble);
        const auto factor = plus_one ? weight.to(torch::kDouble) + 1.0 : weight.to(torch::kDouble);
        const auto expected = sum * (sum.pow(2).mean(-1, true) + 1e-3).rsqrt() * factor;
        expect_on_each_set(Op::Sums, expected, [&](const InferenceKernels& use) {
          const auto out = x.clone();
          AddNormRequest request = {};
          request.x = request.out = out.data_ptr<float>();
          request.y = added ? y.const_data_ptr<float>() : nullptr;
          request.width = width;
          request.weight = weight.const_data_ptr<float>();
          request.eps = 1e-3F;
          request.kind = plus_one ? NormKind::RMSPlusOne : NormKind::RMS;
          use.add_norm.add_norm(request, 0, 2);
          use.add_norm.add_norm(request, 2, kRows);
          return out;
        });
      }
    }
  }
}

TEST(InferenceRows, Affine) {
  torch::manual_seed(testing::seed(5));
  for (const int64_t width : {1, 15, 16, 64, 100}) {
    for (const bool has_bias : {false, true}) {
      const auto x = torch::randn({kRows, width}), y = torch::randn({kRows, width});
      const auto weight = torch::randn({width}), bias = torch::randn({width});
      const auto sum = (x + y) * weight;
      expect_on_each_set(Op::Sums, has_bias ? sum + bias : sum, [&](const InferenceKernels& use) {
        const auto out = x.clone();
        AddNormRequest request = {};
        request.x = request.out = out.data_ptr<float>();
        request.y = y.const_data_ptr<float>();
        request.width = width;
        request.weight = weight.const_data_ptr<float>();
        request.bias = has_bias ? bias.const_data_ptr<float>() : nullptr;
        request.kind = NormKind::Affine;
        use.add_norm.add_norm(request, 0, 2);
        use.add_norm.add_norm(request, 2, kRows);
        return out;
      });
    }
  }
}

TEST(InferenceRows, AddAlone) {
  const auto x = torch::randn({kRows, 33}), y = torch::randn({kRows, 33});
  expect_on_each_set(Op::Forward, x + y, [&](const InferenceKernels& use) {
    const auto sum = x.clone();
    AddNormRequest request = {};
    request.x = request.sum = sum.data_ptr<float>();
    request.y = y.const_data_ptr<float>();
    request.width = 33;
    use.add_norm.add_norm(request, 0, kRows);
    return sum;
  });
}

TEST(InferenceRows, Activations) {
  const auto x = torch::cat({torch::linspace(-100, 100, 4001), torch::linspace(-6, 6, 2003),
                             torch::tensor({0.0F, -0.0F, 1e-30F, -1e-30F, 3e38F, -3e38F})});
  const auto wide = x.to(torch::kDouble);
  const torch::Tensor expected[] = {at::relu(wide),
                                    at::gelu(wide),
                                    at::silu(wide),
                                    at::gelu(wide, "tanh"),
                                    wide * at::sigmoid(1.702 * wide),
                                    at::relu(wide).square()};
  const auto gated = torch::rand_like(x) - 0.5;
  for (size_t i = 0; i < std::size(expected); ++i) {
    for (const int64_t n : {int64_t{6004}, x.size(0)}) {  // with and without huge values
      expect_on_each_set(Op::Sums, expected[i].narrow(0, 0, n), [&](const InferenceKernels& use) {
        const auto y = x.narrow(0, 0, n).clone();
        activations(use)[i].activate(y.data_ptr<float>(), n);
        const auto gate = x.narrow(0, 0, n).clone();
        activations(use)[i].gate(gate.data_ptr<float>(), gated.const_data_ptr<float>(), n);
        EXPECT_TRUE(bit_equal(gate, y * gated.narrow(0, 0, n)));
        return y;
      });
    }
  }
}

TEST(InferenceRows, NaNStaysNaN) {
  on_each_set([&](const InferenceKernels& use) {
    for (const ActivationKernel& one : activations(use)) {
      auto x = torch::full({20}, std::numeric_limits<float>::quiet_NaN());
      one.activate(x.data_ptr<float>(), 20);
      EXPECT_TRUE(x.isnan().all().item<bool>());
    }
  });
}

TEST(InferenceRows, LogSumExp) {
  torch::manual_seed(testing::seed(2));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 1000}) {
    auto x = torch::randn({n}) * 30;
    if (n > 3) x[1] = kNever;
    for (const bool any : {true, false}) {
      if (!any) x.fill_(kNever);
      expect_on_each_set(Op::Sums, any ? x.to(torch::kDouble).logsumexp(0) : torch::zeros({}),
                         [&](const InferenceKernels& use) {
                           const auto of_x = use.topk.log_sum_exp(x.const_data_ptr<float>(), n);
                           const auto sum = torch::tensor(of_x.largest + of_x.rest);
                           return any ? sum : torch::where(sum == kNever, 0.0F, sum);
                         });
    }
  }
}

// Numbers that are negligible compared with the largest still matter if there are many.
TEST(InferenceRows, LogSumExpOfManySmall) {
  constexpr int64_t kMany = 100'000;
  auto x = torch::full({kMany + 1}, -21.0F);
  x[0] = 0.0F;
  on_each_set([&](const InferenceKernels& use) {
    const auto sum = use.topk.log_sum_exp(x.const_data_ptr<float>(), kMany + 1);
    // Those in the largest number's vector lane are lost to rounding: one lane of several.
    EXPECT_NEAR(sum.largest + sum.rest, std::log1p(kMany * std::exp(-21.0)), 3e-5);
  });
}

TEST(InferenceRows, LogSumExpOfNaN) {
  for (const int64_t n : {1, 15, 16, 17, 40}) {
    auto all = torch::full({n}, std::numeric_limits<float>::quiet_NaN()), one = torch::randn({n});
    one[n - 1] = all[0];
    on_each_set([&](const InferenceKernels& use) {
      for (const auto& x : {all, one})
        EXPECT_TRUE(std::isnan(use.topk.log_sum_exp(x.const_data_ptr<float>(), n).rest));
    });
  }
}

TEST(InferenceRows, Ranks) {
  torch::manual_seed(testing::seed(3));
  for (const int64_t n : {1, 2, 15, 16, 17, 100, 1000}) {
    for (const int64_t count : {1, 2, 7}) {
      const auto x = torch::randint(0, 40, {2, n}).to(torch::kFloat);  // with ties
      const float base[] = {0.5F, -3.0F};
      std::vector<std::pair<float, int64_t>> all;
      for (int64_t i = 0; i < 2 * n; ++i)
        all.emplace_back(-(x.view(-1)[i].item<float>() - 2.0F + base[i / n]), i);
      std::sort(all.begin(), all.end());
      on_each_set([&](const InferenceKernels& use) {
        std::vector<TopkEntry> best(count, {-std::numeric_limits<float>::infinity(), 0});
        for (int64_t row = 0; row < 2; ++row)
          use.topk.topk_insert(x[row].const_data_ptr<float>(), n, 2.0F, base[row], row * n,
                               best.data(), count);
        for (int64_t i = 0; i < std::min(count, 2 * n); ++i) {
          EXPECT_EQ(best[i].score, -all[i].first);
          EXPECT_EQ(best[i].index, all[i].second);
        }
      });
    }
  }
}

}  // namespace
}  // namespace posenc::kernels::inference
