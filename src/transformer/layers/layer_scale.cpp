#include "posenc/transformer/layers/layer_scale.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"

namespace posenc {

LayerScaleImpl::LayerScaleImpl(LayerScaleOptions options_) : options(options_) {
  LayerScaleImpl::reset();
}

void LayerScaleImpl::reset() {
  check_positive("LayerScale", "d_model", options.d_model());
  TORCH_CHECK_VALUE(std::isfinite(options.init()), "[LayerScale] init must be finite. Got ",
                    options.init());
  lambda1 = register_parameter("lambda1", torch::empty({options.d_model()}));
  reset_parameters();
}

void LayerScaleImpl::reset_parameters() { torch::nn::init::constant_(lambda1, options.init()); }

void LayerScaleImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "LayerScale", options, LayerScaleOptions(-1));
}

torch::Tensor LayerScaleImpl::forward(const torch::Tensor& x) { return x * lambda1; }

}  // namespace posenc
