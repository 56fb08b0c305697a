#include <string>

#include "weights/torch/pickle/parser.h"
#include "weights/torch/readers.h"
#include "weights/torch/state_dict_walker.h"
#include "weights/torch/storages.h"

namespace posenc::io {

Manifest read_torch_save(const Archive& archive) {
  Manifest manifest;
  manifest.format = WeightsFormat::TorchSave;
  manifest.files = {archive.file().path()};
  Budget budget(archive.file().size());
  const std::string bytes = archive.read("data.pkl");
  Pickle pickle(bytes, budget);
  const PickleId root = parse_pickle(pickle);
  TensorList list(manifest, budget, archive.file().size());
  TorchTensors objects(pickle, list, storages_below(archive, "data/"));
  refuse_whole_object(objects, root);
  StateDictWalker(objects, list, manifest, budget).run(root);
  return manifest;
}

Manifest read_archive(const InputFile& file) {
  const Archive archive(file);
  switch (archive.format()) {
    case WeightsFormat::TorchScript: return read_torchscript(archive);
    case WeightsFormat::Pt2: return read_pt2(archive);
    default: return read_torch_save(archive);
  }
}

}  // namespace posenc::io
