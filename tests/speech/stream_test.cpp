// Sounds that are read by pieces.
#include <gtest/gtest.h>

#include <filesystem>

#include "posenc/speech/feature_extractor.h"
#include "posenc/weights/error.h"
#include "speech/features/feature_stream.h"
#include "speech/sound/mono_samples.h"
#include "support/dice.h"
#include "weights/files.h"

namespace posenc {
namespace {

using sound::mono_samples;

// From 1 to n.
int64_t some(testing::Dice& dice, int64_t n) { return 1 + dice.below(n); }

TEST(MonoSamples, PiecesAreThoseOfTheWhole) {
  testing::Dice dice(1);
  for (int round = 0; round < 20; ++round) {
    const auto from = dice.any<int64_t>({16000, 8000, 44100, 11025, 22050, 7, 99991}),
               to = dice.any<int64_t>({16000, 16000, 8000, 22050});
    const Waveform sound = {torch::randn({some(dice, 3), some(dice, from < 100 ? 300 : 60000)}),
                            from};
    const torch::Tensor whole = resample(mono(sound), from, to);
    const auto samples = sound::at_rate(mono_samples(sound), to);
    ASSERT_EQ(samples->size(), whole.size(0));
    for (int piece = 0; piece < 8; ++piece) {
      const int64_t begin = dice.below(whole.size(0)), count = some(dice, whole.size(0) - begin);
      EXPECT_TRUE(
          torch::allclose(samples->read(begin, count), whole.narrow(0, begin, count), 1e-5, 2e-6))
          << from << " to " << to << ", " << begin << " + " << count;
    }
  }
}

TEST(MonoSamples, RatesHaveABound) {
  EXPECT_ERROR(mono_samples(Waveform{torch::zeros({1, 8}), int64_t{1} << 40}), c10::ValueError,
               "[transcribe] rate must be at most 10000000 Hz. Got 1099511627776");
  EXPECT_ERROR(mono_samples(Waveform{torch::zeros({1, 8}), 0}), c10::ValueError,
               "[transcribe] rate must be positive. Got 0");
}

TEST(MonoSamples, AFileThatIsCutIsAnError) {
  const testing::TempDir folder;
  const std::string path = folder / "sound.npy";
  constexpr int64_t kCount = 4'000'000;
  const std::string fields =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000,), }    \n";
  testing::write_bytes(path, std::string("\x93NUMPY\x01\x00", 8) +
                                 static_cast<char>(fields.size()) + '\0' + fields +
                                 std::string(4 * kCount, '\0'));
  const auto samples = mono_samples(path, 16000);
  EXPECT_EQ(samples->rate(), 16000);
  EXPECT_EQ(samples->read(kCount - 10, 10).size(0), 10);
  std::filesystem::resize_file(path, 1000);
  try {
    samples->read(kCount - 10, 10);
    ADD_FAILURE() << "was read";
  } catch (const WeightsError& error) {
    EXPECT_EQ(error.code(), WeightsErrorCode::Truncated);
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
  }
}

TEST(FeatureStream, IsTheSpectrogramOfTheWhole) {
  testing::Dice dice(2);
  for (int round = 0; round < 8; ++round) {
    LogMelOptions options = LogMelOptions().feature_size(some(dice, 20)).chunk_length(1);
    if (round > 3) options.n_fft(1 + some(dice, 900)).hop_length(20 + some(dice, 400));
    torch::Tensor samples = torch::randn({1, 16000 + some(dice, 2'000'000)});
    samples.narrow(1, 9000, 7000).mul_(100.0);  // the loudest are in one place
    const Waveform sound = {samples, 16000};
    const torch::Tensor whole = WhisperFeatureExtractor(options).extract(sound).input_features[0];
    const speech::FeatureStream stream(LogMelSpectrogram(options), mono_samples(sound));
    ASSERT_EQ(stream.frames(), whole.size(1));
    for (int piece = 0; piece < 6; ++piece) {
      const int64_t begin = piece == 0 ? 0 : dice.below(stream.frames()),
                    left = stream.frames() - begin, count = piece == 1 ? left : some(dice, left);
      EXPECT_TRUE(
          torch::allclose(stream.read(begin, count), whole.narrow(1, begin, count), 0.0, 2e-5))
          << begin << " + " << count << " of " << stream.frames();
    }
  }
}

}  // namespace
}  // namespace posenc
