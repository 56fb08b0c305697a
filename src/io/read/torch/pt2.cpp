#include <array>
#include <string>
#include <utility>

#include "io/read/budget.h"
#include "io/read/keyed_hash.h"
#include "io/read/quote.h"
#include "io/read/tensor_list.h"
#include "io/read/torch/pt2_config.h"
#include "io/read/torch/storages.h"
#include "io/read/torch/torch_files.h"

namespace posenc::io {
namespace {

constexpr const char* kSaveStateDict = "save the module's state_dict() with torch.save instead";
constexpr std::string_view kFolder = "data/weights/";
constexpr std::string_view kConfig = "_weights_config.json";
constexpr int64_t kStrided = 7;

// The numbers of torch.export's schema, version 0 of the archive.
constexpr std::array<std::pair<int64_t, Dtype>, 21> kDtypes = {{
    {1, Dtype::UInt8},
    {2, Dtype::Int8},
    {3, Dtype::Int16},
    {4, Dtype::Int32},
    {5, Dtype::Int64},
    {6, Dtype::Float16},
    {7, Dtype::Float32},
    {8, Dtype::Float64},
    {9, Dtype::Complex32},
    {10, Dtype::Complex64},
    {11, Dtype::Complex128},
    {12, Dtype::Bool},
    {13, Dtype::BFloat16},
    {28, Dtype::UInt16},
    {29, Dtype::Float8_e4m3fn},
    {30, Dtype::Float8_e5m2},
    {31, Dtype::Float8_e4m3fnuz},
    {32, Dtype::Float8_e5m2fnuz},
    {33, Dtype::Float8_e8m0fnu},
    {34, Dtype::UInt32},
    {35, Dtype::UInt64},
}};

Dtype dtype_of(int64_t number) {
  for (const auto& [known, dtype] : kDtypes) {
    if (known == number) return dtype;
  }
  throw WeightsError(
      WeightsErrorCode::Unsupported,
      "has a dtype that cannot be read: number " + std::to_string(number) + " of torch.export",
      "convert it to another one in Python");
}

std::string find_config(const Archive& archive) {
  std::string found;
  for (const ZipRecord& record : archive.index().records()) {
    const std::string_view name = archive.below_root(record);
    if (!name.starts_with(kFolder) || !name.ends_with(kConfig)) continue;
    if (!found.empty()) {
      throw WeightsError(WeightsErrorCode::Unsupported, "holds several exported programs",
                         kSaveStateDict);
    }
    found = name;
  }
  if (found.empty()) {
    throw WeightsError(WeightsErrorCode::Unsupported, "is an exported program without its weights",
                       kSaveStateDict);
  }
  return found;
}

ManifestTensor tensor_of(Pt2Weight& weight) {
  if (!weight.dtype || !weight.offset) {
    throw WeightsError(WeightsErrorCode::Corrupt, "lacks its dtype or its offset");
  }
  ManifestTensor tensor;
  tensor.name = weight.name;
  tensor.dtype = dtype_of(*weight.dtype);
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
  Manifest manifest;
  manifest.format = WeightsFormat::Pt2;
  manifest.files = {archive.file().path()};
  Budget budget(archive.file().size());
  TensorList list(manifest, budget, archive.file().size());
  NameMap<std::size_t> storages;
  for (Pt2Weight& weight : parse_pt2_config(archive.read(find_config(archive)), budget)) {
    try {
      if (weight.pickled || weight.layout.value_or(kStrided) != kStrided) {
        manifest.opaque.push_back(
            {weight.name, weight.pickled ? "a tensor of another class" : "a sparse tensor"});
        continue;
      }
      ManifestTensor tensor = tensor_of(weight);
      const auto [storage, added] = storages.try_emplace(weight.record);
      if (added) {
        // Weights are whole storages; each tensor is a view of its.
        const std::string name = std::string(kFolder) + weight.record;
        const ZipRecord* record = archive.find(name);
        storage->second =
            list.add_storage(storage_record(archive, name, record ? record->bytes : 1));
      }
      tensor.storage = storage->second;
      list.add(std::move(tensor));
    } catch (const WeightsError& error) {
      throw error.in_tensor(weight.name);
    }
  }
  return manifest;
}

}  // namespace posenc::io
