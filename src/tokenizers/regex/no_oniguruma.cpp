// In place of oniguruma.cpp where posenc is built without Oniguruma.
#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/regex/oniguruma.h"

namespace posenc::text {

void OnigurumaRegex::Free::operator()(void*) const {}

OnigurumaRegex::OnigurumaRegex(std::string_view expression) {
  throw TokenizerError("Regex: this posenc has no Oniguruma, which the expression needs. Got " +
                       io::in_quotes(expression));
}

bool OnigurumaRegex::search(std::string_view, std::size_t, Pattern::Match&) const { return false; }

}  // namespace posenc::text
