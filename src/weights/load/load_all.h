#pragma once

#include <functional>
#include <string>

#include "posenc/weights/state_dict.h"
#include "weights/manifest/open_weights.h"

namespace posenc::io {

/// Every tensor, on the CPU. Each storage is read once, so that tensors that share one still do.
StateDict all_tensors(const OpenWeights& weights);

/// A StateDict looks names up by std::hash, which has no key: if a file chooses its names so that
/// they collide, each look-up walks over thousands. Throws WeightsError if these `count` names do.
void refuse_colliding(std::size_t count,
                      const std::function<const std::string&(std::size_t index)>& name);

}  // namespace posenc::io
