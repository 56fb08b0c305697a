#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/transformer/layers/convolution_neck.h"
#include "positions/nn/convolution.h"

namespace posenc {

ConvolutionNeckImpl::ConvolutionNeckImpl(ConvolutionNeckOptions options_) : options(options_) {
  ConvolutionNeckImpl::reset();
}

void ConvolutionNeckImpl::reset() {
  check_positive("ConvolutionNeck", "d_model", options.d_model());
  check_positive("ConvolutionNeck", "channels", options.channels());
  const int64_t channels = options.channels();
  const auto conv = [&](int64_t in, int64_t size) {
    return make_convolution(
        torch::nn::Conv2dOptions(in, channels, size).padding(size / 2).bias(false));
  };
  const auto own_norm = [&] {
    return LayerNorm(LayerNormOptions(channels).eps(options.layer_norm_eps()));
  };
  conv1 = register_module("conv1", conv(options.d_model(), 1));
  layer_norm1 = register_module("layer_norm1", own_norm());
  conv2 = register_module("conv2", conv(channels, 3));
  layer_norm2 = register_module("layer_norm2", own_norm());
}

void ConvolutionNeckImpl::reset_parameters() {
  for (auto* conv : {&conv1, &conv2}) (*conv)->reset_parameters();
  for (auto* norm : {&layer_norm1, &layer_norm2}) (*norm)->reset_parameters();
}

void ConvolutionNeckImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "ConvolutionNeck", options, ConvolutionNeckOptions(-1, -1));
}

torch::Tensor ConvolutionNeckImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(3) == options.d_model(),
                    "[ConvolutionNeck] x must be (B, h, w, ", options.d_model(), "). Got ",
                    x.sizes());
  const auto normalised = [](const LayerNorm& norm, const torch::Tensor& y) {
    return norm.ptr()->forward(y.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  };
  const torch::Tensor narrow = normalised(layer_norm1, conv1->forward(x.permute({0, 3, 1, 2})));
  return normalised(layer_norm2, conv2->forward(narrow));
}

}  // namespace posenc
