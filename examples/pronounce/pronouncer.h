#pragma once

#include <posenc/models/transformer.h>
#include <posenc/train/pair_loader.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lexicon.h"

namespace pronounce {

/// The sizes and the phonemes of a Pronouncer; a saved model carries them as metadata.
struct PronouncerOptions {
  int64_t d_model = 96, num_heads = 4, layers = 2, d_ff = 384;
  std::vector<std::string> phonemes;  ///< all that it can produce, sorted
};

/// One way to say a word, with its log probability under the model.
struct Pronunciation {
  Phonemes phonemes;
  double score = 0.0;
};

/// From spelling to phonemes: a pre-norm Transformer that reads letters and writes phonemes.
class Pronouncer {
 public:
  explicit Pronouncer(const PronouncerOptions& options);

  /// Reads or writes a safetensors file with `pronounce.*` metadata. Both throw std::runtime_error.
  static Pronouncer load(const std::string& path);
  void save(const std::string& path) const;

  /// Letters and phonemes as ids; the target gets its begin and end tokens.
  posenc::TokenPair pair_of(const std::string& word, const Phonemes& phonemes) const;
  /// The label-smoothed loss of a batch.
  torch::Tensor loss(const posenc::PairBatch& batch, double label_smoothing);

  /// The `n_best` best pronunciations of each word, best first, found by a search `beams` wide.
  /// Throws for an empty word and for characters other than a-z and A-Z.
  std::vector<std::vector<Pronunciation>> pronounce(const std::vector<std::string>& words,
                                                    int64_t beams = 1, int64_t n_best = 1);

  const PronouncerOptions& options() const { return options_; }
  posenc::Transformer model{nullptr};

 private:
  std::vector<int64_t> ids_of(const std::string& word) const;

  PronouncerOptions options_;
};

}  // namespace pronounce
