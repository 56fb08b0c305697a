#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/parallel/group.h"
#include "posenc/parallel/vocab_shard.h"

namespace posenc::testing {

/// A model with a table and a bias that are split over the processes of a group, under two names
/// for the table, beside a matrix and a buffer that every process has. Rows are whole vectors of
/// any instruction set, so that an optimiser rounds them alike wherever they are.
class SplitModel : public torch::nn::Module, public StateDictTraits {
 public:
  static constexpr int64_t kVocab = 7, kWidth = 16;

  explicit SplitModel(const RankGroup& group = {}) : SplitModel(group.rank(), group.size()) {}
  SplitModel(int rank, int ranks) : shard_(VocabShard::of(kVocab, rank, ranks)) {
    table = register_parameter("table", at::zeros({shard_.rows(), kWidth}));
    bias = register_parameter("bias", at::zeros({shard_.rows()}));
    matrix = register_parameter("matrix", at::zeros({kWidth, kWidth}));
    count = register_buffer("count", at::zeros({}, at::kLong));
  }

  /// The same values for any number of processes.
  void fill(double start) {
    const at::NoGradGuard no_grad;
    table.copy_(rows(at::linspace(start, start + 1, kVocab * kWidth).view({kVocab, kWidth})));
    bias.copy_(rows(at::linspace(start - 1, start, kVocab)));
    matrix.copy_(at::linspace(start, start + 2, kWidth * kWidth).view({kWidth, kWidth}));
    count.fill_(static_cast<int64_t>(start * 10));
  }
  /// The rows of this process.
  at::Tensor rows(const at::Tensor& whole) const {
    return whole.narrow(0, shard_.first, shard_.rows());
  }

  std::vector<TiedName> tied_names() const override { return {{"output.table", "table"}}; }
  std::vector<ShardedName> sharded_names() const override {
    return {{"table", shard_.first, kVocab}, {"bias", shard_.first, kVocab}};
  }

  at::Tensor table, bias, matrix, count;

 private:
  VocabShard shard_;
};

}  // namespace posenc::testing
