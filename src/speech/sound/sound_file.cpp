#include "speech/sound/sound_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace posenc::sound {
namespace {

template <int Bytes>
uint64_t unsigned_at(const unsigned char* at) {
  uint64_t value = 0;
  for (int i = 0; i < Bytes; ++i) value |= uint64_t{at[i]} << (8 * i);
  return value;
}

// A signed integer of full scale 2^(8 Bytes - 1). Dividing by a power of two rounds as the
// conversion alone.
template <int Bytes>
float signed_at(const unsigned char* at) {
  const auto high = static_cast<uint32_t>(unsigned_at<Bytes>(at) << (32 - 8 * Bytes));
  return static_cast<float>(static_cast<int32_t>(high)) / 2147483648.0F;
}

float sample_at(SampleType type, const unsigned char* at) {
  switch (type) {
    case SampleType::UInt8: return static_cast<float>(at[0] - 128) / 128.0F;
    case SampleType::Int16: return signed_at<2>(at);
    case SampleType::Int24: return signed_at<3>(at);
    case SampleType::Int32: return signed_at<4>(at);
    case SampleType::Float32:
      return std::bit_cast<float>(static_cast<uint32_t>(unsigned_at<4>(at)));
    case SampleType::Float64: return static_cast<float>(std::bit_cast<double>(unsigned_at<8>(at)));
  }
  return 0.0F;
}

void check_finite(const StoredSound& sound, int64_t begin, int64_t count, const float* samples) {
  for (int64_t i = 0; i < sound.channels * count; ++i) {
    if (std::isfinite(samples[i])) continue;
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must have samples that are finite in float32. Got " +
                           std::to_string(samples[i]) + " at sample " +
                           std::to_string(begin + i % count) + " of channel " +
                           std::to_string(i / count));
  }
}

}  // namespace

int64_t bytes_of(SampleType type) {
  constexpr int64_t kBytes[] = {1, 2, 3, 4, 4, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

void read_samples(const io::InputFile& file, const StoredSound& sound, int64_t begin, int64_t count,
                  float* into) {
  constexpr int64_t kPiece = 1 << 18;  // bytes, for the cache
  const int64_t width = bytes_of(sound.type), channels = sound.is_interleaved ? sound.channels : 1,
                most = std::max<int64_t>(1, kPiece / (width * channels));
  std::vector<unsigned char> piece(
      static_cast<std::size_t>(std::min(most, count) * width * channels));
  float* run = into;  // all channels, or one after the other
  for (int64_t first = begin; run < into + sound.channels * count;
       first += sound.frames, run += channels * count) {
    for (int64_t done = 0; done < count; done += most) {
      const int64_t frames = std::min(most, count - done);
      file.read(sound.offset + static_cast<uint64_t>((first + done) * width * channels),
                piece.data(), static_cast<std::size_t>(frames * width * channels));
      const unsigned char* at = piece.data();
      for (int64_t frame = done; frame < done + frames; ++frame) {
        for (int64_t channel = 0; channel < channels; ++channel, at += width)
          run[channel * count + frame] = sample_at(sound.type, at);
      }
    }
  }
  if (sound.type >= SampleType::Float32) check_finite(sound, begin, count, into);
}

}  // namespace posenc::sound
