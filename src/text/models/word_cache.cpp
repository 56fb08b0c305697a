#include "text/models/word_cache.h"

namespace posenc::text {
namespace {

constexpr std::size_t kMostWords = 1 << 16;
constexpr std::size_t kMostTokens = 1 << 18;  // 4 MiB
constexpr std::size_t kFewestSlots = 1 << 8;

}  // namespace

void WordCache::add(std::string_view word, uint64_t hash, const Token* first, const Token* last) {
  if (word.size() > kLongest) return;
  const auto count = static_cast<std::size_t>(last - first);
  if (words_.size() == kMostWords || tokens_.size() + count > kMostTokens) {
    words_.clear();
    texts_.clear();
    tokens_.clear();
    slots_.assign(slots_.size(), {});
  }
  if (2 * (words_.size() + 1) > slots_.size()) grow();
  words_.push_back({static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(tokens_.size()),
                    static_cast<uint32_t>(word.size()), static_cast<uint32_t>(count)});
  texts_.insert(texts_.end(), word.begin(), word.end());
  tokens_.insert(tokens_.end(), first, last);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].word != 0) at = (at + 1) & mask;
  slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(words_.size())};
}

void WordCache::grow() {
  slots_.assign(slots_.empty() ? kFewestSlots : 2 * slots_.size(), {});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const uint64_t hash = hash_({texts_.data() + words_[i].text, words_[i].size});
    std::size_t at = hash & mask;
    while (slots_[at].word != 0) at = (at + 1) & mask;
    slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(i + 1)};
  }
}

}  // namespace posenc::text
