// The subcommands for text in builds without posenc::text.

#include "cli/classify_lines.h"
#include "cli/error.h"
#include "cli/tokenize_lines.h"
#include "cli/translate/translate_lines.h"

namespace posenc::cli {
namespace {

[[noreturn]] void fail_without_text() {
  fail(
      "this posenc was built without posenc::text, which needs Oniguruma: install it (Debian's "
      "libonig-dev) and build posenc again");
}

}  // namespace

void tokenize_lines(const TokenizeOptions&) { fail_without_text(); }

void detokenize_lines(const DetokenizeOptions&) { fail_without_text(); }

void classify_lines(const ClassifyOptions&) { fail_without_text(); }

void translate_lines(const TranslateOptions&) { fail_without_text(); }

void fill_lines(const FillOptions&) { fail_without_text(); }

void encode_text_lines(const EncodeTextOptions&) { fail_without_text(); }

}  // namespace posenc::cli
