#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/translate/languages.h"
#include "cli/translate/translate_lines.h"
#include "models/frozen/frozen_folder.h"
#include "posenc/inference/generate.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc::cli {

/// A text with its score: the log probability of its tokens / their number ^ length_penalty.
struct Translation {
  std::string text;
  double score = 0.0;
  /// With SearchOptions::alignments, the tokens after a target prefix, and for each the token of
  /// the source, counted from 0, that it attends to most.
  std::vector<int64_t> ids = {}, alignment = {};
};

/// Translates texts with the encoder-decoder in a folder.
class Translator {
 public:
  /// Throws CommandError, c10::ValueError and WeightsError.
  Translator(const std::string& folder, const SearchOptions& options, const FreezeOptions& freezing,
             const LoadOptions& load = {});

  const Tokenizer& tokenizer() const { return tokenizer_; }
  /// Maximum number of tokens in a source, including the end token.
  int64_t longest() const { return loaded_.model.options().most_tokens(); }

  /// The ids of a line with the prefix before it; none for a blank line.
  std::vector<int64_t> source(const std::string& line) const;
  /// How many ids of a source follow those of its text.
  std::size_t tokens_at_end() const { return tokens_at_end_; }

  int64_t source_vocabulary() const { return loaded_.model.options().src_vocab(); }

  /// The n best translations of each source, in the order of the sources; none of one that is not
  /// translated yet.
  using Translations = std::vector<std::vector<Translation>>;

  /// Translates sources of similar length together, next always the batch of the first source that
  /// is left, and calls `after_batch` with what has been found and for how many sources; if that
  /// returns false, the other sources are left out.
  void translate(
      const std::vector<std::vector<int64_t>>& sources,
      const std::function<bool(const Translations& found, std::size_t done)>& after_batch);

  /// Most tokens and sources of a batch.
  int64_t batch_tokens() const { return batch_tokens_; }
  int64_t batch_rows() const { return batch_rows_; }

 private:
  std::vector<std::vector<Hypothesis>> search(const std::vector<std::vector<int64_t>>& sources,
                                              const std::vector<std::size_t>& batch);
  /// The sources of each batch.
  std::vector<std::vector<std::size_t>> batches_of(
      const std::vector<std::vector<int64_t>>& sources) const;
  /// The texts of a source's hypotheses, best first.
  std::vector<Translation> translations_of(const std::vector<Hypothesis>& found) const;

  FrozenSeq2Seq loaded_;
  Settings settings_;
  GenerateOptions generation_;
  Tokenizer tokenizer_;
  Languages languages_;
  std::string prefix_;
  std::size_t blank_tokens_, tokens_at_end_;
  int64_t batch_tokens_, batch_rows_ = 1;
};

}  // namespace posenc::cli
