#include "speech/features/feature_stream.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/reflection_pad1d.h>

#include <algorithm>
#include <utility>

namespace posenc::speech {

FeatureStream::FeatureStream(LogMelSpectrogram spectrogram,
                             std::unique_ptr<sound::MonoSamples> samples)
    : spectrogram_(std::move(spectrogram)), samples_(std::move(samples)) {
  constexpr int64_t kPiece = 4096;  // frames
  frames_ = frames_of_samples(spectrogram_->options, samples_->size());
  for (int64_t begin = 0; begin < frames_; begin += kPiece) {
    const at::Tensor own = at::amax(energies(begin, std::min(kPiece, frames_ - begin)));
    most_ = most_.defined() ? at::maximum(most_, own) : own;
  }
}

at::Tensor FeatureStream::read(int64_t begin, int64_t count) const {
  return scaled_energies(energies(begin, count), most_)[0];
}

at::Tensor FeatureStream::energies(int64_t begin, int64_t count) const {
  const LogMelOptions& o = spectrogram_->options;
  const int64_t reach = o.n_fft() / 2, size = samples_->size();
  const int64_t first = begin * o.hop_length() - reach,
                length = (count - 1) * o.hop_length() + o.n_fft(), last = first + length;
  // Where the sound is reflected, the samples that are.
  const int64_t left = std::max<int64_t>(0, -first), right = std::max<int64_t>(0, last - size);
  const int64_t from = std::max<int64_t>(0, right > 0 ? std::min(first, size - right - 1) : first),
                to = std::min(size, left > 0 ? std::max(last, left + 1) : last);
  const at::Tensor part = samples_->read(from, to - from).view({1, 1, -1});
  const at::Tensor padded = at::reflection_pad1d(part, {left, right}).squeeze(1);
  return log_energies(*spectrogram_, padded.narrow(1, std::max<int64_t>(0, first - from), length),
                      count);
}

}  // namespace posenc::speech
