#pragma once

#include <string>
#include <string_view>

namespace posenc::text {

/// Why a class of transformers is not supported, as the end of a message: "X, which ..."; the name
/// alone where it is only missing.
std::string refused_class(std::string_view tokenizer_class);

}  // namespace posenc::text
