#include "tokenizers/pipeline/text_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// Finds the index of the character that a byte belongs to. It is asked for offsets near one of the
// last two: tokens may share an end far away.
class CharacterIndex {
 public:
  explicit CharacterIndex(std::string_view text) : text_(text) {}

  uint32_t operator()(std::size_t byte) {
    constexpr std::size_t kNear = 64;
    if (distance(near_, byte) > kNear && distance(far_, byte) < distance(near_, byte))
      std::swap(near_, far_);
    auto [at, index] = near_;
    while (at < byte) index += begins_character(text_[++at]);
    while (at > byte) index -= begins_character(text_[at--]);
    near_ = {at, index};
    return index;
  }

 private:
  struct Mark {
    std::size_t byte = 0;
    uint32_t index = 0;
  };
  static std::size_t distance(const Mark& mark, std::size_t byte) {
    return mark.byte < byte ? byte - mark.byte : mark.byte - byte;
  }

  std::string_view text_;
  Mark near_, far_;
};

}  // namespace

void TextTokens::encode(std::string_view text, const Steps& steps, const Requested& requested,
                        Scratch& scratch) {
  ids.clear();
  offsets.clear();
  tokens.clear();
  words.clear();
  is_outside_ = false;
  const bool needs_offsets = steps.pre_tokenizer != nullptr && steps.pre_tokenizer->needs_offsets();
  cut(text, steps, requested, needs_offsets);
  if (steps.pre_tokenizer != nullptr) steps.pre_tokenizer->split(split_);
  for (std::size_t word = 0; word < split_.splits.size(); ++word) {
    const Split& split = split_.splits[word];
    if (!split.token) {
      add_model_tokens(split, steps, requested, scratch);
    } else {
      const SplitToken& token = split_.tokens[*split.token];
      ids.push_back(token.id);
      if (requested.offsets) offsets.push_back(token.span);
      if (requested.tokens) tokens.push_back(token.text);
    }
    if (requested.words) words.resize(ids.size(), static_cast<uint32_t>(word));
  }
  if (requested.offsets) count_characters(text);
}

// Cuts the added tokens out, and normalises what is between them.
void TextTokens::cut(std::string_view text, const Steps& steps, const Requested& requested,
                     bool needs_offsets) {
  const bool with_offsets = requested.offsets || needs_offsets;
  split_.text.assign({}, 0, with_offsets);
  split_.splits.clear();
  split_.tokens.clear();
  spellings_.clear();
  steps.added_tokens.cut(text, false, raw_parts_);
  std::size_t done = 0;  // the end of what is in split_.text, of `text`
  for (const AddedPart& part : raw_parts_) {
    const bool is_all = raw_parts_.size() == 1 && !part.token;
    AlignedText& piece = is_all ? split_.text : piece_;
    if (part.token) {
      const auto begin = static_cast<uint32_t>(part.begin), end = static_cast<uint32_t>(part.end);
      const Span span = with_offsets ? Span{begin, end} : Span{0, 0};
      add_token({*part.token, span, text.substr(begin, end - begin)});
      // With its bytes, what follows stays at its own offset; another one may have had some.
      if (done >= end) continue;
      done = std::max<std::size_t>(done, begin);
      piece.assign(text.substr(done, end - done), static_cast<uint32_t>(done), with_offsets);
      split_.text.append(piece, 0, end - done);
      done = end;
      continue;
    }
    piece.assign(text.substr(part.begin, part.end - part.begin), static_cast<uint32_t>(part.begin),
                 with_offsets);
    done = part.end;
    if (steps.normalizer != nullptr) steps.normalizer->normalize(piece);
    if (piece.text().empty()) continue;
    steps.added_tokens.cut(piece.text(), true, parts_);
    add_piece(piece, requested);
    if (!is_all) split_.text.append(piece, 0, piece.text().size());
  }
}

// Adds the parts of a piece, which is at the end of the text or is appended to it.
void TextTokens::add_piece(const AlignedText& piece, const Requested& requested) {
  const std::size_t base = &piece == &split_.text ? 0 : split_.text.text().size();
  std::string_view bytes = piece.text();
  const bool has_token = std::any_of(parts_.begin(), parts_.end(),
                                     [](const AddedPart& part) { return part.token.has_value(); });
  if (has_token && requested.tokens) bytes = spellings_.emplace_back(bytes);
  for (const AddedPart& part : parts_) {
    if (part.token) {
      add_token({*part.token, piece.original_span(part.begin, part.end),
                 bytes.substr(part.begin, part.end - part.begin)});
      continue;
    }
    split_.splits.push_back({static_cast<uint32_t>(base + part.begin),
                             static_cast<uint32_t>(base + part.end), std::nullopt,
                             piece.begins_with_nothing() && part.begin == 0});
  }
}

void TextTokens::add_token(const SplitToken& token) {
  split_.splits.push_back({0, 0, static_cast<uint32_t>(split_.tokens.size())});
  split_.tokens.push_back(token);
}

void TextTokens::add_model_tokens(const Split& split, const Steps& steps,
                                  const Requested& requested, Scratch& scratch) {
  const std::string_view piece =
      std::string_view(split_.text.text()).substr(split.begin, split.end - split.begin);
  model_tokens_.clear();
  steps.model.tokenize(piece, scratch, model_tokens_);
  for (const Token& token : model_tokens_) {
    ids.push_back(token.id);
    if (requested.offsets) {
      if (token.begin == token.end) {
        const uint32_t begin =
            split_.text.original_span(split.begin, split.begin + 1).begin + token.begin;
        offsets.push_back({begin, begin});
      } else if (token.end > piece.size()) {
        offsets.push_back({token.begin, token.end});  // as the package leaves them
        is_outside_ = true;
      } else {
        offsets.push_back(
            split_.text.original_span(split.begin + token.begin, split.begin + token.end));
      }
    }
    if (requested.tokens) {
      tokens.push_back(token.surface
                           ? piece.substr(token.begin, token.end - token.begin)
                           : steps.model.id_to_token(token.id).value_or(std::string_view()));
    }
  }
}

// From bytes to characters; spans outside of the text stay as they are, as in the package.
void TextTokens::count_characters(std::string_view text) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (is_ascii && !is_outside_) return;
  CharacterIndex index(text);
  for (Span& span : offsets) {
    if (span.begin >= text.size()) continue;
    const uint32_t begin = index(span.begin);
    const uint32_t bytes = span.end;
    if (bytes < text.size()) {
      span.end = index(bytes);
    } else {
      span.end = bytes - 1 < text.size() ? index(bytes - 1) + 1 : begin + 2;
    }
    span.begin = begin;
  }
}

}  // namespace posenc::text
