#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/speech/transcript.h"

namespace posenc POSENC_EXPORT {

/// Which times a transcript has.
enum class Timestamps {
  None,     ///< none: the model writes no timestamps
  Segment,  ///< of segments, by the timestamps that the model writes
  Word,     ///< of words too, by what the tokens attend to in the sound
};

/// A segment as soon as it is there.
struct TranscribedSegment {
  int64_t sound;                     ///< the index of the sound
  const TranscriptSegment* segment;  ///< valid during the call
};

/// How much of a sound has been transcribed.
struct TranscribeProgress {
  int64_t sound;    ///< the index of the sound
  double seconds;   ///< that are done
  double duration;  ///< of the sound, in seconds, with the silence to which a short one is padded
};

/// Options of SpeechRecognizer. Names and meaning are those of transformers' generate() for
/// Whisper; what is not set is what the folder's generation_config.json says.
struct TranscribeOptions {
  /// The language that is spoken: a code ("de"), an English name ("german") or its token
  /// ("<|de|>"). Otherwise the model detects it in the first window.
  TORCH_ARG(std::optional<std::string>, language) = std::nullopt;
  /// "transcribe", or "translate" into English.
  TORCH_ARG(std::optional<std::string>, task) = std::nullopt;
  /// Which times there are. Sounds that are longer than a window always have timestamps, and
  /// Timestamps::None is an error for them.
  TORCH_ARG(std::optional<Timestamps>, timestamps) = std::nullopt;
  /// Number of beams at temperature 0 (num_beams).
  TORCH_ARG(std::optional<int64_t>, beams) = std::nullopt;
  /// Tried in order until a window's text passes the thresholds; above 0 tokens are drawn. Empty:
  /// 0.
  TORCH_ARG(std::vector<double>, temperatures) = {};
  /// A window is tried again if its tokens, as bytes, are compressed by more than this factor.
  TORCH_ARG(std::optional<double>, compression_ratio_threshold) = std::nullopt;
  /// A window is tried again if the mean log probability of its tokens is lower.
  TORCH_ARG(std::optional<double>, logprob_threshold) = std::nullopt;
  /// A window is skipped as silence if the model says so with a greater probability, and the mean
  /// log probability is below logprob_threshold, which this needs.
  TORCH_ARG(std::optional<double>, no_speech_threshold) = std::nullopt;
  /// Whether each window continues the text of those before it.
  TORCH_ARG(std::optional<bool>, condition_on_prev_tokens) = std::nullopt;
  /// A text that is put before that of each window, such as names that occur.
  TORCH_ARG(std::string, prompt) = "";
  /// The same as tokens, the first one <|startofprev|>; not with `prompt`.
  TORCH_ARG(std::vector<int64_t>, prompt_ids) = {};
  /// With condition_on_prev_tokens: "first-segment" lets later text push the prompt out, which is
  /// the default, and "all-segments" keeps it.
  TORCH_ARG(std::optional<std::string>, prompt_condition_type) = std::nullopt;
  /// Maximum number of tokens in a window.
  TORCH_ARG(std::optional<int64_t>, max_new_tokens) = std::nullopt;
  /// Other settings of generate() that replace the folder's, as a JSON object; null removes one.
  /// docs/speech.md has the names. An option above that is set counts more.
  TORCH_ARG(std::string, settings) = "{}";
  /// Of what temperatures above 0 draw; each sound has a generator of its own with this seed.
  TORCH_ARG(std::optional<uint64_t>, seed) = std::nullopt;

  /// How many sounds are transcribed at a time.
  TORCH_ARG(int64_t, batch_size) = 8;
  /// Whether tokens become text, which needs the folder's tokenizer.
  TORCH_ARG(bool, decode) = true;
  /// Is called with each segment as soon as it is there: those of a sound in their order, those of
  /// a batch's sounds in turn. Return false to end the sound with it.
  TORCH_ARG(std::function<bool(const TranscribedSegment&)>, on_segment) = nullptr;
  /// Is called after each window.
  TORCH_ARG(std::function<void(const TranscribeProgress&)>, progress) = nullptr;
};

}  // namespace posenc
