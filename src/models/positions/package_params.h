#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/config/settings.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// The parameters of the class that `preset` mirrors, by the names they have there, besides those
/// of a config.json. Classes of transformers have none.
std::vector<std::string> package_parameters(std::string_view preset);

/// Sets those of them that `given` contains.
///
/// Errors: c10::ValueError for a value of the wrong kind.
void apply_package_parameters(std::string_view preset, const Settings& given,
                              RotaryOptions& options);

}  // namespace posenc
