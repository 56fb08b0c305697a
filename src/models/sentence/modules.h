#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/models/sentence_stage.h"

namespace posenc {

/// A stage of a sentence-transformers model, as modules.json or a Router lists it.
struct SentenceModule {
  std::string kind;        ///< such as `Transformer`, `Pooling`, `Dense` and `Normalize`
  std::string path;        ///< its folder within; empty for the folder itself
  std::string type;        ///< the whole type, such as `sentence_transformers.models.Pooling`
  std::string name;        ///< by which the model has it
  bool is_routed = false;  ///< whether a Router has it

  bool is_router() const { return kind == "Router" || kind == "Asym"; }
  bool operator==(const SentenceModule& other) const {
    return kind == other.kind && path == other.path;
  }
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

/// A stage of that type in the folder `path`.
SentenceModule module_of(const std::string& type, const std::string& path, const std::string& name);

/// Whether a path in a folder's settings is one of another folder.
bool leaves_folder(const std::string& path);

/// Throws c10::ValueError, which begins with `where`, for a type that is not one of
/// sentence-transformers or PyLate, and for a path that leaves the folder.
void check_module(const std::string& where, const SentenceModule& stage);

/// A Router: stages by the names of routes, and which of them a text goes through.
struct SentenceRouter {
  struct Route {
    std::string name;
    std::vector<SentenceModule> stages;
  };
  std::vector<Route> routes;                 ///< in the order of the file
  std::optional<std::string> default_route;  ///< without a task
  /// Names of routes by task and modality, `None` for any.
  std::map<std::pair<std::string, std::string>, std::string> mappings;

  /// That of texts of a task; null if there is none.
  const Route* route(sentence::Task task) const;
};

/// Reads the Router `stage` of a model. Throws c10::ValueError and WeightsError.
SentenceRouter read_router(const char* caller, const SentenceModules& modules,
                           const SentenceModule& stage);

/// The stages of texts of a task in order: those listed and, in place of a Router, those of its
/// route. Nothing if a Router has none for the task. Throws c10::ValueError and WeightsError.
std::optional<std::vector<SentenceModule>> modules_of(const char* caller,
                                                      const SentenceModules& modules,
                                                      sentence::Task task);

/// `query`, `document` or `no task`.
std::string task_name(sentence::Task task);

}  // namespace posenc
