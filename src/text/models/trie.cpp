#include "text/models/trie.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace posenc::text {
namespace {

constexpr uint32_t kBlock = 256;      // base ^ byte stays in the block of base
constexpr uint32_t kOpenBlocks = 16;  // blocks that are searched for free units, as in darts-clone

// A key, in the order of its bytes. Most comparisons end in the first eight.
struct SortedKey {
  SortedKey(const Trie::Key& key, uint32_t index) : text(key.text), value(key.value), index(index) {
    for (std::size_t i = 0; i < 8; ++i) {
      head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0u);
    }
  }
  bool operator<(const SortedKey& other) const {
    if (head != other.head) return head < other.head;
    const int order = text.compare(other.text);
    return order != 0 ? order < 0 : index < other.index;
  }
  unsigned char byte(std::size_t at) const {
    return static_cast<unsigned char>(at < 8 ? head >> (56 - 8 * at)
                                             : static_cast<unsigned char>(text[at]));
  }

  std::string_view text;
  uint64_t head = 0;
  uint32_t value, index;
};

// A node whose children are still to be made: those of the keys from begin to end, which agree in
// `depth` bytes.
struct Pending {
  Trie::Node node;
  uint32_t begin, end;
  std::size_t depth;
};

std::vector<Trie::Edge> by_depth(const std::vector<Trie::Edge>& edges) {
  std::vector<std::size_t> ends;  // of each depth, in the result
  for (const Trie::Edge& edge : edges) {
    if (ends.size() <= edge.depth) ends.resize(edge.depth + std::size_t{1});
    ++ends[edge.depth];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Trie::Edge> sorted(edges.size());
  for (const Trie::Edge& edge : edges) sorted[--ends[edge.depth]] = edge;
  return sorted;
}

}  // namespace

Trie::Trie() {
  add_block();
  free_[kNone / 64] &= ~uint64_t{1};
}

void Trie::add_block() {
  nodes_.resize(nodes_.size() + kBlock);
  free_.resize(nodes_.size() / 64, ~uint64_t{0});
}

void Trie::take(Node node, Node parent) {
  free_[node / 64] &= ~(uint64_t{1} << node % 64);
  nodes_[node].parent = parent;
}

// A base from which the units of all these bytes are free.
Trie::Node Trie::find_base(const std::vector<unsigned char>& bytes) {
  const std::size_t words = free_.size();
  for (std::size_t w = words - std::min<std::size_t>(words, kOpenBlocks * kBlock / 64); w < words;
       ++w) {
    for (uint64_t bits = free_[w]; bits != 0; bits &= bits - 1) {
      const Node base =
          static_cast<Node>(64 * w + static_cast<unsigned>(std::countr_zero(bits))) ^ bytes.front();
      if (std::all_of(bytes.begin() + 1, bytes.end(),
                      [&](unsigned char b) { return is_free(base ^ b); }))
        return base;
    }
  }
  add_block();
  return static_cast<Node>(nodes_.size() - kBlock);
}

Trie::Node Trie::add(const std::vector<Key>& keys, std::vector<Edge>* edges) {
  std::vector<SortedKey> sorted;
  sorted.reserve(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) sorted.emplace_back(keys[i], i);
  std::sort(sorted.begin(), sorted.end());

  std::vector<unsigned char> bytes;
  const Node root = find_base({0}) ^ 0;
  take(root, kNone);
  // Depth first, so that the nodes of a word are neighbours.
  std::vector<Edge> found;
  std::vector<Pending> pending{{root, 0, static_cast<uint32_t>(sorted.size()), 0}};
  while (!pending.empty()) {
    auto [node, begin, end, depth] = pending.back();
    pending.pop_back();
    for (; begin < end && sorted[begin].text.size() == depth; ++begin)
      nodes_[node].value = sorted[begin].value;
    if (begin == end) continue;
    bytes.clear();
    for (uint32_t i = begin; i < end; ++i) {
      if (const unsigned char byte = sorted[i].byte(depth); bytes.empty() || bytes.back() != byte)
        bytes.push_back(byte);
    }
    const Node base = find_base(bytes);
    nodes_[node].base = base;
    for (const unsigned char byte : bytes) {
      const uint32_t first = begin;
      while (begin < end && sorted[begin].byte(depth) == byte) ++begin;
      take(base ^ byte, node);
      if (edges != nullptr)
        found.push_back({node, base ^ byte, static_cast<uint32_t>(depth), byte});
      pending.push_back({base ^ byte, first, begin, depth + 1});
    }
  }
  if (edges != nullptr) *edges = by_depth(found);
  return root;
}

}  // namespace posenc::text
