// A SentencePiece model, the protocol buffer.
#include <string_view>

#include "fuzz/check.h"
#include "posenc/text/error.h"
#include "text/sentencepiece/model_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using posenc::testing::promise;
  try {
    const auto model =
        posenc::text::read_sentencepiece_proto({reinterpret_cast<const char*>(data), size});
    promise(!model.pieces.empty(), "pieces");
  } catch (const posenc::TokenizerError&) {
  }
  return 0;
}
