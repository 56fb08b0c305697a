#pragma once

// The component posenc::speech. read_wav(), resample(), LogMelSpectrogram,
// WhisperFeatureExtractor: from files of sound to what models of speech read.

#include "posenc/speech/feature_extractor.h"
#include "posenc/speech/log_mel_spectrogram.h"
#include "posenc/speech/waveform.h"
