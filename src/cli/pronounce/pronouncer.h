#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pronounce/lexicon.h"
#include "posenc/models/transformer.h"
#include "posenc/train/pair_loader.h"

namespace posenc::cli {

/// What a Pronouncer is made of; the file of a model has it as metadata.
struct PronouncerOptions {
  int64_t d_model = 96, num_heads = 4, layers = 2, d_ff = 384;
  std::vector<std::string> phonemes;  ///< all that it can say, sorted
};

/// A way to say a word, and its log probability by the model.
struct Pronunciation {
  Phonemes phonemes;
  double score = 0.0;
};

/// Spelling to phonemes: a pre-norm Transformer that reads letters and writes phonemes.
class Pronouncer {
 public:
  explicit Pronouncer(const PronouncerOptions& options);

  /// Reads and writes a file of weights with `pronounce.*` metadata. Refuse, or throw WeightsError.
  static Pronouncer load(const std::string& path);
  void save(const std::string& path) const;

  /// Letters and phonemes as ids, with the target's begin and end.
  TokenPair pair_of(const std::string& word, const Phonemes& phonemes) const;
  /// The loss of a batch of pairs, label smoothed.
  torch::Tensor loss(const PairBatch& batch, double label_smoothing);

  /// The n best pronunciations of each word, best first, by a search `beams` wide. Refuses an empty
  /// word and a character that is no letter of a-z; capitals are read as small letters.
  std::vector<std::vector<Pronunciation>> pronounce(const std::vector<std::string>& words,
                                                    int64_t beams = 1, int64_t n_best = 1);

  const PronouncerOptions& options() const { return options_; }
  Transformer model{nullptr};

 private:
  std::vector<int64_t> ids_of(const std::string& word) const;

  PronouncerOptions options_;
};

}  // namespace posenc::cli
