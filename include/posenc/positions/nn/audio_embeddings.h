#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/learned_position_embedding.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// Options of AudioEmbeddings.
struct AudioEmbeddingsOptions {
  /// The default options for features (B, num_mel_bins, num_frames) and vectors of width d_model.
  AudioEmbeddingsOptions(int64_t num_mel_bins, int64_t d_model, int64_t num_frames = 3000)
      : num_mel_bins_(num_mel_bins), d_model_(d_model), num_frames_(num_frames) {}

  /// How many positions a sound has: one for every two frames.
  int64_t num_positions() const { return num_frames() / 2; }

  /// Number M of features of each frame.
  TORCH_ARG(int64_t, num_mel_bins);
  /// Width D of the vectors.
  TORCH_ARG(int64_t, d_model);
  /// Number W of frames of every sound, even: Whisper's 3000 are 30 seconds.
  TORCH_ARG(int64_t, num_frames);
  /// A trained table of positions in place of the sinusoid.
  TORCH_ARG(bool, learned_positions) = false;
  /// The sinusoid of the positions; by default Whisper's. Its dim must be d_model.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Probability of zeroing an element of the sum in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.0;

  POSENC_FIELDS(AudioEmbeddingsOptions, num_mel_bins_, d_model_, num_frames_, learned_positions_,
                sinusoid_);
  POSENC_TRAINING_FIELDS(dropout_);
};

/// The embeddings of a speech encoder: two convolutions over the frames of log-mel features, the
/// second of which halves their number, each before an exact GELU, and positions:
/// dropout(gelu(conv2(gelu(conv1(features))))^T + positions).
///
/// input_features: (B, M, W), as LogMelSpectrogram computes them  ->  (B, W / 2, D).
///
/// ```cpp
/// posenc::AudioEmbeddingsOptions options(/*num_mel_bins=*/80, /*d_model=*/8, /*num_frames=*/100);
/// posenc::AudioEmbeddings embeddings(options);
/// torch::Tensor x = embeddings->forward(torch::randn({2, 80, 100}));  // (2, 50, 8)
/// ```
///
/// Keys: `conv1.weight` (D, M, 3), `conv1.bias` (D), `conv2.weight` (D, D, 3), `conv2.bias` (D),
/// and `position_encoding.pe` (1, W / 2, D), a buffer, or `position_embedding.weight` (W / 2, D) of
/// a trained table.
///
/// Errors: c10::ValueError for features of another shape; c10::TypeError for another dtype than
/// that of the weights, unless autocast converts both; at construction, c10::ValueError for sizes
/// that are not positive and an odd number of frames, and those of the sinusoid.
///
/// Source: `WhisperEncoder` in transformers 5.23.
class AudioEmbeddingsImpl : public Cloneable<AudioEmbeddingsImpl> {
 public:
  /// A module with the given options.
  explicit AudioEmbeddingsImpl(AudioEmbeddingsOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the embedded frames.
  torch::Tensor forward(const torch::Tensor& input_features);

  AudioEmbeddingsOptions options;                        ///< the options given to the constructor
  torch::nn::Conv1d conv1{nullptr},                      ///< (M) to (D), of three frames
      conv2{nullptr};                                    ///< (D) to (D), of three frames, two apart
  PositionalEncoding position_encoding{nullptr};         ///< the sinusoid; null without one
  LearnedPositionEmbedding position_embedding{nullptr};  ///< the trained table; null without one
  torch::nn::Dropout dropout{nullptr};                   ///< applied to the sum
};

TORCH_MODULE(AudioEmbeddings);

}  // namespace posenc
