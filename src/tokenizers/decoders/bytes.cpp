#include <array>
#include <optional>

#include "base/text.h"
#include "tokenizers/decoders/kinds.h"
#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

class ByteLevelDecoder : public Decoder {
 public:
  ByteLevelDecoder() {
    bytes_.fill(kNone);
    for (int byte = 0; byte < 256; ++byte) {
      std::size_t at = 0;
      bytes_[next_character(byte_level_alphabet()[static_cast<std::size_t>(byte)], at)] =
          static_cast<int16_t>(byte);
    }
  }

  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) append_bytes(token, bytes);
    tokens.assign(1, lossy_utf8(std::move(bytes)));
  }

  void append_bytes(std::string_view token, std::string& bytes) const {
    const std::size_t before = bytes.size();
    for (std::size_t at = 0; at < token.size();) {
      const char32_t c = next_character(token, at);
      const int16_t byte = c < bytes_.size() ? bytes_[c] : kNone;
      if (byte == kNone) {  // the whole token then stands for itself
        bytes.resize(before);
        bytes += token;
        break;
      }
      bytes += static_cast<char>(byte);
    }
  }

  std::unique_ptr<DecodedEnd> follow_end() const override { return std::make_unique<End>(*this); }

 private:
  static constexpr int16_t kNone = -1;
  static constexpr std::size_t kCharacters = 0x144;  // the alphabet ends before

  // The last four bytes have the last character, if it is whole.
  class End : public DecodedEnd {
   public:
    explicit End(const ByteLevelDecoder& decoder) : decoder_(decoder) {}

    void add(std::string_view token) override {
      decoder_.append_bytes(token, bytes_);
      if (bytes_.size() > 4) bytes_.erase(0, bytes_.size() - 4);
    }
    bool is_replacement() const override { return lossy_utf8(bytes_).ends_with(kReplacement); }

   private:
    const ByteLevelDecoder& decoder_;
    std::string bytes_;
  };

  std::array<int16_t, kCharacters> bytes_;
};

class ByteFallback : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> texts;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (io::is_utf8(bytes)) {
        texts.push_back(bytes);
      } else {
        texts.insert(texts.end(), bytes.size(), std::string(kReplacement));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      texts.push_back(std::move(token));
    }
    flush();
    tokens = std::move(texts);
  }
  std::unique_ptr<DecodedEnd> follow_end() const override { return std::make_unique<End>(); }

 private:
  // A run of bytes is text only if all of it is UTF-8.
  class End : public DecodedEnd {
   public:
    void add(std::string_view token) override {
      const auto byte = byte_of(token);
      if (!byte || !is_run_) {
        unfinished_.clear();
        is_broken_ = false;
      }
      is_run_ = byte.has_value();
      if (!byte) {
        if (!token.empty()) is_replacement_ = token.ends_with(kReplacement);
        return;
      }
      unfinished_ += *byte;
      bool is_whole = false;
      const std::size_t size = measure_utf8(unfinished_, 0, is_whole);
      is_broken_ = is_broken_ || (!is_whole && size < unfinished_.size());
      if (is_whole || is_broken_) unfinished_.clear();
      is_replacement_ = is_broken_ || !unfinished_.empty();
    }
    bool is_replacement() const override { return is_replacement_; }

   private:
    std::string unfinished_;  // the last character of the run
    bool is_run_ = false, is_broken_ = false;
    bool is_replacement_ = false;
  };

  // The byte of `<0xHH>`. Rust also reads a digit after a plus sign.
  static std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return std::nullopt;
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(16 * high + low);
  }
};

}  // namespace

DecoderPointer make_byte_fallback_decoder() { return std::make_unique<ByteFallback>(); }

DecoderPointer make_byte_level_decoder(const Component& component) {
  component.boolean(
      "add_prefix_space");  // which matter to the pre-tokenizer only, but must be there
  component.boolean("trim_offsets");
  component.boolean("use_regex", true);
  return std::make_unique<ByteLevelDecoder>();
}

}  // namespace posenc::text
