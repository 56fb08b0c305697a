#include "models/sentence/sentence_folder.h"

#include <c10/util/Exception.h>

#include <filesystem>

#include "models/sentence/modules.h"
#include "models/sentence/pooling.h"
#include "posenc/weights/error.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

// The model that has `folder` as the folder of one of its stages; no stages if there is none.
SentenceModules model_around(const char* caller, const std::string& folder) {
  const fs::path own = fs::absolute(fs::path(folder) / "").lexically_normal().parent_path();
  if (!has_modules(own.parent_path())) return {};
  try {
    SentenceModules model = read_modules(caller, own.parent_path());
    for (const SentenceModule& stage : model.stages) {
      if (stage.path == own.filename().string()) return model;
    }
  } catch (const WeightsError&) {  // a modules.json of something else
  }
  return {};
}

SentenceModules model_of(const char* caller, const std::string& folder) {
  if (has_modules(folder)) return read_modules(caller, folder);
  return model_around(caller, folder);
}

// Such as `mean_tokens`; several are joined. Empty for what is no pooling.
std::string pooling_in(const char* caller, const std::string& path) {
  std::string modes;
  try {
    for (const auto mode : pooling_modes(Settings(caller, path))) {
      modes += (modes.empty() ? "" : " and ") + pooling_name(mode);
    }
  } catch (const c10::ValueError&) {
    return "";
  }
  return modes;
}

std::string described(const char* caller, const fs::path& folder, const SentenceModule& stage) {
  if (stage.kind == "Pooling") {
    const std::string path = (folder / stage.path / "config.json").string();
    const std::string modes = io::may_exist(path) ? pooling_in(caller, path) : "";
    if (!modes.empty()) return stage.kind + " (" + modes + ")";
  }
  return stage.kind + (stage.kind == "Normalize" ? "" : " (" + stage.path + ")");
}

}  // namespace

bool is_sentence_model(const char* caller, const std::string& folder) {
  return !model_of(caller, folder).stages.empty();
}

std::vector<std::string> stages_after_encoder(const char* caller, const std::string& folder) {
  const SentenceModules model = model_of(caller, folder);
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
