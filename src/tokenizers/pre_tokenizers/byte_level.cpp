#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"
#include "tokenizers/regex/regex.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space),
        use_regex_(use_regex),
        pattern_(use_regex ? Pattern::regex(kGpt2Pattern) : Pattern::literal(" ")) {}

  void split(SplitText& text) const override {
    if (add_prefix_space_) add_prefix(text);
    if (use_regex_) cut(text);
    write_bytes(text);
  }

 private:
  static void add_prefix(SplitText& text) {
    std::string begin;
    text.change_each([&](AlignedText::Edit& edit, const Split& split) {
      const std::string& old = text.text.text();
      if (old[split.begin] != ' ') {
        const std::size_t first = utf8_length(static_cast<unsigned char>(old[split.begin]));
        begin.assign(1, ' ').append(old, split.begin, first);
        edit.replace(first, begin);
      }
      edit.keep(split.end - edit.at());
    });
  }

  void cut(SplitText& text) const {
    text.cut_each([&](std::string_view piece, auto&& add) {
      Pattern::Matches matches(pattern_, piece);
      std::size_t gap = 0;
      for (Pattern::Match match{}; matches.next(match); gap = match.end) {
        add(gap, match.begin);
        add(match.begin, match.end);
      }
      add(gap, piece.size());
    });
  }

  static void write_bytes(SplitText& text) {
    const auto& alphabet = byte_level_alphabet();
    std::string bytes;
    text.change_each([&](AlignedText::Edit& edit, const Split& split) {
      if (split.begins_with_nothing) AlignedText::refuse_begin();
      const std::string& old = text.text.text();
      for (std::size_t at = split.begin; at < split.end;) {
        const auto lead = static_cast<unsigned char>(old[at]);
        if (lead > ' ' && lead < 0x7F) {  // they are themselves
          std::size_t end = at + 1;
          while (end < split.end && old[end] > ' ' && old[end] < 0x7F) ++end;
          edit.keep(end - at);
          at = end;
          continue;
        }
        const std::size_t length = utf8_length(lead);
        bytes.clear();
        for (std::size_t i = 0; i < length; ++i) {
          bytes += alphabet[static_cast<unsigned char>(old[at + i])];
        }
        edit.replace(length, bytes);
        at += length;
      }
    });
  }

  bool add_prefix_space_, use_regex_;
  Pattern pattern_;
};

}  // namespace

PreTokenizerPtr make_byte_level(const Component& component) {
  const bool add_prefix_space = component.boolean("add_prefix_space");
  component.boolean("trim_offsets");  // which does nothing here
  return std::make_unique<ByteLevel>(add_prefix_space, component.boolean("use_regex", true));
}

}  // namespace posenc::text
