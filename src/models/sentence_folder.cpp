#include "models/sentence_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/base/file.h"
#include "io/base/json.h"
#include "posenc/io/error.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kLongestFile = 1'000'000;  // in bytes

json read_json(const std::string& path) {
  return io::json_tree<json>(io::read_text(path, kLongestFile), "its settings");
}

// A stage of a sentence-transformers model, as modules.json lists it.
struct SentenceStage {
  std::string kind;  // such as `Transformer`, `Pooling`, `Dense` and `Normalize`
  std::string path;  // its folder within; empty for the folder itself
};

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

struct SentenceModel {
  fs::path folder;  // that has the modules.json
  std::vector<SentenceStage> stages;
};

std::string stages_file(const fs::path& folder) { return (folder / "modules.json").string(); }

bool has_stages(const fs::path& folder) { return io::may_exist(stages_file(folder)); }

SentenceModel model_in(const char* caller, const fs::path& folder) {
  const std::string path = stages_file(folder);
  return {folder, io::in_context(caller, path, [&] { return stages_in(path); })};
}

// The model that has `folder` as the folder of one of its stages; no stages if there is none.
SentenceModel model_around(const char* caller, const std::string& folder) {
  const fs::path own = fs::absolute(fs::path(folder) / "").lexically_normal().parent_path();
  if (!has_stages(own.parent_path())) return {};
  try {
    SentenceModel model = model_in(caller, own.parent_path());
    for (const SentenceStage& stage : model.stages) {
      if (stage.path == own.filename().string()) return model;
    }
  } catch (const WeightsError&) {  // a modules.json of something else
  }
  return {};
}

SentenceModel model_of(const char* caller, const std::string& folder) {
  if (has_stages(folder)) return model_in(caller, folder);
  return model_around(caller, folder);
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
    const std::string path = (folder / stage.path / "config.json").string();
    if (io::may_exist(path)) {
      const json config = io::in_context(caller, path, [&] { return read_json(path); });
      const std::string modes = config.is_object() ? pooling_in(config) : "";
      if (!modes.empty()) return stage.kind + " (" + modes + ")";
    }
  }
  return stage.kind + (stage.kind == "Normalize" ? "" : " (" + stage.path + ")");
}

}  // namespace

bool is_sentence_model(const char* caller, const std::string& folder) {
  return !model_of(caller, folder).stages.empty();
}

std::vector<std::string> stages_after_encoder(const char* caller, const std::string& folder) {
  const SentenceModel model = model_of(caller, folder);
  std::vector<std::string> after;
  for (std::size_t i = 1; i < model.stages.size(); ++i) {
    after.push_back(described(caller, model.folder, model.stages[i]));
  }
  return after;
}

void check_holds_encoder(const char* caller, const std::string& folder) {
  if (io::may_exist((fs::path(folder) / "config.json").string())) return;
  const auto stages = model_of(caller, folder).stages;
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
