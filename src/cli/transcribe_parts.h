#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "posenc/inference/freeze_options.h"
#include "posenc/speech/transcribe_options.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc {
class SpeechRecognizer;
}  // namespace posenc

namespace posenc::cli {

/// The arguments of `posenc transcribe`.
struct TranscribeArguments {
  std::string folder, output;
  std::vector<std::string> inputs, settings;
  std::map<std::string, nlohmann::json> set = {};  ///< what `settings` say
  std::optional<int64_t> rate;
  bool features = false, logits = false, plain = false;
  TranscribeOptions options = {};
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

/// What `posenc transcribe --logits` writes for the file `input` of `input_features` (N, M, W) and
/// `decoder_input_ids` (N, T): `logits` (N, T, V), each of the token after those up to its own, and
/// `encoder_last_hidden_state` (N, W / 2, D). `plain`: by the modules, not the frozen model.
StateDict forced_logits_of_sounds(const std::string& folder, const std::string& input,
                                  const FreezeOptions& freezing, const LoadOptions& load,
                                  bool plain);

/// What it writes for a file of `input_features` (N, M, F), `attention_mask` and `prompt_ids`.
StateDict transcribed_tensors(const SpeechRecognizer& recognizer,
                              const TranscribeArguments& arguments);

/// Transcribes files of sound, and writes or prints the transcripts.
void transcribe_sounds(const SpeechRecognizer& recognizer, const TranscribeArguments& arguments);

/// The format of a file of transcripts, by the end of its name.
enum class TranscriptFormat { Json, Srt, Vtt, Text };
TranscriptFormat transcript_format(const std::string& path);

/// A transcript as lines of a file. `times`: which the options asked for.
std::string transcript_text(const Transcript& transcript, TranscriptFormat format,
                            Timestamps times);

/// "01:02:03.400"; `point` is a comma in SubRip's format.
std::string time_text(double seconds, char point);

}  // namespace posenc::cli
