#include "tokenizers/sentencepiece/spelling.h"

#include <vector>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

Spelling::Spelling(const SentencePieceSpelling& rules, bool whitespace_is_suffix,
                   const std::vector<std::string_view>& kept)
    : adds_prefix_(rules.add_dummy_prefix),
      removes_blanks_(rules.remove_extra_whitespaces),
      is_suffix_(whitespace_is_suffix),
      blank_(rules.escape_whitespaces ? "\u2581" : " ") {
  if (!rules.precompiled_charsmap.empty())
    charsmap_.emplace(rules.precompiled_charsmap, "normalizer_spec");
  std::vector<Trie::Key> keys;
  for (const std::string_view text : kept) {
    if (!text.empty()) keys.push_back({text, 0});
  }
  if (!keys.empty()) kept_ = trie_.add(keys);
  for (std::size_t byte = 0; byte < 0x80; ++byte) {
    const char c = static_cast<char>(byte);
    const bool may_be_kept =
        kept_ != Trie::kNone && trie_.child(kept_, static_cast<unsigned char>(c)) != Trie::kNone;
    const bool may_change = charsmap_ && charsmap_->begins_key(c);
    is_plain_[byte] = c != ' ' && !may_be_kept && !may_change;
  }
}

std::size_t Spelling::kept_prefix(std::string_view text) const {
  std::size_t longest = 0;
  trie_.for_each_key(kept_, text, 0, [&](std::size_t end, uint32_t) { longest = end; });
  return longest;
}

std::string_view Spelling::prefix(std::string_view text, std::size_t& length) const {
  length = kept_prefix(text);
  if (length > 0) return text.substr(0, length);
  if (charsmap_) {
    if (const auto found = charsmap_->of_longest(text, length)) return *found;
  }
  length = utf8_length(static_cast<unsigned char>(text[0]));
  return text.substr(0, length);
}

void Spelling::spell(std::string_view text, std::string& spelled) const {
  spelled.clear();
  std::size_t length = 0;
  if (removes_blanks_) {
    while (!text.empty() && prefix(text, length) == " ") text.remove_prefix(length);
  }
  if (text.empty()) return;
  if (adds_prefix_ && !is_suffix_) spelled += blank_;
  bool is_after_blank = removes_blanks_;
  while (!text.empty()) {
    if (is_plain_[static_cast<unsigned char>(text[0])]) {
      spelled += text[0];
      is_after_blank = false;
      text.remove_prefix(1);
      continue;
    }
    std::string_view part = prefix(text, length);
    while (is_after_blank && part.starts_with(' ')) part.remove_prefix(1);
    for (const char c : part) {
      if (c == ' ') {
        spelled += blank_;
      } else {
        spelled += c;
      }
    }
    if (!part.empty()) is_after_blank = part.ends_with(' ');
    if (!removes_blanks_) is_after_blank = false;
    text.remove_prefix(length);
  }
  if (removes_blanks_) {
    while (spelled.ends_with(blank_)) spelled.resize(spelled.size() - blank_.size());
  }
  if (adds_prefix_ && is_suffix_) spelled += blank_;
}

}  // namespace posenc::text
