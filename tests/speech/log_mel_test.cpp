// tests/speech/commands_test.py and tests/differential/speech.py run transformers beside the
// features.

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "posenc/core/skip_init.h"
#include "posenc/speech/feature_extractor.h"
#include "posenc/speech/log_mel_spectrogram.h"
#include "posenc/weights/state_dict.h"
#include "support/compare.h"
#include "support/default_dtype.h"
#include "support/devices.h"

namespace posenc {
namespace {

using testing::bit_equal;

const LogMelOptions kSmall = LogMelOptions().feature_size(5).n_fft(16).hop_length(6);

double worst(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

// The documented formula with a Fourier transform that is written out, in float64.
torch::Tensor spectrogram_as_documented(const torch::Tensor& samples,
                                        LogMelSpectrogram spectrogram) {
  const LogMelOptions& o = spectrogram->options;
  const int64_t half = o.n_fft() / 2, bins = half + 1,
                frames = (samples.size(1) - o.n_fft() % 2) / o.hop_length();
  const auto n = torch::arange(o.n_fft(), torch::kDouble);
  const auto window = 0.5 - 0.5 * (n * (2 * M_PI / static_cast<double>(o.n_fft()))).cos();
  const auto angles = torch::arange(bins, torch::kDouble).unsqueeze(1) * n *
                      (2 * M_PI / static_cast<double>(o.n_fft()));
  const auto x = samples.to(torch::kDouble);
  const auto padded = torch::cat(
      {x.slice(1, 1, half + 1).flip(1), x, x.slice(1, x.size(1) - half - 1, x.size(1) - 1).flip(1)},
      1);
  std::vector<torch::Tensor> rows;
  for (int64_t k = 0; k < frames; ++k) {
    const auto frame = padded.slice(1, k * o.hop_length(), k * o.hop_length() + o.n_fft()) * window;
    rows.push_back(frame.matmul(angles.cos().t()).square() +
                   frame.matmul(angles.sin().t()).square());
  }
  const auto energy = torch::stack(rows, 2);
  const auto y = spectrogram->filters.to(torch::kDouble).matmul(energy).clamp_min(1e-10).log10();
  return (torch::maximum(y, y.amax({1, 2}, true) - 8) + 4) / 4;
}

TEST(LogMelSpectrogram, IsTheDocumentedFormula) {
  for (const auto& o : {kSmall, LogMelOptions::whisper(80), LogMelOptions::whisper(128),
                        LogMelOptions(kSmall).n_fft(17).sampling_rate(8000),
                        LogMelOptions().n_fft(1000).hop_length(333).sampling_rate(44100)}) {
    LogMelSpectrogram spectrogram(o);
    const auto samples = torch::randn({2, 4001}) * torch::tensor({{1.0}, {1e-4}}).to(torch::kFloat);
    const auto found = spectrogram->forward(samples);
    EXPECT_EQ(found.sizes(), (std::vector<int64_t>{2, o.feature_size(), 4001 / o.hop_length()}));
    EXPECT_TRUE(found.is_contiguous());
    EXPECT_LE(worst(found, spectrogram_as_documented(samples, spectrogram)), 2e-5);
  }
}

// More frames than are transformed at a time: each is that of the samples around it.
TEST(LogMelSpectrogram, FramesDoNotDependOnTheirNumber) {
  LogMelSpectrogram spectrogram(kSmall);
  const auto samples = torch::randn({1, 6 * 2000});
  const auto whole = spectrogram->forward(samples);
  const auto end = spectrogram->forward(samples.slice(1, 6 * 1500));
  EXPECT_EQ(whole.size(2), 2000);
  EXPECT_LE(worst(whole.slice(2, 1510), end.slice(2, 10)), 1e-4);
}

TEST(LogMelSpectrogram, RowsHaveTheirOwnMaximum) {
  LogMelSpectrogram spectrogram(LogMelOptions::whisper(80));
  const auto loud = torch::randn({1, 3200}) * 100, silent = torch::zeros({1, 3200});
  const auto both = spectrogram->forward(torch::cat({loud, silent}));
  EXPECT_LE(worst(both.slice(0, 0, 1), spectrogram->forward(loud)), 1e-6);
  EXPECT_TRUE((both[1] == -1.5).all().item<bool>());
}

// 1e-4 of the largest filter: triangles of area 1 in Hz, the first corner at 0 and the last at
// 8,000 Hz, the highest frequency of 16,000 samples a second.
TEST(LogMelSpectrogram, FiltersAreTrianglesOfAreaOne) {
  LogMelSpectrogram spectrogram(LogMelOptions::whisper(20).n_fft(4000));
  const auto& filters = spectrogram->filters;
  EXPECT_EQ(filters.sizes(), (std::vector<int64_t>{20, 2001}));
  EXPECT_LE(worst(filters.sum(1) * 4.0, torch::ones({20})), 1e-3);
  EXPECT_EQ(filters[0][0].item<float>(), 0.0F);
  EXPECT_GT(filters[0][1].item<float>(), 0.0F);
  EXPECT_GT(filters[19][1999].item<float>(), 0.0F);
  EXPECT_LE(filters[19][2000].item<float>(), 1e-12F);
}

// Central differences in float64, on a formula that is smooth almost everywhere.
TEST(LogMelSpectrogram, GradientsAreThoseOfTheFormula) {
  LogMelSpectrogram spectrogram(kSmall);
  spectrogram->to(torch::kDouble);
  const auto samples = torch::randn({2, 31}, torch::kDouble).requires_grad_();
  const auto upstream = torch::randn({2, 5, 5}, torch::kDouble);
  const auto loss = [&](const torch::Tensor& x) {
    return (spectrogram->forward(x) * upstream).sum();
  };
  loss(samples).backward();
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  auto numeric = torch::zeros_like(samples);
  for (int64_t i = 0; i < samples.numel(); ++i) {
    auto moved = samples.detach().clone();
    moved.view(-1)[i] += kStep;
    const auto more = loss(moved);
    moved.view(-1)[i] -= 2 * kStep;
    numeric.view(-1)[i] = (more - loss(moved)) / (2 * kStep);
  }
  EXPECT_LE(worst(samples.grad(), numeric), 1e-6);
  EXPECT_GT(numeric.abs().max().item<double>(), 1e-2);
}

TEST(LogMelSpectrogram, DitherIsNoiseOnTheSamples) {
  LogMelSpectrogram noisy(LogMelOptions(kSmall).dither(0.25)), plain(kSmall);
  const auto samples = torch::randn({2, 100});
  torch::manual_seed(5);
  const auto found = noisy->forward(samples);
  torch::manual_seed(5);
  EXPECT_TRUE(bit_equal(found, plain->forward(samples + torch::randn_like(samples) * 0.25)));
  EXPECT_FALSE(bit_equal(found, noisy->forward(samples)));
}

TEST(LogMelSpectrogram, HasBuffersThatNoFileHas) {
  LogMelSpectrogram spectrogram(kSmall);
  EXPECT_TRUE(state_dict(*spectrogram).is_empty());
  EXPECT_EQ(spectrogram->named_buffers().keys(), (std::vector<std::string>{"filters", "window"}));
  EXPECT_TRUE(spectrogram->parameters().empty());
  std::ostringstream text;
  text << *spectrogram;
  EXPECT_EQ(text.str(), "posenc::LogMelSpectrogram(feature_size=5, hop_length=6, n_fft=16)");
}

TEST(LogMelSpectrogram, ClonesAndFollowsTheDtype) {
  LogMelSpectrogram spectrogram(kSmall);
  const auto samples = torch::randn({1, 200});
  const auto before = spectrogram->forward(samples);
  auto copy = std::dynamic_pointer_cast<LogMelSpectrogramImpl>(spectrogram->clone());
  copy->filters.zero_();
  EXPECT_TRUE(bit_equal(spectrogram->forward(samples), before));
  EXPECT_FALSE(bit_equal(copy->forward(samples), before));
  const testing::DefaultDtype guard(torch::kDouble);
  LogMelSpectrogram other(kSmall);
  EXPECT_TRUE(bit_equal(other->forward(samples), before)) << "buffers are float32";
  other->to(torch::kDouble);
  const auto precise = other->forward(samples.to(torch::kDouble));
  EXPECT_EQ(precise.scalar_type(), torch::kDouble);
  EXPECT_LE(worst(precise, before), 1e-5);
}

class LogMelOn : public testing::OnEachDevice {};
POSENC_ON_EACH_DEVICE(LogMelOn);

TEST_P(LogMelOn, RunsOnTheDevice) {
  LogMelSpectrogram spectrogram(kSmall);
  const auto samples = torch::randn({2, 200});
  const auto before = spectrogram->forward(samples);
  spectrogram->to(device());
  const auto there = spectrogram->forward(samples.to(device()));
  EXPECT_EQ(there.device(), device());
  EXPECT_LE(worst(there.cpu(), before), 1e-5);
}

TEST(LogMelSpectrogram, RefusesOptionsAndSamples) {
  EXPECT_ERROR(LogMelSpectrogram(LogMelOptions::whisper(0)), c10::ValueError,
               "[LogMelSpectrogram] feature_size must be positive. Got 0");
  EXPECT_ERROR(LogMelSpectrogram(LogMelOptions().n_fft(1)), c10::ValueError,
               "n_fft must be at least 2. Got 1");
  EXPECT_ERROR(LogMelSpectrogram(LogMelOptions().padding_value(INFINITY)), c10::ValueError,
               "padding_value must be finite. Got inf");
  EXPECT_ERROR(LogMelSpectrogram(LogMelOptions().chunk_length(1 << 20)), c10::ValueError,
               "chunk_length * sampling_rate must be at most 268435456. Got 1048576 * 16000");
  LogMelSpectrogram spectrogram(LogMelOptions::whisper(80));
  const auto refuses = [&](const torch::Tensor& samples, const char* message) {
    EXPECT_ERROR(spectrogram->forward(samples), c10::ValueError, message);
  };
  refuses(torch::zeros({400}), "[LogMelSpectrogram] samples must be (B, n). Got [400]");
  refuses({}, "samples must be (B, n)");
  refuses(torch::zeros({1, 400}, torch::kDouble),
          "must have the dtype of the buffers, Float. Got Double");
  refuses(torch::zeros({1, 200}), "must be at least 201 for n_fft 400 and hop_length 160. Got 200");
  EXPECT_EQ(spectrogram->forward(torch::zeros({1, 201})).size(2), 1);
  EXPECT_EQ(spectrogram->forward(torch::zeros({0, 400})).sizes(), (std::vector<int64_t>{0, 80, 2}));
}

TEST(WhisperFeatureExtractor, MasksWhatIsPadding) {
  const WhisperFeatureExtractor extractor(LogMelOptions().chunk_length(1));
  for (const int64_t length : {0, 1, 160, 161, 15999, 16000, 16001, 40001}) {
    const auto found = extractor.extract({torch::randn({1, length}), 16000});
    const int64_t frames = std::max<int64_t>(100, length / 160);
    EXPECT_EQ(found.input_features.sizes(), (std::vector<int64_t>{1, 80, frames}));
    EXPECT_EQ(found.attention_mask.sizes(), (std::vector<int64_t>{1, frames}));
    EXPECT_EQ(found.attention_mask.sum().item<int64_t>(), std::min(frames, (length + 159) / 160));
  }
}

TEST(WhisperFeatureExtractor, AveragesAndResamples) {
  const WhisperFeatureExtractor extractor(LogMelOptions().chunk_length(1).padding_value(0.5));
  const auto samples = torch::randn({3, 11025});
  const auto found = extractor.extract({samples, 22050}).input_features;
  const auto one = torch::cat({resample(samples.mean(0), 22050, 16000), torch::full({8000}, 0.5)});
  LogMelSpectrogram spectrogram(extractor.options());
  EXPECT_TRUE(bit_equal(found, spectrogram->forward(one.unsqueeze(0))));
  EXPECT_ERROR(extractor.extract({samples, 0}), c10::ValueError, "from must be positive. Got 0");
  EXPECT_ERROR(extractor.extract({samples[0], 16000}), c10::ValueError, "(C, n)");
}

}  // namespace
}  // namespace posenc
