#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "posenc/speech/waveform.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/dice.h"

namespace posenc {
namespace {

using testing::bit_equal;

// The documented sum, term by term in float64, with weights that are rounded as `dtype`.
torch::Tensor resampled_as_documented(const torch::Tensor& samples, int64_t from, int64_t to,
                                      torch::Dtype dtype) {
  const int64_t common = std::gcd(from, to), o = from / common, m = to / common;
  const double f = 0.99 * static_cast<double>(std::min(o, m));
  const auto w = static_cast<int64_t>(std::ceil(6.0 * static_cast<double>(o) / f));
  const auto x = samples.to(torch::kDouble).contiguous();
  const int64_t n = x.numel(), count = (n * m + o - 1) / o;
  std::vector<double> y(count);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t phase = k % m, begin = k / m * o;
    for (int64_t i = std::max(-w, -begin); i < std::min(w + o, n - begin); ++i) {
      const double t = (static_cast<double>(i) / static_cast<double>(o) -
                        static_cast<double>(phase) / static_cast<double>(m)) *
                       f;
      if (std::abs(t) > 6.0) continue;
      const double window = std::pow(std::cos(M_PI * t / 12.0), 2);
      const double sinc = t == 0.0 ? 1.0 : std::sin(M_PI * t) / (M_PI * t);
      const double weight = window * sinc * f / static_cast<double>(o);
      y[k] += x.data_ptr<double>()[begin + i] *
              (dtype == torch::kDouble ? weight : static_cast<double>(static_cast<float>(weight)));
    }
  }
  return torch::tensor(y, torch::kDouble);
}

double largest_error(const torch::Tensor& a, const torch::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0.0 : (a.to(torch::kDouble) - b).abs().max().item<double>();
}

TEST(Resample, IsTheDocumentedSum) {
  testing::Dice dice(2);
  std::vector<std::pair<int64_t, int64_t>> rates = {
      {44100, 16000}, {48000, 16000}, {8000, 16000}, {22050, 16000}, {11025, 8000},      {1, 7},
      {7, 1},         {16001, 16000}, {96000, 8001}, {2, 3},         {1000000007, 16000}};
  for (int i = 0; i < 12; ++i) rates.emplace_back(1 + dice.below(300), 1 + dice.below(300));
  for (const auto& [from, to] : rates) {
    for (const int64_t length : {int64_t{1}, 1 + dice.below(40), 200 + dice.below(3000)}) {
      SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to) + ", " +
                   std::to_string(length));
      const auto samples = torch::randn({length});
      EXPECT_LE(largest_error(resample(samples, from, to),
                              resampled_as_documented(samples, from, to, torch::kFloat)),
                3e-6);
      const auto exact = samples.to(torch::kDouble);
      const auto own = resample(exact, from, to);
      EXPECT_EQ(own.scalar_type(), torch::kDouble);
      EXPECT_LE(largest_error(own, resampled_as_documented(exact, from, to, torch::kDouble)),
                1e-12);
    }
  }
}

// More periods than are multiplied at a time.
TEST(Resample, LongSoundsAreTheirParts) {
  const auto samples = torch::randn({600000});
  const auto whole = resample(samples, 48000, 16000);
  const auto end = resample(samples.slice(0, 480000), 48000, 16000);
  EXPECT_LE(largest_error(whole.slice(0, 160010), end.slice(0, 10)), 2e-6);
}

TEST(Resample, RowsAreIndependent) {
  const auto samples = torch::randn({2, 3, 500});
  const auto together = resample(samples, 8000, 11025);
  EXPECT_EQ(together.sizes(), (std::vector<int64_t>{2, 3, 690}));
  EXPECT_LE(largest_error(together[1][2], resample(samples[1][2], 8000, 11025)), 1e-6);
  EXPECT_TRUE(bit_equal(resample(samples.transpose(0, 1).contiguous().transpose(0, 1), 8000, 11025),
                        together));
}

TEST(Resample, EqualRatesAndNoSamples) {
  const auto samples = torch::randn({2, 5});
  EXPECT_TRUE(resample(samples, 8000, 8000).is_same(samples));
  EXPECT_EQ(resample(torch::empty({3, 0}), 8000, 16000).sizes(), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(resample(torch::empty({0, 7}), 8000, 16000).sizes(), (std::vector<int64_t>{0, 14}));
}

// A tone below the cut-off stays what it is; one above it is gone.
TEST(Resample, KeepsWhatTheLowerRateHas) {
  const auto tone = [](double hz, int64_t rate) {
    return (torch::arange(rate, torch::kDouble) * (2 * M_PI * hz / static_cast<double>(rate)))
        .sin();
  };
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{44100, 16000}, {8000, 16000}}) {
    const auto middle = [&, to = to](const torch::Tensor& x) { return x.slice(0, to / 4, to / 2); };
    EXPECT_LE(largest_error(middle(resample(tone(1000, from), from, to)), middle(tone(1000, to))),
              2e-3);
  }
  EXPECT_LE(
      resample(tone(12000, 44100), 44100, 16000).slice(0, 4000, 8000).abs().max().item<double>(),
      2e-3);
}

// It is linear: the gradient of a weighted sum is the same for all samples, and known.
TEST(Resample, GradientsFlowToTheSamples) {
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{3, 2}, {7, 16}, {48000, 16000}}) {
    const auto samples = torch::randn({2, 50}, torch::kDouble).requires_grad_();
    const auto out = resample(samples, from, to);
    const auto upstream = torch::randn_like(out);
    (out * upstream).sum().backward();
    const auto impulses = torch::eye(50, torch::kDouble);
    const auto expected = upstream.matmul(resample(impulses, from, to).t());
    EXPECT_LE(largest_error(samples.grad(), expected), 1e-12);
  }
}

TEST(Resample, RefusesRatesAndDtypes) {
  const auto samples = torch::zeros({4});
  EXPECT_ERROR(resample(samples, 0, 8000), c10::ValueError,
               "[resample] from must be positive. Got 0");
  EXPECT_ERROR(resample(samples, 8000, -1), c10::ValueError,
               "[resample] to must be positive. Got -1");
  EXPECT_ERROR(resample(samples.to(torch::kShort), 1, 2), c10::ValueError,
               "[resample] samples must be floating-point (..., n). Got CPUShortType");
  EXPECT_ERROR(resample({}, 1, 2), c10::ValueError, "Got undefined");
  EXPECT_ERROR(resample(torch::zeros({}), 1, 2), c10::ValueError, "(..., n)");
}

class ResampleOn : public testing::OnEachDevice {};
POSENC_ON_EACH_DEVICE(ResampleOn);

TEST_P(ResampleOn, StaysOnTheDevice) {
  const auto samples = torch::randn({2, 300});
  const auto there = resample(samples.to(device()), 44100, 16000);
  EXPECT_EQ(there.device(), device());
  EXPECT_LE(largest_error(there.cpu(), resample(samples, 44100, 16000).to(torch::kDouble)), 1e-5);
}

}  // namespace
}  // namespace posenc
