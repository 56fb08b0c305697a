#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

// What a file of weights holds, read without LibTorch and without running anything in it: names,
// dtypes, shapes and where the bytes lie. No tensor data is read.
namespace posenc {

/// Element types, by torch's names; dtype_name(Dtype::Float8_e4m3fn) is `float8_e4m3fn`.
// clang-format off: a list, in rows of kinds
enum class Dtype : uint8_t {
  UInt8, Int8, Int16, Int32, Int64, UInt16, UInt32, UInt64,
  Float16, BFloat16, Float32, Float64, Complex32, Complex64, Complex128, Bool,
  Float8_e4m3fn, Float8_e5m2, Float8_e4m3fnuz, Float8_e5m2fnuz, Float8_e8m0fnu,
};
// clang-format on
const char* dtype_name(Dtype dtype);
int64_t item_size(Dtype dtype);  ///< bytes an element

enum class WeightsFormat {
  Safetensors,
  SafetensorsIndex,  ///< model.safetensors.index.json and its shards
  TorchSave,
  TorchSaveLegacy,  ///< before PyTorch 1.6, and `_use_new_zipfile_serialization=False`
  TorchScript,
  Pt2,
};
const char* format_name(WeightsFormat format);

/// A run of bytes in one of the manifest's files, little-endian elements. Inside the file: checked.
struct ManifestStorage {
  std::size_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

enum class TensorRole : uint8_t { Unknown, Parameter, Buffer };

/// A dense strided view of a storage. Its extent lies inside the storage: checked.
struct ManifestTensor {
  std::string name;  ///< nested names are joined by "."; list elements are named by their index,
                     ///< and a file that is one tensor has no name for it
  Dtype dtype = Dtype::Float32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  ///< in elements; zero where expanded
  int64_t offset = 0;            ///< in elements, from the start of the storage
  std::size_t storage = 0;
  bool conj = false;      ///< complex: the value is the conjugate of the bytes
  bool negative = false;  ///< the value is the negative of the bytes
  TensorRole role = TensorRole::Unknown;
  bool requires_grad = false;
};

enum class EntryKind : uint8_t {
  Other,       ///< a value; a sparse or quantised tensor, an object of another class
  Module,      ///< a whole torch.nn.Module, whose weights only its Python code can load
  Unreadable,  ///< a tensor that cannot be read: of a dtype that is not known, of a name that
               ///< several have
};

/// Something that is not a dense tensor: what it is, and for a plain value what it says.
struct ManifestEntry {
  std::string name;
  std::string text;
  EntryKind kind = EntryKind::Other;
};

struct Manifest {
  WeightsFormat format = WeightsFormat::Safetensors;
  std::string class_name;          ///< TorchScript: of the root, unqualified, without its mangling
  std::vector<std::string> files;  ///< paths; one but for sharded checkpoints
  std::vector<ManifestStorage> storages;
  std::vector<ManifestTensor> tensors;  ///< in the file's order, each name once
  std::vector<ManifestEntry> opaque;    ///< all that is neither such a tensor nor a value
  std::vector<ManifestEntry> values;    ///< numbers, texts, flags, None, and plain lists of these
  uint64_t more_values = 0;  ///< not in `values`: those below a list's first hundred items, and
                             ///< what is more than a few times the file's size
  std::map<std::string, std::string> metadata;  ///< of safetensors
};

/// Reads the manifest of `path`, whose format is recognised by its content, never by its name.
/// Throws WeightsError for anything that is not a whole, consistent file of a format in
/// WeightsFormat. The cost is bounded: at most ten times the file's size and 64 MB of memory.
Manifest read_manifest(const std::string& path);

}  // namespace posenc
