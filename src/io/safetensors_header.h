#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/file.h"

// The header of a safetensors file, without LibTorch:
//   u64 length of the header, little-endian
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
//   the tensors' bytes; offsets count from the end of the header
namespace posenc::io {

struct SafetensorsDtype {
  std::string_view name;
  uint64_t bytes;
};

/// One tensor of a header.
struct SafetensorsEntry {
  std::string name;
  SafetensorsDtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< in the data part
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of the header
  std::map<std::string, std::string> metadata;
  uint64_t data_offset = 0;  ///< where in the file the data part begins
};

/// The dtype of that name. Throws WeightsError for an unknown one and for types below a byte.
SafetensorsDtype safetensors_dtype(std::string_view name);

/// Whether the file begins like a safetensors file: a plausible length, then `{`.
bool looks_like_safetensors(const InputFile& file);

/// Reads and checks the header against the format's rules and the file's size. Every entry of the
/// result lies inside the file and has exactly the bytes that its shape asks for.
SafetensorsHeader read_safetensors_header(const InputFile& file);

/// The same for the JSON text of a header and the size of the data part behind it.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_size);

/// The bytes of a header, its length in front, padded so that the data begins on 8 bytes.
std::string format_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace posenc::io
