#include "cli/translate/languages.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "cli/error.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kListed = 20;
constexpr std::string_view kMarianBegin = ">>", kMarianEnd = "<<", kM2m = "__";

// The part of a token between `begin` and `end`, if it has both.
std::optional<std::string> between(std::string_view token, std::string_view begin,
                                   std::string_view end) {
  if (token.size() <= begin.size() + end.size() || !token.starts_with(begin) ||
      !token.ends_with(end))
    return std::nullopt;
  token.remove_prefix(begin.size());
  token.remove_suffix(end.size());
  return std::string(token);
}

bool are(std::string_view text, int (*is)(int)) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
}

// Such as fra_Latn and fr_XX: a language and a script or country.
bool has_form_of_code(std::string_view token) {
  const std::size_t line = token.find('_');
  if (line != 2 && line != 3) return false;
  const std::string_view language = token.substr(0, line), region = token.substr(line + 1);
  return are(language, std::islower) && are(region, std::isalpha) &&
         (region.size() == 2 || region.size() == 4) &&
         std::isupper(static_cast<unsigned char>(region.front())) != 0;
}

// The code of a language that a token stands for.
std::optional<std::string> code_of(std::string_view token) {
  if (auto code = between(token, kMarianBegin, kMarianEnd)) return code;
  if (auto code = between(token, kM2m, kM2m); code && are(*code, std::islower)) return code;
  if (has_form_of_code(token)) return std::string(token);
  return std::nullopt;
}

struct Known {
  std::vector<std::string> codes;
  std::vector<int64_t> ids;
  bool in_source = false;  // the target's token is one of the source, as in Marian models
};

Known languages_of(const Tokenizer& tokenizer) {
  Known known;
  const int64_t tokens = tokenizer.vocab_size();
  // Those of M2M100 follow the tokens that are counted.
  for (int64_t id = 0;; ++id) {
    const auto token = tokenizer.id_to_token(id);
    const auto code = token ? code_of(*token) : std::nullopt;
    if (!code && id >= tokens) break;
    if (!code) continue;
    known.codes.push_back(*code);
    known.ids.push_back(id);
    known.in_source |= token->starts_with(kMarianBegin);
  }
  return known;
}

// That of an option's code, in the model's vocabulary of `vocab` tokens.
int64_t id_of(const Known& known, const char* option, const std::string& code, int64_t vocab) {
  const std::string bare = between(code, kMarianBegin, kMarianEnd).value_or(code);
  const auto found = std::find(known.codes.begin(), known.codes.end(), bare);
  if (found == known.codes.end()) {
    const std::string nearest = did_you_mean(bare, known.codes);
    fail("{}: the model has no language {}{}", option, shown(code),
         nearest.empty() ? "; known: " + listed(known.codes, kListed) : nearest);
  }
  const int64_t id = known.ids[static_cast<std::size_t>(found - known.codes.begin())];
  if (id >= vocab) {
    fail("{}: the model must have the token of {}. Got id {}, and only {} tokens", option,
         shown(code), id, vocab);
  }
  return id;
}

}  // namespace

Languages::Languages(const Tokenizer& tokenizer, const TransformerOptions& model,
                     const std::string& source, const std::string& target) {
  if (source.empty() && target.empty()) return;
  const Known known = languages_of(tokenizer);
  const char* const first = source.empty() ? "--tgt-lang" : "--src-lang";
  if (known.codes.empty()) fail("{}: the model's tokenizer has no tokens for languages", first);
  if (known.in_source && !source.empty())
    fail("--src-lang: the model's tokenizer has tokens for target languages only");
  all_ = known.ids;
  std::sort(all_.begin(), all_.end());
  if (!source.empty()) {
    source_ = id_of(known, "--src-lang", source, model.src_vocab());
    // NLLB and M2M-100 begin a source with its language; mBART ends it so. A line may have others.
    const auto around = tokenizer.encode_ids("");
    if (!around.empty() && is_language(around.front()))
      side_ = Side::Front;
    else if (!around.empty() && is_language(around.back()))
      side_ = Side::Back;
    else
      fail("--src-lang: the model's tokenizer puts no language in a source");
  }
  if (target.empty()) return;
  target_side_ = known.in_source ? TargetSide::Source : TargetSide::Target;
  target_ = id_of(known, "--tgt-lang", target,
                  target_side_ == TargetSide::Source ? model.src_vocab() : model.tgt_vocab());
}

bool Languages::is_language(int64_t id) const {
  return std::binary_search(all_.begin(), all_.end(), id);
}

std::vector<int64_t> Languages::source(std::vector<int64_t> ids) const {
  if (side_ == Side::Front) ids.front() = source_;
  if (side_ == Side::Back) ids.back() = source_;
  if (target_side_ == TargetSide::Source && (ids.empty() || !is_language(ids.front())))
    ids.insert(ids.begin(), target_);
  return ids;
}

void Languages::set_target(GenerateOptions& options) const {
  if (target_side_ != TargetSide::Target) return;
  // mBART's targets begin with the language itself, those of others with a token before it.
  if (is_language(options.bos_id()))
    options.bos_id(target_);
  else
    options.forced_bos_id(target_);
}

}  // namespace posenc::cli
