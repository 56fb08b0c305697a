#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/sentence/modules.h"
#include "models/settings.h"
#include "posenc/models/sentence_stages.h"

namespace posenc {

/// The list of a model's stages. Throws c10::ValueError for two of one name, a type that is not
/// sentence-transformers' own, and a path that leaves the folder. The stages of a folder without a
/// modules.json are an encoder and a pooling.
SentenceModules checked_modules(const char* caller, const std::string& folder);

/// A stage that has been read.
struct SentenceStageSettings {
  sentence::Stage stage;
  std::string folder;  ///< of its weights
};

/// The stages after the first, as their folders describe them. Throws c10::ValueError for a stage
/// that posenc lacks and for settings, WeightsError for files.
std::vector<SentenceStageSettings> stages_after_first(const char* caller,
                                                      const SentenceModules& modules);

/// The activation whose class in torch.nn a setting names, such as
/// `torch.nn.modules.activation.Tanh`. Throws c10::ValueError for another path.
Elementwise activation_at(const Settings& config, const char* name);

/// The folder of a stage.
std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage);

}  // namespace posenc
