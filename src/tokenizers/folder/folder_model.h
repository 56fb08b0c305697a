#pragma once

#include <optional>
#include <string>

#include "tokenizers/folder/class_builder.h"

namespace posenc::text {

/// Gives `builder` the vocabulary of a SentencePiece model as the class of its tokenizer arranges
/// it, and the charsmap. Throws TokenizerError.
void read_sentencepiece_model(ClassBuilder& builder, ModelDefinition::Kind kind,
                              const std::string& file);

/// Takes tokenizer.json as it is, or else what transformers makes of a SentencePiece model without
/// a class: of `kind`, or of the kind that the model says.
void take_file_or_sentencepiece(ClassBuilder& builder, const VocabularyFiles& files,
                                std::optional<ModelDefinition::Kind> kind = std::nullopt);

}  // namespace posenc::text
