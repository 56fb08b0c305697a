#include "speech/recognition.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/torch_internals/cpu_generator.h"
#include "speech/generation/prompts.h"
#include "speech/generation/segments.h"
#include "speech/words/token_times.h"

namespace posenc::speech {
namespace {

// A sound that is being transcribed.
struct Sound {
  int64_t index;
  std::unique_ptr<SoundFrames> frames;
  bool timestamps;
  at::Generator generator;
  std::vector<Tokens> texts;  // of its segments, and before them the prompt's
  bool conditions;
  int64_t seek = 0;
  Tokens initial = {};
};

// A window's text.
struct Window {
  Sound* sound;
  Prefix prefix = {};
  int64_t most = 0;
  Tokens found = {};  // with what ended it
  double mean = 0.0;  // log probability
  double temperature = 0.0;
  std::optional<float> no_speech = {};
  bool is_silent = false;
};

bool has_timestamps(const RecognitionSettings& settings, const SoundFrames& frames,
                    int64_t window) {
  const bool is_long = frames.width() > window;
  TORCH_CHECK_VALUE(!is_long || settings.timestamps.value_or(true),
                    "[SpeechRecognizer] timestamps must not be switched off for a sound that is "
                    "longer than a window of ",
                    window, " frames. Got ", frames.width(), " frames");
  const bool has = is_long || settings.timestamps.value_or(settings.folder_has_timestamps);
  TORCH_CHECK_VALUE(!has || settings.rules,
                    "[SpeechRecognizer] the folder's settings must have no_timestamps_token_id for "
                    "timestamps, which sounds longer than a window need");
  return has;
}

// None where nothing is drawn.
at::Generator generator_of(const RecognitionSettings& settings) {
  using namespace torch_internals;
  const auto draws = [](const Attempt& attempt) { return attempt.temperature > 0.0; };
  if (std::ranges::none_of(settings.attempts, draws)) return {};
  return seeded_cpu_generator(settings.seed ? *settings.seed
                                            : CpuGenerator(default_cpu_generator()).random64());
}

class Recognition {
 public:
  Recognition(const SpeechModel& model, const RecognitionSettings& settings, const Sounds& sounds)
      : model_(model), settings_(settings), sounds_(sounds) {}

  void run() {
    for (int64_t next = 0;;) {
      while (next < sounds_.count && static_cast<int64_t>(active_.size()) < sounds_.batch_size)
        add(next++);
      if (active_.empty()) return;
      step();
      std::erase_if(active_, [](const auto& one) { return one->seek >= one->frames->frames(); });
    }
  }

 private:
  void add(int64_t index) {
    auto frames = sounds_.open(index);
    if (frames->frames() <= 0) return;
    const bool timestamps = has_timestamps(settings_, *frames, model_.window);
    active_.push_back(
        std::make_unique<Sound>(Sound{index, std::move(frames), timestamps, generator_of(settings_),
                                      first_texts(settings_), settings_.conditions_first}));
  }

  int64_t frames_left(const Sound& sound) const {
    return std::min(sound.frames->frames() - sound.seek, model_.window);
  }

  void step() {
    std::vector<at::Tensor> features;
    windows_.clear();
    for (const auto& sound : active_) {
      features.push_back(window_of(*sound->frames, sound->seek, model_.window));
      windows_.push_back({sound.get()});
    }
    const auto encoded = model_.encode(at::stack(features));
    begin(*encoded);
    for (Window& window : windows_) {
      const Sound& sound = *window.sound;
      window.prefix = prefix_of(settings_, sound.initial, sound.texts, sound.conditions);
      window.most = most_tokens(settings_, window.prefix);
    }
    search(*encoded);
    const auto times = times_of(*encoded);
    for (std::size_t i = 0; i < windows_.size(); ++i) finish(windows_[i], times[i]);
  }

  // The initial tokens of sounds in their first window.
  void begin(const EncodedWindows& encoded) {
    EncodedWindows::Indices open;
    for (std::size_t i = 0; i < windows_.size(); ++i)
      if (windows_[i].sound->initial.empty()) open.push_back(static_cast<int64_t>(i));
    if (open.empty()) return;
    std::vector<int64_t> detected;
    if (detects_language(settings_)) detected = detect_languages(encoded, open, settings_);
    for (std::size_t i = 0; i < open.size(); ++i) {
      Sound& sound = *windows_[static_cast<std::size_t>(open[i])].sound;
      sound.initial = initial_tokens(settings_, sound.index, sounds_.count, sound.timestamps,
                                     detected.empty() ? std::nullopt : std::optional(detected[i]));
      const auto is_language = [&](int64_t token) {
        return std::ranges::any_of(settings_.languages,
                                   [&](const auto& one) { return one.second == token; });
      };
      const auto language =
          std::find_if(sound.initial.begin() + 1, sound.initial.end(), is_language);
      if (language != sound.initial.end()) sounds_.on_language(sound.index, *language);
    }
  }

  // Tries the temperatures in turn, each of the windows that those before it did not satisfy.
  void search(const EncodedWindows& encoded) {
    EncodedWindows::Indices open;
    for (std::size_t i = 0; i < windows_.size(); ++i) open.push_back(static_cast<int64_t>(i));
    for (const Attempt& attempt : settings_.attempts) {
      std::map<std::pair<int64_t, bool>, EncodedWindows::Indices> groups;
      for (const int64_t i : open) groups[{at(i).most, at(i).sound->timestamps}].push_back(i);
      for (const auto& [group, own] : groups) search(encoded, attempt, own);
      if (&attempt != &settings_.attempts.back() || settings_.no_speech)
        std::erase_if(open, [&](int64_t i) { return !is_tried_again(encoded, i); });
      if (open.empty()) return;
    }
  }

  void search(const EncodedWindows& encoded, const Attempt& attempt,
              const EncodedWindows::Indices& own) {
    GenerateOptions options = attempt.search;
    options.max_new_tokens(at(own.front()).most);
    if (at(own.front()).sound->timestamps) options.timestamp_rules(settings_.rules);
    for (const int64_t i : own) {
      options.prefixes().push_back(at(i).prefix.tokens);
      if (attempt.temperature > 0.0) options.generators().push_back(at(i).sound->generator);
    }
    auto found = encoded.generate(own, options);
    for (std::size_t k = 0; k < own.size(); ++k) {
      Window& window = at(own[k]);
      Hypothesis& best = found[k].front();
      window.mean = best.log_probability / static_cast<double>(best.tokens.size());
      window.found = kept_tokens(std::move(best.tokens), settings_.pad, options.eos_ids());
      window.temperature = attempt.temperature;
    }
  }

  // Whether the next temperature is tried; marks a window that is silent.
  bool is_tried_again(const EncodedWindows& encoded, int64_t i) {
    Window& window = at(i);
    const bool is_unlikely =
        settings_.mean_log_probability && window.mean < *settings_.mean_log_probability;
    if (settings_.no_speech && is_unlikely && no_speech(encoded, i) > *settings_.no_speech) {
      window.is_silent = true;
      return false;
    }
    return is_unlikely ||
           (settings_.compression_ratio &&
            compression_ratio(window.found, settings_.vocab) > *settings_.compression_ratio);
  }

  // How probable the model thinks that a window is silent, where its initial tokens begin.
  double no_speech(const EncodedWindows& encoded, int64_t i) {
    Window& window = at(i);
    if (!window.no_speech) {
      const auto begin = window.prefix.tokens.begin();
      const at::Tensor logits =
          encoded.next_logits({i}, {Tokens(begin, begin + window.prefix.begin + 1)});
      window.no_speech =
          at::softmax(logits[0].to(at::kFloat), 0)[settings_.rules->no_timestamps_id - 1]
              .item<float>();
    }
    return *window.no_speech;
  }

  // Of each window's new tokens, in seconds from its beginning; without words none.
  std::vector<std::vector<float>> times_of(const EncodedWindows& encoded) const {
    std::vector<std::vector<float>> times(windows_.size());
    if (settings_.alignment_heads.empty()) return times;
    EncodedWindows::Indices own;
    std::vector<Tokens> targets;  // no step reads the last token
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const Window& window = windows_[i];
      times[i].resize(window.found.size());
      if (window.is_silent || window.found.size() < 2) continue;
      own.push_back(static_cast<int64_t>(i));
      Tokens& target = targets.emplace_back(window.prefix.tokens);
      target.insert(target.end(), window.found.begin(), window.found.end() - 1);
    }
    if (own.empty()) return times;
    const auto found = encoded.attention(own, targets, settings_.alignment_heads);
    for (std::size_t k = 0; k < own.size(); ++k) {
      const auto i = static_cast<std::size_t>(own[k]);
      const Window& window = windows_[i];
      const auto sounding = window.sound->frames->sounding();
      const int64_t columns = sounding ? (*sounding - window.sound->seek) / 2 : found[k].size(2);
      const auto rows = static_cast<int64_t>(window.found.size()) - 1;
      times[i] = token_times(found[k].narrow(1, found[k].size(1) - rows, rows), columns, rows + 1,
                             settings_.median_width);
    }
    return times;
  }

  void finish(Window& window, const std::vector<float>& times) {
    Sound& sound = *window.sound;
    const int64_t seek = sound.seek, count = frames_left(sound);
    sound.conditions = settings_.conditions && window.temperature < 0.5;
    sound.seek += count;
    if (!window.is_silent) {
      Tokens text = std::move(window.found);
      const auto& ends = settings_.attempts.front().search.eos_ids();
      if (!text.empty() && std::ranges::find(ends, text.back()) != ends.end()) text.pop_back();
      const WindowSegments split = split_window(text, settings_.first_timestamp, seek, count);
      sound.seek = seek + split.frames;
      const auto offset = static_cast<float>(static_cast<double>(seek) * kSecondsPerTimestamp / 2);
      for (const SegmentRange& range : split.segments) {
        const auto begin = static_cast<int64_t>(range.begin), end = static_cast<int64_t>(range.end);
        RecognizedSegment segment = {range.start_time, range.end_time,
                                     Tokens(text.begin() + begin, text.begin() + end)};
        for (int64_t k = begin; k < end && !times.empty(); ++k)
          segment.token_times.push_back(times[static_cast<std::size_t>(k)] + offset);
        sound.texts.push_back(segment.tokens);
        if (sounds_.on_segment(sound.index, std::move(segment))) continue;
        sound.seek = sound.frames->frames();
        break;
      }
    }
    const int64_t all = sound.frames->frames();
    sounds_.on_window(sound.index, std::min(sound.seek, all), all);
  }

  Window& at(int64_t window) { return windows_[static_cast<std::size_t>(window)]; }

  const SpeechModel& model_;
  const RecognitionSettings& settings_;
  const Sounds& sounds_;
  std::vector<std::unique_ptr<Sound>> active_;
  std::vector<Window> windows_;
};

}  // namespace

at::Tensor window_of(const SoundFrames& frames, int64_t begin, int64_t window) {
  const int64_t count = std::min(frames.frames() - begin, window);
  const at::Tensor own = frames.read(begin, count);
  return at::constant_pad_nd(own, {0, window - count});
}

std::vector<int64_t> detect_languages(const EncodedWindows& encoded,
                                      const EncodedWindows::Indices& windows,
                                      const RecognitionSettings& settings) {
  TORCH_CHECK_VALUE(!settings.languages.empty(),
                    "[SpeechRecognizer] lang_to_id must have a language, for it to be detected");
  const Tokens begin = {settings.attempts.front().search.bos_id()};
  const at::Tensor logits = encoded.next_logits(windows, std::vector<Tokens>(windows.size(), begin))
                                .to(at::kFloat)
                                .contiguous();
  std::vector<int64_t> found;
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const float* const own = logits.const_data_ptr<float>() + row * logits.size(1);
    int64_t best = -1;  // of equal ones the first
    for (const auto& [text, id] : settings.languages)
      if (best < 0 || own[id] > own[best] || (own[id] == own[best] && id < best)) best = id;
    found.push_back(best);
  }
  return found;
}

void recognize(const SpeechModel& model, const RecognitionSettings& settings,
               const Sounds& sounds) {
  const at::NoGradGuard no_grad;
  Recognition(model, settings, sounds).run();
}

}  // namespace posenc::speech
