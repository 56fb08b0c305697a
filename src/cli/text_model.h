#pragma once

#include <string>
#include <vector>

#include "posenc/inference/frozen_classifier.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/text/tokenizer.h"

namespace posenc::cli {

/// A text, or two.
struct TextInput {
  std::string text, second;
  bool is_pair = false;
};

/// A frozen model with a head, and its tokenizer.
class TextModel {
 public:
  /// That in a folder; `kind` is read from it unless it is given.
  explicit TextModel(const std::string& folder, std::optional<head::Kind> kind = std::nullopt);

  /// What the folder says of a cross-encoder.
  const CrossEncoderFolder& folder() const { return folder_; }

  const FrozenClassifier& model() const { return model_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  /// How many texts can be encoded at a time: one, if there is no token to pad with.
  int64_t most_texts(int64_t wanted) const { return pad_ ? wanted : 1; }

  /// The tokens of a text, cut to what the model takes.
  Encoding tokens(const TextInput& input) const;
  /// The ids of several texts, padded, and what the model needs beside them.
  std::pair<torch::Tensor, EncoderInputs> batch(const std::vector<Encoding>& texts) const;

 private:
  CrossEncoderFolder folder_;
  FrozenClassifier model_;
  Tokenizer tokenizer_;
  std::optional<int64_t> pad_, most_tokens_;
};

}  // namespace posenc::cli
