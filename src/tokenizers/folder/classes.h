#pragma once

#include <string_view>

#include "tokenizers/folder/class_builder.h"

/// The constructors of the classes of transformers 5.23, each in the file of its kind. A class that
/// is not here is refused by name.
namespace posenc::text {

using Constructor = void (*)(ClassBuilder&);

/// The constructor of a class; null for one that is not supported.
Constructor constructor_of(std::string_view tokenizer_class);

/// The same among the classes of one kind.
Constructor word_piece_constructor(std::string_view tokenizer_class);
Constructor byte_level_constructor(std::string_view tokenizer_class);
Constructor bpe_constructor(std::string_view tokenizer_class);
Constructor unigram_constructor(std::string_view tokenizer_class);
Constructor translation_constructor(std::string_view tokenizer_class);

}  // namespace posenc::text
