#include "tokenizers/folder/token_ids.h"

#include <algorithm>

#include "tokenizers/folder/files.h"

namespace posenc::text {

TokenIds::TokenIds(const Definition& definition)
    : vocabulary_(definition),
      count_(definition.model.kind == ModelDefinition::Kind::Unigram ? definition.model.vocab.size()
                                                                     : vocabulary_.size()) {}

void TokenIds::add(const std::vector<AddedToken>& tokens) {
  uint64_t next = count_;
  for (const Entry& entry : added_) next = std::max(next, entry.id + 1);
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const auto [found, is_new] = indices_.try_emplace(token.content, added_.size());
    if (is_new) {
      const std::optional<uint32_t> known = vocabulary_.id(token.content);
      added_.push_back({token, known ? *known : next++});
    } else {
      AddedToken& old = added_[found->second].token;
      AddedToken replaced = token;
      replaced.replace(old);
      replaced.special |= old.special;  // it stays so for decoding
      old = std::move(replaced);
    }
  }
}

std::optional<uint64_t> TokenIds::find(std::string_view token) const {
  const auto found = indices_.find(std::string(token));
  if (found != indices_.end()) return added_[found->second].id;
  return vocabulary_.id(token);
}

std::optional<std::string> TokenIds::token(uint64_t id) const {
  const auto found = std::ranges::find(added_, id, &Entry::id);
  if (found != added_.end()) return found->token.content;
  const auto own = id > UINT32_MAX ? std::nullopt : vocabulary_.token(static_cast<uint32_t>(id));
  return own ? std::optional<std::string>(*own) : std::nullopt;
}

std::size_t TokenIds::size() const {
  const auto is_new = [&](const Entry& entry) {
    return !vocabulary_.id(entry.token.content).has_value();
  };
  return count_ + static_cast<std::size_t>(std::ranges::count_if(added_, is_new));
}

bool TokenIds::is_added(std::string_view token) const {
  return indices_.contains(std::string(token));
}

std::vector<AddedToken> TokenIds::added() const {
  std::vector<AddedToken> tokens;
  uint64_t next = count_;
  for (const Entry& entry : added_) {
    const std::optional<uint32_t> known = vocabulary_.id(entry.token.content);
    const uint64_t id = known ? *known : next++;
    const bool is_taken =
        !known && id <= UINT32_MAX && vocabulary_.token(static_cast<uint32_t>(id)).has_value();
    if (id != entry.id || is_taken) {
      refuse("the vocabulary", "have no holes where tokens are added to it",
             "id " + std::to_string(entry.id) + " for " + shown(entry.token.content));
    }
    tokens.push_back(entry.token);
  }
  return tokens;
}

}  // namespace posenc::text
