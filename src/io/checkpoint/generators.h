#pragma once

#include <string>

#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The states of the default generators: `generator.cpu`, and `generator.cuda.<index>` for each
/// device.
StateDict generator_states();

/// Sets those that `states` has and this machine too. Throws WeightsError for a state that is none,
/// and the generators are then as they were.
void set_generator_states(const StateDict& states);

}  // namespace posenc::io
