#pragma once

#include <string>

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

/// The tensors of an encoder-decoder with these options, under the names that transformers has for
/// them in the class with an output layer. Throws c10::ValueError for one that it lacks.
StateDict seq2seq_tensors(const TransformerImpl& model, const hf::ModelType& type,
                          const TransformerOptions& options, const VocabularyNames& vocabulary);

/// Throws c10::ValueError, naming the public function `caller`, unless these tensors have the sizes
/// of a model with these options, which `config` says.
void check_seq2seq_tensors(const char* caller, const std::string& folder, const StateDict& tensors,
                           const Settings& config, const hf::ModelType& type,
                           const TransformerOptions& options, const VocabularyNames& names);

}  // namespace posenc
