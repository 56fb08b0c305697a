#include "weights/torch/storages.h"

#include "base/text.h"

namespace posenc::io {

LocateStorage storages_below(const Archive& archive, const std::string& folder) {
  return [&archive, folder](std::string_view key, uint64_t bytes) {
    return storage_record(archive, folder + std::string(key), bytes);
  };
}

ManifestStorage storage_record(const Archive& archive, const std::string& name, uint64_t bytes) {
  const ZipRecord* record = archive.find(name);
  if (record == nullptr) {
    if (bytes == 0) return {};
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "has its data in record " + in_quotes(name) + ", which is missing");
  }
  if (!record->stored()) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "has its data in the compressed record " + in_quotes(name),
                       "save it again with PyTorch, which stores the records as they are");
  }
  if (record->bytes < bytes) {
    throw WeightsError(WeightsErrorCode::OutOfBounds,
                       "has a storage of " + std::to_string(bytes) + " bytes, but record " +
                           in_quotes(name) + " has only " + std::to_string(record->bytes));
  }
  return {0, record->offset, bytes};
}

void refuse_whole_object(TorchTensors& objects, PickleId root) {
  const Pickle& pickle = objects.pickle();
  if (!pickle.is(root, PickleKind::Call)) return;
  switch (objects.called(root)) {
    case Global::Dict:
    case Global::Sequence:
    case Global::Transparent: return;
    case Global::Unknown:
      if (pickle.items_kind(root) != PickleKind::None) return;  // of a subclass of dict or list
      break;
    default: return;  // a tensor, or a plain value
  }
  throw WeightsError(WeightsErrorCode::WholeModule,
                     "is a whole pickled object of class " + in_quotes(objects.describe(root)) +
                         ", which only its Python code can load",
                     "save model.state_dict() with torch.save instead");
}

}  // namespace posenc::io
