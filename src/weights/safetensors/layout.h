#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "posenc/weights/manifest.h"

namespace posenc::io {

/// The entry of a tensor in a safetensors header, except for its place.
struct SafetensorsEntry {
  std::string name;
  ManifestDtype dtype = ManifestDtype::Float32;
  std::vector<int64_t> sizes;
};

struct SafetensorsLayout {
  std::string header;              ///< the start of the file, including the header's length
  std::vector<std::size_t> order;  ///< the entries in the order of their bytes
};

/// Lays out a file whose header names the tensors in the order of `entries`. Their bytes are
/// ordered by decreasing item size, so that every tensor is aligned; with an `alignment` of more
/// than 8 bytes, a power of two, by the largest power of two, up to that, which divides their size,
/// so that each begins at a multiple of its own. Throws WeightsError for a dtype that safetensors
/// lacks, names and metadata that are not UTF-8, and repeated names.
SafetensorsLayout lay_out_safetensors(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata,
                                      uint64_t alignment = 8);

}  // namespace posenc::io
