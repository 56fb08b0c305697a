#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/weights/manifest.h"
#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// Writes `tensors` as torch.save() would: tensors that share memory share it in the file too.
/// Throws WeightsError.
void save_torch(const std::string& path, const StateDict& tensors);

/// A tensor as torch.save pickles it: a view of one of the archive's records.
struct PickledTensor {
  std::string name;
  ManifestDtype dtype = ManifestDtype::Float32;
  std::vector<int64_t> sizes, strides;  ///< in elements
  int64_t offset = 0;
  std::size_t record = 0;       ///< its bytes are in `data/<record>`
  int64_t record_elements = 0;  ///< the number of elements in that record
};

/// The pickle (protocol 2) of an OrderedDict of tensors, for torch.load(weights_only=True) to read.
std::string pickle_tensors(const std::vector<PickledTensor>& tensors);

}  // namespace posenc::io
