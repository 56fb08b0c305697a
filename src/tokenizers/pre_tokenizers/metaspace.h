#pragma once

#include <string>

#include "tokenizers/definition/component.h"

namespace posenc::text {

/// Where Metaspace puts its mark, unless the text begins with one.
enum class PrependScheme {
  Always,  ///< before each part
  First,   ///< before the part that begins where the text begins
  Never,
};

/// The options of Metaspace, which is a pre-tokenizer and a decoder.
struct MetaspaceOptions {
  std::string replacement;  ///< one character
  PrependScheme prepend_scheme = PrependScheme::Always;
  bool split = true;
};

/// Reads and checks them. Throws TokenizerError.
MetaspaceOptions metaspace_options(const Component& component);

}  // namespace posenc::text
