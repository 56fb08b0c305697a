#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/weights/key_map.h"

namespace posenc::io {

/// How a KeySource changes the tensors of a file, and back.
struct KeyChange {
  KeySource::Change change;
  const char* done;  ///< what messages call a tensor after it, such as `, transposed,`
  /// The sizes after it; nullopt if a tensor of these sizes cannot be changed.
  std::optional<std::vector<int64_t>> (*sizes)(const KeySource& source, at::IntArrayRef in_file);
  /// Why sizes() is nullopt: "must have axes 0 and 1 to be transposed".
  std::string (*rule)(const KeySource& source);
  /// The file's tensor after the change, in new memory: it moves rows, or adds zeros. Null if
  /// undo() is a view, so that the file's tensor can be copied into that.
  at::Tensor (*apply)(const KeySource& source, const at::Tensor& in_file);
  /// The file's tensor, of which the change makes `changed`.
  at::Tensor (*undo)(const KeySource& source, const at::Tensor& changed);
  /// What has groups in the file, between which a changed tensor is zeros; null: nothing has.
  const char* groups_of = nullptr;
};

/// That of a source.
const KeyChange& change_of(const KeySource& source);

}  // namespace posenc::io
