#include <string>

#include "weights/torch/pickle/parser.h"
#include "weights/torch/readers.h"
#include "weights/torch/script_code.h"
#include "weights/torch/state_dict_walker.h"
#include "weights/torch/storages.h"

namespace posenc::io {
namespace {

// A module without `training` has been frozen, or was made in C++: there the weights are still
// attributes, and no constant is a tensor.
void refuse_frozen(const Archive& archive, const Pickle& pickle, PickleId state,
                   const Manifest& manifest) {
  for (auto at = pickle.items(state); at != kNoObject; at = pickle.next(pickle.next(at))) {
    const PickleId key = pickle.item(at);
    if (pickle.is(key, PickleKind::Text) && pickle.text(key) == "training") return;
  }
  bool constants = false;
  for (const ZipRecord& record : archive.index().records()) {
    constants = constants || archive.below_root(record).starts_with("constants/");
  }
  if (!constants && !manifest.tensors.empty()) return;
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "is frozen TorchScript (torch.jit.freeze): its weights have become constants "
                     "of the code",
                     "save the module as it was before freezing");
}

}  // namespace

Manifest read_torchscript(const Archive& archive) {
  Manifest manifest;
  manifest.format = WeightsFormat::TorchScript;
  manifest.files = {archive.file().path()};
  Budget budget(archive.file().size());
  const std::string bytes = archive.read("data.pkl");
  Pickle pickle(bytes, budget);
  const PickleId root = parse_pickle(pickle);
  const std::string name =
      pickle.is(root, PickleKind::Call) ? pickle.global(pickle.callable(root)) : "";
  if (!name.starts_with("__torch__.") || !pickle.is(pickle.state(root), PickleKind::Dict)) {
    throw WeightsError(WeightsErrorCode::Corrupt, "is TorchScript without a module");
  }
  // Mangling adds a component (`__torch__.___torch_mangle_3.Linear`); it never changes the last
  // one.
  manifest.class_name = name.substr(name.rfind('.') + 1);

  TensorList list(manifest, budget, archive.file().size());
  TorchTensors objects(pickle, list, storages_below(archive, "data/"));
  ScriptCode code(archive);
  StateDictWalker(objects, list, manifest, budget).run(root, [&](const std::string& script_class) {
    return code.find(script_class);
  });
  refuse_frozen(archive, pickle, pickle.state(root), manifest);
  return manifest;
}

}  // namespace posenc::io
