#include "text/added_tokens.h"

#include <algorithm>

#include "io/base/text.h"
#include "posenc/text/error.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace posenc::text {
namespace {

[[noreturn]] void refuse_two(const std::string& what, const AddedToken& one,
                             const AddedToken& other) {
  throw TokenizerError("added tokens: must have one " + what + " each. Got " +
                       io::in_quotes(one.content) + " and " + io::in_quotes(other.content) +
                       " with the same");
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = previous_character(text, text.size());
  return unicode::is_word(next_character(text, at));
}

bool begins_with_word(std::string_view text) {
  std::size_t at = 0;
  return !text.empty() && unicode::is_word(next_character(text, at));
}

// Where the blanks begin that `text` ends with, from `least` on.
std::size_t blanks_at_end(std::string_view text, std::size_t least) {
  std::size_t end = text.size();
  while (end > least) {
    const std::size_t begin = previous_character(text, end);
    std::size_t at = begin;
    if (!unicode::is_white_space(next_character(text, at))) break;
    end = begin;
  }
  return end;
}

// Where the blanks end that begin at `at`.
std::size_t blanks_from(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t end = at;
    if (!unicode::is_white_space(next_character(text, end))) break;
    at = end;
  }
  return at;
}

}  // namespace

const AddedTokens::Searched* AddedTokens::Trie::add(const Searched& token) {
  uint32_t node = 0;
  for (const char byte : token.text) {
    auto& children = nodes[node].children;
    auto place =
        std::lower_bound(children.begin(), children.end(), std::pair<char, uint32_t>(byte, 0));
    if (place == children.end() || place->first != byte) {
      const auto made = static_cast<uint32_t>(nodes.size());
      children.insert(place, {byte, made});
      nodes.emplace_back();
      node = made;
    } else {
      node = place->second;
    }
  }
  if (nodes[node].token != nullptr) return nodes[node].token;
  nodes[node].token = &token;
  bool& begins_here = begins[static_cast<unsigned char>(token.text[0])];
  if (!begins_here) first_bytes += token.text[0];
  begins_here = true;
  return nullptr;
}

// The next byte from `from` on that begins a token.
std::size_t AddedTokens::Trie::next(std::string_view text, std::size_t from) const {
  if (first_bytes.empty()) return text.size();
  if (first_bytes.size() == 1) return std::min(text.find(first_bytes[0], from), text.size());
  while (from < text.size() && !begins[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

const AddedTokens::Searched* AddedTokens::Trie::longest(std::string_view text,
                                                        std::size_t at) const {
  const Searched* found = nullptr;
  for (uint32_t node = 0; at < text.size(); ++at) {
    const auto& children = nodes[node].children;
    const auto place =
        std::lower_bound(children.begin(), children.end(), std::pair<char, uint32_t>(text[at], 0));
    if (place == children.end() || place->first != text[at]) break;
    node = place->second;
    if (nodes[node].token != nullptr) found = nodes[node].token;
  }
  return found;
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const Model& model,
                         const Normalizer* normalizer, bool split_special_tokens)
    : split_special_tokens_(split_special_tokens) {
  // The ids of new tokens are counted from the size of the vocabulary, whatever ids it has.
  auto next_id = static_cast<uint32_t>(model.size());
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    if (token.special) special_.insert(token.content);
    const auto known = tokens_.find(token.content);
    if (known != tokens_.end()) {
      AddedToken& old = known->second.token;
      AddedToken replaced = token;
      replaced.replace(old);
      old = std::move(replaced);
      continue;
    }
    auto id = model.token_to_id(token.content);
    if (!id) {
      id = next_id++;
      ++new_tokens_;
    }
    tokens_.emplace(token.content, Searched{token, *id, token.content, token.content});
  }
  for (const AddedToken& each : tokens) {  // in their order, so that an error is the same each time
    if (each.content.empty()) continue;
    Searched& searched = tokens_.find(each.content)->second;
    const auto [place, is_new] = by_id_.emplace(searched.id, &searched);
    if (!is_new) {
      if (place->second == &searched) continue;  // repeated
      refuse_two("id", place->second->token, searched.token);
    }
    if ((searched.token.normalized || searched.token.was_normalized) && normalizer != nullptr) {
      AlignedText text(searched.text, 0, false);
      normalizer->normalize(text);
      searched.spelling = text.text();
      if (searched.spelling.empty()) {
        throw TokenizerError("added tokens: must not be normalised to nothing. Got " +
                             io::in_quotes(each.content));
      }
      if (searched.token.normalized) searched.text = searched.spelling;
    }
    const Searched* other = (searched.token.normalized ? normalized_ : raw_).add(searched);
    if (other != nullptr) refuse_two("normal form", other->token, searched.token);
  }
}

void AddedTokens::cut(std::string_view text, bool is_normalized,
                      std::vector<AddedPart>& parts) const {
  parts.clear();
  const Trie& trie = is_normalized ? normalized_ : raw_;
  std::size_t done = 0;  // the end of what has been added
  for (std::size_t at = trie.next(text, 0); at < text.size();) {
    const Searched* found = trie.longest(text, at);
    if (found == nullptr) {
      at = trie.next(text, at + 1);
      continue;
    }
    std::size_t begin = at, end = at + found->text.size();
    at = trie.next(text, end);
    if (split_special_tokens_ && is_special(found->token.content)) continue;
    const bool is_refused = found->token.single_word && (ends_with_word(text.substr(0, begin)) ||
                                                         begins_with_word(text.substr(end)));
    if (is_refused) continue;
    if (found->token.lstrip) begin = std::max(blanks_at_end(text.substr(0, begin), done), done);
    if (found->token.rstrip) end = blanks_from(text, end);
    if (begin > end) {  // it is of blanks that the token before it has taken
      throw TokenizerError(
          "added tokens: must not begin after their end, where tokenizers panics. Got " +
          io::in_quotes(found->token.content) + ", with `lstrip`, after a token with `rstrip`");
    }
    if (done < begin) parts.push_back({done, begin, std::nullopt});
    if (begin < end) parts.push_back({begin, end, found->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), std::nullopt});
}

std::optional<uint32_t> AddedTokens::token_to_id(std::string_view token) const {
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) return std::nullopt;
  return found->second.id;
}

std::optional<std::string_view> AddedTokens::id_to_token(uint32_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->spelling;
}

bool AddedTokens::is_special(std::string_view token) const { return special_.contains(token); }

}  // namespace posenc::text
