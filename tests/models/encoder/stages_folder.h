#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "models/encoder/tiny_folder.h"

namespace posenc::testing {

/// A BERT of width 8 with stages.
class StagesFolder {
 public:
  nlohmann::json modules = {module("Transformer", "")};

  static nlohmann::json module(const std::string& kind, const std::string& path) {
    return {
        {"name", kind + path}, {"path", path}, {"type", "sentence_transformers.models." + kind}};
  }
  void add(const std::string& kind, const std::string& path,
           const nlohmann::json& config = nullptr) {
    modules.push_back(module(kind, path));
    if (!config.is_null()) put(path + "/config.json", config);
  }
  void put(const std::string& name, const nlohmann::json& value) {
    const auto path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    write_bytes(path.string(), value.dump());
  }
  /// The weights of a Dense without a bias.
  torch::Tensor put_dense(const std::string& path, int64_t rows, int64_t columns) {
    put(path + "/config.json", {{"in_features", columns},
                                {"out_features", rows},
                                {"bias", false},
                                {"activation_function", "torch.nn.Identity"}});
    StateDict tensors;
    tensors.insert("linear.weight", torch::randn({rows, columns}));
    save_safetensors(path_ + "/" + path + "/model.safetensors", tensors);
    return tensors["linear.weight"];
  }
  const std::string& write() {
    put("modules.json", modules);
    return path_;
  }

 private:
  TinyFolder folder_ = TinyFolder::bert();
  std::string path_ = folder_.write();
};

}  // namespace posenc::testing
