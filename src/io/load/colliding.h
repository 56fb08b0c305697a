#pragma once

#include <functional>
#include <string>

namespace posenc::io {

/// A StateDict looks names up by std::hash, which has no key: of names that a file has chosen for
/// it, each look-up would walk over thousands. Throws WeightsError for `count` such names.
void refuse_colliding(std::size_t count,
                      const std::function<const std::string&(std::size_t index)>& name);

}  // namespace posenc::io
