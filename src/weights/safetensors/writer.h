#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "posenc/weights/state_dict.h"
#include "weights/common/file.h"
#include "weights/safetensors/layout.h"

namespace posenc::io {

/// A safetensors file of tensors that are contiguous and little-endian in it. What can be refused
/// is refused when it is made, before a file exists.
class SafetensorsWriter {
 public:
  /// Refers to the memory of the tensors. Throws WeightsError.
  SafetensorsWriter(StateDict tensors, const std::map<std::string, std::string>& metadata);

  /// Names, dtypes and shapes, a line for each tensor. Those of `computed`, tables that each
  /// process computes and that may have grown to different lengths, are without shapes.
  std::string description(const std::set<std::string>& computed = {}) const;
  /// Writes the file, all or nothing. Throws WeightsError.
  void write(const std::string& path) const;
  /// Writes into a file that the caller commits. Throws FileError for the file as well.
  void write(AtomicFile& file) const;

 private:
  StateDict tensors_;
  std::vector<SafetensorsEntry> entries_;
  SafetensorsLayout layout_;
};

}  // namespace posenc::io
