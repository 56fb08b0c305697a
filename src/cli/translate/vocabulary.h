#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace posenc::cli {

/// The tokens of a vocab.json and their ids: {"</s>": 0, "▁the": 1, ...}.
class Vocabulary {
 public:
  /// Throws CommandError, and WeightsError for a file that cannot be read or is not JSON.
  explicit Vocabulary(const std::string& path);

  std::optional<int64_t> id(const std::string& token) const;
  /// The token with that id, or nullptr.
  const std::string* token(int64_t id) const;
  std::size_t size() const { return ids_.size(); }
  int64_t largest_id() const { return largest_id_; }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::unordered_map<int64_t, const std::string*> tokens_;  // values: keys of ids_
  int64_t largest_id_ = -1;
};

}  // namespace posenc::cli
