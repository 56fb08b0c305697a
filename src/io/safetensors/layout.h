#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// What a safetensors header says of a tensor, but for its place.
struct SafetensorsEntry {
  std::string name;
  ManifestDtype dtype = ManifestDtype::Float32;
  std::vector<int64_t> sizes;
};

struct SafetensorsLayout {
  std::string header;              ///< what the file begins with, the header's length included
  std::vector<std::size_t> order;  ///< which entry's bytes follow, one after the other
};

/// The header names the tensors in the order of `entries`. The bytes follow by falling size of
/// their items, so that every tensor is aligned. Throws WeightsError for a dtype that safetensors
/// lacks, for names and metadata that are not UTF-8 and for a name twice.
SafetensorsLayout lay_out_safetensors(const std::vector<SafetensorsEntry>& entries,
                                      const std::map<std::string, std::string>& metadata);

}  // namespace posenc::io
