#include "text/models/word_piece.h"

#include <algorithm>
#include <deque>

#include "text/models/trie.h"
#include "text/models/vocabulary_model.h"

namespace posenc::text {
namespace {

constexpr uint32_t kNoPop = UINT32_MAX;

// X. Song et al., "Fast WordPiece tokenization", 2021 (LinMaxMatch): a trie whose nodes know what
// to do where the next byte leads nowhere, so that no byte of a word is read twice. There are two
// roots: one for the begin of a word, and one for what follows, whose tokens are without their
// prefix.
class WordPiece : public VocabularyModel {
 public:
  explicit WordPiece(const Definition& definition)
      : VocabularyModel(definition),
        prefix_(definition.model.continuing_subword_prefix),
        max_input_chars_(definition.model.max_input_chars_per_word) {
    std::vector<Trie::Key> first, later;
    for (const Piece& piece : vocabulary().pieces()) {
      const std::string_view text = piece.text;
      if (text.empty()) continue;
      first.push_back({text, add_token(piece.id, text.size())});
      if (text.size() > prefix_.size() && text.substr(0, prefix_.size()) == prefix_) {
        later.push_back(
            {text.substr(prefix_.size()), add_token(piece.id, text.size() - prefix_.size())});
      }
    }
    std::vector<Trie::Edge> first_edges, later_edges;
    first_ = trie_.add(first, &first_edges);
    later_ = trie_.add(later, &later_edges);
    // The link of a node goes by those of its parent, and of nodes of lesser depth below later_.
    links_.resize(trie_.limit());
    for (const Trie::Edge& edge : later_edges) links_[edge.node] = link_of(edge);
    for (const Trie::Edge& edge : first_edges) links_[edge.node] = link_of(edge);
  }

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Scratch>(); }

  void tokenize(std::string_view piece, Scratch&, std::vector<Token>& tokens) const override {
    const std::size_t before = tokens.size();
    if (is_short(piece) && match(piece, tokens)) return;
    tokens.resize(before);
    tokens.push_back({unk_for(piece), 0, static_cast<uint32_t>(piece.size())});
  }

 private:
  struct Match {
    uint32_t id, size;  // in bytes of the text
  };
  // Where a node leads if the next byte has no child: to `node`, after the tokens of the list that
  // ends in `pop`.
  struct Link {
    Trie::Node node = Trie::kNone;
    uint32_t pop = kNoPop;
  };
  struct Pop {
    uint32_t match, previous;
  };

  uint32_t add_token(uint32_t id, std::size_t size) {
    matches_.push_back({id, static_cast<uint32_t>(size)});
    return static_cast<uint32_t>(matches_.size() - 1);
  }

  bool is_short(std::string_view word) const {
    if (word.size() <= max_input_chars_) return true;
    const auto characters =
        std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
    return static_cast<uint64_t>(characters) <= max_input_chars_;
  }

  void append_pops(uint32_t& end, uint32_t pops) {
    std::vector<uint32_t> list;
    for (; pops != kNoPop; pops = pops_[pops].previous) list.push_back(pops_[pops].match);
    for (; !list.empty(); list.pop_back()) {
      pops_.push_back({list.back(), end});
      end = static_cast<uint32_t>(pops_.size() - 1);
    }
  }

  Link link_of(const Trie::Edge& edge) {
    if (const uint32_t match = trie_.value(edge.node); match != Trie::kNoValue) {
      pops_.push_back({match, kNoPop});
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

  bool match(std::string_view word, std::vector<Token>& tokens) const {
    Trie::Node node = first_;
    uint32_t begin = 0;
    for (const char c : word) {
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
      const Match& match = matches_[pops_[pop].match];
      tokens.push_back({match.id, 0, match.size});
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
  std::vector<Match> matches_;
  std::vector<Link> links_;  // of each node
  std::vector<Pop> pops_;
};

}  // namespace

std::unique_ptr<const Model> make_word_piece(const Definition& definition) {
  return std::make_unique<WordPiece>(definition);
}

}  // namespace posenc::text
