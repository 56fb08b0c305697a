#include "models/sentence/stage_settings.h"
#include "models/config/model_folder.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <set>

#include "models/sentence/transformer_settings.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostSettings = 256'000'000;  // bytes: WordWeights has a vocabulary in them

}  // namespace

Settings settings_of_stage(const char* caller, const std::string& folder, const StageKind& kind) {
  const std::string path = (fs::path(folder) / kind.file).string();
  if (kind.may_lack_settings && !io::may_exist(path)) {
    return Settings::of_object(caller, nlohmann::json::object());
  }
  return {caller, path, kMostSettings};
}

Activation activation_at(const Settings& config, const char* name) {
  const std::string path = config.text(name);
  const std::string last = path.substr(path.rfind('.') + 1);
  for (const char* module :
       {"torch.nn.modules.activation.", "torch.nn.modules.linear.", "torch.nn."}) {
    if (path != module + last) continue;
    try {
      return activation_of_class(last);
    } catch (const c10::ValueError&) {  // refused below
    }
  }
  config.refuse(name,
                "must be an activation of torch.nn that posenc has, such as "
                "torch.nn.modules.activation.Tanh");
}

std::string stage_folder(const SentenceModules& modules, const SentenceModule& stage) {
  return stage.path.empty() ? modules.folder.string() : (modules.folder / stage.path).string();
}

SentenceModules checked_modules(const char* caller, const std::string& folder) {
  SentenceModules modules = read_modules(caller, folder);
  std::set<std::string> names;
  const std::string where =
      "[" + std::string(caller) + "] " + (modules.folder / "modules.json").string() + ": ";
  for (const SentenceModule& stage : modules.stages) {
    check_module(where, stage);
    TORCH_CHECK_VALUE(names.insert(stage.name).second, where,
                      "name must differ from those of the other stages. Got ", stage.name,
                      " twice");
  }
  return modules;
}

Settings model_settings(const char* caller, const std::string& folder) {
  return settings_or_none(caller,
                          (fs::path(folder) / "config_sentence_transformers.json").string());
}

}  // namespace posenc
