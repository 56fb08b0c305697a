#pragma once

#include <string>

#include "tokenizers/definition/definition.h"
#include "tokenizers/folder/class_builder.h"

namespace posenc::text {

/// The vocabulary of a tokenizer.json's model for a model of `kind` as a class of transformers
/// makes it: with none of the file's options. Throws TokenizerError if the file's is of no use for
/// it.
ModelDefinition vocabulary_of(ModelDefinition model, ModelDefinition::Kind kind);

/// Gives `builder` a model of `kind` with the vocabulary of the class's own files: vocab.txt,
/// vocab.json with merges.txt, or a SentencePiece model. Throws TokenizerError.
void read_model_files(ClassBuilder& builder, ModelDefinition::Kind kind,
                      const VocabularyFiles& files);

/// The file of the vocabulary where there is no tokenizer.json. Throws TokenizerError if there is
/// none.
std::string vocabulary_file(const ClassBuilder& builder, const VocabularyFiles& files);

}  // namespace posenc::text
