#pragma once

#include <torch/arg.h>

#include <map>
#include <string>

#include "posenc/io/error.h"
#include "posenc/io/state_dict.h"

namespace posenc {

enum class SaveFormat {
  ByExtension,  ///< TorchSave for `.pt` and `.pth`, else Safetensors
  Safetensors,
  TorchSave,  ///< what Python's torch.load(weights_only=True) reads; ties and views are kept
};

struct SaveOptions {
  using Metadata = std::map<std::string, std::string>;

  TORCH_ARG(SaveFormat, format) = SaveFormat::ByExtension;
  /// Of a safetensors file; `format` says for Hugging Face's loaders which library it is for.
  TORCH_ARG(Metadata, metadata) = { {"format", "pt"} };
};

/// Writes state_dict(module): contiguous copies in safetensors, views of common memory in a
/// torch.save file. The file is written beside `path`, synced and renamed: whatever happens, a full
/// disk or a kill included, `path` is the old file or the whole new one. Links are followed; what
/// may not be written to is not replaced (docs/weights.md). Throws WeightsError.
void save_weights(const torch::nn::Module& module, const std::string& path,
                  const SaveOptions& options = {});

/// The same for any tensors, on any device.
void save_tensors(const std::string& path, const StateDict& tensors,
                  const SaveOptions& options = {});

}  // namespace posenc
