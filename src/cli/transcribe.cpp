// posenc transcribe: the text of sounds, and what a model of speech reads and computes of them.

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/set_option.h"
#include "cli/transcribe_parts.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "posenc/models/seq2seq.h"
#include "posenc/speech/feature_extractor.h"
#include "posenc/speech/speech_recognizer.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

void write_features(const TranscribeArguments& arguments) {
  const std::string& input = arguments.inputs.front();
  const WhisperFeatureExtractor extractor(log_mel_options_from_hf(arguments.folder));
  const int64_t rate = arguments.rate.value_or(extractor.options().sampling_rate());
  const Waveform sound = read_waveform(input, rate);
  if (arguments.rate && sound.rate != rate)
    fail("{}: --rate must be the rate that the file states, {}. Got {}", input, sound.rate, rate);
  const SpeechFeatures features = extractor.extract(sound);
  StateDict tensors;
  tensors.insert("input_features", features.input_features);
  tensors.insert("attention_mask", features.attention_mask);
  save_tensors(arguments.output, tensors);
}

void write_tensors(const TranscribeArguments& arguments, const StateDict& tensors) {
  save_tensors(arguments.output, tensors);
  print("{}: {}\n", arguments.output, described(tensors));
}

SpeechRecognizer recognizer_of(const TranscribeArguments& arguments) {
  LoadReport report;
  const LoadOptions load = LoadOptions(arguments.load).report(&report);
  SpeechRecognizer recognizer =
      arguments.plain
          ? load_speech_recognizer(arguments.folder, load_seq2seq(arguments.folder, load).model)
          : load_speech_recognizer(arguments.folder, arguments.freezing, load);
  note_unexpected("transcribe", report);
  return recognizer;
}

// The settings of --set, of which those that are options of the command are given once.
void read_settings(TranscribeArguments& arguments) {
  TranscribeOptions& options = arguments.options;
  arguments.set = settings_in(arguments.settings);
  const std::pair<const char*, bool> given[] = {
      {"language", options.language().has_value()},
      {"task", options.task().has_value()},
      {"return_timestamps", options.timestamps().has_value()}};
  for (const auto& [name, is_given] : given)
    if (is_given && arguments.set.contains(name))
      fail_usage("--set {} must not be given with --{}", name,
                 std::string(name) == "return_timestamps" ? "timestamps" : name);
  options.settings(nlohmann::json(arguments.set).dump());
}

bool has_tensors(const std::string& input) { return input.ends_with(".safetensors"); }

// Of a file of subtitles, which has times.
void check_subtitles(TranscribeArguments& arguments) {
  const TranscriptFormat format = transcript_format(arguments.output);
  if (format != TranscriptFormat::Srt && format != TranscriptFormat::Vtt) return;
  auto& times = arguments.options.timestamps();
  if (times == Timestamps::None) fail_usage("--timestamps must not be none for subtitles");
  if (arguments.set.contains("return_timestamps"))
    fail_usage("--set return_timestamps must not be given for subtitles, which have times");
  if (arguments.inputs.size() > 1) fail_usage("--in must be one file for subtitles");
  if (!times) times = Timestamps::Segment;
}

void transcribe(TranscribeArguments& arguments) {
  const auto& inputs = arguments.inputs;
  const bool of_tensors = arguments.logits || has_tensors(inputs.front());
  const bool to_tensors = arguments.features || of_tensors;
  if (to_tensors && arguments.output.empty()) fail_usage("--out is required for tensors");
  for (const std::string& input : inputs)
    if (inputs.size() > 1 && (to_tensors || has_tensors(input)))
      fail_usage("--in must be one file for tensors");
  if (of_tensors && arguments.rate) fail_usage("--rate must be given for sounds, not for tensors");
  read_settings(arguments);
  if (!to_tensors) check_subtitles(arguments);
  if (!arguments.output.empty()) {
    std::vector<std::string> read = inputs;
    read.push_back(arguments.folder);
    check_output(arguments.output, read);
  }
  if (arguments.features) return write_features(arguments);
  if (arguments.logits) {
    return write_tensors(
        arguments, forced_logits_of_sounds(arguments.folder, inputs.front(), arguments.freezing,
                                           arguments.load, arguments.plain));
  }
  const SpeechRecognizer recognizer = recognizer_of(arguments);
  if (!of_tensors) return transcribe_sounds(recognizer, arguments);
  write_tensors(arguments, transcribed_tensors(recognizer, arguments));
}

// What only text is made with.
std::vector<CLI::Option*> add_text_options(CLI::App& sub, TranscribeArguments& arguments) {
  static constexpr std::pair<const char*, Timestamps> kTimes[] = {
      {"none", Timestamps::None}, {"segment", Timestamps::Segment}, {"word", Timestamps::Word}};
  TranscribeOptions& options = arguments.options;
  const auto optional = [&](const char* option, auto& value, const std::string& help) {
    using Value = typename std::decay_t<decltype(value)>::value_type;
    return sub.add_option_function<Value>(
        option, [&value](const Value& given) { value = given; }, help);
  };
  auto* set = sub.add_option("--set", arguments.settings,
                             "a setting of transformers' generate(), with a value in JSON, which "
                             "replaces the folder's; null removes it; repeatable");
  set->check(assignment())->allow_extra_args(false);
  return {
      set,
      optional("--language", options.language(),
               "the language that is spoken: de, german; default: the folder's, or what the model "
               "detects"),
      optional("--task", options.task(), "what is written: the words, or English for them")
          ->check(choice({"transcribe", "translate"})),
      add_choice(sub, "--timestamps", kTimes, options.timestamps(),
                 "times in the results; a sound that is longer than a window needs timestamps"),
      sub.add_option("--prompt", options.prompt(),
                     "text before that of each window, such as names"),
      optional("--seed", options.seed(), "of what temperatures above 0 draw")->check(integer(0)),
      sub.add_option("--batch", options.batch_size(), "number of sounds at a time")
          ->capture_default_str()
          ->check(integer(1, 4096)),
  };
}

void add_transcribe(CLI::App& app) {
  auto arguments = std::make_shared<TranscribeArguments>();
  auto* sub = app.add_subcommand(
      "transcribe",
      "Write the text of sounds with Whisper: a line of JSON for each, or subtitles. Or what the "
      "model reads and computes of them.");
  sub->add_option(
         "MODEL_DIR", arguments->folder,
         "folder with config.json and the weights, as save_pretrained() writes it, or what "
         "posenc freeze wrote of it; --features reads preprocessor_config.json or "
         "processor_config.json alone")
      ->required()
      ->check(input_path());
  sub->add_option("--in", arguments->inputs,
                  "sound: WAV, or an array of NumPy (.npy) of float32 or float64, (n) or (C, n); "
                  "recognised by content; repeatable. Or .safetensors with `input_features` "
                  "(N, M, F), `attention_mask` (N, F) and `prompt_ids` (P); with --logits with "
                  "`input_features` (N, M, W) and `decoder_input_ids` int64 (N, T)")
      ->required()
      ->allow_extra_args(false)
      ->check(input_path());
  sub->add_option("--rate", arguments->rate,
                  "samples of a .npy per second, in Hz; default: the rate that the model takes")
      ->check(integer(1));
  sub->add_option(
         "--out", arguments->output,
         "file to write in place of standard output: subtitles for .srt and .vtt, text for "
         ".txt, lines of JSON for others. Of tensors and --features, which need it, a file "
         "of tensors")
      ->check(output_path());
  const auto text = add_text_options(*sub, *arguments);
  auto* features =
      sub->add_flag("--features", arguments->features,
                    "write `input_features` float32 (1, M, F) and `attention_mask` int64 (1, F)");
  auto* logits = sub->add_flag(
      "--logits", arguments->logits,
      "write `logits` (N, T, V), each of a token of `decoder_input_ids` after those before it, and "
      "`encoder_last_hidden_state` (N, W / 2, D)");
  logits->excludes(features);
  for (auto* option : text) option->excludes(features)->excludes(logits);
  auto* plain = sub->add_flag("--plain", arguments->plain, "use the modules, not the frozen model");
  plain->excludes(features);
  for (auto* option : add_freezing(*sub, arguments->freezing))
    option->excludes(features)->excludes(plain);
  add_allow_unexpected(*sub, arguments->load);
  add_threads(*sub);
  sub->footer(
      "Example:\n  posenc transcribe models/whisper-tiny --in speech.wav --timestamps word\n  "
      "posenc "
      "transcribe models/whisper-tiny --in speech.wav --language de --out speech.srt");
  sub->callback([arguments] { transcribe(*arguments); });
}

const Command kTranscribe{19, add_transcribe};

}  // namespace
}  // namespace posenc::cli
