#include "posenc/transformer/layers/gated_feed_forward.h"

#include <ostream>

#include "core/check.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

using Gate = GatedFeedForwardOptions::Gate;

const char* to_string(Gate gate) {
  switch (gate) {
    case Gate::SiLU: return "silu";
    case Gate::GELU: return "gelu";
    case Gate::GELUTanh: return "gelu_pytorch_tanh";
    case Gate::ReLU: return "relu";
  }
  return "";
}

torch::Tensor activated(const torch::Tensor& x, Gate gate) {
  switch (gate) {
    case Gate::SiLU: return torch::silu(x);
    case Gate::GELU: return torch::gelu(x);
    case Gate::GELUTanh: return torch::gelu(x, "tanh");
    case Gate::ReLU: break;
  }
  return torch::relu(x);
}

}  // namespace

Gate gate_of(const std::string& name) {
  if (name == "silu" || name == "swish") return Gate::SiLU;
  if (name == "gelu") return Gate::GELU;
  if (name == "gelu_pytorch_tanh") return Gate::GELUTanh;
  if (name == "relu") return Gate::ReLU;
  TORCH_CHECK_VALUE(false,
                    "[GatedFeedForward] hidden_act must be silu, swish, gelu, gelu_pytorch_tanh or "
                    "relu. Got ",
                    name);
}

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
  stream << "posenc::GatedFeedForward(d_model=" << options.d_model() << ", d_ff=" << options.d_ff()
         << ", gate=" << to_string(options.gate());
  if (options.bias()) stream << ", bias=true";
  stream << ")";
}

torch::Tensor GatedFeedForwardImpl::forward(const torch::Tensor& x) {
  TORCH_CHECK_VALUE(x.dim() > 0 && x.size(-1) == options.d_model(),
                    "[GatedFeedForward] x must be (..., ", options.d_model(), "). Got ", x.sizes());
  return down_proj->forward(activated(gate_proj->forward(x), options.gate()) * up_proj->forward(x));
}

}  // namespace posenc
