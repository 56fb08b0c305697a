#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace posenc {

/// Where a model is in a folder, and the folders of the stages after it.
struct FolderParts {
  std::string inner;               ///< of the model, within; empty for the folder itself
  std::set<std::string> stages;    ///< within
  bool is_sentence_model = false;  ///< whose head is not used
  bool has_projection = false;     ///< of Stanford's ColBERT, among the weights of the model
};

/// Those of a folder, which may be an adapter's of the model in `base`. Throws c10::ValueError,
/// naming `caller`, for a static embedding.
FolderParts parts_of(const char* caller, const std::string& folder, const std::string& base);

/// A name in the folder `inner`, which may be the folder itself.
std::string in_folder(const std::string& inner, const std::string& name);

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
