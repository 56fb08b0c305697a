#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/test_device/test_device.h"

namespace posenc::testing {

using Tensors = std::vector<torch::Tensor>;

/// A module, its inputs, and how it is called with them.
struct Trial {
  std::shared_ptr<torch::nn::Module> module;
  Tensors inputs;
  std::function<torch::Tensor(torch::nn::Module&, const Tensors&)> run;
};

/// The random choices of a trial: sizes, a dtype, and tensors that are often not contiguous.
class Draw {
 public:
  explicit Draw(uint32_t seed) : dice(seed) {}

  int64_t size(int64_t most) { return 1 + dice.below(most); }
  int64_t even(int64_t most) { return 2 * size(most); }
  int64_t batch() { return dice.below(4); }  // 0: an empty batch

  torch::Tensor ids(at::IntArrayRef sizes, int64_t vocab) {
    const auto type = dice.any({torch::kLong, torch::kInt});
    return in_some_layout(torch::randint(vocab, sizes, torch::kLong).to(type));
  }
  torch::Tensor vectors(at::IntArrayRef sizes) {
    return in_some_layout(torch::randn(sizes).to(dtype));
  }
  /// Bool or integer (B, L), the first token of each sequence always there.
  torch::Tensor tokens_mask(int64_t batch, int64_t length) {
    torch::Tensor mask = torch::rand({batch, length}) < 0.7;
    mask.select(1, 0).fill_(true);
    return dice.coin() ? mask : mask.to(torch::kLong);
  }
  /// Frequencies that stay, change with the length, or are exact.
  RotaryOptions rotary(int64_t width) {
    auto options = rotary_preset(dice.any({"llama", "gptj"}), width);
    switch (dice.below(4)) {
      case 0: options.scaling(rotary::Linear{4.0}); break;
      case 1:
        if (width > 2) options.scaling(rotary::Dynamic{2.0, 4});
        break;
      case 2: options.precision(Precision::Exact); break;
      default: break;
    }
    return options;
  }

  Dice dice;
  const torch::Dtype dtype =
      dice.any({torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16});

 private:
  // Its axes in another order in memory.
  torch::Tensor in_some_layout(const torch::Tensor& x) {
    if (x.dim() < 2 || dice.coin()) return x;
    return x.transpose(0, 1).contiguous().transpose(0, 1);
  }
};

template <typename Impl>
torch::Tensor forward_first(torch::nn::Module& module, const Tensors& x) {
  return dynamic_cast<Impl&>(module).forward(x.at(0));
}

/// `exact` is the result in float64: if the CPU's error is large, as after a norm over two
/// channels, the device's may be as large.
inline ::testing::AssertionResult close(const torch::Tensor& a, const torch::Tensor& b,
                                        const torch::Tensor& exact, bool compares) {
  if (!compares) return bit_equal(torch::zeros_like(a), torch::zeros_like(b));  // sizes and dtype
  if (b.numel() == 0) return bit_equal(a, b);
  return within(Op::Layers, a, b, exact);
}

/// Copies of the tensors on a device, as leaves. Floating-point ones require gradients.
inline Tensors on(const torch::Device& device, const Tensors& inputs) {
  Tensors there;
  for (const auto& x : inputs) {
    there.push_back(x.detach().clone().to(device));
    there.back().requires_grad_(x.is_floating_point());
  }
  return there;
}

/// The weights of the sum whose gradient is taken.
inline torch::Tensor sum_weights(const torch::Tensor& result) {
  return torch::linspace(-1, 2, result.numel()).view(result.sizes()).to(result.dtype());
}

/// A trial on the CPU, its module, and its inputs with their gradients.
struct OnCpu {
  OnCpu(const Trial& trial, std::shared_ptr<torch::nn::Module> its_module, const Tensors& from)
      : module(std::move(its_module)),
        inputs(on(torch::kCPU, from)),
        result(trial.run(*module, inputs)) {
    if (result.requires_grad()) result.backward(sum_weights(result));
  }

  std::shared_ptr<torch::nn::Module> module;
  Tensors inputs;
  torch::Tensor result;
};

/// The same in float64.
inline OnCpu in_double(const Trial& trial) {
  auto module = trial.module->clone();
  module->to(torch::kDouble);
  Tensors inputs;
  for (const auto& x : trial.inputs)
    inputs.push_back(x.is_floating_point() ? x.to(torch::kDouble) : x);
  return {trial, std::move(module), inputs};
}

/// Runs a trial on the CPU and on the device: the results and gradients of the CPU, and no forward
/// or backward waits, in eval mode or in training.
inline void expect_device_laws(const Trial& trial, torch::Dtype dtype, bool compares) {
  trial.module->to(dtype);
  trial.module->eval();
  const auto copy = trial.module->clone(test_device());
  const OnCpu exact = in_double(trial), want(trial, trial.module, trial.inputs);
  const Tensors there = on(test_device(), trial.inputs);
  const DeviceWaits waits;
  const auto got = trial.run(*copy, there);
  ASSERT_EQ(waits.count(), 0) << "forward";
  ASSERT_EQ(got.device(), test_device());
  EXPECT_TRUE(close(got.cpu(), want.result, exact.result, compares));
  ASSERT_EQ(got.requires_grad(), want.result.requires_grad());
  if (got.requires_grad()) {
    const auto weights = sum_weights(want.result).to(test_device());
    const DeviceWaits backward;
    got.backward(weights);
    ASSERT_EQ(backward.count(), 0) << "backward";
    const auto expect_grad = [compares](const torch::Tensor& a, const torch::Tensor& b,
                                        const torch::Tensor& best) {
      ASSERT_EQ(a.grad().defined(), b.grad().defined());
      if (!b.grad().defined()) return;
      EXPECT_TRUE(close(a.grad().cpu(), b.grad(), best.grad(), compares));
    };
    for (size_t i = 0; i < there.size(); ++i)
      expect_grad(there[i], want.inputs[i], exact.inputs[i]);
    const auto others = copy->named_parameters(), best = exact.module->named_parameters();
    for (const auto& item : trial.module->named_parameters()) {
      SCOPED_TRACE(item.key());
      expect_grad(others[item.key()], item.value(), best[item.key()]);
    }
  }
  copy->train();
  const DeviceWaits training;
  const auto out = trial.run(*copy, there);
  if (out.requires_grad()) out.sum().backward();
  EXPECT_EQ(training.count(), 0) << "training";
}

/// A kind of trial, by name.
struct TrialKind {
  const char* name;
  Trial (*draw)(Draw&);
  /// Whether values of half precision are compared. Successive norms magnify rounding errors
  /// without a bound.
  bool compares_halves = true;
};

inline void PrintTo(const TrialKind& kind, std::ostream* out) { *out << kind.name; }

/// Some random trials of a kind.
inline void expect_device_laws(const TrialKind& kind) {
  constexpr uint32_t kTrials = 8;
  for (uint32_t i = 0; i < kTrials; ++i) {
    SCOPED_TRACE(i);
    Draw draw(i);
    const Trial trial = kind.draw(draw);
    const std::string printed = c10::str(*trial.module);
    SCOPED_TRACE(c10::str(printed.substr(0, printed.find('\n')), " in ", draw.dtype));
    const bool half = at::isReducedFloatingType(draw.dtype);
    expect_device_laws(trial, draw.dtype, kind.compares_halves || !half);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace posenc::testing
