#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "models/sentence/modules.h"
#include "posenc/models/sentence_route.h"
#include "posenc/weights/error.h"

namespace posenc {

/// Where models are in a folder, of which a Router may have several, and the folders of the stages
/// after them.
struct FolderParts {
  /// The folders of models, within, empty for the folder itself; and whether a model's head is
  /// used.
  std::map<std::string, bool> models;
  std::set<std::string> stages;  ///< within
  bool has_projection = false;   ///< of Stanford's ColBERT, among the weights of the model
};

/// Those of a folder, which may be an adapter's of the model in `base`. Throws c10::ValueError,
/// naming `caller`, for one without a model that has layers.
FolderParts parts_of(const char* caller, const std::string& folder, const std::string& base);

/// The folders of all stages, with those of a Router and of the stages that no task goes through.
std::set<std::string> stage_folders(const char* caller, const SentenceModules& modules);
/// The folder of a route's first stage, within that of the model.
std::string folder_within(const SentenceModules& modules, const SentenceRoute& route);
/// Whether a first stage is a model with layers.
inline bool has_layers(sentence::FirstStage first) {
  return first == sentence::FirstStage::Encoder || first == sentence::FirstStage::MaskedHead;
}

/// The folder of a model in another.
std::string path_of_model(const std::string& folder, const std::string& inner);

/// A name in the folder `inner`, which may be the folder itself.
std::string in_folder(const std::string& inner, const std::string& name);

/// The names, within, of the files in a folder, those of the chat templates in
/// additional_chat_templates included; sorted.
std::vector<std::string> files_in(const std::filesystem::path& folder, std::error_code& error);

/// The error for a folder whose files cannot be listed.
WeightsError unreadable_folder(const std::filesystem::path& folder, const std::error_code& error);

/// Whether a file of this name holds weights, of any program.
bool is_weights(const std::string& name);

/// The files of a model that are copied beside its weights, by their names within the folder; not
/// those of folders in it. Of an adapter's folder, also those of its model, LoadOptions::base, as
/// far as it has none of these names, without what makes it an adapter.
std::map<std::string, std::filesystem::path> files_of_model(const char* caller,
                                                            const std::string& folder,
                                                            const FolderParts& parts,
                                                            const std::string& base);

}  // namespace posenc
