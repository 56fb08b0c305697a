#include "models/option_values.h"

#include "models/option_holders.h"

namespace posenc {
namespace {

template <typename Impl>
class CopyOf : public OptionsCopy {
 public:
  explicit CopyOf(const Impl& module) : options_(options_of(module)) {}

  bool differs_from(const torch::nn::Module& module, std::string& where) const override {
    const auto* const other = module.as<Impl>();
    return other == nullptr || fields::differ(options_, options_of(*other), where);
  }

 private:
  std::decay_t<decltype(options_of(std::declval<const Impl&>()))> options_;
};

}  // namespace

std::shared_ptr<const OptionsCopy> copy_of_options(const torch::nn::Module& module) {
  std::shared_ptr<const OptionsCopy> copy;
  OptionHolders::visit(module, [&](const auto& own) {
    copy = std::make_shared<CopyOf<std::decay_t<decltype(own)>>>(own);
  });
  return copy;
}

std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected) {
  const auto wanted = expected.named_modules("", /*include_self=*/false);
  for (const auto& item : got.named_modules("", /*include_self=*/false)) {
    const auto* const found = wanted.find(item.key());
    if (found == nullptr) continue;
    const auto own = copy_of_options(*item.value());
    std::string where;
    if (own && own->differs_from(**found, where)) return item.key();
  }
  return "";
}

}  // namespace posenc
