#pragma once

#include <string>
#include <vector>

#include "models/config/settings.h"
#include "models/sentence/modules.h"
#include "models/sentence/stages/stage_kind.h"
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

/// The settings of a stage of that kind in `folder`; none where it may lack them.
Settings settings_of_stage(const char* caller, const std::string& folder, const StageKind& kind);

/// The activation whose class in torch.nn a setting names, such as
/// `torch.nn.modules.activation.Tanh`. Throws c10::ValueError for another path.
Activation activation_at(const Settings& config, const char* name);

/// The folder of a stage.
std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage);

}  // namespace posenc
