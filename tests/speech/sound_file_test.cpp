// tests/speech/commands_test.py reads files of other writers, and has each error of a file's
// content.

#include "speech/sound/sound_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "posenc/speech/waveform.h"
#include "support/compare.h"
#include "support/dice.h"
#include "weights/files.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::error_of;
using testing::refusal;
using testing::TempDir;
using testing::write_bytes;

template <typename T>
std::string bytes(std::initializer_list<T> values) {
  std::string text(values.size() * sizeof(T), '\0');
  std::memcpy(text.data(), values.begin(), text.size());
  return text;
}

std::string chunk(const std::string& name, const std::string& data) {
  return name + bytes<uint32_t>({static_cast<uint32_t>(data.size())}) + data +
         std::string(data.size() % 2, '\0');
}

std::string format(uint16_t tag, uint16_t channels, uint32_t rate, uint16_t bits) {
  const auto block = static_cast<uint16_t>(channels * bits / 8);
  return chunk("fmt ", bytes<uint16_t>({tag, channels}) + bytes<uint32_t>({rate, rate * block}) +
                           bytes<uint16_t>({block, bits}));
}

std::string wav(const std::string& chunks) {
  return "RIFF" + bytes<uint32_t>({static_cast<uint32_t>(chunks.size() + 4)}) + "WAVE" + chunks;
}

Waveform read(const std::string& content) {
  const TempDir dir;
  write_bytes(dir / "sound", content);
  return read_wav(dir / "sound");
}

TEST(ReadWav, FullScaleIsOne) {
  const auto pcm = [](uint16_t bits, const std::string& data) {
    const Waveform sound = read(wav(format(1, 1, 8000, bits) + chunk("data", data)));
    EXPECT_EQ(sound.rate, 8000);
    return sound.samples;
  };
  const auto extremes = [](double most) {
    return torch::tensor({{-1.0F, 0.0F, static_cast<float>(most)}});
  };
  EXPECT_TRUE(bit_equal(pcm(8, bytes<uint8_t>({0, 128, 255})), extremes(127.0 / 128)));
  EXPECT_TRUE(
      bit_equal(pcm(16, bytes<int16_t>({INT16_MIN, 0, INT16_MAX})), extremes(32767.0 / 32768)));
  EXPECT_TRUE(bit_equal(pcm(24, std::string("\0\0\x80\0\0\0\xff\xff\x7f", 9)),
                        extremes(8388607.0 / 8388608)));
  EXPECT_TRUE(bit_equal(pcm(32, bytes<int32_t>({INT32_MIN, 0, INT32_MAX})), extremes(1.0)));
  const auto real = [](uint16_t bits, const std::string& data) {
    return read(wav(format(3, 1, 8000, bits) + chunk("data", data))).samples;
  };
  const auto loud = torch::tensor({{-7.5F, 0.1F}});  // not clipped
  EXPECT_TRUE(bit_equal(real(32, bytes<float>({-7.5F, 0.1F})), loud));
  EXPECT_TRUE(bit_equal(real(64, bytes<double>({-7.5, 0.1})), loud));
}

// Longer than a piece of the reader, and than what is read when a file is opened.
TEST(ReadWav, ChannelsAreRows) {
  constexpr int64_t kFrames = 70000, kChannels = 3;
  std::vector<int16_t> frames;
  for (int64_t i = 0; i < kFrames * kChannels; ++i)
    frames.push_back(static_cast<int16_t>(i % 30011));
  const std::string data(reinterpret_cast<const char*>(frames.data()), frames.size() * 2);
  const auto sound =
      read(wav(chunk("LIST", "odd") + format(1, kChannels, 44100, 16) + chunk("data", data)));
  const auto expected = (torch::arange(kFrames * kChannels) % 30011)
                            .view({kFrames, kChannels})
                            .t()
                            .to(torch::kFloat) /
                        32768;
  EXPECT_TRUE(bit_equal(sound.samples, expected));
  EXPECT_TRUE(sound.samples.is_contiguous());
}

TEST(ReadWav, NoFramesAreASound) {
  EXPECT_EQ(read(wav(format(1, 2, 8000, 16) + chunk("data", ""))).samples.sizes(),
            (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(read(wav(format(1, 2, 8000, 16) + chunk("data", "abc"))).samples.size(1), 0);
}

TEST(ReadWav, AFileThatShrinksIsTruncated) {
  const TempDir dir;
  write_bytes(dir / "x", wav(format(1, 1, 8000, 16) + chunk("data", std::string(600000, 'x'))));
  const io::InputFile file(dir / "x");
  const auto stored = sound::find_wav(file);
  EXPECT_EQ(stored.frames, 300000);
  std::filesystem::resize_file(dir / "x", 400000);
  std::vector<float> samples(300000);
  EXPECT_CONTAINS(
      refusal([&] { sound::read_samples(file, stored, 0, stored.frames, samples.data()); }),
      "Truncated: " + (dir / "x") + ": ended at byte 400000 of the 600044 that it had");
}

TEST(ReadWav, ErrorsNameTheFunctionAndTheFile) {
  const TempDir dir;
  write_bytes(dir / "x", "no sound at all");
  EXPECT_CONTAINS(refusal([&] { read_wav(dir / "x"); }),
                  "UnknownFormat: [read_wav] " + (dir / "x") + ": must be in the format WAV");
  EXPECT_CONTAINS(refusal([&] { read_npy(dir / "x", 8000); }),
                  "UnknownFormat: [read_npy] " + (dir / "x") + ": must be an array of NumPy");
  EXPECT_CONTAINS(refusal([&] { read_waveform(dir / "none", 8000); }),
                  "NotFound: [read_waveform] " + (dir / "none") + ": cannot be opened");
  EXPECT_ERROR(read_npy(dir / "x", 0), c10::ValueError, "[read_npy] rate must be positive. Got 0");
  EXPECT_ERROR(read_npy(dir / "x", 10'000'001), c10::ValueError,
               "[read_npy] rate must be at most 10000000 Hz. Got 10000001");
  EXPECT_ERROR(read_waveform(dir / "x", -1), c10::ValueError, "npy_rate must be positive. Got -1");
}

// A chunk without bytes costs a read; a file of them must not cost hours.
TEST(ReadWav, AFileOfEmptyChunksEnds) {
  std::string chunks;
  for (int i = 0; i < 70000; ++i) chunks += chunk("none", "");
  EXPECT_CONTAINS(refusal([&] { read(wav(chunks)); }), "LimitExceeded: [read_wav]");
}

// What a damaged file gives is an error or samples, never a fault: the fuzz target is longer.
TEST(ReadWav, DamagedFilesAreErrors) {
  testing::Dice dice(1);
  const std::string whole = wav(format(3, 2, 8000, 32) + chunk("data", bytes<float>({1, 2, 3, 4})));
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = whole.substr(0, 1 + dice.below(std::ssize(whole)));
    damaged[dice.below(std::ssize(damaged))] = static_cast<char>(dice.below(256));
    const auto file = io::InputFile::of_bytes(damaged);
    try {
      const auto stored = sound::find_wav(file);
      std::vector<float> samples(stored.channels * stored.frames);
      sound::read_samples(file, stored, 0, stored.frames, samples.data());
    } catch (const WeightsError&) {
    }
  }
}

TEST(Mono, IsTheMeanOfAllChannels) {
  const auto samples = torch::tensor({{1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 9.0F}});
  EXPECT_TRUE(bit_equal(mono({samples, 8000}), torch::tensor({3.0F, 5.0F})));
  EXPECT_TRUE(bit_equal(mono({samples.slice(0, 1, 2), 8000}), samples[1]));
  EXPECT_ERROR(mono({}), c10::ValueError, "[mono] samples must be floating-point (C, n)");
  EXPECT_ERROR(mono({samples[0], 8000}), c10::ValueError, "Got CPUFloatType [2]");
  EXPECT_ERROR(mono({samples.slice(0, 0, 0), 8000}), c10::ValueError, "C > 0");
  EXPECT_ERROR(mono({samples.to(torch::kLong), 8000}), c10::ValueError, "floating-point");
}

}  // namespace
}  // namespace posenc
