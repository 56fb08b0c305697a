// save_adapter().

#include <c10/util/Exception.h>

#include <filesystem>

#include "models/lora/config.h"
#include "models/lora/parts.h"
#include "models/save/write_folder.h"
#include "weights/common/file.h"

namespace posenc {

void save_adapter(const LoraAdapter& adapter, const std::string& folder, const std::string& base) {
  using namespace lora;
  namespace fs = std::filesystem;
  constexpr const char* kSaver = "save_adapter";
  for (const char* name : {"config.json", kConfigFile, kWeights}) {
    TORCH_CHECK_VALUE(!io::may_exist((fs::path(folder) / name).string()), "[", kSaver, "] ", folder,
                      ": folder must hold no model and no adapter. Got ", name);
  }
  check_config(std::string("[") + kSaver + "] ", adapter.config);
  parts_of(adapter);
  LoraConfig config = adapter.config;
  if (!base.empty()) config.base(base);
  StateDict tensors;
  for (const auto& item : adapter.tensors)
    tensors.insert(std::string(kRoot) + item.key(), item.value().detach().contiguous());
  io::in_context(kSaver, folder, [&] {
    FolderWriter written(folder);
    written.add_weights(kWeights, tensors);
    written.add_text(kConfigFile, json_of(config).dump(2) + "\n");
    written.commit();
    return 0;
  });
}

}  // namespace posenc
