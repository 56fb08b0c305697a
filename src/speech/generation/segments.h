#pragma once

#include <cstdint>
#include <vector>

#include "speech/generation/settings.h"

// What a window's text is split into, and whether it is good.
namespace posenc::speech {

/// Seconds of a frame of features, and from one timestamp to the next, whatever the rate.
constexpr double kSecondsPerFrame = 0.01, kSecondsPerTimestamp = 0.02;

/// A segment of a window: the tokens [begin, end) of its text.
struct SegmentRange {
  std::size_t begin, end;
  double start_time, end_time;  ///< in seconds from the beginning of the sound
};

/// The segments of a window, and how many frames further the next window begins.
struct WindowSegments {
  std::vector<SegmentRange> segments;
  int64_t frames;
};

/// Splits the text of a window, without the token that ended it, at its timestamps. The window
/// begins at frame `seek` and has `frames` of the sound.
WindowSegments split_window(const Tokens& text, int64_t first_timestamp, int64_t seek,
                            int64_t frames);

/// The new tokens of a search that transformers keeps: without what fills a row, which is `pad`,
/// after its end.
Tokens kept_tokens(Tokens found, int64_t pad, const std::vector<int64_t>& ends);

/// How much shorter zlib makes the tokens, each as the bytes that an id of the vocabulary needs.
double compression_ratio(const Tokens& tokens, int64_t vocab);

}  // namespace posenc::speech
