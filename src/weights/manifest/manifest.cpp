#include "posenc/weights/manifest.h"

#include <utility>

#include "weights/common/dtype_facts.h"
#include "weights/common/file.h"
#include "weights/manifest/open_weights.h"

namespace posenc {
const char* dtype_name(ManifestDtype dtype) { return io::facts_of(dtype).name; }

int64_t item_size(ManifestDtype dtype) { return io::facts_of(dtype).bytes; }

const char* format_name(WeightsFormat format) {
  switch (format) {
    case WeightsFormat::Safetensors: return "safetensors";
    case WeightsFormat::SafetensorsIndex: return "safetensors index";
    case WeightsFormat::TorchSave: return "torch.save";
    case WeightsFormat::TorchSaveLegacy: return "torch.save (legacy)";
    case WeightsFormat::TorchScript: return "TorchScript";
    case WeightsFormat::Pt2: return "torch.export";
  }
  return "?";
}

Manifest read_manifest(const std::string& path) {
  return io::in_context("read_manifest", path,
                        [&] { return std::move(io::OpenWeights(path).manifest); });
}

}  // namespace posenc
