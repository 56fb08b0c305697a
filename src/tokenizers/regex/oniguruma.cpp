#include "tokenizers/regex/oniguruma.h"

#include <oniguruma.h>

#include <mutex>
#include <string>

#include "base/text.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {
namespace {

constexpr std::size_t kMostExpressionBytes = 20000;
// Tries to match from one place, as in Oniguruma, whose error the package dies of; and in one
// search, in which the package may take minutes. A class that ignores case is tried as some hundred
// alternatives.
constexpr unsigned long kMostTriesInMatch = 10'000'000, kMostTriesInSearch = 20'000'000,
                        kMostTriesPerByte = 200;
constexpr unsigned int kMostStack = 20'000'000;

const OnigUChar* bytes(std::string_view text, std::size_t at = 0) {
  return reinterpret_cast<const OnigUChar*>(text.data()) + at;
}

std::string message(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info == nullptr ? onig_error_code_to_str(text, code)
                                     : onig_error_code_to_str(text, code, info);
  return io::printable(
      std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)));
}

/// What a search writes to: one for each thread.
struct SearchState {
  OnigRegion* region = onig_region_new();
  OnigMatchParam* limits = onig_new_match_param();

  SearchState() {
    onig_initialize_match_param(limits);
    onig_set_match_stack_limit_size_of_match_param(limits, kMostStack);
    onig_set_retry_limit_in_match_of_match_param(limits, kMostTriesInMatch);
  }
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;
  ~SearchState() {
    onig_region_free(region, 1);
    onig_free_match_param(limits);
  }
};

}  // namespace

void OnigurumaRegex::Free::operator()(void* regex) const {
  onig_free(static_cast<OnigRegex>(regex));
}

OnigurumaRegex::OnigurumaRegex(std::string_view expression) {
  const auto refuse = [&](const std::string& rule) {
    throw TokenizerError("Regex: the expression must " + rule + ". Got " +
                         io::in_quotes(expression));
  };
  if (expression.size() > kMostExpressionBytes) {
    refuse("have at most " + std::to_string(kMostExpressionBytes) + " bytes, not " +
           std::to_string(expression.size()));
  }
  static std::mutex mutex;  // compiling is not for several threads at once
  const std::lock_guard lock(mutex);
  static const int ready = [] {
    OnigEncoding encoding = ONIG_ENCODING_UTF8;
    return onig_initialize(&encoding, 1);
  }();
  const auto compile = [&](const std::string& text) {
    OnigRegex regex = nullptr;
    OnigErrorInfo info{};
    int code = ready;
    if (code == ONIG_NORMAL) {
      code = onig_new(&regex, bytes(text), bytes(text, text.size()), ONIG_OPTION_NONE,
                      ONIG_ENCODING_UTF8, ONIG_SYNTAX_ONIGURUMA, &info);
    }
    if (code != ONIG_NORMAL) refuse("be one of Oniguruma's (" + message(code, &info) + ")");
    regex_.reset(regex);
  };
  compile(std::string(expression));  // which refuses mistakes that would not be any more
  compile(with_unicode_16(expression));
}

bool OnigurumaRegex::search(std::string_view text, std::size_t from, Pattern::Match& match) const {
  thread_local SearchState state;
  onig_set_retry_limit_in_search_of_match_param(
      state.limits, kMostTriesInSearch + kMostTriesPerByte * (text.size() - from));
  const OnigUChar *begin = bytes(text), *end = bytes(text, text.size());
  const int found =
      onig_search_with_param(static_cast<OnigRegex>(regex_.get()), begin, end, bytes(text, from),
                             end, state.region, ONIG_OPTION_NONE, state.limits);
  if (found == ONIG_MISMATCH) return false;
  if (found < 0)
    throw TokenizerError("Regex: a search must end in reasonable time. Got " + message(found),
                         TokenizerErrorCode::Limit);
  match = {static_cast<std::size_t>(state.region->beg[0]),
           static_cast<std::size_t>(state.region->end[0])};
  return true;
}

}  // namespace posenc::text
