#pragma once

#include <string>

#include "text/folder/class_builder.h"

namespace posenc::text {

/// Gives `builder` the vocabulary of a SentencePiece model as the class of its tokenizer arranges it, and the
/// charsmap. Throws TokenizerError.
void read_sentencepiece_model(ClassBuilder& builder, ModelDefinition::Kind kind, const std::string& file);

/// Makes the tokenizer that transformers makes of a SentencePiece model without a class of its own.
void construct_from_sentencepiece(ClassBuilder& builder, const std::string& file);

}  // namespace posenc::text
