#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace posenc {

/// Values that all objects with equal keys share, each for as long as one of them holds it. Keys
/// are compared one by one, as few are in use at a time.
template <typename Key, typename Value>
class SharedByKey {
 public:
  /// The value of `key`; where nobody holds it, a new one, which is made from the key.
  std::shared_ptr<Value> of(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto unused = [](const auto& entry) { return entry.second.expired(); };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), unused), entries_.end());
    for (const auto& [known, value] : entries_) {
      if (!(known == key)) continue;
      if (auto found = value.lock()) return found;
    }
    auto made = std::make_shared<Value>(key);
    entries_.emplace_back(key, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<Key, std::weak_ptr<Value>>> entries_;
};

}  // namespace posenc
