#pragma once

#include <string>

namespace posenc::base {

/// What to do where `path` should be the folder of a model and is not: how to download it, if the
/// path looks like a model's name on Hugging Face's hub.
std::string how_to_get_model(const std::string& path);

}  // namespace posenc::base
