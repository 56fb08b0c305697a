#pragma once

#include <string_view>

namespace posenc::hf {

/// The class of a model type in transformers, without a head: `BertModel`. Empty if it is unknown.
std::string_view model_class_of(std::string_view model_type);

/// Whether transformers has the model type as a decoder of text and as nothing else, such as Llama.
bool is_decoder_alone(std::string_view model_type);

}  // namespace posenc::hf
