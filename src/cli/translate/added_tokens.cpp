#include "cli/translate/added_tokens.h"

#include <algorithm>
#include <utility>

#include "cli/translate/spaces.h"

namespace posenc::cli {
namespace {

// Decodes valid UTF-8.
std::u32string letters_of(std::string_view text) {
  std::u32string letters;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    char32_t letter = length == 1 ? byte : byte & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      letter = letter << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    }
    letters += letter;
    i += length;
  }
  return letters;
}

std::size_t bytes_of(char32_t letter) {
  return letter < 0x80 ? 1 : letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
}

}  // namespace

AddedTokens::AddedTokens(std::map<int64_t, AddedToken> tokens,
                         std::unordered_map<std::string, int64_t> ids)
    : tokens_(std::move(tokens)), ids_(std::move(ids)) {
  for (const auto& [id, token] : tokens_) insert(letters_of(token.text));
}

void AddedTokens::insert(std::u32string_view token) {
  std::size_t node = 0;
  for (const char32_t letter : token) {
    const auto [next, is_new] = nodes_[node].next.emplace(letter, nodes_.size());
    node = next->second;
    if (is_new) nodes_.emplace_back();
  }
  nodes_[node].is_token = true;
}

const AddedToken* AddedTokens::find(int64_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

const int64_t* AddedTokens::id(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? nullptr : &found->second;
}

bool AddedTokens::follow(std::size_t& node, char32_t letter) const {
  const auto found = nodes_[node].next.find(letter);
  if (found == nodes_[node].next.end()) return false;
  node = found->second;
  return true;
}

// Called if the token that begins at starts[which] is complete before `current`. Finds the longest
// token that begins there or earlier, adds its cuts, and returns its end. A start whose next letter
// did not match still takes part, continuing after that letter. That follows transformers'
// Trie.split, because the ids must be the same.
std::size_t AddedTokens::longest(std::u32string_view text, const std::vector<Start>& starts,
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

std::vector<std::size_t> AddedTokens::cuts(std::u32string_view text) const {
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

std::vector<std::string> AddedTokens::split(std::string_view text) const {
  const auto letters = letters_of(text);
  std::vector<std::string> parts;
  std::size_t letter = 0, byte = 0;
  for (const std::size_t cut : cuts(letters)) {
    const std::size_t begin = byte;
    for (; letter < cut; ++letter) byte += bytes_of(letters[letter]);
    if (byte > begin) parts.emplace_back(text.substr(begin, byte - begin));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int64_t* found = id(parts[i]);
    if (found == nullptr) continue;
    const AddedToken& token = *find(*found);
    const std::string part = parts[i];
    // The original neighbours: the next rule still applies to one that a previous rule has emptied.
    const std::string left = i > 0 ? parts[i - 1] : "";
    const std::string right = i + 1 < parts.size() ? parts[i + 1] : "";
    if (token.strips_right && !right.empty()) parts[i + 1] = without_left_spaces(right);
    if (token.strips_left && !left.empty()) parts[i - 1] = without_right_spaces(left);
    if (!token.single_word) continue;
    if (!left.empty() && left.back() != ' ') {
      parts[i - 1] += part;
      parts[i].clear();
    } else if (!right.empty() && right.front() != ' ') {
      parts[i + 1] = part + parts[i + 1];
      parts[i].clear();
    }
  }
  std::erase(parts, "");
  return parts;
}

}  // namespace posenc::cli
