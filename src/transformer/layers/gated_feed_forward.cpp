#include "posenc/transformer/layers/gated_feed_forward.h"

#include <ostream>

#include "core/check.h"
#include "core/low_rank.h"
#include "core/print_fields.h"
#include "positions/nn/weights.h"

namespace posenc {

GatedFeedForwardImpl::GatedFeedForwardImpl(GatedFeedForwardOptions options_) : options(options_) {
  GatedFeedForwardImpl::reset();
}

void GatedFeedForwardImpl::reset() {
  const int64_t width = options.d_model(), inner = options.d_ff();
  check_positive("GatedFeedForward", "d_model", width);
  check_positive("GatedFeedForward", "d_ff", inner);
  const auto projection = [&](int64_t from, int64_t to) {
    return make_linear(torch::nn::LinearOptions(from, to).bias(options.bias()));
  };
  gate_proj = register_module("gate_proj", projection(width, inner));
  up_proj = register_module("up_proj", projection(width, inner));
  down_proj = register_module("down_proj", projection(inner, width));
}

void GatedFeedForwardImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "GatedFeedForward", options, GatedFeedForwardOptions(-1, -1));
}

torch::Tensor GatedFeedForwardImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() > 0 && x.size(-1) == options.d_model(),
                    "[GatedFeedForward] x must be (..., ", options.d_model(), "). Got ", x.sizes());
  const torch::Tensor gate = functional::activate(forward_linear(*gate_proj, x), options.gate());
  return forward_linear(*down_proj, gate * forward_linear(*up_proj, x));
}

}  // namespace posenc
