#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/model.h"
#include "tokenizers/pipeline/added_tokens.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "tokenizers/unicode/split_text.h"

namespace posenc::text {

/// What is asked of the tokens of a text.
struct Requested {
  bool offsets = false;  ///< from where to where each is in the text
  bool tokens = false;   ///< how each is spelled
  bool words = false;    ///< of which word, and of which text, each is
};

/// The tokens of one text, without those that a post-processor adds. Its memory is used again for
/// the next text.
class TextTokens {
 public:
  std::vector<uint32_t> ids;
  std::vector<Span> offsets;  ///< in characters; empty unless requested
  /// Empty unless requested; valid as long as the text, and until the next one.
  std::vector<std::string_view> tokens;
  std::vector<uint32_t> words;  ///< the part of the text before the model; empty unless requested

  /// The steps of a tokenizer. The normaliser and the pre-tokenizer may be null.
  struct Steps {
    const AddedTokens& added_tokens;
    const Normalizer* normalizer;
    const PreTokenizer* pre_tokenizer;
    const Model& model;
  };

  /// `text` is valid UTF-8 of less than 4 GiB. Throws TokenizerError as the steps do.
  void encode(std::string_view text, const Steps& steps, const Requested& requested,
              Scratch& scratch);

 private:
  void cut(std::string_view text, const Steps& steps, const Requested& requested,
           bool needs_offsets);
  void add_piece(const AlignedText& piece, const Requested& requested);
  void add_token(const SplitToken& token);
  void add_model_tokens(const Split& split, const Steps& steps, const Requested& requested,
                        Scratch& scratch);
  void count_characters(std::string_view text);

  SplitText split_;
  AlignedText piece_;
  std::deque<std::string> spellings_;  // pieces that `tokens` refers to
  std::vector<AddedPart> raw_parts_, parts_;
  std::vector<Token> model_tokens_;
  bool is_outside_ = false;  // a span lies past its part
};

}  // namespace posenc::text
