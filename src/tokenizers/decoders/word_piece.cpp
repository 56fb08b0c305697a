#include "tokenizers/decoders/kinds.h"
#include "tokenizers/decoders/replace_all.h"

namespace posenc::text {
namespace {

// The replacements are those of transformers' clean_up_tokenization, and are made in its order.
void clean_up(std::string& text) {
  constexpr std::string_view kReplacements[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  if (text.find(' ') == std::string::npos) return;
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

class WordPieceDecoder : public Decoder {
 public:
  explicit WordPieceDecoder(const Component& component)
      : prefix_(component.string("prefix")), cleanup_(component.boolean("cleanup")) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) {
        if (token.compare(0, prefix_.size(), prefix_) == 0) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, 1, ' ');
        }
      }
      if (cleanup_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class CtcDecoder : public Decoder {
 public:
  explicit CtcDecoder(const Component& component)
      : pad_token_(component.string("pad_token")),
        word_delimiter_token_(component.string("word_delimiter_token")),
        cleanup_(component.boolean("cleanup")) {}

  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i] == tokens[i - 1]) continue;
      std::string text = tokens[i];
      replace_all(text, pad_token_, "");
      if (cleanup_) {
        clean_up(text);
        replace_all(text, word_delimiter_token_, " ");
      }
      if (!text.empty()) kept.push_back(std::move(text));
    }
    tokens = std::move(kept);
  }

 private:
  std::string pad_token_, word_delimiter_token_;
  bool cleanup_;
};

}  // namespace

DecoderPointer make_ctc_decoder(const Component& component) {
  return std::make_unique<CtcDecoder>(component);
}

DecoderPointer make_word_piece_decoder(const Component& component) {
  return std::make_unique<WordPieceDecoder>(component);
}

}  // namespace posenc::text
