// posenc transcribe: what a model of speech reads of a sound.

#include <memory>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/transcribe_parts.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "posenc/speech/feature_extractor.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

struct TranscribeArguments {
  std::string folder, input, output;
  std::optional<int64_t> rate;
  bool features = false, logits = false, plain = false;
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

void write_features(const TranscribeArguments& arguments) {
  check_output(arguments.output, {arguments.folder, arguments.input});
  const WhisperFeatureExtractor extractor(log_mel_options_from_hf(arguments.folder));
  const int64_t rate = arguments.rate.value_or(extractor.options().sampling_rate());
  const Waveform sound = read_waveform(arguments.input, rate);
  if (arguments.rate && sound.rate != rate)
    fail("{}: --rate must be the rate that the file states, {}. Got {}", arguments.input,
         sound.rate, rate);
  const SpeechFeatures features = extractor.extract(sound);
  StateDict tensors;
  tensors.insert("input_features", features.input_features);
  tensors.insert("attention_mask", features.attention_mask);
  save_tensors(arguments.output, tensors);
}

void write_logits(const TranscribeArguments& arguments) {
  check_output(arguments.output, {arguments.folder, arguments.input});
  const StateDict tensors = forced_logits_of_sounds(
      arguments.folder, arguments.input, arguments.freezing, arguments.load, arguments.plain);
  save_tensors(arguments.output, tensors);
  print("{}: {}\n", arguments.output, described(tensors));
}

void add_transcribe(CLI::App& app) {
  auto arguments = std::make_shared<TranscribeArguments>();
  auto* sub = app.add_subcommand(
      "transcribe",
      "Write the features that Whisper reads of a sound, as transformers' WhisperFeatureExtractor "
      "computes them, or what a model computes of features and tokens. Text is not made of them "
      "yet.");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder with the settings of the feature extractor, preprocessor_config.json or "
                  "processor_config.json; with --logits with the model")
      ->required()
      ->check(input_path());
  sub->add_option("--in", arguments->input,
                  "sound: WAV, or an array of NumPy (.npy) of float32 or float64, (n) or (C, n); "
                  "recognised by content. With --logits safetensors with `input_features` "
                  "(N, M, W) and `decoder_input_ids` int64 (N, T)")
      ->required()
      ->check(input_path());
  sub->add_option("--rate", arguments->rate,
                  "samples of a .npy per second, in Hz; default: the rate that the model takes")
      ->check(integer(1, int64_t{1} << 30));
  auto* features =
      sub->add_flag("--features", arguments->features,
                    "write `input_features` float32 (1, M, F) and `attention_mask` int64 (1, F)");
  auto* logits = sub->add_flag(
      "--logits", arguments->logits,
      "write `logits` (N, T, V), each of a token of `decoder_input_ids` after those before it, and "
      "`encoder_last_hidden_state` (N, W / 2, D)");
  logits->excludes(features);
  auto* plain = sub->add_flag("--plain", arguments->plain, "use the modules, not the frozen model");
  plain->needs(logits);
  for (auto* option : add_freezing(*sub, arguments->freezing))
    option->needs(logits)->excludes(plain);
  add_allow_unexpected(*sub, arguments->load);
  sub->add_option("--out", arguments->output, "file of tensors to write")
      ->required()
      ->check(output_path());
  add_threads(*sub);
  sub->footer(
      "Example:\n  posenc transcribe models/whisper-tiny --in speech.wav --features --out "
      "features.safetensors");
  sub->callback([arguments] {
    if (!arguments->features && !arguments->logits)
      fail_usage("--features or --logits is required");
    arguments->logits ? write_logits(*arguments) : write_features(*arguments);
  });
}

const Command kTranscribe{19, add_transcribe};

}  // namespace
}  // namespace posenc::cli
