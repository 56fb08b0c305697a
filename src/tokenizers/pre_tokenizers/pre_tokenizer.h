#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "tokenizers/unicode/split_text.h"

namespace posenc::text {

/// Cuts a text into the parts that the model sees one by one. Immutable; any number of threads may
/// use one.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  /// Throws TokenizerError where a search takes too long, and where the package panics.
  virtual void split(SplitText& text) const = 0;
  /// Whether it asks for offsets that the text itself does not tell once it has been changed.
  virtual bool needs_offsets() const { return false; }
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

/// The pre-tokenizer that a component of tokenizer.json describes; null for null. Throws
/// TokenizerError.
PreTokenizerPtr make_pre_tokenizer(const nlohmann::json& component);

/// Those that other files define.
class Component;
PreTokenizerPtr make_byte_level(const Component& component);
PreTokenizerPtr make_metaspace(const Component& component);
PreTokenizerPtr make_split(const Component& component);
PreTokenizerPtr make_whitespace();
PreTokenizerPtr make_whitespace_split();
PreTokenizerPtr make_bert_pre_tokenizer();
PreTokenizerPtr make_punctuation(const Component& component);
PreTokenizerPtr make_digits(const Component& component);
PreTokenizerPtr make_delimiter_split(const Component& component);
PreTokenizerPtr make_fixed_length(const Component& component);
PreTokenizerPtr make_unicode_scripts();

}  // namespace posenc::text
