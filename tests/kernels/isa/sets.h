#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <array>
#include <functional>

#include "kernels/dispatch.h"
#include "kernels/inference.h"
#include "kernels/isa.h"
#include "support/compare.h"

namespace posenc::kernels::inference {

/// Calls f with each instruction set that this processor supports.
inline void on_each_set(const std::function<void(const InferenceKernels&)>& f) {
  for (const std::string& name : set_names()) {
    SCOPED_TRACE(name);
    f(*find_inference(name));
  }
}

/// Runs `compute` with each instruction set that this processor supports. The results must be
/// within `op` of `expected`, and have the same bits on all sets with fused multiply-add, and on
/// all without.
inline void expect_on_each_set(
    testing::Op op, const torch::Tensor& expected,
    const std::function<torch::Tensor(const InferenceKernels&)>& compute) {
  torch::Tensor first[2];
  on_each_set([&](const InferenceKernels& use) {
    const torch::Tensor got = compute(use);
    EXPECT_TRUE(testing::within(op, got, expected.to(torch::kFloat)));
    torch::Tensor& same = first[is_fused(use) ? 1 : 0];
    EXPECT_TRUE(!same.defined() || testing::bit_equal(got, same));
    same = got;
  });
}

/// The kernels of the activations, in the order of ActivationKernels.
inline std::array<ActivationKernel, 6> activations(const InferenceKernels& use) {
  const ActivationKernels& all = use.activation;
  return {all.relu, all.gelu, all.silu, all.gelu_tanh, all.quick_gelu, all.relu_squared};
}

}  // namespace posenc::kernels::inference
