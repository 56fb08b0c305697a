#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>

#include "kernels/dispatch.h"
#include "kernels/inference.h"
#include "support/compare.h"

namespace posenc::kernels::inference {

/// Calls f with each instruction set that this processor supports.
inline void on_each_set(const std::function<void(const Kernels&)>& f) {
  for (const char* name : {"sse2", "avx2", "avx512"}) {
    SCOPED_TRACE(name);
    if (const Kernels* const use = find(name); use != nullptr) f(*use);
  }
}

/// Runs `compute` with each instruction set that this processor supports. The results must be
/// within `op` of `expected`, and have the same bits on AVX2 and AVX-512.
inline void expect_on_each_set(testing::Op op, const torch::Tensor& expected,
                               const std::function<torch::Tensor(const Kernels&)>& compute) {
  torch::Tensor fused;
  on_each_set([&](const Kernels& use) {
    const torch::Tensor got = compute(use);
    EXPECT_TRUE(testing::within(op, got, expected.to(torch::kFloat)));
    if (&use == find("sse2")) return;  // without FMA, it rounds twice instead of once
    EXPECT_TRUE(!fused.defined() || testing::bit_equal(got, fused));
    fused = got;
  });
}

}  // namespace posenc::kernels::inference
