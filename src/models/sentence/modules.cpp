#include "models/sentence/modules.h"

#include <nlohmann/json.hpp>

#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestModules = 1'000'000;  // in bytes

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
    const std::string type = text_of(one, "type");  // sentence_transformers.models.Pooling
    stages.push_back(
        {type.substr(type.rfind('.') + 1), text_of(one, "path"), type, text_of(one, "name")});
  }
  if (!is_list || stages.size() != list.size()) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must be a list of the stages of a sentence-transformers model");
  }
  return stages;
}

}  // namespace

bool has_modules(const std::filesystem::path& folder) {
  return io::may_exist(modules_file(folder));
}

SentenceModules read_modules(const char* caller, const std::filesystem::path& folder) {
  const std::string path = modules_file(folder);
  return {folder, io::in_context(caller, path, [&] { return modules_in(path); })};
}

}  // namespace posenc
