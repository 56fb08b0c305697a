#include "models/sentence/modules.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestModules = 1'000'000;  // in bytes
constexpr const char* kPackage = "sentence_transformers.";
constexpr const char* kForeign = "pylate.models.Dense.Dense";  // which is Dense

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string modules_file(const std::filesystem::path& folder) {
  return (folder / "modules.json").string();
}

std::vector<SentenceModule> modules_in(const std::string& path) {
  const json list = io::json_tree<json>(io::read_text(path, kLongestModules), "its settings");
  std::vector<SentenceModule> stages;
  const bool is_list = list.is_array() && !list.empty();
  for (const json& one : is_list ? list : json::array()) {
    if (!one.is_object() || text_of(one, "type").empty()) break;
    stages.push_back(module_of(text_of(one, "type"), text_of(one, "path"), text_of(one, "name")));
  }
  if (!is_list || stages.size() != list.size()) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must be a list of the stages of a sentence-transformers model");
  }
  return stages;
}

}  // namespace

bool leaves_folder(const std::string& path) {
  const std::filesystem::path given(path);
  return given.is_absolute() || std::find(given.begin(), given.end(), "..") != given.end();
}

SentenceModule module_of(const std::string& type, const std::string& path,
                         const std::string& name) {
  return {type.substr(type.rfind('.') + 1), path, type, name};
}

void check_module(const std::string& where, const SentenceModule& stage) {
  TORCH_CHECK_VALUE(stage.type.starts_with(kPackage) || stage.type == kForeign, where,
                    "type must be a stage of sentence-transformers; code in the folder is not "
                    "run. Got ",
                    stage.type);
  TORCH_CHECK_VALUE(!leaves_folder(stage.path), where,
                    "path must be a folder inside the model's. Got ", stage.path);
}

bool has_modules(const std::filesystem::path& folder) {
  return io::may_exist(modules_file(folder));
}

SentenceModules read_modules(const char* caller, const std::filesystem::path& folder) {
  const std::string path = modules_file(folder);
  return {folder, io::in_context(caller, path, [&] { return modules_in(path); })};
}

}  // namespace posenc
