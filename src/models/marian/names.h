#pragma once

#include <functional>
#include <string>
#include <vector>

namespace posenc {

/// The names that MarianMTModel's state_dict has for the tensor that a posenc::Transformer calls
/// `name`: one, or one for each of the equal parts along its first axis.
std::vector<std::string> marian_names(const std::string& name);

}  // namespace posenc
