#pragma once

#include <optional>
#include <string>

#include "io/torch/tensors.h"

namespace posenc::io {

/// A plain value in Python's notation, shortened: None, a flag, a number, a text (without quotes),
/// bytes, a dtype, a device, and tuples, lists, sets and dicts that hold no object. Nothing for
/// anything else.
std::optional<std::string> plain_text(TorchTensors& objects, PickleId id);

/// The same for what may be the key of a dict.
std::string key_text(TorchTensors& objects, PickleId id);

}  // namespace posenc::io
