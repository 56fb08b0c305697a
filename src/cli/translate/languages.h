#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/inference/generate_options.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/transformer/transformer.h"

namespace posenc::cli {

/// The tokens that stand for the languages of a translation model.
class Languages {
 public:
  /// `source` and `target` are codes as the model's tokenizer spells them, such as fra_Latn of
  /// NLLB, fr_XX of mBART, fr of M2M-100 and >>fra<< or fra of Marian; empty: the folder's own.
  /// Throws CommandError for a model whose tokenizer has no such tokens or that has none of their
  /// ids, and for an unknown code.
  Languages(const Tokenizer& tokenizer, const TransformerOptions& model, const std::string& source,
            const std::string& target);

  /// The ids of a source with the languages: that of the source replaces the one that the tokenizer
  /// writes beside every text, and that of the target, where it is part of the source, is put
  /// before a line that does not begin with a language of its own.
  std::vector<int64_t> source(std::vector<int64_t> ids) const;
  /// Sets the token that each target begins with, after its start.
  void set_target(GenerateOptions& options) const;

 private:
  enum class Side { None, Front, Back };           // of a source, where its own language is
  enum class TargetSide { None, Source, Target };  // of the target's token

  bool is_language(int64_t id) const;

  std::vector<int64_t> all_;  // sorted
  int64_t source_ = -1, target_ = -1;
  Side side_ = Side::None;
  TargetSide target_side_ = TargetSide::None;
};

}  // namespace posenc::cli
