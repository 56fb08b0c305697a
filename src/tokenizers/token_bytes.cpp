#include "tokenizers/loaded_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/pipeline/stream_state.h"
#include "tokenizers/sentencepiece/byte_pieces.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// The bytes of a token of a byte-level vocabulary, whose characters stand for one byte each;
// nothing if one of them stands for none.
std::optional<std::string> bytes_of_characters(std::string_view token) {
  const auto& alphabet = byte_level_alphabet();
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const std::size_t begin = at;
    next_character(token, at);
    const auto found = std::find(alphabet.begin(), alphabet.end(), token.substr(begin, at - begin));
    if (found == alphabet.end()) return std::nullopt;
    bytes += static_cast<char>(found - alphabet.begin());
  }
  return bytes;
}

}  // namespace

std::string token_bytes(const std::shared_ptr<const LoadedTokenizer>& tokenizer, uint32_t id) {
  const TextPipeline& pipeline = tokenizer->pipeline();
  const auto token = pipeline.id_to_token(id);
  if (!token || !pipeline.lists(id)) return {};
  StreamState stream(std::shared_ptr<const TextPipeline>(tokenizer, &pipeline),
                     /*skip_special_tokens=*/false);
  for (const uint32_t before : tokenizer->ids_before()) stream.step(before);
  const auto text = stream.step(id);
  // A part of a character has no text, or a replacement that the token itself does not have.
  const bool is_part = !text || (text->find(kReplacement) != std::string::npos &&
                                 token->find(kReplacement) == std::string::npos);
  if (is_part) {
    if (const auto byte = byte_of_piece(*token)) return {static_cast<char>(*byte)};
    if (const auto bytes = bytes_of_characters(*token)) return *bytes;
  }
  return text.value_or("");
}

}  // namespace posenc::text
