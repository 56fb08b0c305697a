#include <string>
#include <utility>
#include <vector>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/normalizers/kinds.h"
#include "tokenizers/regex/pattern.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

class NormalForm : public Normalizer {
 public:
  explicit NormalForm(unicode::Form form) : form_(form) {}

  void normalize(AlignedText& text) const override {
    text.require_begin();
    std::vector<Change> changes;
    if (unicode::normalize(text.text(), form_, changes)) text.transform(changes);
  }

 private:
  unicode::Form form_;
};

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  void normalize(AlignedText& text) const override {
    const std::string& old = text.text();
    std::size_t begin = 0;
    for (std::size_t at = 0; left_ && at < old.size(); begin = at) {
      if (!unicode::is_white_space(next_character(old, at))) break;
    }
    std::size_t end = old.size();
    while (right_ && end > begin) {
      std::size_t last = previous_character(old, end);
      const std::size_t kept = last;
      if (!unicode::is_white_space(next_character(old, last))) break;
      end = kept;
    }
    if (begin == 0 && end == old.size()) return;
    text.require_begin();
    AlignedText::Edit edit(text);
    edit.drop(begin);
    edit.keep(end - begin);
    edit.drop(old.size() - end);
    edit.finish();
  }

 private:
  bool left_, right_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void normalize(AlignedText& text) const override {
    const std::string& old = text.text();
    AlignedText::Edit edit(text);
    Pattern::Matches matches(pattern_, old);
    for (Pattern::Match match{}; matches.next(match);) {
      edit.keep(match.begin - edit.at());
      edit.drop(match.end - match.begin);
      edit.insert(content_);
    }
    edit.finish();
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string text) : text_(std::move(text)) {}

  void normalize(AlignedText& text) const override { text.prepend(text_); }

 private:
  std::string text_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}

  void normalize(AlignedText& text) const override {
    for (const NormalizerPtr& step : steps_) {
      if (text.text().empty()) return;
      step->normalize(text);
    }
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

NormalizerPtr make_sequence(const Component& component) {
  std::vector<NormalizerPtr> steps;
  for (const auto& step : component.array("normalizers")) {
    if (step.is_null())
      refuse_component(component.part() + ": `normalizers`", "be components", step);
    steps.push_back(make_normalizer(step));
  }
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace

NormalizerPtr make_normalizer(const nlohmann::json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = component_type("normalizer", json);
  const Component component("normalizer " + type, json);
  if (type == "BertNormalizer" || type == "Bert") return make_bert_normalizer(component);
  if (type == "Strip") {
    const bool left = component.boolean("strip_left");
    return std::make_unique<StripNormalizer>(left, component.boolean("strip_right"));
  }
  if (type == "StripAccents") return make_strip_accents();
  if (type == "NFC") return std::make_unique<NormalForm>(unicode::Form::Nfc);
  if (type == "NFD") return std::make_unique<NormalForm>(unicode::Form::Nfd);
  if (type == "NFKC") return std::make_unique<NormalForm>(unicode::Form::Nfkc);
  if (type == "NFKD") return std::make_unique<NormalForm>(unicode::Form::Nfkd);
  if (type == "Sequence") return make_sequence(component);
  if (type == "Lowercase") return make_lowercase();
  if (type == "Nmt") return make_nmt();
  if (type == "Precompiled") return make_precompiled(component);
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(component_pattern(component),
                                               component.string("content"));
  }
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(component.string("prepend"));
  if (type == "ByteLevel") return make_byte_level_normalizer();
  throw TokenizerError("normalizer: `type` must be a class of tokenizers 0.23. Got \"" + type +
                       "\"");
}

}  // namespace posenc::text
