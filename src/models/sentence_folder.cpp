#include "models/sentence_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/base/context.h"
#include "io/base/file.h"
#include "io/base/json_tree.h"
#include "posenc/io/error.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kLongestFile = 1'000'000;  // in bytes

json read_json(const std::string& path) {
  const io::InputFile file(path);
  if (file.size() > kLongestFile) {
    throw WeightsError(WeightsErrorCode::LimitExceeded,
                       "must have at most " + std::to_string(kLongestFile) + " bytes. Got " +
                           std::to_string(file.size()));
  }
  return io::json_tree<json>(file.read(0, file.size()), "its settings");
}

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<SentenceStage> stages_in(const std::string& path) {
  const json list = read_json(path);
  std::vector<SentenceStage> stages;
  const bool is_list = list.is_array() && !list.empty();
  for (const json& one : is_list ? list : json::array()) {
    if (!one.is_object() || text_in(one, "type").empty()) break;
    const std::string type = text_in(one, "type");  // sentence_transformers.models.Pooling
    stages.push_back({type.substr(type.rfind('.') + 1), text_in(one, "path")});
  }
  if (!is_list || stages.size() != list.size()) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must be a list of the stages of a sentence-transformers model");
  }
  return stages;
}

// The folder that has the modules.json, empty if there is none: `folder`, or that around it if it
// is one of its stages.
fs::path folder_of_stages(const char* caller, const std::string& folder,
                          std::vector<SentenceStage>& stages) {
  const auto read = [&](const fs::path& path) {
    stages = io::in_context(caller, path.string(), [&] { return stages_in(path.string()); });
  };
  const fs::path own = fs::path(folder) / "modules.json";
  if (fs::exists(own)) {
    read(own);
    return folder;
  }
  const fs::path whole = fs::absolute(fs::path(folder) / "").lexically_normal().parent_path();
  const fs::path around = whole.parent_path() / "modules.json";
  if (!fs::exists(around)) return {};
  try {
    read(around);
  } catch (const WeightsError&) {  // of something else
    stages.clear();
  }
  const bool is_stage = std::any_of(stages.begin(), stages.end(), [&](const SentenceStage& stage) {
    return stage.path == whole.filename().string();
  });
  if (!is_stage) stages.clear();
  return is_stage ? whole.parent_path() : fs::path();
}

// `mean_tokens` for the setting pooling_mode_mean_tokens; several are joined.
std::string pooling_in(const json& config) {
  const std::string prefix = "pooling_mode_";
  std::string modes = text_in(config, "pooling_mode");
  for (const auto& [name, value] : config.items()) {
    if (name.rfind(prefix, 0) != 0 || value != json(true)) continue;
    modes += (modes.empty() ? "" : " and ") + name.substr(prefix.size());
  }
  return modes;
}

std::string described(const char* caller, const fs::path& folder, const SentenceStage& stage) {
  if (stage.kind == "Pooling") {
    const fs::path path = folder / stage.path / "config.json";
    if (fs::exists(path)) {
      const json config =
          io::in_context(caller, path.string(), [&] { return read_json(path.string()); });
      const std::string modes = config.is_object() ? pooling_in(config) : "";
      if (!modes.empty()) return stage.kind + " (" + modes + ")";
    }
  }
  return stage.kind + (stage.kind == "Normalize" ? "" : " (" + stage.path + ")");
}

}  // namespace

std::vector<SentenceStage> sentence_stages(const char* caller, const std::string& folder) {
  std::vector<SentenceStage> stages;
  folder_of_stages(caller, folder, stages);
  return stages;
}

std::vector<std::string> stages_after_encoder(const char* caller, const std::string& folder) {
  std::vector<SentenceStage> stages;
  const fs::path whole = folder_of_stages(caller, folder, stages);
  std::vector<std::string> after;
  for (std::size_t i = 1; i < stages.size(); ++i) {
    after.push_back(described(caller, whole, stages[i]));
  }
  return after;
}

void check_holds_encoder(const char* caller, const std::string& folder) {
  if (fs::exists(fs::path(folder) / "config.json")) return;
  const auto stages = sentence_stages(caller, folder);
  if (stages.empty() || stages.front().path.empty()) return;
  const std::string encoder = (fs::path(folder) / stages.front().path).string();
  throw WeightsError(
      WeightsErrorCode::NotFound,
      "has no config.json: it is a sentence-transformers model, whose first stage, " +
          stages.front().kind + ", is in " + encoder,
      "give that folder")
      .in_file(folder)
      .in_function(caller);
}

}  // namespace posenc
