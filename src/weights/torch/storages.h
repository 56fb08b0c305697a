#pragma once

#include <string>

#include "weights/torch/tensors.h"
#include "weights/torch/zip/archive.h"

namespace posenc::io {

/// Finds storages that are records of an archive, named by `folder` and their key. The archive has
/// to outlive the result.
LocateStorage storages_below(const Archive& archive, const std::string& folder);

/// The same for a single record of any name.
ManifestStorage storage_record(const Archive& archive, const std::string& name, uint64_t bytes);

/// Refuses a file whose root is an object that only its own class can interpret.
void refuse_whole_object(TorchTensors& objects, PickleId root);

}  // namespace posenc::io
