#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/models/text_hash.h"

namespace posenc::text {

/// Tokens and their ids, both ways. Ids may have holes, as large as they like: memory goes by the
/// number of tokens.
class Vocabulary {
 public:
  /// Of equal tokens the last counts. Throws TokenizerError for two tokens of one id.
  explicit Vocabulary(const Definition& definition);

  std::optional<uint32_t> id(std::string_view token) const {
    const Piece* piece = find(token);
    return piece == nullptr ? std::nullopt : std::optional(piece->id);
  }
  std::optional<std::string_view> token(uint32_t id) const;
  /// Number of different tokens; of Unigram that of all pieces.
  std::size_t size() const { return size_; }
  /// The tokens in the order of the file; with equal ones, of which only the last counts.
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  struct Slot {
    uint32_t tag;    // the upper half of the hash
    uint32_t index;  // in pieces_, plus 1; 0 for a free slot
  };

  const Piece* find(std::string_view token) const;
  Slot& slot(std::string_view token, uint64_t hash);
  void index_ids(const std::vector<bool>& is_left_out);

  TextHash hash_;
  std::shared_ptr<const Strings> strings_;
  std::vector<Piece> pieces_;
  std::vector<Slot> slots_;      // a power of two, at most half of them taken
  std::vector<uint32_t> by_id_;  // the index in pieces_ plus 1 of small ids; 0 for holes
  std::vector<uint32_t> far_;    // indices in pieces_ of the other ids, which rise
  std::size_t size_ = 0;
};

}  // namespace posenc::text
