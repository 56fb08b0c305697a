#include "posenc/transformer/layers/transformer_layer_options.h"

#include <c10/util/Exception.h>

namespace posenc {

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::ReLU;
  if (name == "gelu") return Activation::GELU;
  if (name == "quick_gelu") return Activation::QuickGELU;
  for (const char* tanh : {"gelu_tanh", "gelu_new", "gelu_fast", "gelu_accurate",
                           "gelu_pytorch_tanh", "gelu_python_tanh"}) {
    if (name == tanh) return Activation::GELUTanh;
  }
  TORCH_CHECK_VALUE(name == "swish" || name == "silu",
                    "[Activation] must be relu, gelu, gelu_tanh (gelu_new, gelu_fast, "
                    "gelu_accurate, gelu_pytorch_tanh, gelu_python_tanh), quick_gelu or swish "
                    "(silu). Got ",
                    name);
  return Activation::Swish;
}

std::string to_string(Activation activation) {
  switch (activation) {
    case Activation::ReLU: return "relu";
    case Activation::GELU: return "gelu";
    case Activation::GELUTanh: return "gelu_tanh";
    case Activation::QuickGELU: return "quick_gelu";
    case Activation::Swish: break;
  }
  return "swish";
}

}  // namespace posenc
