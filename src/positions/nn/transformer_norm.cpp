#include "posenc/positions/nn/transformer_norm.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "positions/nn/rms_norm.h"

namespace posenc {

const char* to_string(NormKind kind) {
  switch (kind) {
    case NormKind::Layer: return "layer";
    case NormKind::RMS: return "rms";
    case NormKind::RMSPlusOne: return "rms_plus_one";
    case NormKind::Affine: break;
  }
  return "affine";
}

TransformerNormImpl::TransformerNormImpl(TransformerNormOptions options_) : options(options_) {
  TransformerNormImpl::reset();
}

void TransformerNormImpl::reset() {
  check_positive("TransformerNorm", "d_model", options.d_model());
  weight = register_parameter("weight", torch::empty({options.d_model()}));
  const bool may_have_bias =
      options.kind() == NormKind::Layer || options.kind() == NormKind::Affine;
  if (options.bias() && may_have_bias) {
    bias = register_parameter("bias", torch::empty({options.d_model()}));
  }
  reset_parameters();
}

void TransformerNormImpl::reset_parameters() {
  torch::nn::init::constant_(weight, options.kind() == NormKind::RMSPlusOne ? 0.0 : 1.0);
  if (bias.defined()) torch::nn::init::zeros_(bias);
}

void TransformerNormImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerNorm", options, TransformerNormOptions(-1));
}

torch::Tensor TransformerNormImpl::forward(const torch::Tensor& x) {
  if (options.kind() == NormKind::Layer) {
    return torch::layer_norm(x, {options.d_model()}, weight, bias, options.eps());
  }
  if (options.kind() == NormKind::Affine) {
    return bias.defined() ? x * weight + bias : x * weight;
  }
  auto own = options.kind() == NormKind::RMS ? RMSNormOptions(options.d_model())
                                             : RMSNormOptions::gemma(options.d_model());
  return rms_norm(x, weight, own.eps(options.eps()));
}

}  // namespace posenc
