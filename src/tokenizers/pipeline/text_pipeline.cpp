#include "tokenizers/pipeline/text_pipeline.h"

#include "base/check.h"
#include "base/text.h"
#include "tokenizers/unicode/aligned_text.h"

namespace posenc::text {
namespace {

void require_one_utf8(std::string_view text, std::size_t index, const char* what) {
  base::throw_unless(text.size() < kTextLimit, "[Tokenizer] ", what, " ", index,
                     ": must have less than 4 GiB. Got ", text.size(), " bytes");
  const std::size_t good = io::utf8_prefix(text);
  base::throw_unless(good == text.size(), "[Tokenizer] ", what, " ", index,
                     ": must be UTF-8. Got another byte at ", good);
}

}  // namespace

void TextPipeline::require_utf8(std::string_view text, std::optional<std::string_view> pair,
                                std::size_t index) {
  require_one_utf8(text, index, pair ? "first text of pair" : "text");
  if (pair) require_one_utf8(*pair, index, "second text of pair");
}

std::size_t TextPipeline::room_for_text(const TruncationRule& rule, std::size_t added) {
  base::throw_unless(rule.max_length >= added, "[Tokenizer] `max_length` must have room for the ",
                     added, " special tokens. Got ", rule.max_length);
  return rule.max_length - added;
}

}  // namespace posenc::text
