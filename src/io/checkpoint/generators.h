#pragma once

#include <string>

#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The states of the default generators: `generator.cpu`, and `generator.cuda.<index>` for each
/// device.
StateDict generator_states();

/// Sets the generators that are both in `states` and on this machine. Throws WeightsError for an
/// invalid state, and leaves all generators as they were.
void set_generator_states(const StateDict& states);

}  // namespace posenc::io
