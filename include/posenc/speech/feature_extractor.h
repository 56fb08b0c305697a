#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "posenc/export.h"
#include "posenc/speech/log_mel_spectrogram.h"
#include "posenc/speech/waveform.h"

namespace posenc POSENC_EXPORT {

/// Reads the settings of a WhisperFeatureExtractor from the folder of a model: `feature_extractor`
/// in processor_config.json if it is there, otherwise preprocessor_config.json. What the filters
/// are and how long a chunk is follows from them; `mel_filters`, `n_samples` and `nb_max_frames` of
/// older files are not read.
///
/// Errors: c10::ValueError for the class of another feature extractor, and for settings that
/// LogMelSpectrogram refuses or that are no numbers; WeightsError for files that cannot be read.
LogMelOptions log_mel_options_from_hf(const std::string& folder);

/// What a model of speech reads of a sound.
struct SpeechFeatures {
  torch::Tensor input_features;  ///< (1, M, F) float32
  torch::Tensor attention_mask;  ///< (1, F) int64: 1 for a frame of the sound, 0 for padding
};

/// The features of a sound, as transformers' WhisperFeatureExtractor computes them for its pipeline
/// of speech recognition.
///
/// The channels are averaged and resampled to `sampling_rate`. A sound of fewer than
/// chunk_length * sampling_rate samples is continued to that number by `padding_value`; a longer
/// one is neither padded nor cut. Then LogMelSpectrogram has F = n / hop_length frames, rounded
/// down. The mask has a 1 for each frame whose centre is in the sound.
///
/// ```cpp
/// posenc::WhisperFeatureExtractor extractor(posenc::LogMelOptions::whisper(80));
/// posenc::Waveform second = {torch::randn({2, 44100}), 44100};
/// torch::Tensor features = extractor.extract(second).input_features;  // (1, 80, 3000)
/// ```
///
/// Errors: c10::ValueError for a waveform that is not (C, n) with C > 0 and a rate, or, where its
/// rate is not that of the options, mono() and resample() refuse; and for options that
/// LogMelSpectrogram refuses.
///
/// Source: `WhisperFeatureExtractor`, `AutomaticSpeechRecognitionPipeline` (transformers 5.23.0).
class WhisperFeatureExtractor {
 public:
  /// With the given options.
  explicit WhisperFeatureExtractor(const LogMelOptions& options) : spectrogram_(options) {}

  /// Returns the features of a sound.
  SpeechFeatures extract(const Waveform& waveform) const;

  /// The options given to the constructor.
  const LogMelOptions& options() const { return spectrogram_->options; }

 private:
  LogMelSpectrogram spectrogram_;
};

}  // namespace posenc
