#pragma once

#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <vector>

#include "posenc/core/state_dict_traits.h"

namespace posenc::testing {

/// A model with parameters of one and two dimensions, one of them under two names, and a buffer
/// without dimensions.
struct TiedModel : torch::nn::Module, StateDictTraits {
  static constexpr int64_t kRows = 7, kWidth = 16;

  TiedModel()
      : table(register_parameter("table", at::zeros({kRows, kWidth}))),
        bias(register_parameter("bias", at::zeros({kRows}))),
        matrix(register_parameter("matrix", at::zeros({kWidth, kWidth}))),
        count(register_buffer("count", at::zeros({}, at::kLong))) {}

  void fill(double start) {
    const at::NoGradGuard no_grad;
    table.copy_(at::linspace(start, start + 1, kRows * kWidth).view({kRows, kWidth}));
    bias.copy_(at::linspace(start - 1, start, kRows));
    matrix.copy_(at::linspace(start, start + 2, kWidth * kWidth).view({kWidth, kWidth}));
    count.fill_(static_cast<int64_t>(start * 10));
  }

  std::vector<TiedName> tied_names() const override { return {{"output.table", "table"}}; }

  at::Tensor table, bias, matrix, count;
};

}  // namespace posenc::testing
