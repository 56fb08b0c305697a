#pragma once

#include <optional>
#include <string>

#include "weights/torch/tensors.h"

namespace posenc::io {

/// A plain value in Python's notation, shortened: None, a bool, a number, a text (without quotes),
/// bytes, a dtype, a device; tuples, lists and sets of these; an empty dict. nullopt for anything
/// else.
std::optional<std::string> plain_text(TorchTensors& objects, PickleId id);

/// The same for a dict's key; a description in `<>` if it is not a plain value.
std::string key_text(TorchTensors& objects, PickleId id);

}  // namespace posenc::io
