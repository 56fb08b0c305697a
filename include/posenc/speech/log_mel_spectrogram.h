#pragma once

#include <torch/arg.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Options of LogMelSpectrogram and WhisperFeatureExtractor, with the names and defaults of
/// transformers' WhisperFeatureExtractor; log_mel_options_from_hf() has those of real models.
struct LogMelOptions {
  LogMelOptions() = default;
  /// Those of Whisper's models, which have 80 filters; large-v3 and turbo have 128.
  static LogMelOptions whisper(int64_t feature_size) {
    return LogMelOptions().feature_size(feature_size);
  }

  /// M, the number of filters.
  TORCH_ARG(int64_t, feature_size) = 80;
  /// Samples per second, in Hz.
  TORCH_ARG(int64_t, sampling_rate) = 16000;
  /// Samples from one frame to the next.
  TORCH_ARG(int64_t, hop_length) = 160;
  /// Samples of a frame, which is the length of the Fourier transform.
  TORCH_ARG(int64_t, n_fft) = 400;
  /// The seconds to which WhisperFeatureExtractor pads a shorter sound.
  TORCH_ARG(int64_t, chunk_length) = 30;
  /// What it pads with.
  TORCH_ARG(double, padding_value) = 0.0;
  /// Factor of the normal noise that is added to the samples.
  TORCH_ARG(double, dither) = 0.0;

  POSENC_FIELDS(LogMelOptions, feature_size_, sampling_rate_, hop_length_, n_fft_, chunk_length_,
                padding_value_, dither_);
};

/// The spectrogram that Whisper reads: the logarithm of the energy in bands of frequency, which are
/// equally wide on the mel scale.
///
/// samples: (B, n)  ->  (B, M, n / hop_length rounded down), in the dtype of the buffers; an odd
/// n_fft has the frames of n - 1 samples.
///
/// The sound is continued by reflection by n_fft / 2 on both sides, so that frame k is centred at
/// sample k hop_length. Of each frame under a periodic Hann window, X is the discrete Fourier
/// transform, and the result (max(y, m - 8) + 4) / 4 with y = log10(max(filters |X|^2, 1e-10)) and
/// m the largest y of a row of the batch. The last of the centred frames is left out. Triangles of
/// `filters` have corners equally far apart on Slaney's mel scale from 0 to 8,000 Hz, whatever the
/// sampling rate, and area 1 in Hz. In evaluation and in training, `dither` times normal noise is
/// added to the samples first. Gradients flow to the samples.
///
/// ```cpp
/// posenc::LogMelSpectrogram spectrogram(posenc::LogMelOptions::whisper(80));
/// torch::Tensor second = torch::randn({2, 16000});
/// torch::Tensor x = spectrogram->forward(second);  // (2, 80, 100)
/// ```
///
/// Keys: none, as `filters` and `window` are not persistent: files of models do not have them.
///
/// Memory is that of a copy of the samples, the result twice, and 512 frames, unless gradients are
/// recorded.
///
/// Errors: c10::ValueError for sizes below 1, a sampling_rate above 10,000,000, a chunk of more
/// than 2^28 samples, n_fft below 2, numbers that are not finite; for samples that are not (B, n)
/// in the dtype of the buffers, or not longer than n_fft / 2 and at least a hop.
///
/// Source: `WhisperFeatureExtractor` (transformers 5.23.0), its float32 computation by torch;
/// `log_mel_spectrogram` of openai-whisper.
class LogMelSpectrogramImpl : public Cloneable<LogMelSpectrogramImpl>, public StateDictTraits {
 public:
  /// A module with the given options.
  explicit LogMelSpectrogramImpl(LogMelOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::vector<std::string> non_persistent_names() const override;

  /// Returns the spectrogram of each row.
  torch::Tensor forward(const torch::Tensor& samples);

  LogMelOptions options;  ///< the options given to the constructor
  torch::Tensor filters;  ///< (M, n_fft / 2 + 1)
  torch::Tensor window;   ///< (n_fft)
};

TORCH_MODULE(LogMelSpectrogram);

}  // namespace posenc
