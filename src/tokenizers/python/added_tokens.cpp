#include "tokenizers/python/added_tokens.h"

#include <algorithm>

#include "tokenizers/python/text.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void PythonAddedTokens::add(uint32_t id, const AddedToken& token) {
  tokens_.insert_or_assign(id, token);
  ids_.insert_or_assign(token.content, id);
}

void PythonAddedTokens::update_cuts() {
  for (const auto& [id, token] : tokens_) add_cut(token.content);
}

void PythonAddedTokens::finish() {
  std::vector<Trie::Key> keys;
  for (const std::string& text : cut_texts_) {
    if (!text.empty()) keys.push_back({text, 0});
  }
  if (!keys.empty()) root_ = trie_.add(keys);
}

const AddedToken* PythonAddedTokens::find(uint32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

const uint32_t* PythonAddedTokens::id(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? nullptr : &found->second;
}

// Goes on by the character at `at`, if some text goes on so.
bool PythonAddedTokens::follow(Trie::Node& node, std::string_view text, std::size_t& at) const {
  const std::size_t end = at + utf8_length(static_cast<unsigned char>(text[at]));
  Trie::Node next = node;
  for (std::size_t i = at; i < end && next != Trie::kNone; ++i)
    next = trie_.child(next, static_cast<unsigned char>(text[i]));
  if (next == Trie::kNone) return false;
  node = next;
  at = end;
  return true;
}

// Called if the token that begins at starts[which] is complete before `current`. Finds the longest
// token that begins there or earlier, adds its cuts, and returns its end. A start whose next letter
// did not match still takes part, continuing after that letter. That follows transformers'
// Trie.split, because the ids must be the same.
std::size_t PythonAddedTokens::longest(std::string_view text, const std::vector<Start>& starts,
                                       std::size_t which, std::size_t current,
                                       std::vector<std::size_t>& cuts) const {
  std::size_t start = starts[which].at, end = current;
  const std::size_t after = current + utf8_length(static_cast<unsigned char>(text[current]));
  for (const auto& earlier : starts) {
    if (earlier.at > start) break;
    std::size_t ahead = earlier.at < start ? after : current;
    Trie::Node node = earlier.node;
    end = ahead;
    const auto take_if_token = [&] {
      if (is_cut(node)) start = earlier.at, end = ahead;
    };
    take_if_token();
    while (ahead < text.size() && follow(node, text, ahead)) take_if_token();
  }
  cuts.push_back(start);
  cuts.push_back(end);
  return end;
}

std::vector<std::size_t> PythonAddedTokens::cuts(std::string_view text) const {
  std::vector<std::size_t> cuts;
  std::vector<Start> starts, going_on;
  std::size_t skip = 0;
  for (std::size_t current = 0, next; current < text.size(); current = next) {
    next = current + utf8_length(static_cast<unsigned char>(text[current]));
    if (current < skip) continue;
    going_on.clear();
    bool is_found = false;
    for (std::size_t i = 0; i < starts.size() && !is_found; ++i) {
      std::size_t at = current;
      if (is_cut(starts[i].node)) {
        skip = longest(text, starts, i, current, cuts);
        is_found = true;
      } else if (follow(starts[i].node, text, at)) {
        going_on.push_back(starts[i]);
      }
    }
    if (is_found) going_on.clear();
    starts.swap(going_on);
    std::size_t at = current;
    Trie::Node node = root_;
    if (current >= skip && follow(node, text, at)) starts.push_back({current, node});
  }
  const auto last = std::find_if(starts.begin(), starts.end(),
                                 [&](const Start& start) { return is_cut(start.node); });
  if (last != starts.end()) {
    cuts.push_back(last->at);
    cuts.push_back(text.size());
  }
  cuts.push_back(text.size());
  return cuts;
}

void PythonAddedTokens::split(std::string_view text, std::vector<std::string>& parts) const {
  parts.clear();
  if (root_ == Trie::kNone) {
    if (!text.empty()) parts.emplace_back(text);
    return;
  }
  std::size_t begin = 0;
  for (const std::size_t cut : cuts(text)) {
    if (cut <= begin) continue;
    parts.emplace_back(text.substr(begin, cut - begin));
    begin = cut;
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
