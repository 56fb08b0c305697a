#pragma once

#include <optional>
#include <string>

#include "models/config/settings.h"
#include "models/seq2seq/generation_config.h"
#include "posenc/speech/speech_recognizer.h"
#include "speech/recognition.h"

namespace posenc::speech {

/// What a SpeechRecognizer is made of.
struct RecognizerParts {
  Settings config;      ///< config.json
  Settings generation;  ///< the settings of generate()
  ModelSizes sizes = {};
  SpeechModel model = {};
  std::optional<FrozenTransformer> frozen = {};  ///< none of a model that is not
  std::optional<Tokenizer> tokenizer = {};
  std::string no_tokenizer = {};  ///< why there is none
  std::optional<WhisperFeatureExtractor> extractor = {};
  std::string no_extractor = {};
};

/// Throw c10::ValueError where there is none.
const Tokenizer& tokenizer_of(const RecognizerParts& parts);
const WhisperFeatureExtractor& extractor_of(const RecognizerParts& parts);

/// The settings of a call, which its options replace. Throws c10::ValueError.
RecognitionSettings settings_of(const RecognizerParts& parts, const TranscribeOptions& options);

}  // namespace posenc::speech
