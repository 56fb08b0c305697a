#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/pre_tokenizers/pre_tokenizer.h"

namespace posenc::text {
namespace {

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}

  void split(SplitText& text) const override {
    for (const PreTokenizerPtr& step : steps_) step->split(text);
  }
  bool needs_offsets() const override {
    return std::any_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->needs_offsets(); });
  }

 private:
  std::vector<PreTokenizerPtr> steps_;
};

PreTokenizerPtr make_pre_tokenizer_sequence(const Component& component) {
  std::vector<PreTokenizerPtr> steps;
  for (const auto& step : component.array("pretokenizers")) {
    if (step.is_null())
      refuse_component(component.part() + ": `pretokenizers`", "be components", step);
    steps.push_back(make_pre_tokenizer(step));
  }
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

}  // namespace

PreTokenizerPtr make_pre_tokenizer(const nlohmann::json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = component_type("pre-tokenizer", json);
  const Component component("pre-tokenizer " + type, json);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "ByteLevel") return make_byte_level(component);
  if (type == "CharDelimiterSplit") return make_delimiter_split(component);
  if (type == "Metaspace") return make_metaspace(component);
  if (type == "Whitespace") return make_whitespace();
  if (type == "Sequence") return make_pre_tokenizer_sequence(component);
  if (type == "Split") return make_split(component);
  if (type == "Punctuation") return make_punctuation(component);
  if (type == "WhitespaceSplit") return make_whitespace_split();
  if (type == "Digits") return make_digits(component);
  if (type == "UnicodeScripts") return make_unicode_scripts();
  if (type == "FixedLength") return make_fixed_length(component);
  throw TokenizerError("pre-tokenizer: `type` must be a class of tokenizers 0.23. Got \"" + type +
                       "\"");
}

}  // namespace posenc::text
