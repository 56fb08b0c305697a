#include "posenc/speech/waveform.h"

#include <ATen/ops/empty.h>

#include "speech/sound/rate.h"
#include "speech/sound/sound_file.h"

namespace posenc {
namespace {

Waveform read(const io::InputFile& file, const sound::StoredSound& stored, int64_t rate) {
  at::Tensor samples = at::empty({stored.channels, stored.frames}, at::kFloat);
  sound::read_samples(file, stored, 0, stored.frames, samples.mutable_data_ptr<float>());
  return {samples, rate};
}

Waveform read_wav(const io::InputFile& file) {
  const sound::StoredSound stored = sound::find_wav(file);
  return read(file, stored, stored.rate);
}

}  // namespace

Waveform read_wav(const std::string& path) {
  return io::in_context("read_wav", path, [&] { return read_wav(io::InputFile(path)); });
}

Waveform read_npy(const std::string& path, int64_t rate) {
  sound::check_rate("read_npy", "rate", rate);
  return io::in_context("read_npy", path, [&] {
    const io::InputFile file(path);
    return read(file, sound::find_npy(file), rate);
  });
}

Waveform read_waveform(const std::string& path, int64_t npy_rate) {
  sound::check_rate("read_waveform", "npy_rate", npy_rate);
  return io::in_context("read_waveform", path, [&] {
    const io::InputFile file(path);
    return sound::is_npy(file) ? read(file, sound::find_npy(file), npy_rate) : read_wav(file);
  });
}

torch::Tensor mono(const Waveform& waveform) {
  const at::Tensor& samples = waveform.samples;
  TORCH_CHECK_VALUE(
      samples.defined() && samples.is_floating_point() && samples.dim() == 2 && samples.size(0) > 0,
      "[mono] samples must be floating-point (C, n) with C > 0. Got ",
      samples.defined() ? samples.toString() : "undefined", " ",
      samples.defined() ? samples.sizes() : at::IntArrayRef());
  return samples.size(0) == 1 ? samples[0] : samples.mean(0);
}

}  // namespace posenc
