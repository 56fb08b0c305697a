#include "posenc/speech/feature_extractor.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "speech/features/feature_stream.h"
#include "weights/common/file.h"
#include "weights/common/json.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr const char* kCaller = "log_mel_options_from_hf";

// The settings of a feature extractor, and what errors call the object that has them.
struct FeatureSettings {
  json object;
  std::string place;

  // Throws the errors of these options, which are its settings.
  void check(const LogMelOptions& options) const {
    try {
      speech::check_options(options);
    } catch (const c10::ValueError& error) {
      const std::string what = error.what_without_backtrace();
      TORCH_CHECK_VALUE(false, "[", kCaller, "] ", place, what.substr(what.find("] ") + 2));
    }
  }
  [[noreturn]] void refuse(const char* name, const char* rule) const {
    TORCH_CHECK_VALUE(false, "[", kCaller, "] ", place, name, " must be ", rule, ". Got ",
                      io::shown(object[name]));
  }
  double real(const char* name, double fallback) const {
    if (!object.contains(name)) return fallback;
    if (!object[name].is_number()) refuse(name, "a number");
    return object[name].get<double>();
  }
  int64_t size(const char* name, int64_t fallback) const {
    constexpr double kMost = 1 << 30;
    const double value = real(name, static_cast<double>(fallback));
    if (!(value >= 1 && value <= kMost && value == std::trunc(value)))
      refuse(name, "an integer from 1 to 1073741824");
    return static_cast<int64_t>(value);
  }
  // A text that, if it is there, is `only`, as posenc has no other.
  void expect(const char* name, const char* only) const {
    if (object.contains(name) && object[name] != only)
      refuse(name, (std::string(only) + ", the only one that posenc has").c_str());
  }
};

FeatureSettings settings_in(const std::string& path) {
  constexpr uint64_t kMost = 64'000'000;  // older files have the filters
  json object = io::in_context(kCaller, path, [&] {
    return io::json_tree<json>(io::read_text(path, kMost), "its settings");
  });
  TORCH_CHECK_VALUE(object.is_object(), "[", kCaller, "] ", path, ": must be a JSON object. Got ",
                    object.type_name());
  return {std::move(object), path + ": "};
}

// transformers, too, prefers what processor_config.json has.
FeatureSettings settings_of(const std::string& folder) {
  const std::string own = folder + "/preprocessor_config.json",
                    shared = folder + "/processor_config.json", name = "feature_extractor";
  if (!io::may_exist(shared)) return settings_in(own);
  FeatureSettings outer = settings_in(shared);
  if (!outer.object.contains(name) || outer.object[name].is_null()) {
    TORCH_CHECK_VALUE(io::may_exist(own), "[", kCaller, "] ", shared, ": must have ", name,
                      " where there is no preprocessor_config.json. Got no such setting");
    return settings_in(own);
  }
  if (!outer.object[name].is_object()) outer.refuse(name.c_str(), "an object");
  return {outer.object[name], outer.place + name + "."};
}

}  // namespace

LogMelOptions log_mel_options_from_hf(const std::string& folder) {
  const FeatureSettings settings = settings_of(folder);
  const LogMelOptions usual;
  settings.expect("feature_extractor_type", "WhisperFeatureExtractor");
  settings.expect("padding_side", "right");
  LogMelOptions options;
  options.feature_size(settings.size("feature_size", usual.feature_size()))
      .sampling_rate(settings.size("sampling_rate", usual.sampling_rate()))
      .hop_length(settings.size("hop_length", usual.hop_length()))
      .n_fft(settings.size("n_fft", usual.n_fft()))
      .chunk_length(settings.size("chunk_length", usual.chunk_length()))
      .padding_value(settings.real("padding_value", usual.padding_value()))
      .dither(settings.real("dither", usual.dither()));
  settings.check(options);
  return options;
}

SpeechFeatures WhisperFeatureExtractor::extract(const Waveform& waveform) const {
  const LogMelOptions& o = options();
  const at::Tensor samples = resample(mono(waveform), waveform.rate, o.sampling_rate());
  const int64_t length = samples.size(0),
                padding = std::max<int64_t>(0, o.chunk_length() * o.sampling_rate() - length);
  const at::Tensor padded =
      padding == 0 ? samples : at::constant_pad_nd(samples, {0, padding}, o.padding_value());
  at::Tensor features = spectrogram_.ptr()->forward(padded.unsqueeze(0));
  at::Tensor mask = at::zeros({1, features.size(2)}, at::kLong);
  const int64_t sounding = (length + o.hop_length() - 1) / o.hop_length();
  mask.narrow(1, 0, std::min(sounding, mask.size(1))).fill_(1);
  return {std::move(features), std::move(mask)};
}

}  // namespace posenc
