#include "speech/sound_frames.h"

#include <optional>
#include <utility>

#include "speech/features/feature_stream.h"

namespace posenc::speech {
namespace {

class OfTensor : public SoundFrames {
 public:
  OfTensor(at::Tensor features, int64_t frames, std::optional<int64_t> sounding)
      : features_(std::move(features)), frames_(frames), sounding_(sounding) {}
  int64_t frames() const override { return frames_; }
  int64_t width() const override { return features_.size(1); }
  std::optional<int64_t> sounding() const override { return sounding_; }
  bool has_finite() const override { return features_.isfinite().all().item<bool>(); }
  at::Tensor read(int64_t begin, int64_t count) const override {
    return features_.narrow(1, begin, count);
  }

 private:
  at::Tensor features_;
  int64_t frames_;
  std::optional<int64_t> sounding_;
};

class OfStream : public SoundFrames {
 public:
  explicit OfStream(FeatureStream stream) : stream_(std::move(stream)) {}
  int64_t frames() const override { return stream_.frames(); }
  std::optional<int64_t> sounding() const override { return stream_.frames(); }
  bool has_finite() const override { return stream_.has_finite(); }
  at::Tensor read(int64_t begin, int64_t count) const override {
    return stream_.read(begin, count);
  }

 private:
  FeatureStream stream_;
};

}  // namespace

std::unique_ptr<SoundFrames> frames_of(const WhisperFeatureExtractor& extractor,
                                       std::unique_ptr<sound::MonoSamples> samples) {
  const LogMelOptions& o = extractor.options();
  const int64_t size = samples->size();
  const bool is_padded = size <= o.chunk_length() * o.sampling_rate();
  if (!is_padded && o.dither() == 0.0)  // noise would be another each time that samples are read
    return std::make_unique<OfStream>(FeatureStream(LogMelSpectrogram(o), std::move(samples)));
  const SpeechFeatures features =
      extractor.extract({samples->read(0, size).unsqueeze(0), o.sampling_rate()});
  const at::Tensor& own = features.input_features;
  return std::make_unique<OfTensor>(own[0], size == 0 ? 0 : own.size(2),
                                    features.attention_mask.sum().item<int64_t>());
}

std::unique_ptr<SoundFrames> frames_of(const SpeechFeatures& features, int64_t row,
                                       int64_t window) {
  const at::Tensor& x = features.input_features;
  std::optional<int64_t> sounding;
  if (features.attention_mask.defined())
    sounding = features.attention_mask[row].sum().item<int64_t>();
  const bool ends_by_mask = x.size(0) > 1 && x.size(2) > window;
  return std::make_unique<OfTensor>(x[row], ends_by_mask ? *sounding : x.size(2), sounding);
}

}  // namespace posenc::speech
