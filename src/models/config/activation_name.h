#pragma once

#include <string>

#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc {

/// The name that configurations of transformers have for it.
inline std::string hf_name(Activation activation) {
  return activation == Activation::GELUTanh ? "gelu_new" : to_string(activation);
}

}  // namespace posenc
