#include <algorithm>
#include <set>

#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/byte_class.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

constexpr uint32_t kByT5Specials = 3;  // <pad>, </s> and <unk>, which have the first ids

class ByT5Class : public ByteClass {
 public:
  ByT5Class() : ByteClass(kByT5Specials) {}

  VocabularyKind vocabulary_kind() const override { return VocabularyKind::ListedIds; }
  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    return utf8_without_errors(bytes_of(tokens, added));
  }
};

}  // namespace

void construct_byt5(PythonBuilder& builder) {
  const int64_t count = builder.arguments.number("extra_ids", 125);
  const auto given = builder.arguments.tokens("additional_special_tokens");
  if (count > 0 && !given) {
    std::vector<GivenToken> extra;
    for (int64_t i = 0; i < count; ++i) extra.emplace_back("<extra_id_" + std::to_string(i) + ">");
    builder.set_extra(extra);
  } else if (count > 0 && !given->empty()) {
    std::set<std::string> known;
    for (const GivenToken& token : *given) {
      if (python::contains(token.content, "extra_id")) known.insert(token.content);
    }
    if (known.size() != static_cast<std::size_t>(count)) {
      refuse("additional_special_tokens", "have as many extra_id as extra_ids says",
             std::to_string(known.size()));
    }
  }
  const std::pair<const char*, const char*> first[] = {
      {"pad_token", "<pad>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}};
  for (uint32_t id = 0; id < kByT5Specials; ++id) {
    PythonBuilder::Named token = builder.named(first[id].first, first[id].second);
    if (!token) refuse(first[id].first, "be a token of ByT5Tokenizer", "null");
    if (!token->has_flags) token->has_flags = token->lstrip = token->rstrip = true;
    builder.add_first(id, *token);
    builder.named(first[id].first, token);
  }
  builder.finish(std::make_unique<ByT5Class>());
  PythonTemplate around = builder.around("A eos_token", "A eos_token B eos_token");
  around.has_types = false;
  around.joins_last = true;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
