// cli/translate/without_sentencepiece.cpp, which only a build without that library has.
#include <gtest/gtest.h>

#include "cli/error.h"
#include "cli/translate/translate_lines.h"

namespace posenc::testing {
namespace {

TEST(WithoutSentencePiece, TranslateSaysWhatIsMissing) {
  try {
    cli::translate_lines({});
    FAIL() << "no error";
  } catch (const cli::CommandError& error) {
    EXPECT_STREQ(
        error.what(),
        "this posenc was built without SentencePiece, which Marian's tokenizer needs: install it "
        "(Debian's libsentencepiece-dev) and build posenc again");
  }
}

}  // namespace
}  // namespace posenc::testing
