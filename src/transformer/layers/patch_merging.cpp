#include <ATen/ops/constant_pad_nd.h>

#include <ostream>
#include <vector>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/transformer/layers/patch_merging.h"
#include "positions/nn/weights.h"

namespace posenc {

PatchMergingImpl::PatchMergingImpl(PatchMergingOptions options_) : options(options_) {
  PatchMergingImpl::reset();
}

void PatchMergingImpl::reset() {
  check_positive("PatchMerging", "d_model", options.d_model());
  const int64_t wide = 4 * options.d_model(), narrow = 2 * options.d_model();
  reduction =
      register_module("reduction", make_linear(torch::nn::LinearOptions(wide, narrow).bias(false)));
  norm = register_module(
      "norm",
      LayerNorm(
          LayerNormOptions(options.norm_first() ? wide : narrow).eps(options.layer_norm_eps())));
}

void PatchMergingImpl::reset_parameters() {
  reduction->reset_parameters();
  norm->reset_parameters();
}

void PatchMergingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "PatchMerging", options, PatchMergingOptions(-1));
}

torch::Tensor PatchMergingImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(3) == options.d_model(),
                    "[PatchMerging] x must be (B, h, w, ", options.d_model(), "). Got ", x.sizes());
  const int64_t odd_rows = x.size(1) % 2, odd_columns = x.size(2) % 2;
  const torch::Tensor even =
      odd_rows + odd_columns == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, odd_columns, 0, odd_rows});
  std::vector<torch::Tensor> parts;
  for (int64_t column = 0; column < 2; ++column) {
    for (int64_t row = 0; row < 2; ++row) {
      parts.push_back(even.slice(1, row, std::nullopt, 2).slice(2, column, std::nullopt, 2));
    }
  }
  const torch::Tensor merged = torch::cat(parts, -1);
  return options.norm_first() ? reduction->forward(norm->forward(merged))
                              : norm->forward(reduction->forward(merged));
}

}  // namespace posenc
