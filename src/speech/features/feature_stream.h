#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "posenc/speech/log_mel_spectrogram.h"
#include "speech/sound/mono_samples.h"

namespace posenc::speech {

/// Throws c10::ValueError for options that LogMelSpectrogram refuses.
void check_options(const LogMelOptions& options);
/// The frames of a sound, of which there is one. Throws c10::ValueError for too few samples.
int64_t frames_of_samples(const LogMelOptions& options, int64_t samples);
/// (B, M, frames): the logarithms of the energies in `padded`, a sound that was continued by n_fft
/// / 2 on both sides, or a part of it.
at::Tensor log_energies(const LogMelSpectrogramImpl& module, const at::Tensor& padded,
                        int64_t frames);
/// The spectrogram of these logarithms, of which `most` is the largest of the sound.
at::Tensor scaled_energies(const at::Tensor& y, const at::Tensor& most);

/// The spectrogram of a long sound by pieces: the samples are read once for the largest energy of
/// all frames, and again for each piece.
class FeatureStream {
 public:
  /// `samples` have the rate of the options, which have no dither. Throws as LogMelSpectrogram.
  FeatureStream(LogMelSpectrogram spectrogram, std::unique_ptr<sound::MonoSamples> samples);

  int64_t frames() const { return frames_; }
  /// Whether none is NaN or infinite.
  bool has_finite() const { return most_.isfinite().item<bool>(); }
  /// (M, count) from a frame on.
  at::Tensor read(int64_t begin, int64_t count) const;

 private:
  at::Tensor energies(int64_t begin, int64_t count) const;

  LogMelSpectrogram spectrogram_;
  std::unique_ptr<sound::MonoSamples> samples_;
  int64_t frames_;
  at::Tensor most_;
};

}  // namespace posenc::speech
