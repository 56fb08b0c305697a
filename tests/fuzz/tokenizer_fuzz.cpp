// A tokenizer.json, and a text after a NUL, which the tokenizer encodes and decodes.
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "fuzz/check.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/definition.h"
#include "tokenizers/pipeline/tokenizer_pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace posenc;
  using posenc::testing::promise;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  const std::string_view file = all.substr(0, end);
  std::string_view given = end == all.npos ? "Hello, world! \xC3\xA9 42" : all.substr(end + 1);
  if (!io::is_utf8(given)) given = "a b";
  try {
    const text::TokenizerPipeline pipeline(text::read_definition(file));
    text::EncodeRequest request;
    request.requested = {.offsets = true, .tokens = true};
    text::EncodedRows rows;
    pipeline.encode(given, std::nullopt, request, 0, rows);
    promise(rows.ids.size() == rows.offsets.size() && rows.ids.size() == rows.tokens.size(),
            "a span and a token for each id");
    for (const text::Span& span : rows.offsets) {
      promise(span.begin <= span.end, "spans in order");
    }
    pipeline.decode(rows.ids, /*skip_special_tokens=*/false);
  } catch (const posenc::Error&) {  // TokenizerError, and ArgumentError for what cannot be encoded
  }
  return 0;
}
