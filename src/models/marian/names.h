#pragma once

#include <functional>
#include <string>
#include <vector>

namespace posenc {

/// The keys in MarianMTModel's state_dict of the tensor that posenc::Transformer calls `name`: one,
/// or one for each equal part along its first axis.
std::vector<std::string> marian_names(const std::string& name);

}  // namespace posenc
