#include "speech/speech_recognizer.h"

#include <c10/util/Exception.h>

#include <ostream>

#include "core/check.h"
#include "core/handle.h"
#include "speech/generation/segments.h"
#include "speech/sound_frames.h"
#include "speech/words/speech_text.h"

namespace posenc {
namespace speech {
namespace {

constexpr const char* kClass = "SpeechRecognizer";

// The transcripts of a call as they grow.
class Transcripts {
 public:
  Transcripts(const RecognizerParts& parts, const TranscribeOptions& options, int64_t count)
      : parts_(parts),
        options_(options),
        settings_(settings_of(parts, options)),
        tokenizer_(options.decode() ? &tokenizer_of(parts) : nullptr),
        found_(static_cast<std::size_t>(count)) {
    check_positive(kClass, "batch_size", options.batch_size());
  }

  std::vector<Transcript> of(std::function<std::unique_ptr<SoundFrames>(int64_t)> open) {
    const Sounds sounds = {
        static_cast<int64_t>(found_.size()),
        options_.batch_size(),
        std::move(open),
        [this](int64_t sound, int64_t language) {
          at(sound).language_id = language;
          at(sound).language = language_of(language, settings_.languages);
        },
        [this](int64_t sound, RecognizedSegment segment) { return add(sound, std::move(segment)); },
        [this](int64_t sound, int64_t frames, int64_t of) { tell(sound, frames, of); }};
    try {
      recognize(parts_.model, settings_, sounds);
    } catch (
        const c10::ValueError& error) {  // of a search: with what was set, or the folder's file
      rethrow_labelled(settings_.given, error);
    }
    for (Transcript& one : found_) {
      for (const TranscriptSegment& segment : one.segments)
        one.tokens.insert(one.tokens.end(), segment.tokens.begin(), segment.tokens.end());
      if (tokenizer_ != nullptr) one.text = text_of(*tokenizer_, one.tokens);
    }
    return std::move(found_);
  }

  Transcript& at(int64_t sound) { return found_[static_cast<std::size_t>(sound)]; }

 private:
  bool add(int64_t sound, RecognizedSegment segment) {
    Transcript& own = at(sound);
    TranscriptSegment result = {segment.start, segment.end};
    if (tokenizer_ != nullptr) {
      result.text = text_of(*tokenizer_, segment.tokens);
      if (!settings_.alignment_heads.empty())
        result.words = words_of(*tokenizer_, segment.tokens, segment.token_times, last_time(own),
                                settings_.first_timestamp, own.language.value_or(""));
    }
    result.tokens = std::move(segment.tokens);
    result.token_times = std::move(segment.token_times);
    own.segments.push_back(std::move(result));
    return !options_.on_segment() || options_.on_segment()({sound, &own.segments.back()});
  }

  // Of the last token so far.
  static float last_time(const Transcript& transcript) {
    for (auto segment = transcript.segments.rbegin(); segment != transcript.segments.rend();
         ++segment)
      if (!segment->token_times.empty()) return segment->token_times.back();
    return 0.0F;
  }

  void tell(int64_t sound, int64_t frames, int64_t of) const {
    if (options_.progress())
      options_.progress()({sound, static_cast<double>(frames) * kSecondsPerFrame,
                           static_cast<double>(of) * kSecondsPerFrame});
  }

  const RecognizerParts& parts_;
  const TranscribeOptions& options_;
  RecognitionSettings settings_;
  const Tokenizer* tokenizer_;  // null: no text
  std::vector<Transcript> found_;
};

using OpenSamples = std::function<std::unique_ptr<sound::MonoSamples>(int64_t sound)>;

std::vector<Transcript> transcribe(const RecognizerParts& parts, const TranscribeOptions& options,
                                   std::size_t count, const OpenSamples& open,
                                   const std::function<std::string(int64_t sound)>& name) {
  Transcripts transcripts(parts, options, static_cast<int64_t>(count));
  const WhisperFeatureExtractor& extractor = extractor_of(parts);
  const int64_t rate = extractor.options().sampling_rate();
  return transcripts.of([&](int64_t sound) {
    auto samples = sound::at_rate(open(sound), rate);
    transcripts.at(sound).duration =
        static_cast<double>(samples->size()) / static_cast<double>(rate);
    auto frames = frames_of(extractor, std::move(samples));
    TORCH_CHECK_VALUE(frames->has_finite(), "[", kClass, "] ", name(sound),
                      ": energies must be finite in float32, and its samples are too large");
    return frames;
  });
}

void check_features(const SpeechFeatures& features, const RecognizerParts& parts) {
  const at::Tensor &x = features.input_features, &mask = features.attention_mask;
  const int64_t bins = parts.sizes.bins, window = parts.model.window;
  const auto shape = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.sizes() : at::IntArrayRef();
  };
  TORCH_CHECK_VALUE(x.defined() && x.scalar_type() == at::kFloat && x.dim() == 3 &&
                        x.size(1) == bins && x.size(2) > 0,
                    "[", kClass, "] input_features must be float32 (N, ", bins,
                    ", F) with F > 0. Got ", x.defined() ? x.toString() : "undefined", " ",
                    shape(x));
  TORCH_CHECK_VALUE(x.isfinite().all().item<bool>(), "[", kClass,
                    "] input_features must be finite. Got NaN or infinity");
  TORCH_CHECK_VALUE(!mask.defined() ||
                        (mask.dim() == 2 && mask.size(0) == x.size(0) && mask.size(1) == x.size(2)),
                    "[", kClass, "] attention_mask must be (N, F), (", x.size(0), ", ", x.size(2),
                    "). Got ", shape(mask));
  const at::Tensor others =
      mask.defined() ? mask.masked_select(mask.ne(0).logical_and(mask.ne(1))) : at::Tensor();
  TORCH_CHECK_VALUE(!mask.defined() || others.numel() == 0, "[", kClass,
                    "] attention_mask must be 0 or 1. Got ", others[0].item<double>());
  TORCH_CHECK_VALUE(mask.defined() || x.size(0) <= 1 || x.size(2) <= window, "[", kClass,
                    "] several rows of more than ", window,
                    " frames need attention_mask, which says where each ends. Got ", x.sizes());
}

}  // namespace

const Tokenizer& tokenizer_of(const RecognizerParts& parts) {
  TORCH_CHECK_VALUE(parts.tokenizer, parts.no_tokenizer);
  return *parts.tokenizer;
}

const WhisperFeatureExtractor& extractor_of(const RecognizerParts& parts) {
  TORCH_CHECK_VALUE(parts.extractor, parts.no_extractor);
  return *parts.extractor;
}

RecognitionSettings settings_of(const RecognizerParts& parts, const TranscribeOptions& options) {
  SettingOverrides overrides = overrides_of(options);
  if (!options.prompt().empty()) {
    TORCH_CHECK_VALUE(!overrides.contains("prompt_ids"), "[", kClass,
                      "] prompt must not be given with prompt_ids");
    overrides["prompt_ids"] = {json_of(prompt_tokens(tokenizer_of(parts), options.prompt())),
                               "prompt"};
  }
  return recognition_settings(parts.generation, parts.config, overrides, parts.sizes,
                              options.timestamps() == Timestamps::Word);
}

}  // namespace speech

Transcript SpeechRecognizer::transcribe(const std::string& path,
                                        const TranscribeOptions& options) const {
  return std::move(transcribe(std::vector<std::string>{path}, options).front());
}

Transcript SpeechRecognizer::transcribe(const char* path, const TranscribeOptions& options) const {
  return transcribe(std::string(path), options);
}

Transcript SpeechRecognizer::transcribe(const Waveform& sound,
                                        const TranscribeOptions& options) const {
  return std::move(transcribe(std::vector<Waveform>{sound}, options).front());
}

std::vector<Transcript> SpeechRecognizer::transcribe(const std::vector<std::string>& paths,
                                                     const TranscribeOptions& options,
                                                     std::optional<int64_t> rate) const {
  return speech::transcribe(
      parts(), options, paths.size(),
      [&](int64_t sound) {
        const std::string& path = paths[static_cast<std::size_t>(sound)];
        auto samples = sound::mono_samples(path, rate.value_or(feature_options().sampling_rate()));
        TORCH_CHECK_VALUE(samples->rate() == rate.value_or(samples->rate()), "[", speech::kClass,
                          "] ", path, ": rate must be that which the file states, ",
                          samples->rate(), ". Got ", *rate);
        return samples;
      },
      [&](int64_t sound) { return paths[static_cast<std::size_t>(sound)]; });
}

std::vector<Transcript> SpeechRecognizer::transcribe(const std::vector<Waveform>& sounds,
                                                     const TranscribeOptions& options) const {
  return speech::transcribe(
      parts(), options, sounds.size(),
      [&](int64_t sound) { return sound::mono_samples(sounds[static_cast<std::size_t>(sound)]); },
      [](int64_t sound) { return "sound " + std::to_string(sound); });
}

std::vector<Transcript> SpeechRecognizer::transcribe_features(
    const SpeechFeatures& features, const TranscribeOptions& options) const {
  speech::check_features(features, parts());
  const int64_t rows = features.input_features.size(0);
  speech::Transcripts transcripts(parts(), options, rows);
  return transcripts.of([&](int64_t row) {
    auto frames = speech::frames_of(features, row, window());
    const int64_t sounding = frames->sounding().value_or(frames->frames());
    transcripts.at(row).duration = static_cast<double>(sounding) * speech::kSecondsPerFrame;
    return frames;
  });
}

SpeechFeatures SpeechRecognizer::features(const Waveform& sound) const {
  return speech::extractor_of(parts()).extract(sound);
}

std::string SpeechRecognizer::detect_language(const Waveform& sound) const {
  const auto settings = speech::settings_of(parts(), TranscribeOptions());
  const int64_t rate = feature_options().sampling_rate();
  const auto frames = speech::frames_of(speech::extractor_of(parts()),
                                        sound::at_rate(sound::mono_samples(sound), rate));
  const auto encoded = parts().model.encode(speech::window_of(*frames, 0, window()).unsqueeze(0));
  const int64_t language = speech::detect_languages(*encoded, {0}, settings).front();
  return speech::language_of(language, settings.languages);
}

std::vector<std::string> SpeechRecognizer::languages() const {
  const auto settings = speech::settings_of(parts(), TranscribeOptions());
  std::vector<std::string> codes;
  for (const auto& [text, id] : settings.languages)
    codes.push_back(speech::language_of(id, settings.languages));
  return codes;
}

const FrozenTransformer& SpeechRecognizer::model() const {
  const auto& frozen = parts().frozen;
  TORCH_CHECK_VALUE(frozen,
                    "[SpeechRecognizer] model() must be one that was frozen. Got a Transformer");
  return *frozen;
}
const Tokenizer& SpeechRecognizer::tokenizer() const { return speech::tokenizer_of(parts()); }
const LogMelOptions& SpeechRecognizer::feature_options() const {
  return speech::extractor_of(parts()).options();
}
int64_t SpeechRecognizer::window() const { return parts().model.window; }

const speech::RecognizerParts& SpeechRecognizer::parts() const {
  return *referred(speech::kClass, parts_);
}

std::ostream& operator<<(std::ostream& stream, const SpeechRecognizer& recognizer) {
  return stream << "SpeechRecognizer(window=" << recognizer.window()
                << ", languages=" << recognizer.languages().size() << ")";
}

}  // namespace posenc
