#include "text/text_tokens.h"

#include <algorithm>

#include "text/unicode/utf8.h"

namespace posenc::text {
namespace {

bool share_bytes(const std::vector<AddedPart>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].begin < parts[i - 1].end) return true;
  }
  return false;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Finds the index of the character that a byte belongs to. It is asked for places near the last
// one.
class CharacterIndex {
 public:
  explicit CharacterIndex(std::string_view text) : text_(text) {}

  uint32_t operator()(std::size_t byte) {
    while (at_ < byte) index_ += begins_character(text_[++at_]);
    while (at_ > byte) index_ -= begins_character(text_[at_--]);
    return index_;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  uint32_t index_ = 0;
};

}  // namespace

void TextTokens::encode(std::string_view text, const Steps& steps, const Wanted& wanted,
                        Scratch& scratch) {
  ids.clear();
  offsets.clear();
  tokens.clear();
  is_outside_ = false;
  const bool needs_places = steps.pre_tokenizer != nullptr && steps.pre_tokenizer->needs_places();
  cut(text, steps, wanted.places || needs_places);
  if (steps.pre_tokenizer != nullptr) steps.pre_tokenizer->split(split_);
  for (const Split& split : split_.splits) {
    if (split.token) {
      add_token(split, wanted);
    } else {
      add_model_tokens(split, steps, wanted, scratch);
    }
  }
  if (wanted.places) count_characters(text);
}

// Cuts the added tokens out, and normalises what is between them.
void TextTokens::cut(std::string_view text, const Steps& steps, bool with_places) {
  split_.text.assign({}, 0, with_places);
  split_.splits.clear();
  steps.added_tokens.cut(text, false, raw_parts_);
  for (const AddedPart& part : raw_parts_) {
    const std::string_view bytes = text.substr(part.begin, part.end - part.begin);
    const bool is_all = raw_parts_.size() == 1 && !part.token;
    AlignedText& piece = is_all ? split_.text : piece_;
    piece.assign(bytes, static_cast<uint32_t>(part.begin), with_places);
    if (part.token) {
      const auto begin = static_cast<uint32_t>(split_.text.text().size());
      split_.text.append(piece, 0, bytes.size());
      split_.splits.push_back({begin, static_cast<uint32_t>(begin + bytes.size()), part.token});
      continue;
    }
    if (steps.normalizer != nullptr) steps.normalizer->normalize(piece);
    if (piece.text().empty()) continue;
    steps.added_tokens.cut(piece.text(), true, parts_);
    if (!is_all) {
      add_piece(piece);
    } else if (share_bytes(parts_)) {
      piece_ = piece;
      piece.assign({}, 0, with_places);
      add_piece(piece_);
    } else {
      add_splits(piece, 0);
    }
  }
}

// Adds the parts of a piece to the text. Two that share blanks get their own copies of these.
void TextTokens::add_piece(const AlignedText& piece) {
  const std::size_t base = split_.text.text().size();
  if (!share_bytes(parts_)) {
    split_.text.append(piece, 0, piece.text().size());
    add_splits(piece, base);
    return;
  }
  for (const AddedPart& part : parts_) {
    const auto begin = static_cast<uint32_t>(split_.text.text().size());
    split_.text.append(piece, part.begin, part.end);
    split_.splits.push_back({begin, static_cast<uint32_t>(split_.text.text().size()), part.token,
                             piece.begins_with_nothing() && part.begin == 0});
  }
}

void TextTokens::add_splits(const AlignedText& piece, std::size_t base) {
  for (const AddedPart& part : parts_) {
    split_.splits.push_back({static_cast<uint32_t>(base + part.begin),
                             static_cast<uint32_t>(base + part.end), part.token,
                             piece.begins_with_nothing() && part.begin == 0});
  }
}

void TextTokens::add_token(const Split& split, const Wanted& wanted) {
  ids.push_back(*split.token);
  if (wanted.places) offsets.push_back(split_.text.place(split.begin, split.end));
  if (wanted.tokens) {
    tokens.push_back(
        std::string_view(split_.text.text()).substr(split.begin, split.end - split.begin));
  }
}

void TextTokens::add_model_tokens(const Split& split, const Steps& steps, const Wanted& wanted,
                                  Scratch& scratch) {
  const std::string_view piece =
      std::string_view(split_.text.text()).substr(split.begin, split.end - split.begin);
  model_tokens_.clear();
  steps.model.tokenize(piece, scratch, model_tokens_);
  for (const Token& token : model_tokens_) {
    ids.push_back(token.id);
    if (wanted.places) {
      if (token.begin == token.end) {
        const uint32_t begin = split_.text.place(split.begin, split.begin + 1).begin + token.begin;
        offsets.push_back({begin, begin});
      } else if (token.end > piece.size()) {
        offsets.push_back({token.begin, token.end});  // as the package leaves them
        is_outside_ = true;
      } else {
        offsets.push_back(split_.text.place(split.begin + token.begin, split.begin + token.end));
      }
    }
    if (wanted.tokens) {
      tokens.push_back(token.surface
                           ? piece.substr(token.begin, token.end - token.begin)
                           : steps.model.id_to_token(token.id).value_or(std::string_view()));
    }
  }
}

// From bytes to characters; places outside of the text stay as they are, as in the package.
void TextTokens::count_characters(std::string_view text) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii && !is_outside_) return;
  CharacterIndex index(text);
  for (Place& place : offsets) {
    if (place.begin >= text.size()) continue;
    const uint32_t begin = index(place.begin);
    const uint32_t bytes = place.end;
    if (bytes < text.size()) {
      place.end = index(bytes);
    } else {
      place.end = bytes - 1 < text.size() ? index(bytes - 1) + 1 : begin + 2;
    }
    place.begin = begin;
  }
}

}  // namespace posenc::text
