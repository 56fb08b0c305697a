#include "inference/freeze/option_values.h"

#include "inference/freeze/option_holders.h"

namespace posenc {

std::shared_ptr<const OptionsCopy> copy_of_options(const torch::nn::Module& module) {
  return copy_of<OptionHolders>(module);
}

}  // namespace posenc
