#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "weights/common/budget.h"
#include "weights/common/dtype_facts.h"
#include "weights/common/keyed_hash.h"
#include "weights/common/tensor_list.h"
#include "weights/torch/pt2_config.h"
#include "weights/torch/readers.h"
#include "weights/torch/storages.h"

namespace posenc::io {
namespace {

constexpr const char* kSaveStateDict = "save the module's state_dict() with torch.save instead";
constexpr std::string_view kFolder = "data/weights/";
constexpr std::string_view kConfig = "_weights_config.json";
constexpr int64_t kStrided = 7;

// The dtype numbers of torch.export's schema, in version 0 of the archive.
std::optional<ManifestDtype> exported_dtype(int64_t number) {
  if (number == 0) return std::nullopt;  // its word for unknown
  return find_dtype([&](const DtypeFacts& facts) { return facts.export_number == number; });
}

std::string unknown_dtype(int64_t number) {
  return "a tensor that has a dtype that cannot be read: number " + std::to_string(number) +
         " of torch.export (convert it to another one in Python)";
}

// The only record whose name begins and ends like this, or null.
const ZipRecord* find_only(const Archive& archive, std::string_view begin, std::string_view end) {
  const ZipRecord* found = nullptr;
  for (const ZipRecord& record : archive.index().records()) {
    const std::string_view name = archive.below_root(record);
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (found != nullptr) {
      throw WeightsError(WeightsErrorCode::Unsupported, "holds several exported programs",
                         kSaveStateDict);
    }
    found = &record;
  }
  return found;
}

bool has_any(const Archive& archive, std::string_view begin) {
  const auto& records = archive.index().records();
  return std::any_of(records.begin(), records.end(), [&](const ZipRecord& record) {
    return archive.below_root(record).starts_with(begin);
  });
}

WeightsError without_weights(const Archive& archive) {
  if (has_any(archive, "data/aotinductor/")) {
    return {WeightsErrorCode::Unsupported,
            "is a program compiled by AOTInductor, whose weights are part of its machine code",
            kSaveStateDict};
  }
  return {WeightsErrorCode::Unsupported, "is an exported program without its weights",
          kSaveStateDict};
}

// Earlier versions of torch.export wrote the state dict as an archive inside the archive.
Manifest read_inner(const Archive& archive, const ZipRecord& record) {
  if (!record.stored()) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "has its weights in the compressed record " + in_quotes(record.name),
                       "save it again with PyTorch, which stores the records as they are");
  }
  const InputFile part = InputFile::part_of(archive.file(), record.offset, record.bytes);
  const Archive inner(part);
  if (inner.format() != WeightsFormat::TorchSave) throw without_weights(archive);
  Manifest manifest = read_torch_save(inner);
  for (auto& storage : manifest.storages) storage.offset += record.offset;
  manifest.format = WeightsFormat::Pt2;
  manifest.files = {archive.file().path()};
  return manifest;
}

ManifestTensor tensor_of(Pt2Weight& weight) {
  if (!weight.dtype || !weight.offset) {
    throw WeightsError(WeightsErrorCode::Corrupt, "lacks its dtype or its offset");
  }
  ManifestTensor tensor;
  tensor.name = weight.name;
  tensor.dtype = *exported_dtype(*weight.dtype);
  tensor.sizes = std::move(weight.sizes);
  tensor.strides = std::move(weight.strides);
  tensor.offset = *weight.offset;
  tensor.role = weight.is_parameter ? TensorRole::Parameter : TensorRole::Buffer;
  tensor.requires_grad = weight.requires_grad;
  return tensor;
}

}  // namespace

Manifest read_pt2(const Archive& archive) {
  const std::string version = archive.read("archive_version", 64);
  if (version != "0") {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "is an exported program of the unknown version " + in_quotes(version),
                       kSaveStateDict);
  }
  const ZipRecord* const config = find_only(archive, kFolder, kConfig);
  if (config == nullptr) {
    const ZipRecord* const inner = find_only(archive, kFolder, ".pt");
    if (inner == nullptr) throw without_weights(archive);
    return read_inner(archive, *inner);
  }
  Manifest manifest;
  manifest.format = WeightsFormat::Pt2;
  manifest.files = {archive.file().path()};
  Budget budget(archive.file().size());
  TensorList list(manifest, budget, archive.file().size());
  NameMap<std::size_t> storages;
  for (Pt2Weight& weight : parse_pt2_config(archive.index().read(*config), budget)) {
    try {
      if (weight.pickled || weight.layout.value_or(kStrided) != kStrided) {
        manifest.opaque.push_back({weight.name,
                                   weight.pickled ? "a tensor of another class" : "a sparse tensor",
                                   EntryKind::Unreadable});
        continue;
      }
      if (weight.dtype && !exported_dtype(*weight.dtype)) {
        manifest.opaque.push_back(
            {weight.name, unknown_dtype(*weight.dtype), EntryKind::Unreadable});
        continue;
      }
      ManifestTensor tensor = tensor_of(weight);
      const auto [storage, added] = storages.try_emplace(weight.record);
      if (added) {
        // A record holds a whole storage; each tensor is a view of one.
        const std::string name = std::string(kFolder) + weight.record;
        const ZipRecord* record = archive.find(name);
        storage->second =
            list.add_storage(storage_record(archive, name, record ? record->bytes : 1));
      }
      tensor.storage = storage->second;
      if (!list.add(std::move(tensor))) {
        throw WeightsError(WeightsErrorCode::DuplicateKey, "occurs twice in the file");
      }
    } catch (const WeightsError& error) {
      throw error.in_tensor(weight.name);
    }
  }
  return manifest;
}

}  // namespace posenc::io
