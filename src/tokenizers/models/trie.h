#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace posenc::text {

/// A trie of byte strings as a double array (J. Aoe, "An efficient digital search algorithm by
/// using a double-array structure", 1989): the child of a node by a byte is at `base ^ byte`, if
/// that names the node as its parent. It may have several roots.
class Trie {
 public:
  using Node = uint32_t;
  static constexpr Node kNone = 0;
  static constexpr uint32_t kNoValue = UINT32_MAX;

  struct Key {
    std::string_view text;  // not empty
    uint32_t value;         // below kNoValue; of equal keys the last counts
  };

  /// A node, and how it is reached.
  struct Edge {
    Node parent, node;
    uint32_t depth;  // of the parent
    unsigned char byte;
  };
  using Visit = std::function<void(const Edge&)>;
  /// Edges below one root, those near it first.
  static std::vector<Edge> by_depth(const std::vector<Edge>& edges);

  Trie();
  /// Adds a root with these keys; returns it. `visit` is called for each edge below it, after that
  /// which leads to its parent; the value of its node is known by then.
  Node add(const std::vector<Key>& keys, const Visit& visit = {});

  Node child(Node node, unsigned char byte) const {
    const Node next = nodes_[node].base ^ byte;
    return nodes_[next].parent == node ? next : kNone;
  }
  /// The value of the key that ends at `node`, or kNoValue.
  uint32_t value(Node node) const { return nodes_[node].value; }
  /// Calls `found` with the end and the value of each key below `root` (none, if it is kNone) that
  /// `text` has at byte `begin`, the shortest first.
  template <typename Found>
  void for_each_key(Node root, std::string_view text, std::size_t begin, Found&& found) const {
    Node node = root;
    for (std::size_t at = begin; node != kNone && at < text.size();) {
      node = child(node, static_cast<unsigned char>(text[at++]));
      if (node != kNone && value(node) != kNoValue) found(at, value(node));
    }
  }
  /// All nodes are below this; some of these numbers are none.
  Node limit() const { return static_cast<Node>(nodes_.size()); }

 private:
  struct Unit {
    Node base = 0;
    Node parent = kNone;
    uint32_t value = kNoValue;
  };

  void add_block();
  bool is_free(Node node) const { return (free_[node / 64] >> node % 64 & 1) != 0; }
  void take(Node node, Node parent);
  std::size_t first_open();
  Node find_free();
  template <typename Branches>
  Node find_base(const Branches& branches);

  std::vector<Unit> nodes_;
  std::vector<uint64_t> free_;  // a bit for each node
  std::size_t open_ = 0;        // no unit is taken any more in the words before this one
};

}  // namespace posenc::text
