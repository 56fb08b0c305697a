#include "posenc/positions/nn/layer_norm.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"

namespace posenc {

LayerNormImpl::LayerNormImpl(LayerNormOptions options_) : options(options_) {
  LayerNormImpl::reset();
}

void LayerNormImpl::reset() {
  check_positive("LayerNorm", "d_model", options.d_model());
  weight = register_parameter("weight", torch::empty({options.d_model()}));
  if (options.bias()) bias = register_parameter("bias", torch::empty({options.d_model()}));
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  torch::nn::init::ones_(weight);
  if (bias.defined()) torch::nn::init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "LayerNorm", options, LayerNormOptions(-1));
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, {options.d_model()}, weight, bias, options.eps());
}

}  // namespace posenc
