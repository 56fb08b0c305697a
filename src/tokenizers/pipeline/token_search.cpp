#include "tokenizers/pipeline/token_search.h"

#include <algorithm>

namespace posenc::text {
namespace {

// Tokens up to this size are tried at each place. With longer ones, which a text may begin again
// and again, it is read once, from its end: there the links lead to all tokens that begin at a
// place.
constexpr std::size_t kShort = 64;

}  // namespace

std::optional<uint32_t> TokenSearch::add(std::string_view token, uint32_t value) {
  const auto [known, is_new] =
      indices_.try_emplace(std::string(token), static_cast<uint32_t>(tokens_.size()));
  if (!is_new) return tokens_[known->second].value;
  tokens_.push_back({std::string(token), value});
  bool& begins = begins_[static_cast<unsigned char>(token[0])];
  if (!begins) first_bytes_ += token[0];
  begins = true;
  return std::nullopt;
}

void TokenSearch::finish() {
  std::vector<std::string> reversed;
  std::vector<Trie::Key> keys, reversed_keys;
  bool are_short = true;
  reversed.reserve(tokens_.size());
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string& text = tokens_[i].text;
    keys.push_back({text, i});
    reversed_keys.push_back({reversed.emplace_back(text.rbegin(), text.rend()), i});
    are_short = are_short && text.size() <= kShort;
  }
  forward_ = trie_.add(keys);
  if (are_short) return;
  std::vector<Trie::Edge> edges;
  backward_ = trie_.add(reversed_keys, [&](const Trie::Edge& edge) { edges.push_back(edge); });
  add_links(Trie::by_depth(edges));
}

// A. Aho, M. Corasick, "Efficient string matching", 1975. A node without a token of its own gets
// the longest that it ends with.
void TokenSearch::add_links(const std::vector<Trie::Edge>& edges) {
  links_.resize(trie_.limit());
  links_[backward_].node = backward_;
  for (const auto& [parent, node, depth, byte] : edges) {
    Trie::Node link = backward_;
    if (parent != backward_) {
      link = links_[parent].node;
      while (link != backward_ && trie_.child(link, byte) == Trie::kNone) link = links_[link].node;
      const Trie::Node next = trie_.child(link, byte);
      if (next != Trie::kNone) link = next;
    }
    const uint32_t own = trie_.value(node);
    links_[node] = {link, own != kNone ? own : links_[link].token};
  }
}

std::vector<uint32_t> TokenSearch::longest_everywhere(std::string_view text) const {
  std::vector<uint32_t> found(text.size());
  Trie::Node node = backward_;
  for (std::size_t at = text.size(); at-- > 0;) {
    Trie::Node next;
    while ((next = trie_.child(node, static_cast<unsigned char>(text[at]))) == Trie::kNone &&
           node != backward_)
      node = links_[node].node;
    node = next == Trie::kNone ? backward_ : next;
    found[at] = links_[node].token;
  }
  return found;
}

// The next byte from `from` on that begins a token.
std::size_t TokenSearch::next_begin(std::string_view text, std::size_t from) const {
  if (first_bytes_.empty()) return text.size();
  if (first_bytes_.size() == 1) return std::min(text.find(first_bytes_[0], from), text.size());
  while (from < text.size() && !begins_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

uint32_t TokenSearch::longest(std::string_view text, std::size_t at) const {
  uint32_t found = kNone;
  trie_.for_each_key(forward_, text, at, [&](std::size_t, uint32_t token) { found = token; });
  return found;
}

TokenSearch::Matches::Matches(const TokenSearch& search, std::string_view text)
    : search_(search), text_(text) {
  if (search.backward_ != Trie::kNone) longest_ = search.longest_everywhere(text);
}

bool TokenSearch::Matches::next(std::size_t from, Match& match) const {
  for (std::size_t at = from; (at = search_.next_begin(text_, at)) < text_.size(); ++at) {
    const uint32_t found =
        search_.backward_ != Trie::kNone ? longest_[at] : search_.longest(text_, at);
    if (found == kNone) continue;
    const Token& token = search_.tokens_[found];
    match = {at, at + token.text.size(), token.value};
    return true;
  }
  return false;
}

}  // namespace posenc::text
