#include "tokenizers/python/added_tokens.h"

#include <algorithm>

#include "tokenizers/python/text.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

std::u32string letters_of(std::string_view text) {
  std::u32string letters;
  for (std::size_t at = 0; at < text.size();) letters += next_character(text, at);
  return letters;
}

}  // namespace

void PythonAddedTokens::add(uint32_t id, const AddedToken& token) {
  tokens_.insert_or_assign(id, token);
  ids_.insert_or_assign(token.content, id);
}

void PythonAddedTokens::update_cuts() {
  for (const auto& [id, token] : tokens_) add_cut(token.content);
}

void PythonAddedTokens::add_cut(std::string_view text) {
  if (text.empty()) return;
  std::size_t node = 0;
  for (const char32_t letter : letters_of(text)) {
    const auto [next, is_new] = nodes_[node].next.emplace(letter, nodes_.size());
    node = next->second;
    if (is_new) nodes_.emplace_back();
  }
  nodes_[node].is_token = true;
}

const AddedToken* PythonAddedTokens::find(uint32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

const uint32_t* PythonAddedTokens::id(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? nullptr : &found->second;
}

bool PythonAddedTokens::follow(std::size_t& node, char32_t letter) const {
  const auto found = nodes_[node].next.find(letter);
  if (found == nodes_[node].next.end()) return false;
  node = found->second;
  return true;
}

// Called if the token that begins at starts[which] is complete before `current`. Finds the longest
// token that begins there or earlier, adds its cuts, and returns its end. A start whose next letter
// did not match still takes part, continuing after that letter. That follows transformers'
// Trie.split, because the ids must be the same.
std::size_t PythonAddedTokens::longest(std::u32string_view text, const std::vector<Start>& starts,
                                       std::size_t which, std::size_t current,
                                       std::vector<std::size_t>& cuts) const {
  std::size_t start = starts[which].at, end = current;
  for (const auto& earlier : starts) {
    if (earlier.at > start) break;
    std::size_t ahead = earlier.at < start ? current + 1 : current, node = earlier.node;
    end = ahead;
    const auto take_if_token = [&] {
      if (nodes_[node].is_token) start = earlier.at, end = ahead;
    };
    take_if_token();
    while (ahead < text.size() && follow(node, text[ahead])) {
      ++ahead;
      take_if_token();
    }
  }
  cuts.push_back(start);
  cuts.push_back(end);
  return end;
}

std::vector<std::size_t> PythonAddedTokens::cuts(std::u32string_view text) const {
  std::vector<std::size_t> cuts;
  std::vector<Start> starts, going_on;
  std::size_t skip = 0;
  for (std::size_t current = 0; current < text.size(); ++current) {
    if (current < skip) continue;
    going_on.clear();
    bool is_found = false;
    for (std::size_t i = 0; i < starts.size() && !is_found; ++i) {
      if (nodes_[starts[i].node].is_token) {
        skip = longest(text, starts, i, current, cuts);
        is_found = true;
      } else if (follow(starts[i].node, text[current])) {
        going_on.push_back(starts[i]);
      }
    }
    if (is_found) going_on.clear();
    starts.swap(going_on);
    std::size_t node = 0;
    if (current >= skip && follow(node, text[current])) starts.push_back({current, node});
  }
  const auto last = std::find_if(starts.begin(), starts.end(),
                                 [&](const Start& start) { return nodes_[start.node].is_token; });
  if (last != starts.end()) {
    cuts.push_back(last->at);
    cuts.push_back(text.size());
  }
  cuts.push_back(text.size());
  return cuts;
}

void PythonAddedTokens::split(std::string_view text, std::vector<std::string>& parts) const {
  parts.clear();
  if (nodes_.size() == 1) {
    if (!text.empty()) parts.emplace_back(text);
    return;
  }
  const std::u32string letters = letters_of(text);
  std::size_t letter = 0, byte = 0;
  for (const std::size_t cut : cuts(letters)) {
    const std::size_t begin = byte;
    for (; letter < cut; ++letter) byte += utf8_length(static_cast<unsigned char>(text[byte]));
    if (byte > begin) parts.emplace_back(text.substr(begin, byte - begin));
  }
  apply_flags(parts);
  std::erase(parts, "");
}

void PythonAddedTokens::apply_flags(std::vector<std::string>& parts) const {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const uint32_t* const found = id(parts[i]);
    const AddedToken* const token = found == nullptr ? nullptr : find(*found);
    if (token == nullptr || !(token->lstrip || token->rstrip || token->single_word)) continue;
    const std::string part = parts[i];
    // The original neighbours: the next rule still applies to one that a previous rule has emptied.
    const std::string left = i > 0 ? parts[i - 1] : "";
    const std::string right = i + 1 < parts.size() ? parts[i + 1] : "";
    if (token->rstrip && !right.empty()) parts[i + 1] = python::left_stripped(right);
    if (token->lstrip && !left.empty()) parts[i - 1] = python::right_stripped(left);
    if (!token->single_word) continue;
    if (!left.empty() && left.back() != ' ') {
      parts[i - 1] += part;
      parts[i].clear();
    } else if (!right.empty() && right.front() != ' ') {
      parts[i + 1] = part + parts[i + 1];
      parts[i].clear();
    }
  }
}

}  // namespace posenc::text
