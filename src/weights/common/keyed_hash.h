#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

// Hash tables of names that a file chooses. With std::hash, which has no key, a file could choose
// names that all fall into one bucket, and each look-up would walk over all of them.
namespace posenc::io {

struct HashKey {
  uint64_t low = 0, high = 0;
};

/// SipHash-1-3, which Python and Rust use for this purpose, or with other numbers of rounds.
uint64_t sip_hash(std::string_view text, const HashKey& key, int rounds = 1, int last_rounds = 3);

/// SipHash with a random key per process, which no file knows.
struct KeyedHash {
  using is_transparent = void;  ///< a std::string_view can look up a std::string
  std::size_t operator()(std::string_view text) const;
};

using NameSet = std::unordered_set<std::string, KeyedHash, std::equal_to<>>;
using NameViews = std::unordered_set<std::string_view, KeyedHash>;
template <typename Value>
using NameMap = std::unordered_map<std::string, Value, KeyedHash, std::equal_to<>>;
template <typename Value>
using NameViewMap = std::unordered_map<std::string_view, Value, KeyedHash>;

}  // namespace posenc::io
