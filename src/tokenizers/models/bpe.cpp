#include "tokenizers/models/kinds.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/models/bpe_symbols.h"
#include "tokenizers/models/byte_tokens.h"
#include "tokenizers/models/character_ids.h"
#include "tokenizers/models/pair_table.h"
#include "tokenizers/models/vocabulary_model.h"
#include "tokenizers/models/word_cache.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr std::string_view kMark = "▁";  // a blank

struct BpeScratch : Scratch {
  WordCache cache;
  SymbolMerger merger;
  std::vector<Symbol> symbols;
  std::string affixed;
};

class Bpe : public VocabularyModel {
 public:
  explicit Bpe(const Definition& definition)
      : VocabularyModel(definition),
        prefix_(definition.model.continuing_subword_prefix),
        suffix_(definition.model.end_of_word_suffix),
        fuse_unk_(definition.model.fuse_unk),
        ignore_merges_(definition.model.ignore_merges),
        characters_(vocabulary()),
        pairs_(definition.model.merges.size()) {
    if (definition.model.byte_fallback) bytes_.emplace(vocabulary());
    const std::vector<Merge>& merges = definition.model.merges;
    for (std::size_t i = 0; i < merges.size(); ++i) add(merges[i], static_cast<uint32_t>(i));
    find_cuts(merges);
  }

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<BpeScratch>(); }

  void tokenize(std::string_view piece, Scratch& memory,
                std::vector<Token>& tokens) const override {
    auto& scratch = static_cast<BpeScratch&>(memory);
    if (!can_cut_) return tokenize_part(piece, scratch, tokens);
    uint32_t at = 0;  // where the next token begins: what is dropped has no place
    for (std::size_t begin = 0; begin < piece.size();) {
      const std::size_t end = next_cut(piece, begin), first = tokens.size();
      tokenize_part(piece.substr(begin, end - begin), scratch, tokens);
      for (std::size_t i = first; i < tokens.size(); ++i) {
        tokens[i].begin += at;
        tokens[i].end += at;
      }
      if (tokens.size() > first) at = tokens.back().end;
      begin = end;
    }
  }

 private:
  void add(const Merge& merge, uint32_t rank) {
    const auto id_of = [&](std::string_view token) {
      const auto id = vocabulary().id(token);
      if (!id)
        throw TokenizerError("model.merges: must have only tokens of the vocabulary. Got " +
                             io::in_quotes(token));
      return *id;
    };
    const uint32_t left = id_of(merge.left), right = id_of(merge.right);
    if (merge.right.size() < prefix_.size()) {
      throw TokenizerError(
          "model.merges: must have second tokens that are no shorter than "
          "continuing_subword_prefix. Got " +
          io::in_quotes(merge.right));
    }
    std::string joined(merge.left);
    joined += merge.right.substr(prefix_.size());
    pairs_.add(left, right, {rank, id_of(joined)});
  }

  // Without a pre-tokenizer a text is one word, as in Llama 2 and Gemma, which no cache would know.
  // But no merge crosses the place before a mark unless one has a token that begins with a mark on
  // its right, and on its left one that ends in the character before.
  void find_cuts(const std::vector<Merge>& merges) {
    can_cut_ = prefix_.empty() && suffix_.empty() && !ignore_merges_ && vocabulary().id(kMark);
    if (!can_cut_) return;
    for (const Merge& merge : merges) {
      if (merge.right.substr(0, kMark.size()) == kMark && !merge.left.empty()) {
        joined_to_mark_.push_back(last_character(merge.left));
      }
    }
    std::sort(joined_to_mark_.begin(), joined_to_mark_.end());
    joined_to_mark_.erase(std::unique(joined_to_mark_.begin(), joined_to_mark_.end()),
                          joined_to_mark_.end());
  }

  static char32_t last_character(std::string_view text) {
    std::size_t at = text.size() - 1;
    while ((text[at] & 0xC0) == 0x80) --at;
    return next_character(text, at);
  }

  std::size_t next_cut(std::string_view piece, std::size_t begin) const {
    for (std::size_t at = begin + 1; (at = piece.find(kMark, at)) != std::string_view::npos; ++at) {
      const char32_t before = last_character(piece.substr(0, at));
      if (characters_.id(before) >= 0 &&
          !std::binary_search(joined_to_mark_.begin(), joined_to_mark_.end(), before)) {
        return at;
      }
    }
    return piece.size();
  }

  void tokenize_part(std::string_view piece, BpeScratch& scratch,
                     std::vector<Token>& tokens) const {
    uint64_t hash = 0;
    const bool is_cacheable = piece.size() <= WordCache::kLongest;
    if (is_cacheable && scratch.cache.find(piece, hash, tokens)) return;
    const std::size_t before = tokens.size();
    split(piece, scratch, tokens);
    if (is_cacheable) {
      scratch.cache.add(piece, hash, tokens.data() + before, tokens.data() + tokens.size());
    }
  }

  void split(std::string_view piece, BpeScratch& scratch, std::vector<Token>& tokens) const {
    if (ignore_merges_) {
      if (const auto id = vocabulary().id(piece)) {
        tokens.push_back({*id, 0, static_cast<uint32_t>(piece.size())});
        return;
      }
    }
    scratch.symbols.clear();
    add_symbols(piece, scratch);
    // With a prefix two pairs at one place may join to the same token, which a scan would not
    // mistake for each other.
    scratch.merger.merge(scratch.symbols, pairs_, !prefix_.empty());
    uint32_t at = 0;
    for (const Symbol& symbol : scratch.symbols) {
      tokens.push_back({symbol.id, at, at + symbol.size});
      at += symbol.size;
    }
  }

  void add_symbols(std::string_view piece, BpeScratch& scratch) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::optional<Symbol> unknown;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(piece, at);
      const auto size = static_cast<uint32_t>(at - begin);
      const bool has_prefix = begin != 0 && !prefix_.empty();
      const bool has_suffix = at == piece.size() && !suffix_.empty();
      std::string_view text = piece.substr(begin, size);
      int64_t id = -1;
      if (has_prefix || has_suffix) {
        scratch.affixed.assign(has_prefix ? prefix_ : "")
            .append(text)
            .append(has_suffix ? suffix_ : "");
        text = scratch.affixed;
        if (const auto found = vocabulary().id(text)) id = *found;
      } else {
        id = characters_.id(c);
      }
      if (id >= 0) {
        if (unknown) symbols.push_back(*unknown);
        unknown.reset();
        symbols.push_back({static_cast<uint32_t>(id), size});
      } else if (bytes_ && bytes_->has_all(text)) {
        for (const char byte : text)
          symbols.push_back(
              {bytes_->id(byte), 1});  // before a pending `unknown`, as in the package
      } else if (has_unk_token()) {
        if (unknown && fuse_unk_) {
          unknown->size += size;
          continue;
        }
        if (unknown) symbols.push_back(*unknown);
        unknown = {unk_for(text), size};
      }
    }
    if (unknown) symbols.push_back(*unknown);
  }

  std::string prefix_, suffix_;
  bool fuse_unk_, ignore_merges_;
  CharacterIds characters_;
  std::optional<ByteTokens> bytes_;
  PairTable pairs_;
  bool can_cut_ = false;
  std::vector<char32_t> joined_to_mark_;  // in order
};

}  // namespace

std::unique_ptr<const Model> make_bpe(const Definition& definition) {
  return std::make_unique<Bpe>(definition);
}

}  // namespace posenc::text
