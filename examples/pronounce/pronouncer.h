#pragma once

#include <posenc/train/pair_loader.h>
#include <posenc/transformer/transformer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lexicon.h"

namespace pronounce {

/// The sizes and phonemes of a Pronouncer; stored as metadata in a saved model.
struct PronouncerOptions {
  int64_t d_model = 96, num_heads = 4, layers = 2, d_ff = 384;
  std::vector<std::string> phonemes;  ///< all that it can produce, sorted
  /// The words that it has not seen: hold_out() of a dictionary of this many words.
  int64_t words = 0, held_out = 1000, seed = 1;
};

/// A pronunciation with its log probability under the model.
struct Pronunciation {
  Phonemes phonemes;
  double score = 0.0;
};

/// Converts spelling to phonemes with a pre-norm Transformer that reads letters and writes
/// phonemes.
class Pronouncer {
 public:
  explicit Pronouncer(const PronouncerOptions& options);

  /// Read and write a safetensors file with `pronounce.*` metadata. Both throw std::runtime_error.
  static Pronouncer load(const std::string& path);
  void save(const std::string& path) const;

  /// Returns letters and phonemes as ids; the target includes the begin and end tokens.
  posenc::TokenPair pair_of(const std::string& word, const Phonemes& phonemes) const;
  /// Returns the label-smoothed loss of a batch.
  torch::Tensor loss(const posenc::PairBatch& batch, double label_smoothing);

  /// Returns the `n_best` best pronunciations of each word, best first, found by beam search with
  /// `beams` beams. Throws for an empty word and for characters other than a-z and A-Z.
  std::vector<std::vector<Pronunciation>> pronounce(const std::vector<std::string>& words,
                                                    int64_t beams = 1, int64_t n_best = 1);

  /// Returns the best pronunciation of each entry's word.
  std::vector<Phonemes> best(const std::vector<LexiconEntry>& entries, int64_t beams = 1);

  const PronouncerOptions& options() const { return options_; }
  posenc::Transformer model{nullptr};

 private:
  std::vector<int64_t> ids_of(const std::string& word) const;

  PronouncerOptions options_;
};

}  // namespace pronounce
