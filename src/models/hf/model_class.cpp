#include "models/hf/model_class.h"

#include "core/named.h"

namespace posenc::hf {
namespace {

struct ModelClass {
  std::string_view model_type, model;
};

#include "models/hf/model_classes.inc"

}  // namespace

std::string_view model_class_of(std::string_view model_type) {
  const ModelClass* const found = detail::find_named(kModelClasses, model_type);
  return found == nullptr ? std::string_view() : found->model;
}

}  // namespace posenc::hf
