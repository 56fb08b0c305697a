#include "posenc/positions/nn/transformer_norm.h"

#include <torch/nn/init.h>

#include <ostream>
#include <vector>

#include "core/check.h"
#include "core/print_fields.h"
#include "positions/nn/rms_norm.h"

namespace posenc {

const char* to_string(NormKind kind) {
  switch (kind) {
    case NormKind::Layer: return "layer";
    case NormKind::RMS: return "rms";
    case NormKind::RMSPlusOne: return "rms_plus_one";
    case NormKind::LayerPlusOne: return "layer_plus_one";
    case NormKind::Affine: break;
  }
  return "affine";
}

TransformerNormImpl::TransformerNormImpl(TransformerNormOptions options_) : options(options_) {
  TransformerNormImpl::reset();
}

void TransformerNormImpl::reset() {
  check_positive("TransformerNorm", "d_model", options.d_model());
  const auto heads = options.num_heads();
  if (heads) check_positive("TransformerNorm", "num_heads", *heads);
  TORCH_CHECK_VALUE(!heads || options.kind() == NormKind::Layer,
                    "[TransformerNorm] num_heads must be with NormKind::Layer. Got ",
                    to_string(options.kind()));
  if (!options.elementwise_affine()) return;
  const auto sizes = heads ? std::vector<int64_t>{*heads, options.d_model()}
                           : std::vector<int64_t>{options.d_model()};
  weight = register_parameter("weight", torch::empty(sizes));
  const bool is_rms = options.kind() == NormKind::RMS || options.kind() == NormKind::RMSPlusOne;
  if (options.bias() && !is_rms) bias = register_parameter("bias", torch::empty(sizes));
  reset_parameters();
}

void TransformerNormImpl::reset_parameters() {
  const bool adds_one =
      options.kind() == NormKind::RMSPlusOne || options.kind() == NormKind::LayerPlusOne;
  if (weight.defined()) torch::nn::init::constant_(weight, adds_one ? 0.0 : 1.0);
  if (bias.defined()) torch::nn::init::zeros_(bias);
}

void TransformerNormImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerNorm", options, TransformerNormOptions(-1));
}

torch::Tensor TransformerNormImpl::forward(const torch::Tensor& x) {
  const auto of = [&](const torch::Tensor& factor, const torch::Tensor& term) {
    return torch::layer_norm(x, {options.d_model()}, factor, term, options.eps());
  };
  const auto affine = [&](const torch::Tensor& normal) {
    const torch::Tensor scaled = weight.defined() ? normal * weight : normal;
    return bias.defined() ? scaled + bias : scaled;
  };
  if (options.kind() == NormKind::Affine) return affine(x);
  if (options.kind() == NormKind::LayerPlusOne)
    return of(weight.defined() ? weight + 1 : weight, bias);
  if (options.kind() == NormKind::Layer)
    return options.num_heads() ? affine(of({}, {})) : of(weight, bias);
  auto own = options.kind() == NormKind::RMS ? RMSNormOptions(options.d_model())
                                             : RMSNormOptions::gemma(options.d_model());
  return rms_norm(x, weight, own.eps(options.eps()));
}

}  // namespace posenc
