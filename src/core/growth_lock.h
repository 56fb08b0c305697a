#pragma once

#include <shared_mutex>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A shared mutex that a copyable class can have as a member. Each copy gets a new, unlocked mutex,
/// because the data that it guards are copied as well.
class GrowthLock : public std::shared_mutex {
 public:
  GrowthLock() = default;
  GrowthLock(const GrowthLock&) {}                            ///< unlocked
  GrowthLock& operator=(const GrowthLock&) { return *this; }  ///< unchanged
};

}  // namespace posenc
