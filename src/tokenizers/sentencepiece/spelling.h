#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizers/models/trie.h"
#include "tokenizers/normalizers/charsmap.h"
#include "tokenizers/sentencepiece/model_proto.h"

namespace posenc::text {

/// How SentencePiece itself spells a text before it is cut into pieces: the longest replacement
/// counts, blanks are joined and become U+2581. `tokenizers`' Precompiled is another one.
class Spelling {
 public:
  /// `kept` are texts that are not replaced: the user-defined pieces. Throws TokenizerError.
  Spelling(const SentencePieceSpelling& rules, bool whitespace_is_suffix,
           const std::vector<std::string_view>& kept);

  /// Writes the spelling of `text`, which is valid UTF-8, to `spelled`.
  void spell(std::string_view text, std::string& spelled) const;
  /// The bytes of the longest kept text that `text` begins with; 0 for none.
  std::size_t kept_prefix(std::string_view text) const;

 private:
  // What the first characters of `text` become, and how many bytes these are.
  std::string_view prefix(std::string_view text, std::size_t& length) const;

  std::optional<Charsmap> charsmap_;
  Trie trie_;
  Trie::Node kept_ = Trie::kNone;
  bool adds_prefix_, removes_blanks_, is_suffix_;
  std::string_view blank_;
  std::array<bool, 256> is_plain_{};  // a byte that is spelled as it is
};

}  // namespace posenc::text
