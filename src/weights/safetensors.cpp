#include "posenc/weights/safetensors.h"

#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/load/load_all.h"
#include "weights/safetensors/writer.h"

namespace posenc {

SafetensorsFile load_safetensors(const std::string& path) {
  return io::in_context("load_safetensors", path, [&] {
    const io::OpenWeights weights(path);
    if (weights.manifest.format != WeightsFormat::Safetensors) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         std::string("is not a safetensors file but of format ") +
                             format_name(weights.manifest.format),
                         "load_tensors() and `posenc convert` read it");
    }
    return SafetensorsFile{io::all_tensors(weights), weights.manifest.metadata};
  });
}

void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::in_context("save_safetensors", path,
                 [&] { io::SafetensorsWriter(tensors, metadata).write(path); });
}

}  // namespace posenc
