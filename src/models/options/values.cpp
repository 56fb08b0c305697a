#include "models/options/values.h"

#include "models/options/holders.h"

namespace posenc {

std::shared_ptr<const OptionsCopy> copy_of_model_options(const torch::nn::Module& module) {
  auto copy = copy_of<ModelOptionHolders>(module);
  return copy ? copy : copy_of_options(module);
}

std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected) {
  const auto modules = expected.named_modules("", /*include_self=*/false);
  for (const auto& item : got.named_modules("", /*include_self=*/false)) {
    const auto* const found = modules.find(item.key());
    if (found == nullptr) continue;
    const auto own = copy_of_model_options(*item.value());
    std::string where;
    if (own && own->differs_from(**found, where)) return item.key();
  }
  return "";
}

}  // namespace posenc
