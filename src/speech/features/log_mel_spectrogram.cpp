#include "posenc/speech/log_mel_spectrogram.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/hann_window.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/reflection_pad1d.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "speech/features/feature_stream.h"
#include "speech/sound/rate.h"

namespace posenc {
namespace {

constexpr double kHighest = 8000.0;  // of the filters, in Hz

// Slaney's scale: linear below 1,000 Hz, logarithmic above.
constexpr double kKnee = 1000.0, kMelOfKnee = 15.0, kMelsPerHz = 3.0 / 200.0;
const double kMelsPerLog = 27.0 / std::log(6.4);

double mel_of(double hz) {
  return hz < kKnee ? hz * kMelsPerHz : kMelOfKnee + std::log(hz / kKnee) * kMelsPerLog;
}

double hz_of(double mel) {
  return mel < kMelOfKnee ? mel / kMelsPerHz : kKnee * std::exp((mel - kMelOfKnee) / kMelsPerLog);
}

// (M, bins) float32.
at::Tensor mel_filters(const LogMelOptions& o) {
  const int64_t count = o.feature_size(), bins = o.n_fft() / 2 + 1;
  const double mel_step = mel_of(kHighest) / static_cast<double>(count + 1),
               bin_step =
                   static_cast<double>(o.sampling_rate() / 2) / static_cast<double>(bins - 1);
  const auto corner = [&](int64_t i) { return hz_of(static_cast<double>(i) * mel_step); };
  at::Tensor filters = at::empty({count, bins}, at::kFloat);
  float* at = filters.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    const double left = corner(i), middle = corner(i + 1), right = corner(i + 2);
    for (int64_t bin = 0; bin < bins; ++bin) {
      const double hz = static_cast<double>(bin) * bin_step;
      const double height =
          std::min((hz - left) / (middle - left), (right - hz) / (right - middle));
      *at++ = static_cast<float>(std::max(0.0, height) * 2.0 / (right - left));
    }
  }
  return filters;
}

void check_samples(const at::Tensor& samples, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(samples.defined() && samples.dim() == 2,
                    "[LogMelSpectrogram] samples must be (B, n). Got ",
                    samples.defined() ? samples.sizes() : at::IntArrayRef());
  TORCH_CHECK_VALUE(samples.scalar_type() == dtype,
                    "[LogMelSpectrogram] samples must have the dtype of the buffers, ", dtype,
                    ". Got ", samples.scalar_type());
}

}  // namespace

LogMelSpectrogramImpl::LogMelSpectrogramImpl(LogMelOptions options_) : options(options_) {
  LogMelSpectrogramImpl::reset();
}

void LogMelSpectrogramImpl::reset() {
  speech::check_options(options);
  filters = register_buffer("filters", mel_filters(options));
  window = register_buffer("window", at::hann_window(options.n_fft(), at::kFloat));
}

void LogMelSpectrogramImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "LogMelSpectrogram", options, LogMelOptions());
}

std::vector<std::string> LogMelSpectrogramImpl::non_persistent_names() const {
  return {"filters", "window"};
}

torch::Tensor LogMelSpectrogramImpl::forward(const torch::Tensor& samples) {
  const LogMelOptions& o = options;
  check_samples(samples, filters.scalar_type());
  const int64_t n_fft = o.n_fft(), frames = speech::frames_of_samples(o, samples.size(1));
  if (samples.size(0) == 0) return samples.new_empty({0, o.feature_size(), frames});
  const at::Tensor noisy =
      o.dither() == 0.0 ? samples : samples + at::randn_like(samples) * o.dither();
  const at::Tensor padded =
      at::reflection_pad1d(noisy.unsqueeze(1), {n_fft / 2, n_fft / 2}).squeeze(1);
  const at::Tensor y = speech::log_energies(*this, padded, frames);
  return speech::scaled_energies(y, at::amax(y, {1, 2}, /*keepdim=*/true));
}

namespace speech {

void check_options(const LogMelOptions& o) {
  constexpr const char* kName = "LogMelSpectrogram";
  constexpr int64_t kMostSamples = int64_t{1} << 28;
  check_positive(kName, "feature_size", o.feature_size());
  sound::check_rate(kName, "sampling_rate", o.sampling_rate());
  check_positive(kName, "hop_length", o.hop_length());
  check_positive(kName, "chunk_length", o.chunk_length());
  TORCH_CHECK_VALUE(o.n_fft() >= 2, "[LogMelSpectrogram] n_fft must be at least 2. Got ",
                    o.n_fft());
  TORCH_CHECK_VALUE(o.chunk_length() <= kMostSamples / o.sampling_rate(),
                    "[LogMelSpectrogram] chunk_length * sampling_rate must be at most ",
                    kMostSamples, ". Got ", o.chunk_length(), " * ", o.sampling_rate());
  TORCH_CHECK_VALUE(std::isfinite(o.padding_value()),
                    "[LogMelSpectrogram] padding_value must be finite. Got ", o.padding_value());
  TORCH_CHECK_VALUE(std::isfinite(o.dither()), "[LogMelSpectrogram] dither must be finite. Got ",
                    o.dither());
}

int64_t frames_of_samples(const LogMelOptions& o, int64_t samples) {
  const int64_t least = std::max(o.n_fft() / 2 + 1, o.hop_length() + o.n_fft() % 2);
  TORCH_CHECK_VALUE(samples >= least, "[LogMelSpectrogram] samples must be at least ", least,
                    " for n_fft ", o.n_fft(), " and hop_length ", o.hop_length(), ". Got ",
                    samples);
  return (samples - o.n_fft() % 2) / o.hop_length();
}

at::Tensor log_energies(const LogMelSpectrogramImpl& module, const at::Tensor& padded,
                        int64_t frames) {
  constexpr int64_t kBlock = 512;  // frames, whose spectrum stays in a cache
  const int64_t n_fft = module.options.n_fft(), hop = module.options.hop_length();
  std::vector<at::Tensor> energies;
  for (int64_t begin = 0; begin < frames; begin += kBlock) {
    const int64_t count = std::min(kBlock, frames - begin);
    const at::Tensor rows =
        padded.narrow(1, begin * hop, (count - 1) * hop + n_fft).unfold(1, n_fft, hop);
    const at::Tensor spectrum = at::fft_rfft(rows * module.window);  // (B, count, bins)
    const at::Tensor power = at::real(spectrum).square() + at::imag(spectrum).square();
    energies.push_back(at::matmul(power, module.filters.t()).transpose(1, 2));
  }
  return at::cat(energies, 2).clamp_min_(1e-10).log10_();
}

at::Tensor scaled_energies(const at::Tensor& y, const at::Tensor& most) {
  return at::maximum(y, most - 8.0).add_(4.0).div_(4.0);
}

}  // namespace speech
}  // namespace posenc
