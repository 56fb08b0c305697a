#include "tokenizers/models/trie.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace posenc::text {
namespace {

constexpr uint32_t kBlock = 256;      // base ^ byte stays in the block of base
constexpr uint32_t kOpenBlocks = 16;  // blocks that are searched for free units, as in darts-clone

// A key while keys are sorted. Most comparisons end in its first eight bytes.
struct SortedKey {
  uint64_t head;
  const char* text;
  uint32_t size, value, index;

  unsigned char byte(std::size_t at) const {
    return static_cast<unsigned char>(at < 8 ? head >> (56 - 8 * at)
                                             : static_cast<unsigned char>(text[at]));
  }
  bool operator<(const SortedKey& other) const {
    if (head != other.head) return head < other.head;
    const int order = std::string_view(text, size).compare({other.text, other.size});
    return order != 0 ? order < 0 : index < other.index;
  }
};

std::vector<SortedKey> sorted(const std::vector<Trie::Key>& keys) {
  std::vector<SortedKey> order;
  order.reserve(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const std::string_view text = keys[i].text;
    uint64_t head = 0;
    for (std::size_t at = 0; at < 8; ++at)
      head = head << 8 | (at < text.size() ? static_cast<unsigned char>(text[at]) : 0u);
    order.push_back({head, text.data(), static_cast<uint32_t>(text.size()), keys[i].value, i});
  }
  std::sort(order.begin(), order.end());
  return order;
}

// A node whose children are still to be made: those of the keys from begin to end, which agree in
// `depth` bytes.
struct Pending {
  Trie::Node node;
  uint32_t begin, end, depth;
};

// The keys below one child of a node.
struct Branch {
  unsigned char byte;
  uint32_t end;
};

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

// The first word of free_ that is searched.
std::size_t Trie::first_open() {
  constexpr std::size_t kWords = kOpenBlocks * kBlock / 64;
  if (free_.size() > kWords) open_ = std::max(open_, free_.size() - kWords);
  while (open_ < free_.size() && free_[open_] == 0) ++open_;
  return open_;
}

Trie::Node Trie::find_free() {
  const std::size_t word = first_open();
  if (word < free_.size())
    return static_cast<Node>(64 * word + static_cast<unsigned>(std::countr_zero(free_[word])));
  add_block();
  return static_cast<Node>(nodes_.size() - kBlock);
}

// A base from which the units of all these bytes are free.
template <typename Branches>
Trie::Node Trie::find_base(const Branches& branches) {
  for (std::size_t w = first_open(); w < free_.size(); ++w) {
    for (uint64_t bits = free_[w]; bits != 0; bits &= bits - 1) {
      const Node base = static_cast<Node>(64 * w + static_cast<unsigned>(std::countr_zero(bits))) ^
                        branches.front().byte;
      if (std::all_of(branches.begin() + 1, branches.end(),
                      [&](const Branch& branch) { return is_free(base ^ branch.byte); }))
        return base;
    }
  }
  add_block();
  return static_cast<Node>(nodes_.size() - kBlock);
}

std::vector<Trie::Edge> Trie::by_depth(const std::vector<Edge>& edges) {
  std::vector<std::size_t> ends;  // of each depth, in the result
  for (const Edge& edge : edges) {
    if (ends.size() <= edge.depth) ends.resize(edge.depth + std::size_t{1});
    ++ends[edge.depth];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Edge> sorted(edges.size());
  for (const Edge& edge : edges) sorted[--ends[edge.depth]] = edge;
  return sorted;
}

Trie::Node Trie::add(const std::vector<Key>& keys, const Visit& visit) {
  const std::vector<SortedKey> order = sorted(keys);
  std::size_t bytes = 0;
  for (const SortedKey& key : order) bytes += key.size;
  nodes_.reserve(nodes_.size() + bytes / 2);

  const auto add_child = [&](Node node, Node base, uint32_t depth, uint32_t first, uint32_t end) {
    const unsigned char byte = order[first].byte(depth);
    const Node child = base ^ byte;
    take(child, node);
    // Of equal keys, the last counts.
    for (uint32_t i = first; i < end && order[i].size == depth + 1; ++i)
      nodes_[child].value = order[i].value;
    if (visit) visit({node, child, depth, byte});
    return child;
  };
  const Node root = find_free();
  take(root, kNone);
  std::vector<Branch> branches;
  // Depth first, so that the nodes of a word are neighbours.
  std::vector<Pending> pending{{root, 0, static_cast<uint32_t>(order.size()), 0}};
  while (!pending.empty()) {
    auto [node, begin, end, depth] = pending.back();
    pending.pop_back();
    while (begin < end && order[begin].size == depth) ++begin;
    // Most nodes are of one key alone, whose nodes can be anywhere.
    for (; end - begin == 1 && depth < order[begin].size; ++depth) {
      const Node base = find_free() ^ order[begin].byte(depth);
      nodes_[node].base = base;
      node = add_child(node, base, depth, begin, end);
    }
    if (end - begin < 2) continue;
    branches.clear();
    for (uint32_t i = begin; i < end; ++i) {
      const unsigned char byte = order[i].byte(depth);
      if (branches.empty() || branches.back().byte != byte) branches.push_back({byte, i});
      branches.back().end = i + 1;
    }
    const Node base = find_base(branches);
    nodes_[node].base = base;
    for (const Branch& branch : branches) {
      const Node child = add_child(node, base, depth, begin, branch.end);
      pending.push_back({child, begin, branch.end, depth + 1});
      begin = branch.end;
    }
  }
  return root;
}

}  // namespace posenc::text
