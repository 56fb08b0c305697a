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

// Such as `Router (query: SparseStaticEmbedding; document: Transformer, SpladePooling)`.
std::string described_router(const char* caller, const SentenceModules& model,
                             const SentenceModule& stage) {
  std::string routes;
  for (const auto& route : read_router(caller, model, stage).routes) {
    std::string kinds;
    for (const SentenceModule& one : route.stages) kinds += (kinds.empty() ? "" : ", ") + one.kind;
    routes += (routes.empty() ? "" : "; ") + route.name + ": " + kinds;
  }
  return stage.kind + " (" + routes + ")";
}

std::string described(const char* caller, const SentenceModules& model,
                      const SentenceModule& stage) {
  const fs::path& folder = model.folder;
  if (stage.is_router()) return described_router(caller, model, stage);
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
  const bool is_routed = !model.stages.empty() && model.stages.front().is_router();
  for (std::size_t i = is_routed ? 0 : 1; i < model.stages.size(); ++i) {
    after.push_back(described(caller, model, model.stages[i]));
  }
  return after;
}

std::string folder_of_model(const char* caller, const std::string& folder) {
  const SentenceModules model = model_of(caller, folder);
  if (model.stages.empty() || !model.stages.front().is_router()) return folder;
  const auto stages = modules_of(caller, model, sentence::Task::None);
  if (!stages || stages->empty()) return folder;
  return (model.folder / stages->front().path).string();
}

void check_holds_encoder(const char* caller, const std::string& folder) {
  if (io::may_exist((fs::path(folder) / "config.json").string())) return;
  const auto stages = model_of(caller, folder).stages;
  if (stages.empty()) return;
  const bool is_routed = stages.front().is_router();
  const std::string encoder = is_routed ? folder_of_model(caller, folder)
                                        : (fs::path(folder) / stages.front().path).string();
  if (encoder == folder || (!is_routed && stages.front().path.empty())) return;
  throw WeightsError(
      WeightsErrorCode::NotFound,
      "has no config.json: it is a sentence-transformers model, whose first stage, " +
          stages.front().kind + ", is in " + encoder,
      "give that folder")
      .in_file(folder)
      .in_function(caller);
}

}  // namespace posenc
