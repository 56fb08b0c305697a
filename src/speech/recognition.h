#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "posenc/inference/encoded_sources.h"
#include "speech/generation/settings.h"

// The text of sounds, window by window.
namespace posenc::speech {

/// Windows that a model has encoded, as EncodedSources has them: each function of some of them, by
/// their indices.
class EncodedWindows {
 public:
  EncodedWindows() = default;
  EncodedWindows(const EncodedWindows&) = delete;
  EncodedWindows& operator=(const EncodedWindows&) = delete;
  virtual ~EncodedWindows() = default;

  using Indices = std::vector<int64_t>;
  virtual std::vector<std::vector<Hypothesis>> generate(const Indices& windows,
                                                        const GenerateOptions& options) const = 0;
  virtual at::Tensor next_logits(const Indices& windows,
                                 const std::vector<Tokens>& targets) const = 0;
  virtual std::vector<at::Tensor> attention(const Indices& windows,
                                            const std::vector<Tokens>& targets,
                                            const std::vector<LayerHead>& heads) const = 0;
};

/// What recognises.
struct SpeechModel {
  /// Encodes windows (B, M, window).
  std::function<std::unique_ptr<EncodedWindows>(const at::Tensor& features)> encode;
  int64_t window = 0;  ///< in frames
};

/// The features of a sound.
class SoundFrames {
 public:
  SoundFrames() = default;
  SoundFrames(const SoundFrames&) = delete;
  SoundFrames& operator=(const SoundFrames&) = delete;
  virtual ~SoundFrames() = default;

  /// The frames that are transcribed, and those that its tensor has.
  virtual int64_t frames() const = 0;
  virtual int64_t width() const { return frames(); }
  /// Those of the sound before its padding, where that is known.
  virtual std::optional<int64_t> sounding() const = 0;
  /// Whether none is NaN or infinite.
  virtual bool has_finite() const { return true; }
  /// (M, count) of them.
  virtual at::Tensor read(int64_t begin, int64_t count) const = 0;
};

struct RecognizedSegment {
  double start, end;
  Tokens tokens;
  std::vector<float> token_times = {};  ///< with alignment_heads
};

/// The sounds of a call.
struct Sounds {
  int64_t count, batch_size;
  /// Opens one, when it is its turn.
  std::function<std::unique_ptr<SoundFrames>(int64_t sound)> open;
  /// Called before the first segment of a sound.
  std::function<void(int64_t sound, int64_t language)> on_language;
  /// Called with each; false ends the sound.
  std::function<bool(int64_t sound, RecognizedSegment segment)> on_segment;
  /// Called after each window with the frames that are done.
  std::function<void(int64_t sound, int64_t frames, int64_t of)> on_window;
};

/// Transcribes them: as transformers' generate() does of each alone. Throws c10::ValueError.
void recognize(const SpeechModel& model, const RecognitionSettings& settings, const Sounds& sounds);

/// (M, window): the window of a sound that begins at a frame, with zeros after its end.
at::Tensor window_of(const SoundFrames& frames, int64_t begin, int64_t window);

/// The languages of sounds' first windows, (B, M, window): those of their tokens.
std::vector<int64_t> detect_languages(const EncodedWindows& encoded,
                                      const EncodedWindows::Indices& windows,
                                      const RecognitionSettings& settings);

}  // namespace posenc::speech
