#include "speech/sound/mono_samples.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "speech/sound/rate.h"
#include "speech/sound/sound_file.h"

namespace posenc::sound {
namespace {

class OfWaveform : public MonoSamples {
 public:
  explicit OfWaveform(Waveform sound) : sound_(std::move(sound)) {
    check_rate("transcribe", "rate", sound_.rate);
    mono({sound_.samples.defined() ? sound_.samples.slice(-1, 0, 0) : sound_.samples, sound_.rate});
  }
  int64_t rate() const override { return sound_.rate; }
  int64_t size() const override { return sound_.samples.size(1); }
  at::Tensor read(int64_t begin, int64_t count) const override {
    return mono({sound_.samples.narrow(1, begin, count), sound_.rate}).to(at::kFloat);
  }

 private:
  Waveform sound_;
};

class OfFile : public MonoSamples {
 public:
  OfFile(const std::string& path, int64_t npy_rate)
      : path_(path), file_(path), sound_(is_npy(file_) ? find_npy(file_) : find_wav(file_)) {
    if (sound_.rate == 0) sound_.rate = npy_rate;
  }
  int64_t rate() const override { return sound_.rate; }
  int64_t size() const override { return sound_.frames; }
  at::Tensor read(int64_t begin, int64_t count) const override {
    at::Tensor samples = at::empty({sound_.channels, count}, at::kFloat);
    io::in_context("read_waveform", path_, [&] {
      read_samples(file_, sound_, begin, count, samples.mutable_data_ptr<float>());
    });
    return mono({samples, sound_.rate});
  }

 private:
  std::string path_;
  io::InputFile file_;
  StoredSound sound_;
};

// The outputs of a period of the two rates depend on the samples of that period and those that the
// weights reach on either side, so that a piece of whole periods has the outputs of the whole.
class Resampled : public MonoSamples {
 public:
  Resampled(std::unique_ptr<MonoSamples> samples, int64_t rate)
      : samples_(std::move(samples)),
        rate_(rate),
        before_(samples_->rate() / std::gcd(samples_->rate(), rate)),
        after_(rate / std::gcd(samples_->rate(), rate)),
        reach_(1 + static_cast<int64_t>(
                       std::ceil(7.0 / (0.99 * static_cast<double>(std::min(before_, after_)))))) {}
  int64_t rate() const override { return rate_; }
  int64_t size() const override { return (samples_->size() * after_ + before_ - 1) / before_; }
  at::Tensor read(int64_t begin, int64_t count) const override {
    const int64_t first = std::max<int64_t>(0, begin / after_ - reach_),
                  last = (begin + count - 1) / after_ + 1 + reach_;
    const int64_t from = std::min(first * before_, samples_->size()),
                  to = std::min(last * before_, samples_->size());
    const at::Tensor part = resample(samples_->read(from, to - from), samples_->rate(), rate_);
    return part.narrow(0, begin - first * after_, count);
  }

 private:
  std::unique_ptr<MonoSamples> samples_;
  int64_t rate_, before_, after_, reach_;  // periods
};

}  // namespace

std::unique_ptr<MonoSamples> mono_samples(const Waveform& sound) {
  return std::make_unique<OfWaveform>(sound);
}

std::unique_ptr<MonoSamples> mono_samples(const std::string& path, int64_t npy_rate) {
  check_rate("read_waveform", "npy_rate", npy_rate);
  return io::in_context("read_waveform", path,
                        [&] { return std::make_unique<OfFile>(path, npy_rate); });
}

std::unique_ptr<MonoSamples> at_rate(std::unique_ptr<MonoSamples> samples, int64_t rate) {
  if (samples->rate() == rate) return samples;
  return std::make_unique<Resampled>(std::move(samples), rate);
}

}  // namespace posenc::sound
