#pragma once

#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

/// Reads the tensors of a file in any format, without running code in it.
StateDict read_weights(const std::string& path);

/// Reads a safetensors file that must contain tensors with these names.
StateDict read_tensors(const std::string& path, const std::vector<std::string>& names);

/// Throws CommandError for a tensor in the file at `path` whose name is not in `known`, the names
/// that `taker` takes, the main one first: it could be a misspelling, such as that of a mask.
void refuse_unknown(const StateDict& tensors, const std::string& path, const std::string& taker,
                    const std::vector<std::string>& known);

/// "`name` float32 (4, 8), ...": the first few tensors, for messages.
std::string described(const StateDict& tensors);

/// Says on one line of stderr which tensors of its file a model does not have, if there are any.
void note_unexpected(const char* command, const LoadReport& report);

/// (4, 8)
std::string shape_of(const at::Tensor& tensor);

/// The name of the dtype in torch: float32.
std::string dtype_text(const at::Tensor& tensor);

}  // namespace posenc::cli
