#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "posenc/io/key_map.h"

namespace posenc::io {

/// The sizes to which `source` changes a tensor of these sizes; nullopt if it cannot be applied.
std::optional<std::vector<int64_t>> changed_sizes(const KeySource& source, at::IntArrayRef sizes);

/// Why changed_sizes() is nullopt: "must have axes 0 and 1 to be transposed".
std::string change_rule(const KeySource& source);

/// `changed`, which has the sizes after the change, viewed so that copying the file's tensor into
/// the view applies the change. Not for a change that reorders_rows(): no view of the file's axes
/// does.
at::Tensor as_in_file(const KeySource& source, const at::Tensor& changed);

/// Whether the change moves rows within heads.
bool reorders_rows(const KeySource& source);

/// The file's tensor after a change that reorders_rows(), in new memory.
at::Tensor reordered(const KeySource& source, const at::Tensor& in_file);

}  // namespace posenc::io
