#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "posenc/export.h"

// The contents of a file of weights: names, dtypes, shapes and the place of the bytes, read without
// LibTorch, without executing code in the file and without reading tensor data.
namespace posenc POSENC_EXPORT {

/// Element types, with torch's names.
// clang-format off: a list, in rows of kinds
enum class ManifestDtype : uint8_t {
  UInt8, Int8, Int16, Int32, Int64, UInt16, UInt32, UInt64,
  Float16, BFloat16, Float32, Float64, Complex32, Complex64, Complex128, Bool,
  Float8_e4m3fn, Float8_e5m2, Float8_e4m3fnuz, Float8_e5m2fnuz, Float8_e8m0fnu,
  Float4_e2m1fn_x2,  // two elements of four bits each, as LibTorch counts them
};
// clang-format on
/// Returns torch's name of a type, such as `float8_e4m3fn`.
const char* dtype_name(ManifestDtype dtype);
/// Returns the size of an element in bytes; a pair of float4 is one element.
int64_t item_size(ManifestDtype dtype);

/// File formats of weights.
enum class WeightsFormat {
  Safetensors,       ///< a .safetensors file
  SafetensorsIndex,  ///< model.safetensors.index.json and its shards
  TorchSave,         ///< torch.save
  TorchSaveLegacy,   ///< before PyTorch 1.6, and `_use_new_zipfile_serialization=False`
  TorchScript,       ///< torch.jit.save
  Pt2,               ///< torch.export.save
};
/// Returns the name of a format for messages.
const char* format_name(WeightsFormat format);

/// A range of bytes in one of the manifest's files, with little-endian elements. It has been
/// checked to lie inside the file.
struct ManifestStorage {
  std::size_t file = 0;  ///< index into Manifest::files
  uint64_t offset = 0;   ///< from the start of the file
  uint64_t bytes = 0;    ///< its length
};

/// The role of a tensor in its module.
enum class TensorRole : uint8_t {
  Unknown,    ///< the format does not record it
  Parameter,  ///< a parameter
  Buffer,     ///< a buffer
};

/// A dense strided view of a storage. It has been checked to lie inside the storage.
struct ManifestTensor {
  std::string name;  ///< nested names are joined by "."; list elements are named by their index; a
                     ///< file that consists of one tensor has an empty name for it
  ManifestDtype dtype = ManifestDtype::Float32;  ///< the element type
  std::vector<int64_t> sizes;                    ///< the shape
  std::vector<int64_t> strides;                  ///< in elements; zero for expanded axes
  int64_t offset = 0;                            ///< in elements, from the start of the storage
  std::size_t storage = 0;                       ///< index into Manifest::storages
  bool conj = false;                             ///< the bytes are to be conjugated (complex types)
  bool negative = false;                         ///< the bytes are to be negated
  TensorRole role = TensorRole::Unknown;         ///< parameter or buffer
  bool requires_grad = false;                    ///< as saved
};

/// The kind of a ManifestEntry.
enum class EntryKind : uint8_t {
  Other,      ///< a value, or an object of another class
  Module,     ///< a whole torch.nn.Module, whose weights only its Python code can load
  Container,  ///< of another class that holds tensors, such as a namedtuple
  Object,     ///< of another class, with tensors among its attributes
  /// A tensor that cannot be read: quantised, sparse, nested, without values, of an unknown dtype
  /// or of a class of its own, or one of several of its name.
  Unreadable,
};

/// An entry that is not a dense tensor.
struct ManifestEntry {
  std::string name;                   ///< as in ManifestTensor
  std::string text;                   ///< a description, or the value of a plain value
  EntryKind kind = EntryKind::Other;  ///< its kind
};

/// The contents of a file of weights, without the tensor data.
struct Manifest {
  WeightsFormat format = WeightsFormat::Safetensors;  ///< the format that was recognised
  std::string class_name;                 ///< TorchScript: unqualified class name of the root
  std::vector<std::string> files;         ///< paths; several only for sharded checkpoints
  std::vector<ManifestStorage> storages;  ///< the ranges that tensors refer to
  std::vector<ManifestTensor> tensors;    ///< in the file's order, with unique names
  std::vector<ManifestEntry> opaque;      ///< everything that is neither a tensor nor a value
  std::vector<ManifestEntry> values;      ///< numbers, strings, flags, None, and lists of these
  uint64_t more_values = 0;  ///< number of values left out: those after the first hundred items of
                             ///< a list, and those beyond a few times the file's size
  std::map<std::string, std::string> metadata;  ///< of safetensors
};

/// Reads the manifest of `path`, recognising the format by the content and not by the name. Memory
/// is bounded by ten times the file's size plus 64 MB.
///
/// Errors: WeightsError for anything that is not a complete and consistent file in one of the
/// formats of WeightsFormat.
Manifest read_manifest(const std::string& path);

}  // namespace posenc
