#pragma once

#include "posenc/train/gloo.h"
#include "train/gloo/deadline.h"
#include "train/gloo/launch.h"

namespace posenc::gloo {

/// group_from_environment() of the processes that `launch` describes, which have until `deadline`
/// to connect to the store and to each other.
RankGroup meet(const Launch& launch, const GroupOptions& options, const Deadline& deadline);

}  // namespace posenc::gloo
