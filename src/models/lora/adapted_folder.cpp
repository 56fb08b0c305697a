#include "models/lora/adapted_folder.h"

#include <c10/util/Exception.h>

#include <filesystem>

#include "models/lora/config.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

bool has_file(const std::string& folder, const char* name) {
  return io::may_exist((fs::path(folder) / name).string());
}

bool is_adapter(const std::string& folder) { return has_file(folder, lora::kConfigFile); }

bool is_folder(const fs::path& path) {
  std::error_code unknown;
  return !path.empty() && io::may_exist(path.string()) && fs::is_directory(path, unknown);
}

std::string base_of_adapter(const char* caller, const std::string& folder,
                            const std::string& given) {
  if (!given.empty()) return given;
  if (has_file(folder, "config.json")) return folder;
  const std::string named = read_lora_config(folder).base();
  const fs::path own = fs::path(folder) / "";
  for (const fs::path& path : {fs::path(named), own.parent_path().parent_path() / named})
    if (!named.empty() && is_folder(path)) return path.string();
  throw WeightsError(WeightsErrorCode::NotFound,
                     "is the folder of an adapter of " +
                         (named.empty() ? "no named model" : named) +
                         ", which must be a folder on this machine; nothing is downloaded",
                     "LoadOptions::base, or --base of a command, says where it is")
      .in_file(folder)
      .in_function(caller);
}

}  // namespace

AdaptedFolder adapted_folder(const char* caller, const std::string& folder,
                             const LoadOptions& options) {
  AdaptedFolder result = {folder, LoadOptions(options).base("")};
  if (!is_adapter(folder)) {
    TORCH_CHECK_VALUE(options.base().empty(), "[", caller, "] ", folder,
                      ": base must be with the folder of an adapter, which has "
                      "adapter_config.json. Got ",
                      options.base());
    return result;
  }
  result.folder = base_of_adapter(caller, folder, options.base());
  auto& adapters = result.options.adapters();
  adapters.insert(adapters.begin(), {folder, 1.0});
  return result;
}

std::string config_folder(const char* caller, const std::string& folder, const std::string& base) {
  return is_adapter(folder) ? base_of_adapter(caller, folder, base) : folder;
}

std::string tokenizer_folder(const char* caller, const std::string& folder,
                             const std::string& base) {
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.txt"})
    if (has_file(folder, name)) return folder;
  return config_folder(caller, folder, base);
}

void refuse_adapters(const char* caller, const LoadOptions& options, const char* why) {
  TORCH_CHECK_VALUE(
      options.adapters().empty() && options.base().empty(), "[", caller,
      "] adapters must be none: ", why, ". Got ",
      options.adapters().empty() ? options.base() : options.adapters().front().folder);
}

}  // namespace posenc
