#include "tokenizers/pipeline/token_search.h"

#include <algorithm>

namespace posenc::text {
namespace {

// Tokens up to this size are tried at each place. With longer ones, which a text may begin again
// and again, it is read once, from its end: there the links lead to all tokens that begin at a
// place.
constexpr std::size_t kShort = 64;

}  // namespace

uint32_t TokenSearch::Trie::child(uint32_t node, char byte) const {
  const auto& children = nodes[node].children;
  const auto found =
      std::lower_bound(children.begin(), children.end(), std::pair<char, uint32_t>(byte, 0));
  return found == children.end() || found->first != byte ? 0 : found->second;
}

uint32_t TokenSearch::Trie::make_child(uint32_t node, char byte) {
  if (const uint32_t known = child(node, byte); known != 0) return known;
  const auto made = static_cast<uint32_t>(nodes.size());
  auto& children = nodes[node].children;
  children.insert(
      std::lower_bound(children.begin(), children.end(), std::pair<char, uint32_t>(byte, 0)),
      {byte, made});
  nodes.emplace_back();
  return made;
}

// A. Aho, M. Corasick, "Efficient string matching", 1975. A node without a token of its own gets
// the longest that it ends with.
void TokenSearch::Trie::add_links() {
  std::vector<uint32_t> open = {0};
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const auto& [byte, node] : nodes[open[i]].children) {
      if (open[i] != 0) {
        uint32_t link = nodes[open[i]].link;
        while (link != 0 && child(link, byte) == 0) link = nodes[link].link;
        nodes[node].link = child(link, byte);
        if (nodes[node].token == kNone) nodes[node].token = nodes[nodes[node].link].token;
      }
      open.push_back(node);
    }
  }
}

std::optional<uint32_t> TokenSearch::add(std::string_view token, uint32_t value) {
  uint32_t node = 0;
  for (const char byte : token) node = forward_.make_child(node, byte);
  uint32_t& index = forward_.nodes[node].token;
  if (index != kNone) return tokens_[index].value;
  index = static_cast<uint32_t>(tokens_.size());
  tokens_.push_back({std::string(token), value});
  bool& begins = begins_[static_cast<unsigned char>(token[0])];
  if (!begins) first_bytes_ += token[0];
  begins = true;
  return std::nullopt;
}

void TokenSearch::finish() {
  is_backward_ = std::any_of(tokens_.begin(), tokens_.end(),
                             [](const Token& token) { return token.text.size() > kShort; });
  if (!is_backward_) return;
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (auto byte = tokens_[i].text.rbegin(); byte != tokens_[i].text.rend(); ++byte)
      node = backward_.make_child(node, *byte);
    backward_.nodes[node].token = i;
  }
  backward_.add_links();
}

std::vector<uint32_t> TokenSearch::longest_everywhere(std::string_view text) const {
  std::vector<uint32_t> found(text.size());
  uint32_t node = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    uint32_t next;
    while ((next = backward_.child(node, text[at])) == 0 && node != 0)
      node = backward_.nodes[node].link;
    node = next;
    found[at] = backward_.nodes[node].token;
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
  uint32_t found = kNone, node = 0;
  for (; at < text.size() && (node = forward_.child(node, text[at])) != 0; ++at) {
    if (forward_.nodes[node].token != kNone) found = forward_.nodes[node].token;
  }
  return found;
}

TokenSearch::Matches::Matches(const TokenSearch& search, std::string_view text)
    : search_(search), text_(text) {
  if (search.is_backward_) longest_ = search.longest_everywhere(text);
}

bool TokenSearch::Matches::next(std::size_t from, Match& match) const {
  for (std::size_t at = from; (at = search_.next_begin(text_, at)) < text_.size(); ++at) {
    const uint32_t found = search_.is_backward_ ? longest_[at] : search_.longest(text_, at);
    if (found == kNone) continue;
    const Token& token = search_.tokens_[found];
    match = {at, at + token.text.size(), token.value};
    return true;
  }
  return false;
}

}  // namespace posenc::text
