// The loop over windows, with a model whose texts are given.
#include "speech/recognition.h"

#include <gtest/gtest.h>

#include "speech/words/token_times.h"

namespace posenc::speech {
namespace {

constexpr int64_t kEnd = 20, kNoSpeech = 38, kFirst = 40, kVocab = 140, kWindow = 100;

// A window's text, by the first feature of it and how often it has been tried.
struct Script {
  std::map<std::pair<float, int>, Tokens> texts;
  std::map<std::pair<float, int>, double> sums;  // of log probabilities; 0 unless given
  float silence = 0.0F;                          // the logit that there is none
};

// What the model was asked for.
struct Calls {
  int encoded = 0;
  std::vector<std::vector<Tokens>> prefixes;
  std::vector<GenerateOptions> searches;
  std::map<float, int> tried;
};

// What the tokens of a target attend to.
at::Tensor attention_of(int64_t rows) {
  constexpr int64_t kColumns = kWindow / 2;
  const at::Tensor others = torch::arange(rows * kColumns, torch::kFloat).sin();
  return (torch::eye(rows, kColumns) + 0.01 * others.view({rows, kColumns})).unsqueeze(0);
}

class Scripted : public EncodedWindows {
 public:
  Scripted(at::Tensor features, const Script& script, Calls& calls)
      : features_(std::move(features)), script_(script), calls_(calls) {}

  std::vector<std::vector<Hypothesis>> generate(const Indices& windows,
                                                const GenerateOptions& options) const override {
    calls_.prefixes.push_back(options.prefixes());
    calls_.searches.push_back(options);
    std::vector<std::vector<Hypothesis>> found;
    for (const int64_t window : windows) {
      const auto key = features_[window][0][0].item<float>();
      const std::pair<float, int> own = {key, calls_.tried[key]++};
      Hypothesis one;
      one.tokens = script_.texts.at(own);
      one.tokens.push_back(kEnd);
      const auto sum = script_.sums.find(own);
      one.log_probability = sum == script_.sums.end() ? 0.0 : sum->second;
      found.push_back({one});
    }
    return found;
  }

  at::Tensor next_logits(const Indices& windows,
                         const std::vector<Tokens>& targets) const override {
    EXPECT_EQ(windows.size(), targets.size());
    at::Tensor logits = torch::zeros({static_cast<int64_t>(windows.size()), kVocab});
    for (std::size_t i = 0; i < windows.size(); ++i) {
      // Its language is by its first feature; of those that are none one is greater.
      logits[static_cast<int64_t>(i)][25] = 9.0;
      const auto language = static_cast<int64_t>(features_[windows[i]][0][0].item<float>()) % 2;
      logits[static_cast<int64_t>(i)][30 + language] = 5.0;
    }
    logits.select(1, kNoSpeech).fill_(script_.silence);
    return logits;
  }

  std::vector<at::Tensor> attention(const Indices& windows, const std::vector<Tokens>& targets,
                                    const std::vector<LayerHead>& heads) const override {
    std::vector<at::Tensor> found;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      EXPECT_EQ(heads.size(), 1);
      found.push_back(attention_of(static_cast<int64_t>(targets[i].size())));
    }
    return found;
  }

 private:
  at::Tensor features_;
  const Script& script_;
  Calls& calls_;
};

// A sound whose frame i has the feature base + i.
class Ramp : public SoundFrames {
 public:
  Ramp(float base, int64_t frames) : base_(base), frames_(frames) {}
  int64_t frames() const override { return frames_; }
  std::optional<int64_t> sounding() const override { return frames_; }
  at::Tensor read(int64_t begin, int64_t count) const override {
    return (base_ + torch::arange(begin, begin + count, torch::kFloat)).unsqueeze(0);
  }

 private:
  float base_;
  int64_t frames_;
};

nlohmann::json folder() {
  return {{"decoder_start_token_id", 21},
          {"eos_token_id", kEnd},
          {"pad_token_id", kEnd},
          {"no_timestamps_token_id", kFirst - 1},
          {"prev_sot_token_id", 22},
          {"lang_to_id", {{"<|en|>", 30}, {"<|de|>", 31}}},
          {"task_to_id", {{"transcribe", 33}, {"translate", 34}}},
          {"alignment_heads", {{0, 0}}},
          {"max_length", 10}};
}

// Of files and options as text, as they come.
RecognitionSettings settings(const nlohmann::json& overrides, bool words = false,
                             const nlohmann::json& changes = nullptr) {
  nlohmann::json generation = folder();
  if (changes.is_object()) generation.update(changes);
  SettingOverrides given;
  for (const auto& [name, value] : overrides.items())
    given[name] = {nlohmann::json::parse(value.dump()), name};
  const auto file = [](const std::string& text) { return Settings::parse("test", "file", text); };
  return recognition_settings(settings_of_generation(file(generation.dump())),
                              file(R"({"median_filter_width": 1})"), given, {kVocab, 1, 24, 1, 1},
                              words);
}

struct Found {
  int64_t language = -1;
  std::vector<RecognizedSegment> segments;
  std::vector<int64_t> done;
};

std::vector<Found> run(const Script& script, Calls& calls, const RecognitionSettings& given,
                       const std::vector<std::pair<float, int64_t>>& sounds, int64_t batch = 8,
                       std::size_t most_segments = 99) {
  std::vector<Found> found(sounds.size());
  const auto at = [&](int64_t i) -> Found& { return found[static_cast<std::size_t>(i)]; };
  SpeechModel model;
  model.window = kWindow;
  model.encode = [&](const at::Tensor& features) {
    ++calls.encoded;
    EXPECT_EQ(features.size(2), kWindow);
    return std::make_unique<Scripted>(features, script, calls);
  };
  recognize(model, given,
            {static_cast<int64_t>(sounds.size()), batch,
             [&](int64_t i) {
               const auto& [base, frames] = sounds[static_cast<std::size_t>(i)];
               return std::make_unique<Ramp>(base, frames);
             },
             [&](int64_t i, int64_t language) { at(i).language = language; },
             [&](int64_t i, RecognizedSegment segment) {
               at(i).segments.push_back(std::move(segment));
               return at(i).segments.size() < most_segments;
             },
             [&](int64_t i, int64_t frames, int64_t) { at(i).done.push_back(frames); }});
  return found;
}

std::vector<Tokens> texts(const Found& found) {
  std::vector<Tokens> all;
  for (const auto& segment : found.segments) all.push_back(segment.tokens);
  return all;
}

TEST(Recognition, WindowsBeginWhereTheTextEnds) {
  Script script;
  script.texts[{1001.0F, 0}] = {40, 1, 50, 50, 2, 70, 70, 3};  // seek 2 * 30
  script.texts[{1061.0F, 0}] = {40, 4, 55};                    // ends alone: the whole window
  Calls calls;
  const auto found = run(script, calls, settings({}), {{1001.0F, 130}});
  EXPECT_EQ(texts(found[0]), (std::vector<Tokens>{{40, 1, 50}, {50, 2, 70, 70}, {40, 4, 55}}));
  EXPECT_DOUBLE_EQ(found[0].segments[1].start, 0.2);
  EXPECT_DOUBLE_EQ(found[0].segments[1].end, 0.6);
  EXPECT_DOUBLE_EQ(found[0].segments[2].start, 0.6);
  EXPECT_DOUBLE_EQ(found[0].segments[2].end, 0.9);
  EXPECT_EQ(found[0].done, (std::vector<int64_t>{60, 130}));
  EXPECT_EQ(found[0].language, 31);
  // Once detected, with timestamps since the sound is long, and lengths that do not grow.
  for (const auto& search : calls.searches) {
    EXPECT_EQ(search.prefixes(), (std::vector<Tokens>{{21, 31}}));
    EXPECT_EQ(search.max_new_tokens(), 10);
    EXPECT_TRUE(search.timestamp_rules());
  }
}

TEST(Recognition, AWindowWithoutProgressIsOneStep) {
  Script script;
  script.texts[{0.0F, 0}] = {kFirst, kFirst, 1};
  Calls calls;
  const auto found =
      run(script, calls, settings({{"language", "en"}, {"task", "translate"}}), {{0.0F, kWindow}});
  EXPECT_EQ(texts(found[0]), (std::vector<Tokens>{{kFirst, kFirst}}));
  EXPECT_EQ(calls.prefixes[0], (std::vector<Tokens>{{21, 30, 34, kFirst - 1}}));
  EXPECT_FALSE(calls.searches[0].timestamp_rules());
}

TEST(Recognition, TemperaturesAreTriedUntilATextIsGood) {
  Script script;
  script.texts[{0.0F, 0}] = script.texts[{0.0F, 1}] = script.texts[{0.0F, 2}] = {40, 1, 90};
  script.sums[{0.0F, 0}] = script.sums[{0.0F, 1}] = -40.0;
  script.texts[{100.0F, 0}] = {40, 2, 90};
  Calls calls;
  const auto given = settings({{"temperature", {0.0, 0.4, 0.8}},
                               {"logprob_threshold", -5},
                               {"num_beams", 3},
                               {"return_timestamps", true},
                               {"seed", 7}});
  const auto found = run(script, calls, given, {{0.0F, 200}});
  EXPECT_EQ(texts(found[0]), (std::vector<Tokens>{{40, 1, 90}, {40, 2, 90}}));
  ASSERT_EQ(calls.searches.size(), 4);
  EXPECT_EQ(calls.encoded, 2);  // not again for retries
  EXPECT_EQ(calls.searches[0].num_beams(), 3);
  EXPECT_FALSE(calls.searches[0].do_sample());
  for (const int i : {1, 2}) {
    EXPECT_TRUE(calls.searches[i].do_sample());
    EXPECT_EQ(calls.searches[i].num_beams(), 1);
    EXPECT_EQ(calls.searches[i].top_k(), 50);
    EXPECT_EQ(calls.searches[i].generators().size(), 1);
    EXPECT_DOUBLE_EQ(calls.searches[i].temperature(), 0.4 * i);
  }
  EXPECT_EQ(calls.searches[3].num_beams(), 3);  // beams again
}

TEST(Recognition, CompressionAndSilence) {
  Script script;
  script.texts[{0.0F, 0}] = {40, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 90};
  script.texts[{0.0F, 1}] = {40, 1, 2, 3, 90};
  Calls calls;
  const nlohmann::json overrides = {{"temperature", {0, 0.4}},
                                    {"compression_ratio_threshold", 1.1},
                                    {"logprob_threshold", -1.0},
                                    {"no_speech_threshold", 0.6},
                                    {"return_timestamps", true}};
  EXPECT_EQ(texts(run(script, calls, settings(overrides), {{0.0F, 100}})[0]),
            (std::vector<Tokens>{{40, 1, 2, 3, 90}}));
  script.sums[{0.0F, 0}] = -100.0;
  for (const float silence : {0.0F, 20.0F}) {
    script.silence = silence;
    Calls own;
    const auto found = run(script, own, settings(overrides), {{0.0F, 100}});
    EXPECT_EQ(found[0].segments.size(), silence > 0 ? 0 : 1);
    EXPECT_EQ(own.searches.size(), silence > 0 ? 1 : 2);
    EXPECT_EQ(found[0].done, (std::vector<int64_t>{100}));
  }
}

TEST(Recognition, EachSoundIsAsItIsAlone) {
  Script script;
  const std::vector<std::pair<float, int64_t>> sounds = {
      {1001.0F, 240}, {2000.0F, 90}, {3000.0F, 0}, {4000.0F, 120}};
  script.texts[{1001.0F, 0}] = {40, 1, 60, 60};
  script.texts[{1041.0F, 0}] = {40, 2, 80};
  script.texts[{1141.0F, 0}] = {40, 3, 4};
  script.texts[{2000.0F, 0}] = {5, 6};
  script.texts[{4000.0F, 0}] = {40, 7, 90, 90};
  script.texts[{4100.0F, 0}] = {};
  const auto given = settings({{"condition_on_prev_tokens", true}, {"prompt_ids", {22, 8}}});
  std::vector<std::vector<Tokens>> alone;
  for (const auto& sound : sounds) {
    Calls calls;
    const auto found = run(script, calls, given, {sound});
    alone.push_back(texts(found[0]));
  }
  EXPECT_EQ(alone[2].size(), 0);
  EXPECT_EQ(alone[3], (std::vector<Tokens>{{40, 7, 90, 90}, {}}));
  for (const int64_t batch : {1, 2, 4}) {
    Calls calls;
    const auto found = run(script, calls, given, sounds, batch);
    for (std::size_t i = 0; i < sounds.size(); ++i) EXPECT_EQ(texts(found[i]), alone[i]) << i;
  }
  Calls calls;
  run(script, calls, given, {sounds[0]});
  EXPECT_EQ(calls.prefixes[0], (std::vector<Tokens>{{22, 8, 21, 31}}));
  EXPECT_EQ(calls.prefixes[2], (std::vector<Tokens>{{22, 8, 40, 1, 60, 40, 2, 80, 21, 31}}));
}

TEST(Recognition, TimesOfTokensAreOfTheSound) {
  Script script;
  script.texts[{0.0F, 0}] = {40, 1, 2, 90};
  script.texts[{100.0F, 0}] = {40, 3, 90};
  Calls calls;
  const auto found = run(script, calls, settings({{"language", "de"}}, true), {{0.0F, 110}});
  // Rows of new tokens are after a prefix of 3; the last one has none.
  const auto first = token_times(attention_of(7).narrow(1, 3, 4), 50, 5, 1);
  const auto second = token_times(attention_of(6).narrow(1, 3, 3), 5, 4, 1);
  EXPECT_EQ(found[0].segments[0].token_times, std::vector<float>(first.begin(), first.end() - 1));
  ASSERT_EQ(found[0].segments[1].token_times.size(), 3);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_FLOAT_EQ(found[0].segments[1].token_times[k], second[k] + 1.0F);
}

TEST(Recognition, ACallbackEndsASound) {
  Script script;
  script.texts[{0.0F, 0}] = {40, 1, 50, 50, 2, 60, 60};
  Calls calls;
  const auto found = run(script, calls, settings({}), {{0.0F, 300}}, 1, 1);
  EXPECT_EQ(texts(found[0]), (std::vector<Tokens>{{40, 1, 50}}));
  EXPECT_EQ(calls.encoded, 1);
}

void refused(const std::string& message, const nlohmann::json& overrides,
             const nlohmann::json& changes = nullptr, int64_t frames = 50, bool words = false) {
  Script script;
  script.texts[{0.0F, 0}] = {1};
  Calls calls;
  try {
    run(script, calls, settings(overrides, words, changes), {{0.0F, frames}});
    ADD_FAILURE() << "not refused: " << message;
  } catch (const c10::ValueError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(Recognition, Refuses) {
  refused("timestamps must not be switched off", {{"return_timestamps", false}}, {}, 101);
  refused("must have no_timestamps_token_id", {}, {{"no_timestamps_token_id", nullptr}}, 101);
  refused("language must be a language's English name or code", {{"language", "klingon"}});
  refused("language must be one of the languages that the model has", {{"language", "french"}});
  refused("language must have a language for each", {{"language", {"en", "de"}}});
  refused("language must not be set for a model whose is_multilingual is false",
          {{"language", "en"}}, {{"is_multilingual", false}});
  refused("task must not be set for a model without task_to_id", {{"task", "translate"}},
          {{"task_to_id", nullptr}});
  refused("task must be transcribe or translate", {{"task", "sing"}});
  refused("alignment_heads must be set", {}, {{"alignment_heads", nullptr}}, 50, true);
  refused("alignment_heads must be a list of pairs of a layer in [0, 1)", {},
          {{"alignment_heads", {{1, 0}}}}, 50, true);
  refused("no_speech_threshold needs logprob_threshold", {{"no_speech_threshold", 0.5}});
  refused("prompt_condition_type needs condition_on_prev_tokens",
          {{"prompt_condition_type", "all-segments"}});
  refused("prompt_condition_type must be", {{"prompt_condition_type", "none"}});
  refused("max_new_tokens must be at most max_target_positions, 24. Got 2 and 23",
          {{"max_new_tokens", 23}, {"return_timestamps", true}});
  refused("must be shorter than 21", {{"prompt_ids", Tokens(24, 1)}});
  refused("num_return_sequences must be 1", {{"num_return_sequences", 2}, {"num_beams", 2}});
  refused("must be a setting of transformers' generate()", {{"beam_size", 2}});
  refused("temperature must be a number", {{"temperature", "hot"}});
  refused("seed must be an integer", {{"seed", -1}});
  refused("decoder_start_token_id must be one token", {{"decoder_start_token_id", {21, 22}}});
  refused("lang_to_id must be an object of tokens", {}, {{"lang_to_id", {{"<|en|>", 140}}}});
  refused("lang_to_id must have a language", {}, {{"lang_to_id", nlohmann::json::object()}});
  refused("forced_decoder_ids must have position 2", {},
          {{"forced_decoder_ids", {{1, 30}, {3, 33}}}});
  refused("is_multilingual must be in the folder", {{"is_multilingual", true}});
}

}  // namespace
}  // namespace posenc::speech
