// A SentencePiece model, the protocol buffer, and what it makes of a text.
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/check.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/sentencepiece/model_proto.h"
#include "tokenizers/sentencepiece/processor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using posenc::testing::promise;
  try {
    const auto model =
        posenc::text::read_sentencepiece_proto({reinterpret_cast<const char*>(data), size});
    promise(!model.pieces.empty(), "pieces");
    const posenc::text::SentencePieceProcessor processor(model);
    posenc::text::SentencePieceProcessor::Scratch scratch;
    std::vector<std::string> pieces;
    processor.encode("ab  \u00e9\u4e2d a\ufb01 <unk>b", scratch,
                     [&](std::string_view piece, int32_t) { pieces.emplace_back(piece); });
    processor.decode(pieces);
  } catch (const posenc::TokenizerError&) {
  }
  return 0;
}
