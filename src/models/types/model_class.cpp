#include "models/types/model_class.h"

#include <algorithm>
#include <iterator>

#include "core/named.h"

namespace posenc::hf {
namespace {

struct ModelClass {
  std::string_view model_type, model;
};

#include "models/types/decoder_types.inc"
#include "models/types/model_classes.inc"

}  // namespace

std::string_view model_class_of(std::string_view model_type) {
  const ModelClass* const found = detail::find_named(kModelClasses, model_type);
  return found == nullptr ? std::string_view() : found->model;
}

bool is_decoder_alone(std::string_view model_type) {
  return std::binary_search(std::begin(kDecoderTypes), std::end(kDecoderTypes), model_type);
}

}  // namespace posenc::hf
