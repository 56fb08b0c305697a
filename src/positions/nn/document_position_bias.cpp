#include "posenc/positions/nn/document_position_bias.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"

namespace posenc {

DocumentPositionBiasImpl::DocumentPositionBiasImpl(DocumentPositionBiasOptions options_)
    : options(std::move(options_)) {
  DocumentPositionBiasImpl::reset();
}

void DocumentPositionBiasImpl::reset() {
  check_positive("DocumentPositionBias", "num_heads", options.num_heads());
  places = register_module("places", RelativePositionBias(options.places(), options.num_heads()));
  if (!options.boxes()) return;
  x = register_module("x", RelativePositionBias(*options.boxes(), options.num_heads()));
  y = register_module("y", RelativePositionBias(*options.boxes(), options.num_heads()));
}

void DocumentPositionBiasImpl::reset_parameters() {
  for (auto* table : {&places, &x, &y}) {
    if (*table) (*table)->reset_parameters();
  }
}

void DocumentPositionBiasImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "DocumentPositionBias", options,
                       DocumentPositionBiasOptions(-1, relative::Buckets{}));
}

torch::Tensor DocumentPositionBiasImpl::forward(int64_t length, const torch::Tensor& bbox) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor by_position = places->forward(length, length);
  if (!x) return by_position * options.scale();
  TORCH_CHECK_TYPE(
      !bbox.defined() || at::isIntegralType(bbox.scalar_type(), /*includeBool=*/false),
      "[DocumentPositionBias] bbox must be integers, as real ones have no bucket. Got ",
      bbox.scalar_type());
  TORCH_CHECK_VALUE(
      !bbox.defined() || (bbox.dim() == 3 && bbox.size(1) == length && bbox.size(2) == 4),
      "[DocumentPositionBias] bbox must be (B, ", length, ", 4). Got ", bbox.sizes());
  const auto edges = [&](int64_t i) {
    return bbox.defined() ? bbox.select(2, i).to(torch::kLong)
                          : torch::zeros({1, length}, places->weight.options().dtype(torch::kLong));
  };
  const torch::Tensor left = edges(0), lower = edges(3);
  const torch::Tensor by_box = x->at_positions(left, left) + y->at_positions(lower, lower);
  return (by_position + by_box) * options.scale();
}

}  // namespace posenc
