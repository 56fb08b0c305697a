#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A sound.
struct Waveform {
  torch::Tensor samples;  ///< (C, n) float32: channels of samples, of which full scale is 1
  int64_t rate = 0;       ///< samples of a channel per second, in Hz
};

/// Reads a WAV file: the chunks of RIFF, with samples as integers of 8 (unsigned), 16, 24 and 32
/// bits, divided by 2^(bits - 1), and as floating-point numbers of 32 and 64 bits, which are not
/// clipped; also as WAVE_FORMAT_EXTENSIBLE. Where `data` has size 0 or 0xFFFFFFFF, as programs
/// write it that do not know the end, the samples extend to the end of the file. A last frame that
/// is not complete is dropped.
///
/// Returns (C, n) float32 and the file's rate; n may be 0.
///
/// Errors: WeightsError, UnknownFormat for a file that is no WAV, Unsupported for another format of
/// samples (A-law, mu-law, ADPCM) or container (RF64, FLAC, MP3, Ogg), Truncated for one that has
/// frames fewer than it states, or shrinks while it is read, Corrupt for one without `fmt ` or
/// `data`, with no channels, a rate of 0 or above 10 MHz, or samples that are not finite.
///
/// Source: Multimedia Programming Interface and Data Specifications 1.0 (IBM, Microsoft, 1991).
Waveform read_wav(const std::string& path);

/// Reads an array of NumPy, float32 or float64, (n) or (C, n) with one or two channels, whose
/// samples have `rate` Hz.
///
/// Errors: c10::ValueError for a rate outside [1, 10,000,000]; WeightsError for a file that is no
/// such array, such as one of integers, whose scale it does not state, and for samples that are not
/// finite.
Waveform read_npy(const std::string& path, int64_t rate);

/// read_wav(), or read_npy() with `npy_rate`, by the file's content.
Waveform read_waveform(const std::string& path, int64_t npy_rate);

/// The mean of a waveform's channels: (C, n) -> (n).
///
/// Errors: c10::ValueError unless the samples are floating-point (C, n) with C > 0.
torch::Tensor mono(const Waveform& waveform);

/// Samples of another rate, as torchaudio.functional.resample() computes them by default: each is
/// the sum of the samples around it, weighted with a sinc under a Hann window of 6 zeros on either
/// side, whose cut-off is 0.99 of half the lower rate.
///
/// samples: (..., n), at `from` Hz  ->  (..., ceil(n to / from)), at `to` Hz, in the same dtype and
/// on the same device. With g = gcd(from, to), o = from / g, m = to / g, f = 0.99 min(o, m) and
/// w = ceil(6 o / f), the sample at phase p of m and the tap i in [-w, w + o) have the weight
/// f/o cos^2(pi t / 12) sin(pi t) / (pi t) with t = (i/o - p/m) f, or 0 where |t| > 6. Weights are
/// computed in float64 and rounded once; beyond its ends the sound is 0. Gradients flow to the
/// samples. Equal rates return `samples` itself.
///
/// ```cpp
/// torch::Tensor samples = torch::randn({2, 44100});
/// torch::Tensor resampled = posenc::resample(samples, 44100, 16000);  // (2, 16000)
/// ```
///
/// torchaudio rounds p/m to float32 first, which moves samples by up to 8e-5 of their distance (at
/// 11,025 Hz; 5e-7 at 8,000, 24,000 and 48,000); posenc does not.
///
/// Errors: c10::ValueError for rates below 1, and samples that are not floating-point.
torch::Tensor resample(const torch::Tensor& samples, int64_t from, int64_t to);

}  // namespace posenc
