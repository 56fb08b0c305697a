#pragma once

#include <string_view>

namespace posenc::hf {

/// What files of a model type may have besides the tensors of one of its models, as transformers'
/// classes have it. Lists have blanks between.
struct FileNames {
  std::string_view model_type;
  /// Patterns of names that the classes ignore, and of buffers that they compute.
  std::string_view ignored;
  /// The first components of the names of all classes' tensors, those of all heads among them.
  std::string_view modules;

  bool ignores(std::string_view name) const;
  bool has_module(std::string_view component) const;
};

/// Those of a model type; without names if it is unknown.
const FileNames& file_names_of(std::string_view model_type);

/// Whether a tensor of this name and rank is a buffer of old releases, of whatever class:
/// positions, frequencies, causal masks, counters and numbers of versions.
bool is_old_buffer(std::string_view name, std::size_t rank);

}  // namespace posenc::hf
