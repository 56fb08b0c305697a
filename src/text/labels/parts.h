#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inference/rows/frozen_call.h"
#include "posenc/text/text_classifier.h"
#include "text/sentence/text_rows.h"

namespace posenc::text {

/// What a TextClassifier holds.
struct TextClassifierParts {
  CrossEncoderFolder folder;
  FrozenClassifier model;
  Tokenizer tokenizer;
  std::optional<int64_t> max_length;
  RowRules rules;
  torch_internals::CallOptions call = {};
};

constexpr const char* kClassifier = "[TextClassifier] ";

/// Throws c10::ValueError unless the head is of that kind, which `function` is for.
void check_kind(const TextClassifierParts& parts, head::Kind kind, const char* function);

/// TextClassifier's functions of the same names.
std::vector<std::vector<TokenLabel>> label_tokens(const TextClassifierParts& parts,
                                                  const std::vector<std::string>& texts,
                                                  const TokenLabelOptions& options);
std::vector<Answer> answer(const TextClassifierParts& parts, const std::string& question,
                           const std::string& context, const AnswerOptions& options);
std::vector<std::vector<std::vector<MaskedToken>>> fill(const TextClassifierParts& parts,
                                                        const std::vector<std::string>& texts,
                                                        const FillMaskOptions& options);

}  // namespace posenc::text
