#pragma once

#include <string>
#include <string_view>

namespace posenc::text {

/// An expression for any Oniguruma from 6.9.8 on, in which `\w`, `\b`, `\p{L}` and so on have
/// become the characters of Unicode 16.0, which 6.9.10 knows. Throws TokenizerError for what has
/// other characters there and no table here, by its name.
std::string with_unicode_16(std::string_view expression);

}  // namespace posenc::text
