#include "posenc/text/generation.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/text.h"

namespace posenc {
namespace {

// Copies have their own pieces, so that several searches may use those of one criterion at once.
class StopStrings {
 public:
  StopStrings(const Tokenizer& tokenizer, std::vector<std::string> strings)
      : tokenizer_(tokenizer), strings_(std::move(strings)) {
    for (const std::string& string : strings_) longest_ = std::max(longest_, string.size());
  }

  bool operator()(const std::vector<int64_t>& columns) {
    const std::string& last = piece(columns.back());
    // Only what a string that ends in the last token may begin in.
    std::string before;
    for (auto id = columns.rbegin() + 1; id != columns.rend() && before.size() + 1 < longest_; ++id)
      before.insert(0, piece(*id));
    const std::string text = before + last;
    return std::any_of(strings_.begin(), strings_.end(), [&](const std::string& string) {
      const std::size_t first =
          before.size() + 1 > string.size() ? before.size() + 1 - string.size() : 0;
      return text.find(string, first) != std::string::npos;
    });
  }

 private:
  const std::string& piece(int64_t id) {
    const auto known = pieces_.find(id);
    return known != pieces_.end() ? known->second
                                  : pieces_.emplace(id, tokenizer_.token_bytes(id)).first->second;
  }

  Tokenizer tokenizer_;
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;
  std::unordered_map<int64_t, std::string> pieces_;
};

}  // namespace

std::function<bool(const std::vector<int64_t>& columns)> stop_strings(
    const Tokenizer& tokenizer, const std::vector<std::string>& strings) {
  TORCH_CHECK_VALUE(!strings.empty(), "[stop_strings] strings must not be empty");
  for (const std::string& string : strings)
    TORCH_CHECK_VALUE(!string.empty() && io::is_utf8(string),
                      "[stop_strings] each string must be UTF-8 and not empty. Got ",
                      io::in_quotes(string));
  return StopStrings(tokenizer, strings);
}

std::function<bool(const GeneratedToken& token)> stream_text(
    const Tokenizer& tokenizer, std::function<bool(const GeneratedText& piece)> on_text,
    bool skip_special_tokens, std::vector<std::vector<int64_t>> prefixes) {
  TORCH_CHECK_VALUE(on_text != nullptr, "[stream_text] on_text must be a function");
  // Each search copies its options, and with them an empty map.
  std::map<std::pair<int64_t, int64_t>, DecodeStream> streams;
  return
      [tokenizer, on_text = std::move(on_text), skip_special_tokens, prefixes = std::move(prefixes),
       streams = std::move(streams)](const GeneratedToken& token) mutable {
        const std::pair row(token.source, token.sequence);
        auto stream = streams.find(row);
        if (stream == streams.end()) {
          DecodeStream begun = tokenizer.decode_stream(skip_special_tokens);
          if (!prefixes.empty()) {
            const auto own = prefixes.size() == 1 ? 0 : static_cast<std::size_t>(token.source);
            TORCH_CHECK_VALUE(own < prefixes.size(),
                              "[stream_text] prefixes must have one list, or one for each source. "
                              "Got ",
                              prefixes.size(), " and a token of source ", token.source);
            for (const int64_t id : prefixes[own]) begun.step(id);
          }
          stream = streams.emplace(row, std::move(begun)).first;
        }
        std::string text = stream->second.step(token.token).value_or(std::string());
        if (token.is_last) text += stream->second.end();
        const bool more = on_text({token.source, token.sequence, std::move(text), token.is_last});
        if (more && !token.is_last) return true;
        std::string rest = stream->second.end();
        streams.erase(stream);
        if (!rest.empty()) on_text({token.source, token.sequence, std::move(rest), true});
        return more;
      };
}

}  // namespace posenc
