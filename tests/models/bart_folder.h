#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/models/seq2seq.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {

/// A folder of an encoder-decoder with a layer of BART in each stack, which a test writes.
class BartFolder : public ::testing::Test {
 protected:
  explicit BartFolder(int64_t width) : width_(width) {}

  void tensor(const std::string& name, const std::vector<int64_t>& sizes) {
    tensors_[name] = torch::randn(sizes);
  }
  void pair(const std::string& name, const std::vector<int64_t>& sizes) {
    tensor(name + ".weight", sizes);
    tensor(name + ".bias", {sizes.front()});
  }
  /// The layer of `model.encoder.` or `model.decoder.`.
  void layer_of(const std::string& stack) {
    const bool decodes = stack == "model.decoder.";
    const std::string layer = stack + "layers.0.";
    attention(layer + "self_attn");
    if (decodes) attention(layer + "encoder_attn");
    pair(layer + "final_layer_norm", {width_});
    const int64_t wide = decodes ? 7 : 5;
    pair(layer + "fc1", {wide, width_});
    pair(layer + "fc2", {width_, wide});
  }

  void write() {
    write_bytes(folder_ / "config.json", config_.dump());
    StateDict tensors;
    for (const auto& [name, value] : tensors_) tensors.insert(name, value);
    save_safetensors(folder_ / "model.safetensors", tensors);
  }
  Seq2SeqModel load() {
    write();
    return load_seq2seq(folder_.path().string());
  }
  void expect_value_error(const std::string& text) { EXPECT_ERROR(load(), c10::ValueError, text); }

  TempDir folder_;
  nlohmann::json config_;
  std::map<std::string, at::Tensor> tensors_;

 private:
  void attention(const std::string& name) {
    for (const char* part : {".q_proj", ".k_proj", ".v_proj", ".out_proj"})
      pair(name + part, {width_, width_});
    pair(name + "_layer_norm", {width_});
  }

  int64_t width_;
};

}  // namespace posenc::testing
