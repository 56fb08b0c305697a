#include "tokenizers/python/word_merges.h"

#include <utility>

#include "tokenizers/models/joiner.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void WordMerges::add(std::string_view left, std::string_view right) {
  std::string both(left);
  both.append(" ").append(right);
  ranks_[std::move(both)] = count_++;
}

uint32_t WordMerges::rank(std::string_view left, std::string_view right) const {
  std::string both(left);
  both.append(" ").append(right);
  const auto found = ranks_.find(both);
  return found == ranks_.end() ? kNone : found->second;
}

void WordMerges::split(std::string_view word, std::vector<std::string_view>& symbols) const {
  using WordJoiner = Joiner<uint32_t>;
  struct Rules : TextSymbols {
    const WordMerges& merges;

    bool find(uint32_t left, uint32_t right, WordJoiner::Pair& pair) const {
      pair.rank = merges.rank(texts[left], texts[right]);
      pair.mark = static_cast<uint32_t>(both(left, right).size());
      return pair.rank != kNone;
    }
  };
  Rules rules{{}, *this};
  const std::size_t end = word.size() - kSuffix.size();
  for (std::size_t at = 0; at < end;) {
    const std::size_t begin = at;
    next_character(word, at);
    rules.texts.push_back(word.substr(begin, (at == end ? word.size() : at) - begin));
  }
  WordJoiner().join(rules.texts.size(), rules, /*all_places=*/true);
  symbols = std::move(rules.texts);
  std::erase(symbols, std::string_view());
}

}  // namespace posenc::text
