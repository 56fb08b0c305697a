#include "tokenizers/models/kinds.h"

#include <algorithm>
#include <utility>

#include "tokenizers/models/trie.h"
#include "tokenizers/models/vocabulary_model.h"

namespace posenc::text {
namespace {

constexpr uint32_t kNoPop = UINT32_MAX;

// X. Song et al., "Fast WordPiece tokenization", 2021 (LinMaxMatch): a trie whose nodes know what
// to do where the next byte leads nowhere, so that no byte of a word is read twice. There are two
// roots: one for the begin of a word, and one for what follows, whose tokens are without their
// prefix. A word that begins with the prefix itself is rare, and begins by another way, so that
// each token is below one root only.
class WordPiece : public VocabularyModel {
 public:
  explicit WordPiece(const Definition& definition)
      : VocabularyModel(definition),
        prefix_(definition.model.continuing_subword_prefix),
        max_input_chars_(definition.model.max_input_chars_per_word) {
    const std::vector<Piece>& pieces = vocabulary().pieces();
    std::vector<Trie::Key> first, later;
    first.reserve(pieces.size());
    later.reserve(pieces.size());
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) {
      bytes += piece.text.size();
      if (piece.text.size() > prefix_.size() && piece.text.starts_with(prefix_)) {
        later.push_back({piece.text.substr(prefix_.size()), piece.id});
      } else if (!piece.text.empty()) {
        first.push_back({piece.text, piece.id});
      }
    }
    pops_.reserve(pieces.size());
    links_.reserve(bytes);  // pages that are not used take no memory
    // The link of a node goes by those of its parent, and of nodes of lesser depth below later_.
    std::vector<Trie::Edge> edges;
    later_ = trie_.add(later, [&](const Trie::Edge& edge) { edges.push_back(edge); });
    for (const Trie::Edge& edge : Trie::by_depth(edges)) add_link(edge);
    first_ = prefix_.empty() ? later_
                             : trie_.add(first, [&](const Trie::Edge& edge) { add_link(edge); });
    links_.resize(trie_.limit());
  }

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Scratch>(); }

  void tokenize(std::string_view piece, Scratch&, std::vector<Token>& tokens) const override {
    const std::size_t before = tokens.size();
    if (is_short(piece) && match(piece, tokens)) return;
    tokens.resize(before);
    tokens.push_back({unk_for(piece), 0, static_cast<uint32_t>(piece.size())});
  }

 private:
  // Where a node leads if the next byte has no child: to `node`, after the tokens of the list that
  // ends in `pop`.
  struct Link {
    Trie::Node node = Trie::kNone;
    uint32_t pop = kNoPop;
  };
  struct Pop {
    uint32_t id, size;  // of a token, in bytes of the text
    uint32_t previous;
  };

  bool is_short(std::string_view word) const {
    if (word.size() <= max_input_chars_) return true;
    const auto characters =
        std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
    return static_cast<uint64_t>(characters) <= max_input_chars_;
  }

  void append_pops(uint32_t& end, uint32_t pops) {
    std::vector<uint32_t> list;
    for (; pops != kNoPop; pops = pops_[pops].previous) list.push_back(pops);
    for (; !list.empty(); list.pop_back()) {
      pops_.push_back({pops_[list.back()].id, pops_[list.back()].size, end});
      end = static_cast<uint32_t>(pops_.size() - 1);
    }
  }

  void add_link(const Trie::Edge& edge) {
    if (edge.node >= links_.size()) links_.resize(trie_.limit());
    links_[edge.node] = link_of(edge);
  }

  Link link_of(const Trie::Edge& edge) {
    if (const uint32_t id = trie_.value(edge.node); id != Trie::kNoValue) {
      pops_.push_back({id, edge.depth + 1, kNoPop});
      return {later_, static_cast<uint32_t>(pops_.size() - 1)};
    }
    Link link = links_[edge.parent];
    while (link.node != Trie::kNone) {
      if (const Trie::Node next = trie_.child(link.node, edge.byte); next != Trie::kNone)
        return {next, link.pop};
      const Link further = links_[link.node];
      append_pops(link.pop, further.pop);
      link.node = further.node;
    }
    return {};
  }

  // The end of the longest token below `root` that begins at byte `begin`, and its id.
  std::pair<std::size_t, uint32_t> longest(Trie::Node root, std::string_view word,
                                           std::size_t begin) const {
    std::pair<std::size_t, uint32_t> found{0, 0};
    trie_.for_each_key(root, word, begin, [&](std::size_t end, uint32_t id) { found = {end, id}; });
    return found;
  }

  bool match(std::string_view word, std::vector<Token>& tokens) const {
    Trie::Node node = first_;
    uint32_t begin = 0;
    if (!prefix_.empty() && word.starts_with(prefix_)) {
      const auto [end, id] =
          std::max(longest(first_, word, 0), longest(later_, word, prefix_.size()));
      if (end == 0) return false;
      begin = static_cast<uint32_t>(end);
      tokens.push_back({id, 0, begin});
      node = later_;
    }
    for (const char c : word.substr(begin)) {
      Trie::Node next;
      while ((next = trie_.child(node, static_cast<unsigned char>(c))) == Trie::kNone) {
        if (!follow(node, begin, tokens)) return false;
      }
      node = next;
    }
    while (node != later_) {
      if (!follow(node, begin, tokens)) return false;
    }
    return true;
  }

  bool follow(Trie::Node& node, uint32_t& begin, std::vector<Token>& tokens) const {
    const Link link = links_[node];
    if (link.node == Trie::kNone) return false;
    const std::size_t first = tokens.size();
    for (uint32_t pop = link.pop; pop != kNoPop; pop = pops_[pop].previous) {
      tokens.push_back({pops_[pop].id, 0, pops_[pop].size});
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
    for (std::size_t i = first; i < tokens.size(); ++i) {
      tokens[i].begin = begin;
      tokens[i].end += begin;
      begin = tokens[i].end;
    }
    node = link.node;
    return true;
  }

  std::string prefix_;
  uint64_t max_input_chars_;
  Trie trie_;
  Trie::Node first_, later_;
  std::vector<Link> links_;  // of each node
  std::vector<Pop> pops_;
};

}  // namespace

std::unique_ptr<const Model> make_word_piece(const Definition& definition) {
  return std::make_unique<WordPiece>(definition);
}

}  // namespace posenc::text
