#include "tokenizers/pipeline/added_tokens.h"

#include <algorithm>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

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
    const auto [entry, is_new] = by_id_.emplace(searched.id, &searched);
    if (!is_new) {
      if (entry->second == &searched) continue;  // repeated
      refuse_two("id", entry->second->token, searched.token);
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
    TokenSearch& search = searched.token.normalized ? normalized_ : raw_;
    if (const auto other = search.add(searched.text, searched.id))
      refuse_two("normal form", by_id_.find(*other)->second->token, searched.token);
  }
  raw_.finish();
  normalized_.finish();
}

void AddedTokens::cut(std::string_view text, bool is_normalized,
                      std::vector<AddedPart>& parts) const {
  parts.clear();
  const TokenSearch::Matches matches(is_normalized ? normalized_ : raw_, text);
  TokenSearch::Match match;
  std::size_t done = 0;                          // the end of what has been added
  std::size_t blanks_begin = 0, blanks_end = 0;  // the blanks that `rstrip` has found last
  for (std::size_t at = 0; matches.next(at, match); at = match.end) {
    std::size_t begin = match.begin, end = match.end;
    const Searched* found = by_id_.find(match.value)->second;
    if (split_special_tokens_ && is_special(found->token.content)) continue;
    const bool is_refused = found->token.single_word && (ends_with_word(text.substr(0, begin)) ||
                                                         begins_with_word(text.substr(end)));
    if (is_refused) continue;
    if (found->token.lstrip) begin = std::max(blanks_at_end(text.substr(0, begin), done), done);
    if (found->token.rstrip) {
      // Tokens that are blanks themselves may share the others.
      if (end < blanks_begin || end >= blanks_end) {
        blanks_begin = end;
        blanks_end = blanks_from(text, end);
      }
      end = blanks_end;
    }
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
