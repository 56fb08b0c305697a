#pragma once

#include <string>

#include "models/types/seq2seq_structures.h"
#include "posenc/transformer/tying.h"
#include "weights/load/source.h"

namespace posenc {

/// The tensors of a file, of whose matrices of the vocabulary those are left that a model reads.
///
/// As transformers 5 ties them: those that are absent are the one that stands for all, which is
/// `shared` or the first of the others that is there; those that are equal are one matrix, and
/// those that differ stay different. Without tying, `shared` stands for absent ones alone.
class Vocabulary : public io::SelectedSource {
 public:
  Vocabulary(const io::TensorSource& source, const VocabularyNames& names);

  Tying tying() const { return tying_; }
  /// The names of the three matrices; equal for those that are tied. Sources that are no tokens
  /// have none.
  const std::string& encoder() const { return encoder_; }
  const std::string& decoder() const { return decoder_; }
  const std::string& head() const { return head_; }
  /// The rules that load them.
  KeyMap keys() const;

 private:
  Tying tying_ = Tying::None;
  std::string encoder_, decoder_, head_;
};

}  // namespace posenc
