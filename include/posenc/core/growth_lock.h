#pragma once

#include <shared_mutex>

namespace posenc {

/// A shared mutex that a copyable class may hold: a copy has a lock of its own, since what is
/// guarded is copied too.
class GrowthLock : public std::shared_mutex {
 public:
  GrowthLock() = default;
  GrowthLock(const GrowthLock&) {}
  GrowthLock& operator=(const GrowthLock&) { return *this; }
};

}  // namespace posenc
