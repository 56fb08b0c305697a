#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/config/settings.h"
#include "models/sentence/modules.h"
#include "posenc/models/sentence_stages.h"

namespace posenc {

/// The list of a model's stages. Throws c10::ValueError for two of one name, a type that is not
/// sentence-transformers' own, and a path that leaves the folder.
SentenceModules checked_modules(const char* caller, const std::string& folder);

/// The settings of a whole model, config_sentence_transformers.json, or none.
Settings model_settings(const char* caller, const std::string& folder);

/// The stages that make sentence vectors: those listed or, without a modules.json and for a
/// cross-encoder, an encoder and a pooling. Throws c10::ValueError for another kind of model.
SentenceModules sentence_modules(const char* caller, const std::string& folder);

/// A stage that has been read.
struct SentenceStageSettings {
  sentence::Stage stage;
  std::string folder;  ///< of its weights
};

/// The stages after the first, as their folders describe them. Throws c10::ValueError for a stage
/// that posenc lacks and for settings, WeightsError for files.
std::vector<SentenceStageSettings> stages_after_first(const char* caller,
                                                      const SentenceModules& modules);

/// The weights (V) of the WordWeights in `folder`, whose settings have them.
at::Tensor stage_word_weights(const char* caller, const std::string& folder);

/// The activation whose class in torch.nn a setting names, such as
/// `torch.nn.modules.activation.Tanh`. Throws c10::ValueError for another path.
Activation activation_at(const Settings& config, const char* name);

/// The folder of a stage.
std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage);

/// The weight (V) of each word of a WordWeights' `vocab`: that of the word or else of its
/// lower-case form in `word_weights`, or `unknown_word_weight`. Throws c10::ValueError for settings
/// that are none, and for a word of which only the lower-case form may have a weight and which has
/// other letters than those of ASCII.
at::Tensor word_weights_in(const Settings& config);

}  // namespace posenc
