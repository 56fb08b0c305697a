#pragma once

#include <c10/util/Exception.h>

#include "posenc/parallel/group.h"

namespace posenc {

/// Throws c10::ValueError if `group` splits the vocabulary of a model: `caller` needs all logits.
inline void check_whole_vocabulary(const char* caller, const RankGroup& group) {
  TORCH_CHECK_VALUE(group.size() == 1, "[", caller,
                    "] the vocabulary must not be split over processes: save the weights, and load "
                    "them into a model without a group. Got a group of ",
                    group.size());
}

}  // namespace posenc
