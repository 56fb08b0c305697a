// Backward after a program has replaced tensors that the forward saved, and nodes called with a
// gradient that the engine would not pass.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/utils.h>

#include "posenc/positions/functional/dropout.h"
#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/composed.h"
#include "support/compare.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;

constexpr int64_t kRows = 7, kDim = 5;

// The weight's gradient after the ids were replaced by `other`; undefined if the backward throws.
template <typename Embed>
torch::Tensor gradient(Embed function, const torch::Tensor& other, double p) {
  torch::manual_seed(7);
  const auto ids = torch::tensor({{1, 4, 1}, {0, 6, 1}});
  const auto weight = torch::arange(kRows * kDim, torch::kFloat).view({kRows, kDim});
  weight.requires_grad_();
  const auto out =
      function(ids, weight, torch::ones({3, kDim}), EmbedFuncOptions().dropout(p).training(true));
  ids.set_data(other);
  try {
    out.pow(2).sum().backward();
  } catch (const c10::Error&) {
    return {};
  }
  return weight.grad();
}

// set_data() can change the ids' memory, size or dtype without a new version.
TEST(EmbedSaved, ReadsIdsThatWereExchangedAsPyTorchDoes) {
  const torch::Tensor others[] = {torch::full({200, 3}, 2), torch::tensor({1, 2}),
                                  torch::tensor({{1, 0}, {4, 6}, {1, 1}}).t(),
                                  torch::tensor({{1, 4, 1}, {0, 6, 1}}, torch::kInt),
                                  torch::tensor({{1.0f, 4.0f, 1.0f}, {0.0f, 6.0f, 1.0f}})};
  for (const double p : {0.0, 0.5}) {
    for (const torch::Tensor& other : others) {
      SCOPED_TRACE(c10::str(other.toString(), other.sizes(), " ", p));
      const auto ours = gradient(embed, other, p), theirs = gradient(embed_composed, other, p);
      ASSERT_EQ(ours.defined(), theirs.defined()) << "one of them throws";
      if (ours.defined()) {
        EXPECT_TRUE(bit_equal(ours, theirs));
      }
    }
  }
}

// Only the engine compares the gradient's shape with the result's.
TEST(EmbedSaved, ANodeThatIsCalledByHandChecksItsGradient) {
  const auto weight = torch::ones({kRows, kDim}).requires_grad_();
  for (const double p : {0.0, 0.5}) {
    const auto out = embed(torch::tensor({{1, 4, 1}, {0, 6, 1}}), weight, torch::zeros({3, kDim}),
                           EmbedFuncOptions().dropout(p).training(true));
    auto& node = *out.grad_fn();
    const torch::NoGradGuard no_grad;
    EXPECT_ERROR(node({torch::ones({400, 3, kDim})}), c10::Error,
                 "[embed] backward needs a gradient of 5");
    EXPECT_ERROR(node({torch::ones({2, kDim})}), c10::Error,
                 "[embed] backward needs a gradient of 5");
    EXPECT_EQ(node({torch::ones({2, 3, kDim})})[0].sizes(), weight.sizes());
  }
  const auto dropped = functional::dropout(weight, 0.5, true);
  auto& node = *dropped.grad_fn();
  const torch::NoGradGuard no_grad;
  EXPECT_ERROR(node({torch::ones({4000, kDim})}), c10::Error, "must match the size");
  EXPECT_EQ(node({torch::ones({kRows, kDim})})[0].sizes(), weight.sizes());
  const auto of_doubles = node({torch::ones({kRows, kDim}, torch::kDouble)})[0];
  EXPECT_TRUE(bit_equal(of_doubles, dropped.detach().to(torch::kDouble)));
}

}  // namespace
}  // namespace posenc::functional
