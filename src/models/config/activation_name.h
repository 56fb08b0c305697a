#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "models/config/settings.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc {

/// The activation that a setting names. Throws c10::ValueError, naming the setting, for a name that
/// activation_of() does not know.
inline Activation named_activation(
    const Settings& config, const char* setting, const std::string& name,
    const char* rule = "must be the name of an activation of transformers that posenc has") {
  try {
    return activation_of(name);
  } catch (const c10::ValueError&) {
    config.refuse(setting, rule);
  }
}

/// The name that configurations of transformers have for it. Throws c10::ValueError for one that
/// ACT2FN lacks, since transformers could not open the folder.
inline std::string hf_name(const Settings& config, Activation activation) {
  switch (activation) {
    case Activation::ELU:
    case Activation::LogSigmoid:
    case Activation::SELU:
    case Activation::Softplus:
    case Activation::Softsign:
      TORCH_CHECK_VALUE(false, config.where(),
                        "activation of the model must be one that transformers has. Got ",
                        to_string(activation));
    case Activation::GELUTanh: return "gelu_new";
    default: return to_string(activation);
  }
}

}  // namespace posenc
