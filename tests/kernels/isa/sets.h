#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>

#include "kernels/dispatch.h"
#include "kernels/inference.h"
#include "support/compare.h"

namespace posenc::kernels::inference {

/// f for each instruction set that this processor runs.
inline void on_each_set(const std::function<void(const Kernels&)>& f) {
  for (const char* name : {"sse2", "avx2", "avx512"}) {
    SCOPED_TRACE(name);
    if (const Kernels* const use = find(name); use != nullptr) f(*use);
  }
}

/// What `compute` gives on each instruction set that this processor runs: within `op` of
/// `expected`, and on AVX2 and AVX-512 the same bits.
inline void expect_on_each_set(testing::Op op, const torch::Tensor& expected,
                               const std::function<torch::Tensor(const Kernels&)>& compute) {
  torch::Tensor fused;
  on_each_set([&](const Kernels& use) {
    const torch::Tensor got = compute(use);
    EXPECT_TRUE(testing::within(op, got, expected.to(torch::kFloat)));
    if (&use == find("sse2")) return;  // rounds twice where the others round once
    EXPECT_TRUE(!fused.defined() || testing::bit_equal(got, fused));
    fused = got;
  });
}

}  // namespace posenc::kernels::inference
