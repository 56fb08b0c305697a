// A file of sound, WAV or an array of NumPy, and its samples.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/check.h"
#include "speech/sound/sound_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using posenc::testing::promise;
  using posenc::testing::Wide;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = posenc::io::InputFile::of_bytes(bytes);
  try {
    const bool is_npy = posenc::sound::is_npy(file);
    const auto sound = is_npy ? posenc::sound::find_npy(file) : posenc::sound::find_wav(file);
    promise(sound.channels > 0 && sound.frames >= 0, "channels of samples");
    promise(is_npy == (sound.rate == 0), "a rate of a WAV");
    const Wide count = static_cast<Wide>(sound.channels) * static_cast<Wide>(sound.frames);
    promise(sound.offset + count * static_cast<Wide>(posenc::sound::bytes_of(sound.type)) <= size,
            "samples lie inside the file");
    std::vector<float> samples(static_cast<std::size_t>(count));
    posenc::sound::read_samples(file, sound, 0, sound.frames, samples.data());
    const int64_t middle = sound.frames / 2;
    std::vector<float> half(static_cast<std::size_t>(sound.channels * (sound.frames - middle)));
    posenc::sound::read_samples(file, sound, middle, sound.frames - middle, half.data());
    promise(half.empty() || half.back() == samples.back(), "a part has the same samples");
    for (const float sample : samples) promise(std::isfinite(sample), "finite samples");
  } catch (const posenc::WeightsError&) {
  }
  return 0;
}
