#pragma once

#include <string>

#include "io/torch/tensors.h"
#include "io/torch/zip/archive.h"

namespace posenc::io {

/// Storages that are records of an archive, named by `folder` and their key. The archive has to
/// outlive it.
LocateStorage storages_below(const Archive& archive, const std::string& folder);

/// The same for one record of any name.
ManifestStorage storage_record(const Archive& archive, const std::string& name, uint64_t bytes);

/// Refuses a file whose root is an object that only its own class could make sense of.
void refuse_whole_object(TorchTensors& objects, PickleId root);

}  // namespace posenc::io
