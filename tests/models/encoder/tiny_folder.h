#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/weights/safetensors.h"
#include "posenc/weights/state_dict.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {

/// The folder of a small encoder, for tests to write and to damage.
class TinyFolder {
 public:
  nlohmann::json config;
  StateDict tensors;

  /// A BERT: 11 tokens, 9 positions, 2 types, 2 layers of width 8 with 2 heads, and its pooler.
  static TinyFolder bert() {
    TinyFolder folder;
    folder.config = {{"model_type", "bert"},   {"vocab_size", 11},
                     {"hidden_size", 8},       {"num_attention_heads", 2},
                     {"num_hidden_layers", 2}, {"intermediate_size", 12},
                     {"type_vocab_size", 2},   {"max_position_embeddings", 9},
                     {"hidden_act", "gelu"},   {"layer_norm_eps", 1e-12}};
    folder.add("embeddings.word_embeddings.weight", {11, 8});
    folder.add("embeddings.position_embeddings.weight", {9, 8});
    folder.add("embeddings.token_type_embeddings.weight", {2, 8});
    folder.add_pair("embeddings.LayerNorm", {8});
    for (const std::string layer : {"encoder.layer.0.", "encoder.layer.1."}) {
      for (const char* part : {"query", "key", "value"}) {
        folder.add_pair(layer + "attention.self." + part, {8, 8});
      }
      folder.add_pair(layer + "attention.output.dense", {8, 8});
      folder.add_pair(layer + "attention.output.LayerNorm", {8});
      folder.add_pair(layer + "intermediate.dense", {12, 8});
      folder.add_pair(layer + "output.dense", {8, 12});
      folder.add_pair(layer + "output.LayerNorm", {8});
    }
    folder.add_pair("pooler.dense", {8, 8});
    return folder;
  }

  void add(const std::string& name, const std::vector<int64_t>& sizes) {
    tensors.insert(name, torch::randn(sizes));
  }
  void add_pair(const std::string& name, const std::vector<int64_t>& sizes) {
    add(name + ".weight", sizes);
    add(name + ".bias", {sizes[0]});
  }
  /// Renames each tensor by `change`; drops it if the new name is empty.
  template <typename Change>
  void rename(Change&& change) {
    StateDict renamed;
    for (const auto& item : tensors) {
      const std::string name = change(item.key());
      if (!name.empty()) renamed.insert(name, item.value());
    }
    tensors = renamed;
  }

  /// Writes the folder; returns its path.
  std::string write() const {
    write_bytes(*dir_ / "config.json", config.dump());
    save_safetensors(*dir_ / "model.safetensors", tensors);
    return dir_->path().string();
  }
  std::string operator/(const std::string& name) const { return *dir_ / name; }

 private:
  std::shared_ptr<TempDir> dir_ = std::make_shared<TempDir>();
};

}  // namespace posenc::testing
