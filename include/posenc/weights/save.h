#pragma once

#include <torch/arg.h>

#include <map>
#include <string>

#include "posenc/core/module_ref.h"
#include "posenc/weights/error.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

/// File formats of save_weights().
enum class SaveFormat {
  ByExtension,  ///< TorchSave for `.pt` and `.pth`, otherwise Safetensors
  Safetensors,  ///< contiguous copies of the tensors
  TorchSave,    ///< for Python's torch.load(weights_only=True); ties and views are preserved
};

/// Options of save_weights() and save_tensors().
struct SaveOptions {
  /// Metadata by key.
  using Metadata = std::map<std::string, std::string>;

  /// The file format.
  TORCH_ARG(SaveFormat, format) = SaveFormat::ByExtension;
  /// Metadata of a safetensors file. `format` names the library for Hugging Face's loaders.
  TORCH_ARG(Metadata, metadata) = { {"format", "pt"} };
};

/// Saves state_dict(module): contiguous copies in a safetensors file, views of shared memory in a
/// torch.save file. It is written to a temporary file in the same folder, which is synced and
/// renamed, so that `path` is always either the old file or the complete new one, even if the disk
/// is full or the process is killed. Symbolic links are followed. A file without write permission
/// is not replaced (docs/weights.md).
///
/// ```cpp
/// posenc::TokenEmbedding module(100, 8);
/// posenc::save_weights(module, "embedding.safetensors");
/// posenc::load_weights(module, "embedding.safetensors");
/// ```
///
/// Errors: WeightsError.
void save_weights(const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options = {});

/// save_weights() for any tensors, on any device.
void save_tensors(const std::string& path, const StateDict& tensors,
                  const SaveOptions& options = {});

}  // namespace posenc
