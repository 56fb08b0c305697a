#include "posenc/weights/save.h"

#include <torch/nn/module.h>

#include "weights/common/file.h"
#include "weights/common/module_state.h"
#include "weights/safetensors/writer.h"
#include "weights/save_format.h"
#include "weights/torch/save_writer.h"

namespace posenc {
namespace {

void save(const char* function, const std::string& path, const StateDict& tensors,
          const SaveOptions& options) {
  io::in_context(function, path, [&] {
    if (io::save_format(path, options.format()) == SaveFormat::Safetensors)
      return io::SafetensorsWriter(tensors, options.metadata()).write(path);
    io::save_torch(path, tensors);
  });
}

}  // namespace

StateDict state_dict(const ConstModuleRef& module) { return io::module_state(*module).tensors; }

void save_weights(const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options) {
  save("save_weights", path, state_dict(module), options);
}

void save_tensors(const std::string& path, const StateDict& tensors, const SaveOptions& options) {
  save("save_tensors", path, tensors, options);
}

}  // namespace posenc
