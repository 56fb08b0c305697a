#include "posenc/nn/transformer/transformer_layer_options.h"

#include <c10/util/Exception.h>

namespace posenc {

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::ReLU;
  if (name == "gelu") return Activation::GELU;
  TORCH_CHECK_VALUE(name == "swish" || name == "silu",
                    "[Activation] must be relu, gelu or swish (silu). Got ", name);
  return Activation::Swish;
}

std::string name_of(Activation activation) {
  switch (activation) {
    case Activation::ReLU: return "relu";
    case Activation::GELU: return "gelu";
    case Activation::Swish: break;
  }
  return "swish";
}

}  // namespace posenc
