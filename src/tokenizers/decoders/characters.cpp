#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/decoders/kinds.h"
#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/pre_tokenizers/metaspace.h"
#include "tokenizers/regex/pattern.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(const Component& component) : suffix_(component.string("suffix")) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens)
      replace_all(token, suffix_, &token == &tokens.back() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class MetaspaceDecoder : public Decoder {
 public:
  explicit MetaspaceDecoder(const Component& component) : options_(metaspace_options(component)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      const bool is_dropped =
          &token == &tokens.front() && options_.prepend_scheme != PrependScheme::Never;
      replace_all(token, options_.replacement, is_dropped ? "" : " ");
    }
  }

 private:
  MetaspaceOptions options_;
};

class StripDecoder : public Decoder {
 public:
  explicit StripDecoder(const Component& component)
      : start_(component.number("start")), stop_(component.number("stop")) {
    append_character(content_, component.character("content"));
  }

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) strip(token);
  }
  bool keeps_replacement() const override { return stop_ == 0 && content_ != kReplacement; }

 private:
  // Returns how many times `content_` begins the text, or ends it, up to `most`.
  std::size_t count(std::string_view text, uint64_t most, bool at_end) const {
    std::size_t count = 0;
    const std::size_t size = content_.size();
    for (; count < most && text.size() >= (count + 1) * size; ++count) {
      const std::size_t begin = at_end ? text.size() - (count + 1) * size : count * size;
      if (text.substr(begin, size) != content_) break;
    }
    return count;
  }

  void strip(std::string& token) const {
    const std::size_t size = content_.size();
    const std::size_t first = count(token, start_, false), last = count(token, stop_, true);
    // Where the package would read past the token's begin, or cut what is cut already, it panics.
    const bool is_past_begin = last * size == token.size() && last < stop_;
    if (is_past_begin || (first + last) * size > token.size()) {
      throw TokenizerError(
          "decoder Strip: must have tokens that are longer than what it strips. Got " +
          io::in_quotes(token));
    }
    token.erase(token.size() - last * size);
    token.erase(0, first * size);
  }

  std::string content_;
  uint64_t start_, stop_;
};

class ReplaceDecoder : public Decoder {
 public:
  explicit ReplaceDecoder(const Component& component)
      : pattern_(component_pattern(component)), content_(component.string("content")) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      if (!token.empty())
        replace(token);  // not even an empty match is looked for in an empty token
    }
  }
  bool is_for_each_token() const override { return true; }

 private:
  void replace(std::string& token) const {
    std::string changed;
    Pattern::Matches matches(pattern_, token);
    std::size_t at = 0;
    bool is_found = false;
    for (Pattern::Match match{}; matches.next(match); at = match.end) {
      changed.append(token, at, match.begin - at).append(content_);
      is_found = true;
    }
    if (is_found) token = std::move(changed.append(token, at));
  }

  Pattern pattern_;
  std::string content_;
};

}  // namespace

DecoderPointer make_bpe_decoder(const Component& component) {
  return std::make_unique<BpeDecoder>(component);
}
DecoderPointer make_metaspace_decoder(const Component& component) {
  return std::make_unique<MetaspaceDecoder>(component);
}
DecoderPointer make_replace_decoder(const Component& component) {
  return std::make_unique<ReplaceDecoder>(component);
}
DecoderPointer make_strip_decoder(const Component& component) {
  return std::make_unique<StripDecoder>(component);
}

}  // namespace posenc::text
