#include "weights/torch/globals.h"

#include <unordered_map>

#include "weights/common/dtype_facts.h"

namespace posenc::io {
namespace {

using Meanings = std::unordered_map<std::string_view, GlobalMeaning>;

struct Named {
  std::string_view name;
  Global global;
};
constexpr Named kNamed[] = {
    {"collections.OrderedDict", Global::Dict},
    {"collections.defaultdict", Global::Dict},
    {"collections.Counter", Global::Dict},
    {"builtins.dict", Global::Dict},
    {"__builtin__.dict", Global::Dict},
    {"builtins.list", Global::Sequence},
    {"__builtin__.list", Global::Sequence},
    {"builtins.tuple", Global::Sequence},
    {"__builtin__.tuple", Global::Sequence},
    {"torch.Size", Global::Sequence},
    {"builtins.set", Global::Set},
    {"__builtin__.set", Global::Set},
    {"builtins.frozenset", Global::Set},
    {"__builtin__.frozenset", Global::Set},
    {"torch._utils._rebuild_tensor", Global::RebuildTensor},
    {"torch._utils._rebuild_tensor_v2", Global::RebuildTensorV2},
    {"torch._utils._rebuild_tensor_v3", Global::RebuildTensorV3},
    {"torch._utils._rebuild_parameter", Global::RebuildParameter},
    {"torch._utils._rebuild_parameter_with_state", Global::RebuildParameter},
    {"torch._tensor._rebuild_from_type", Global::RebuildFromType},
    {"torch._tensor._rebuild_from_type_v2", Global::RebuildFromType},
    {"torch.tensor._rebuild_from_type", Global::RebuildFromType},
    {"torch.Tensor", Global::PlainTensor},
    {"torch._tensor.Tensor", Global::PlainTensor},
    {"torch.nn.parameter.Parameter", Global::Parameter},
    {"torch.nn.Parameter", Global::Parameter},
    {"torch.nn.parameter.Buffer", Global::Buffer},
    {"torch.nn.Buffer", Global::Buffer},
    {"torch._utils._rebuild_sparse_tensor", Global::Sparse},
    {"torch._utils._rebuild_sparse_csr_tensor", Global::Sparse},
    {"torch._utils._rebuild_qtensor", Global::Quantised},
    {"torch._utils._rebuild_nested_tensor", Global::Nested},
    {"torch.nested._internal.nested_tensor.NestedTensor", Global::Nested},
    {"torch._utils._rebuild_meta_tensor_no_storage", Global::Meta},
    {"torch._utils._rebuild_wrapper_subclass", Global::OtherTensor},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", Global::OtherTensor},
    {"torch._utils._rebuild_device_tensor_from_numpy", Global::OtherTensor},
    {"torch._utils._rebuild_xla_tensor", Global::OtherTensor},
    {"torch.device", Global::Device},
    {"_codecs.encode", Global::Encode},
    {"torch.jit._pickle.restore_type_tag", Global::Transparent},
    {"torch.jit._pickle.build_intlist", Global::Transparent},
    {"torch.jit._pickle.build_doublelist", Global::Transparent},
    {"torch.jit._pickle.build_boollist", Global::Transparent},
    {"torch.jit._pickle.build_tensorlist", Global::Transparent},
    {"torch.qint8", Global::OtherDtype},
    {"torch.quint8", Global::OtherDtype},
    {"torch.qint32", Global::OtherDtype},
    {"torch.quint4x2", Global::OtherDtype},
    {"torch.quint2x4", Global::OtherDtype},
    {"torch.bits1x8", Global::OtherDtype},
    {"torch.bits2x4", Global::OtherDtype},
    {"torch.bits4x2", Global::OtherDtype},
    {"torch.bits8", Global::OtherDtype},
    {"torch.bits16", Global::OtherDtype},
};

struct StorageClass {
  std::string_view name;
  ManifestDtype dtype;  // or one of the same size
  Global global;
};
// Storage classes other than those of the dtypes.
constexpr StorageClass kStorages[] = {
    {"UntypedStorage", ManifestDtype::UInt8, Global::Storage},  // its size counts bytes
    {"QInt8Storage", ManifestDtype::Int8, Global::Quantised},
    {"QUInt8Storage", ManifestDtype::UInt8, Global::Quantised},
    {"QInt32Storage", ManifestDtype::Int32, Global::Quantised},
    {"QUInt4x2Storage", ManifestDtype::UInt8, Global::Quantised},
    {"QUInt2x4Storage", ManifestDtype::UInt8, Global::Quantised},
};

// uint1 to uint7 and int1 to int7.
bool is_small_integer(std::string_view name) {
  if (name.starts_with('u')) name.remove_prefix(1);
  return name.size() == 4 && name.starts_with("int") && name[3] >= '1' && name[3] <= '7';
}

// torch.FloatTensor and the others, of PyTorch 0.1.
bool is_tensor_class(std::string_view name) {
  constexpr std::string_view kTensor = "Tensor";
  if (!name.ends_with(kTensor)) return false;
  name.remove_suffix(kTensor.size());
  return find_dtype([&](const auto& facts) {
           const std::string_view storage = facts.storage_class;
           return storage.starts_with(name) && storage.substr(name.size()) == "Storage";
         })
      .has_value();
}

}  // namespace

GlobalMeaning meaning_of(std::string_view qualified_name) {
  static const Meanings meanings = [] {
    Meanings out;
    for (const auto& [name, global] : kNamed) out.emplace(name, GlobalMeaning{global, {}});
    return out;
  }();
  const auto found = meanings.find(qualified_name);
  if (found != meanings.end()) return found->second;
  if (!qualified_name.starts_with("torch.")) return {};
  std::string_view name = qualified_name.substr(6);
  if (const auto dtype = find_dtype([&](const auto& facts) { return facts.name == name; }))
    return {Global::DtypeName, dtype};
  if (is_small_integer(name)) return {Global::OtherDtype, {}};
  // Old files name the device's own class, new ones the module that defines it.
  for (const std::string_view folder : {"cuda.", "storage."}) {
    if (name.starts_with(folder)) name.remove_prefix(folder.size());
  }
  if (const auto dtype = find_dtype([&](const auto& facts) { return facts.storage_class == name; }))
    return {Global::Storage, dtype};
  if (is_tensor_class(name)) return {Global::PlainTensor, {}};
  for (const auto& storage : kStorages) {
    if (storage.name == name) return {storage.global, storage.dtype};
  }
  return {};
}

}  // namespace posenc::io
