#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "posenc/speech/waveform.h"

namespace posenc::sound {

/// The mean of a sound's channels, read by pieces.
class MonoSamples {
 public:
  MonoSamples() = default;
  MonoSamples(const MonoSamples&) = delete;
  MonoSamples& operator=(const MonoSamples&) = delete;
  virtual ~MonoSamples() = default;

  virtual int64_t rate() const = 0;
  virtual int64_t size() const = 0;
  /// (count) float32.
  virtual at::Tensor read(int64_t begin, int64_t count) const = 0;
};

/// That of a sound. Throws as mono().
std::unique_ptr<MonoSamples> mono_samples(const Waveform& sound);
/// That of a file, which stays open. Throws as read_waveform(), which read() does too.
std::unique_ptr<MonoSamples> mono_samples(const std::string& path, int64_t npy_rate);

/// The same at another rate, as resample() makes it of all.
std::unique_ptr<MonoSamples> at_rate(std::unique_ptr<MonoSamples> samples, int64_t rate);

}  // namespace posenc::sound
