#include "posenc/core/cloneable.h"

namespace posenc {

void copy_requires_grad(const torch::nn::Module& original, torch::nn::Module& copy) {
  auto parameters = copy.named_parameters();
  for (const auto& item : original.named_parameters()) {
    parameters[item.key()].set_requires_grad(item.value().requires_grad());
  }
}

}  // namespace posenc
