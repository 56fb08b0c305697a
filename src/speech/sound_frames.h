#pragma once

#include <cstdint>
#include <memory>

#include "posenc/speech/feature_extractor.h"
#include "speech/recognition.h"
#include "speech/sound/mono_samples.h"

namespace posenc::speech {

/// The features of a sound at the extractor's rate: all of one that is padded, and of a longer one
/// as they are read. One without samples has no frames.
std::unique_ptr<SoundFrames> frames_of(const WhisperFeatureExtractor& extractor,
                                       std::unique_ptr<sound::MonoSamples> samples);

/// A row of features: of several rows with more frames than a window those of the mask are
/// transcribed.
std::unique_ptr<SoundFrames> frames_of(const SpeechFeatures& features, int64_t row, int64_t window);

}  // namespace posenc::speech
