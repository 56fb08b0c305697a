#include "models/save/tensors.h"

#include <ATen/TensorOperators.h>

#include "weights/load/key_map.h"

namespace posenc {
namespace {

// The blocks (out / groups, in / groups, groups) on the diagonal of a weight, of what has groups in
// the file.
at::Tensor diagonal_blocks(const std::string& name, const at::Tensor& weight, int64_t groups,
                           const char* what) {
  const int64_t out = weight.size(0) / groups, in = weight.size(1) / groups;
  const at::Tensor blocks = weight.view({groups, out, groups, in}).diagonal(0, 0, 2);
  TORCH_CHECK_VALUE(blocks.count_nonzero().equal(weight.count_nonzero()), "[save_pretrained] ",
                    name, " must be zero between the ", groups, " groups of the ", what,
                    " that it is in transformers. Got other numbers");
  return blocks;
}

// The weight (out, in / groups, 1) of a grouped convolution that is Linear's (out, in).
at::Tensor grouped(const std::string& name, const at::Tensor& weight, int64_t groups) {
  return diagonal_blocks(name, weight, groups, "convolution")
      .permute({2, 0, 1})
      .reshape({weight.size(0), weight.size(1) / groups, 1});
}

// The matrices (groups, in / groups, out / groups) of a linear layer in groups that is Linear's.
at::Tensor blocks_of(const std::string& name, const at::Tensor& weight, int64_t groups) {
  return diagonal_blocks(name, weight, groups, "linear layer").permute({2, 1, 0}).contiguous();
}

}  // namespace

void change_back(StateDict& tensors, const LoadOptions& names, const EncoderConfig& config) {
  for (auto& item : tensors) {
    const std::string_view own = std::string_view(item.key()).substr(names.prefix().size());
    const auto found = io::find_rule(own, names.key_map());
    if (!found) continue;
    const KeySource& source = names.key_map()[found->rule].sources.items[found->source];
    if (source.change() == KeySource::Change::Ungroup)
      item.value() = grouped(item.key(), item.value(), source.first());
    if (source.change() == KeySource::Change::BlockDiagonal) {
      const int64_t groups = config.settings.integer("num_groups", 1, INT32_MAX);
      item.value() = blocks_of(item.key(), item.value(), groups);
    }
    if (source.change() == KeySource::Change::HeadsToParts) {
      item.value() = item.value()
                         .unflatten(0, {source.second(), source.first(), -1})
                         .transpose(0, 1)
                         .reshape(item.value().sizes());
    }
    if (source.change() == KeySource::Change::HeadsToRows) {
      item.value() =
          item.value().unflatten(0, {source.first(), -1}).permute({2, 0, 1}).contiguous();
    }
    if (source.change() == KeySource::Change::HeadsToColumns)
      item.value() = item.value().unflatten(1, {source.first(), -1});
    if (source.change() == KeySource::Change::Transpose)
      item.value() = item.value().transpose(source.first(), source.second()).contiguous();
    if (source.change() == KeySource::Change::Squeeze)
      item.value() = item.value().unsqueeze(source.first());
  }
}

}  // namespace posenc
