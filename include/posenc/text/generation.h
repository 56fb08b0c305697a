#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/generate_options.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {

/// GenerateOptions::stopping_criteria that ends a sequence with the token that completes one of
/// `strings`, over the borders of tokens and with the prefix's text, as transformers' stop_strings
/// do. A token's text is what the tokenizer decodes it to in the middle of a text.
///
/// ```cpp
/// auto tokenizer = posenc::Tokenizer::from_folder("opus-mt-en-de");
/// auto options = posenc::load_generation_config("opus-mt-en-de")
///                    .stopping_criteria(posenc::stop_strings(tokenizer, {"\n\n", "END"}));
/// ```
///
/// Errors: c10::ValueError for no strings, an empty one, and one that is not UTF-8.
///
/// Source: transformers 5.23, generation/stopping_criteria.py.
std::function<bool(const std::vector<int64_t>& columns)> stop_strings(
    const Tokenizer& tokenizer, const std::vector<std::string>& strings);

/// A piece of a target's text.
struct GeneratedText {
  int64_t source;        ///< which source
  int64_t sequence;      ///< the index among the source's hypotheses that generate() returns
  std::string text;      ///< what is complete with the last token; empty inside a character
  bool is_last = false;  ///< whether the target's text ends with it
};

/// GenerateOptions::on_token that calls `on_text` with each token's text, as DecodeStream makes it.
/// The last piece of a target ends with what DecodeStream::end() gives, so that the pieces together
/// are its text. If `on_text` returns false, the sequence ends with that token; what that leaves of
/// a character is one more piece. (The target of a search that GenerateOptions::progress ends has
/// no last piece.)
///
/// ```cpp
/// auto tokenizer = posenc::Tokenizer::from_folder("opus-mt-en-de");
/// auto to_the_first_stop = [](const posenc::GeneratedText& piece) {
///   return piece.text.find('.') == std::string::npos;
/// };
/// auto options = posenc::load_generation_config("opus-mt-en-de")
///                    .on_token(posenc::stream_text(tokenizer, to_the_first_stop));
/// ```
///
/// `prefixes` are those of the search: the pieces continue their texts, so that the first one may
/// begin with a space. Without them it is the beginning of a text.
/// The function throws c10::ValueError for a token of a source that they have no list for.
std::function<bool(const GeneratedToken& token)> stream_text(
    const Tokenizer& tokenizer, std::function<bool(const GeneratedText& piece)> on_text,
    bool skip_special_tokens = true, std::vector<std::vector<int64_t>> prefixes = {});

}  // namespace posenc
