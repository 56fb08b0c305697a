#pragma once

#include <string>

#include "posenc/train/group.h"
#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// The states of the default generators of this process: `generator.cpu`, and
/// `generator.cuda.<index>` for each device.
StateDict generator_states();

/// The states of all processes of a group, on each of them: rank 0's as above, and
/// `generator.cpu.<rank>` of the others. A collective; `caller` is named in its errors.
StateDict generator_states(const RankGroup& group, const char* caller);

/// Sets the generators that are both in `states` and on this machine. Throws WeightsError for an
/// invalid state, and leaves all generators as they were.
void set_generator_states(const StateDict& states);

/// The states of process `rank` of `ranks` from those that generator_states(group) saved on
/// `saved_by` processes: its own if the numbers of processes are equal, otherwise new ones, seeded
/// from rank 0's and the rank. Throws WeightsError if a process's own states are missing.
StateDict generator_states_of(const StateDict& saved, int64_t saved_by, int rank, int ranks);

}  // namespace posenc::io
