#include "posenc/io/save.h"

#include <torch/nn/module.h>

#include <string_view>

#include "io/base/context.h"
#include "io/safetensors/writer.h"
#include "io/torch/save_writer.h"

namespace posenc {
namespace {

bool wants_torch_save(const std::string& path, SaveFormat format) {
  if (format != SaveFormat::ByExtension) return format == SaveFormat::TorchSave;
  return path.ends_with(".pt") || path.ends_with(".pth");
}

void save(const std::string& path, const StateDict& tensors, const SaveOptions& options) {
  if (wants_torch_save(path, options.format())) {
    io::save_torch(path, tensors);
  } else {
    io::write_safetensors(path, tensors, options.metadata());
  }
}

}  // namespace

void save_weights(const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options) {
  io::in_context("save_weights", path, [&] { save(path, state_dict(module), options); });
}

void save_tensors(const std::string& path, const StateDict& tensors, const SaveOptions& options) {
  io::in_context("save_tensors", path, [&] { save(path, tensors, options); });
}

}  // namespace posenc
