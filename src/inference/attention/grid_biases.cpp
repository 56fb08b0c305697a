#include "inference/attention/grid_biases.h"

#include <ATen/TensorOperators.h>

#include <utility>

#include "posenc/positions/relative/bias.h"

namespace posenc::inference {

std::optional<std::size_t> GridBiases::add(const GridPositionBiasImpl* shared,
                                           const GridPositionBiasImpl* own) {
  std::vector<Table> tables;
  for (const auto* bias : {shared, own}) {
    if (bias != nullptr) tables.push_back({bias->weight.detach(), bias->options.grid()});
  }
  if (tables.empty()) return std::nullopt;
  if (own == nullptr && !sums_.empty() && sums_.front().size() == 1 &&
      sums_.front()[0].weight.is_alias_of(tables[0].weight)) {
    return 0;
  }
  sums_.push_back(std::move(tables));
  return sums_.size() - 1;
}

std::shared_ptr<const std::vector<at::Tensor>> GridBiases::of(
    const std::optional<relative::Grid>& grid) const {
  if (sums_.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (biases_ && last_ == grid) return biases_;
  std::vector<at::Tensor> all;
  for (const auto& tables : sums_) {
    at::Tensor sum;
    for (const Table& table : tables) {
      const at::Tensor bias =
          relative_grid_bias(table.weight, table.grid, grid.value_or(table.grid));
      sum = sum.defined() ? sum + bias : bias;
    }
    all.push_back(sum.transpose(2, 3).contiguous().transpose(2, 3));
  }
  biases_ = std::make_shared<const std::vector<at::Tensor>>(std::move(all));
  last_ = grid;
  return biases_;
}

}  // namespace posenc::inference
