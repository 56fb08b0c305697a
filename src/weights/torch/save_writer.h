#pragma once

#include <string>

#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// Writes `tensors` as torch.save() would: tensors that share memory share it in the file too.
/// Throws WeightsError.
void save_torch(const std::string& path, const StateDict& tensors);

}  // namespace posenc::io
