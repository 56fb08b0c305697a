#include "tokenizers/models/word_cache.h"

#include <algorithm>

namespace posenc::text {
namespace {

constexpr std::size_t kMostWords = 1 << 16;
constexpr std::size_t kMostMemory = 3 << 19;  // 6 MiB
constexpr std::size_t kFewestSlots = 1 << 8;

}  // namespace

void WordCache::add(std::string_view word, uint64_t hash, const Token* first, const Token* last) {
  // Affixes may lie past the word.
  const bool fits = word.size() <= kLongest && std::all_of(first, last, [](const Token& token) {
                      return token.begin < 0x8000 && token.end < 0x10000;
                    });
  if (!fits) return;
  const auto count = static_cast<std::size_t>(last - first);
  const std::size_t needed = 1 + units(word.size()) + 2 * count;
  if (count_ == kMostWords || memory_.size() + needed > kMostMemory) {
    memory_.clear();
    count_ = 0;
    slots_.assign(slots_.size(), {});
  }
  if (2 * (count_ + 1) > slots_.size()) grow();
  const std::size_t entry = memory_.size();
  memory_.resize(entry + needed);
  uint32_t* at = memory_.data() + entry;
  *at++ = static_cast<uint32_t>(word.size() | count << 16);
  std::memcpy(at, word.data(), word.size());
  at += units(word.size());
  for (; first != last; ++first) {
    *at++ = first->id;
    *at++ = first->begin | (first->surface ? 0x8000u : 0u) | first->end << 16;
  }
  ++count_;
  insert(hash, entry);
}

void WordCache::insert(uint64_t hash, std::size_t entry) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].entry != 0) at = (at + 1) & mask;
  slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(entry + 1)};
}

void WordCache::grow() {
  slots_.assign(slots_.empty() ? kFewestSlots : 2 * slots_.size(), {});
  for (std::size_t entry = 0; entry < memory_.size();) {
    const std::size_t size = memory_[entry] & 0xFFFF, count = memory_[entry] >> 16;
    insert(hash_({reinterpret_cast<const char*>(memory_.data() + entry + 1), size}), entry);
    entry += 1 + units(size) + 2 * count;
  }
}

}  // namespace posenc::text
