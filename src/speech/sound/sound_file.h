#pragma once

#include <cstdint>

#include "weights/common/file.h"

// Files of sound, without LibTorch.
namespace posenc::sound {

enum class SampleType { UInt8, Int16, Int24, Int32, Float32, Float64 };

/// The samples of a sound in its file, which has all of them.
struct StoredSound {
  SampleType type = SampleType::Int16;
  int64_t channels = 0, frames = 0;
  int64_t rate = 0;             ///< in Hz; 0 if the file does not state it
  uint64_t offset = 0;          ///< of the first sample
  bool is_interleaved = false;  ///< a frame, one sample of each channel, follows the other
};

int64_t bytes_of(SampleType type);

/// Whether the file begins as an array of NumPy.
bool is_npy(const io::InputFile& file);

/// Finds the samples. Throws WeightsError for a file that the public functions refuse.
StoredSound find_wav(const io::InputFile& file);
StoredSound find_npy(const io::InputFile& file);

/// Writes the samples of `count` frames from `begin` on as (channels, count). Throws WeightsError
/// if one is not finite.
void read_samples(const io::InputFile& file, const StoredSound& sound, int64_t begin, int64_t count,
                  float* into);

}  // namespace posenc::sound
