#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace posenc {

/// A stage of a sentence-transformers model, as modules.json lists it.
struct SentenceModule {
  std::string kind;  ///< such as `Transformer`, `Pooling`, `Dense` and `Normalize`
  std::string path;  ///< its folder within; empty for the folder itself
  std::string type;  ///< the whole type, such as `sentence_transformers.models.Pooling`
  std::string name;  ///< by which the model has it
};

/// A folder, and the stages in the order of its modules.json.
struct SentenceModules {
  std::filesystem::path folder;
  std::vector<SentenceModule> stages;
  bool is_listed = true;  ///< false: these are the usual stages of an encoder
};

/// Whether the folder has a modules.json.
bool has_modules(const std::filesystem::path& folder);

/// Reads it. Throws WeightsError, naming the public function `caller`, for one that lists no
/// stages.
SentenceModules read_modules(const char* caller, const std::filesystem::path& folder);

}  // namespace posenc
