#pragma once

#include <torch/types.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/speech/feature_extractor.h"
#include "posenc/speech/transcribe_options.h"
#include "posenc/speech/transcript.h"
#include "posenc/speech/waveform.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {
namespace speech {
struct RecognizerParts;
}  // namespace speech

/// Transcribes speech with Whisper: sound in, text with times out.
///
/// ```cpp
/// auto whisper = posenc::load_speech_recognizer("models/whisper-tiny");
/// auto options = posenc::TranscribeOptions().language("en").timestamps(posenc::Timestamps::Word);
/// for (const auto& segment : whisper.transcribe("speech.wav", options).segments)
///   std::cout << segment.start << " to " << segment.end << " s:" << segment.text << "\n";
/// ```
///
/// A sound is read in windows (30 s), each of which begins where the text of the one before it
/// ends. Sounds of a batch share the steps of the model; the transcript of each is the one that it
/// has alone, of a frozen model to the last digit. Of a sound that is longer than a window, the
/// samples are read twice, by pieces, and never all at a time, unless a Waveform has them.
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of read_waveform(), WhisperFeatureExtractor and posenc::generate();
/// c10::ValueError for options that the model or its folder's settings do not allow: a language or
/// a task that it lacks, timestamps without no_timestamps_token_id, words without alignment_heads,
/// a prompt and max_new_tokens beyond max_target_positions, text without a tokenizer, and an object
/// that was moved from.
///
/// Source: `WhisperGenerationMixin.generate` (transformers 5.23.0); docs/speech.md has what
/// differs.
class SpeechRecognizer {
 public:
  /// The text of a file, WAV or .npy at the model's rate.
  Transcript transcribe(const std::string& path, const TranscribeOptions& options = {}) const;
  /// The same of a file, as a string literal names it.
  Transcript transcribe(const char* path, const TranscribeOptions& options = {}) const;
  /// The text of a sound.
  Transcript transcribe(const Waveform& sound, const TranscribeOptions& options = {}) const;
  /// The texts of files. `rate`, in Hz, is that of files that state none, .npy, in place of the
  /// model's; it is an error for one that states another.
  std::vector<Transcript> transcribe(const std::vector<std::string>& paths,
                                     const TranscribeOptions& options = {},
                                     std::optional<int64_t> rate = std::nullopt) const;
  /// The texts of sounds.
  std::vector<Transcript> transcribe(const std::vector<Waveform>& sounds,
                                     const TranscribeOptions& options = {}) const;

  /// The texts of features: input_features (N, M, F) float32, and attention_mask (N, F), 1 for a
  /// frame of the sound, or undefined. Of several rows with more frames than a window the mask says
  /// where each ends; for words, where the sound does.
  std::vector<Transcript> transcribe_features(const SpeechFeatures& features,
                                              const TranscribeOptions& options = {}) const;

  /// The features of a sound, as WhisperFeatureExtractor computes them.
  SpeechFeatures features(const Waveform& sound) const;
  /// The code of the language of a sound's first window.
  ///
  /// Errors: c10::ValueError for a model without lang_to_id.
  std::string detect_language(const Waveform& sound) const;
  /// The codes of the languages that the model knows, in their order; none of an English one.
  std::vector<std::string> languages() const;

  /// The frozen model.
  ///
  /// Errors: c10::ValueError for a recogniser of a Transformer.
  const FrozenTransformer& model() const;
  /// The tokenizer.
  ///
  /// Errors: c10::ValueError for a folder without one.
  const Tokenizer& tokenizer() const;
  /// What the features are.
  const LogMelOptions& feature_options() const;
  /// The frames of a window, of which there are sampling_rate / hop_length a second.
  int64_t window() const;

 private:
  friend SpeechRecognizer load_speech_recognizer(const std::string& folder,
                                                 const FreezeOptions& options,
                                                 const LoadOptions& load);
  friend SpeechRecognizer load_speech_recognizer(const std::string& folder,
                                                 const Transformer& model);
  explicit SpeechRecognizer(std::shared_ptr<const speech::RecognizerParts> parts)
      : parts_(std::move(parts)) {}
  const speech::RecognizerParts& parts() const;

  std::shared_ptr<const speech::RecognizerParts> parts_;
};

/// Loads the Whisper model in a folder, frozen, with its tokenizer, the settings of its features
/// and those of generate().
///
/// Errors: those of load_seq2seq(), freeze(), log_mel_options_from_hf() and
/// load_generation_config(); c10::ValueError for another model type.
SpeechRecognizer load_speech_recognizer(const std::string& folder,
                                        const FreezeOptions& options = {},
                                        const LoadOptions& load = {});

/// The same with a model that the program has, such as one that it trains, in place of the
/// folder's:
///
/// ```cpp
/// auto loaded = posenc::load_seq2seq("models/whisper-tiny");
/// auto whisper = posenc::load_speech_recognizer("models/whisper-tiny", loaded.model);
/// ```
///
/// The model has to be in eval mode where it transcribes. Results are those of the frozen model,
/// but for rounding, which the batch may change.
SpeechRecognizer load_speech_recognizer(const std::string& folder, const Transformer& model);

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const SpeechRecognizer& recognizer);

}  // namespace posenc
