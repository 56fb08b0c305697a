// translate_lines() in builds without SentencePiece.

#include "cli/error.h"
#include "cli/translate/translate_lines.h"

namespace posenc::cli {

void translate_lines(const TranslateOptions&) {
  fail(
      "this posenc was built without SentencePiece, which Marian's tokenizer needs: install it "
      "(Debian's libsentencepiece-dev) and build posenc again");
}

}  // namespace posenc::cli
