#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/models/model.h"
#include "text/pre_tokenizers/pre_tokenizer.h"
#include "text/split_text.h"

namespace posenc::text {

/// What is asked of the tokens of a text.
struct Wanted {
  bool places = false;  ///< offsets
  bool tokens = false;  ///< how each is spelled
};

/// The tokens of one text, without those that a post-processor adds. Its memory is used again for
/// the next text.
class TextTokens {
 public:
  std::vector<uint32_t> ids;
  std::vector<Place> offsets;            ///< in characters; empty unless wanted
  std::vector<std::string_view> tokens;  ///< empty unless wanted; valid until the next text

  /// The steps of a tokenizer. The normaliser and the pre-tokenizer may be null.
  struct Steps {
    const AddedTokens& added_tokens;
    const Normalizer* normalizer;
    const PreTokenizer* pre_tokenizer;
    const Model& model;
  };

  /// `text` is valid UTF-8 of less than 4 GiB. Throws TokenizerError as the steps do.
  void encode(std::string_view text, const Steps& steps, const Wanted& wanted, Scratch& scratch);

 private:
  void cut(std::string_view text, const Steps& steps, bool with_places);
  void add_piece(const AlignedText& piece);
  void add_splits(const AlignedText& piece, std::size_t base);
  void add_token(const Split& split, const Wanted& wanted);
  void add_model_tokens(const Split& split, const Steps& steps, const Wanted& wanted,
                        Scratch& scratch);
  void count_characters(std::string_view text);

  SplitText split_;
  AlignedText piece_, part_;
  std::vector<AddedPart> raw_parts_, parts_;
  std::vector<Token> model_tokens_;
  bool is_outside_ = false;  // a place lies past its part
};

}  // namespace posenc::text
