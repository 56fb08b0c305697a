#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/check.h"
#include "weights/torch/pickle/parser.h"
#include "weights/torch/state_dict_walker.h"
#include "weights/torch/storages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  using namespace posenc::io;
  constexpr uint64_t kStorages = 1 << 16;  // storages in an imaginary file of that size
  try {
    Budget budget(size);
    Pickle pickle({reinterpret_cast<const char*>(data), size}, budget);
    const PickleId root = parse_pickle(pickle);
    Manifest manifest;
    manifest.files = {""};
    TensorList list(manifest, budget, size);
    TorchTensors objects(pickle, list, [](std::string_view, uint64_t bytes) {
      if (bytes > kStorages) throw WeightsError(WeightsErrorCode::OutOfBounds, "is too large");
      return ManifestStorage{0, 0, bytes};
    });
    ScriptClass script;
    script.is_module = true;
    script.parameters = {{"weight"}};
    script.buffers = {{"scale"}};
    const bool modules = size % 2 == 0;
    StateDictWalker(objects, list, manifest, budget)
        .run(root, modules ? [&](const std::string&) { return &script; } : FindScriptClass());
    testing::check_manifest(manifest, kStorages);
  } catch (const WeightsError&) {
  }
  return 0;
}
