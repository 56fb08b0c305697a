#pragma once

// The component posenc::speech. load_speech_recognizer(): from sounds to their text. read_wav(),
// resample(), LogMelSpectrogram, WhisperFeatureExtractor: from files of sound to what models of
// speech read.

#include "posenc/speech/feature_extractor.h"
#include "posenc/speech/log_mel_spectrogram.h"
#include "posenc/speech/speech_recognizer.h"
#include "posenc/speech/transcribe_options.h"
#include "posenc/speech/transcript.h"
#include "posenc/speech/waveform.h"
