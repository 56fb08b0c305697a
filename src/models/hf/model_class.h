#pragma once

#include <string_view>

namespace posenc::hf {

/// The class of a model type in transformers, without a head: `BertModel`. Empty if it is unknown.
std::string_view model_class_of(std::string_view model_type);

}  // namespace posenc::hf
