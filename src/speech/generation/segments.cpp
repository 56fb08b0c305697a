#include "speech/generation/segments.h"

#include <c10/util/Exception.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

namespace posenc::speech {

WindowSegments split_window(const Tokens& text, int64_t first_timestamp, int64_t seek,
                            int64_t frames) {
  const auto is_time = [&](std::size_t at) { return text[at] >= first_timestamp; };
  const double offset = static_cast<double>(seek) * kSecondsPerTimestamp / 2.0;
  const auto seconds = [&](int64_t timestamps) {
    return offset + static_cast<double>(timestamps) * kSecondsPerTimestamp;
  };
  const auto time_at = [&](std::size_t at) { return text[at] - first_timestamp; };
  std::vector<std::size_t> ends;  // between two timestamps in a row
  for (std::size_t i = 1; i < text.size(); ++i)
    if (is_time(i - 1) && is_time(i)) ends.push_back(i);
  const std::size_t size = text.size();
  if (ends.empty()) {
    int64_t last = frames / 2;
    for (std::size_t i = size; i-- > 0;) {
      if (!is_time(i)) continue;
      if (time_at(i) != 0) last = time_at(i);
      break;
    }
    return {{{0, size, offset, seconds(last)}}, frames};
  }
  // The last segment also has the second timestamp of the pair that closes it.
  const bool ends_alone = is_time(size - 1) && !is_time(size - 2);
  if (ends_alone)
    ends.push_back(size);
  else
    ++ends.back();
  WindowSegments result = {{}, frames};
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    const std::size_t closing = end == ends.back() && !ends_alone ? end - 2 : end - 1;
    result.segments.push_back({begin, end, seconds(time_at(begin)), seconds(time_at(closing))});
    begin = end;
  }
  // Without progress transformers would begin this window again and again.
  if (const int64_t further = 2 * time_at(begin - 2); !ends_alone && further > 0)
    result.frames = further;
  return result;
}

Tokens kept_tokens(Tokens found, int64_t pad, const std::vector<int64_t>& ends) {
  const bool pad_ends = std::ranges::find(ends, pad) != ends.end();
  if (found.empty() || found.back() != pad || pad_ends) return found;
  // A text may end with this token; transformers then takes as many away as it has.
  const auto count = std::ranges::count(found, pad);
  found.resize(found.size() - static_cast<std::size_t>(count));
  return found;
}

double compression_ratio(const Tokens& tokens, int64_t vocab) {
  constexpr int kLevel = 6;  // Python's, by default
  const int width = static_cast<int>(std::log2(static_cast<double>(vocab)) / 8.0) + 1;
  std::string bytes;
  for (const int64_t token : tokens)
    for (int i = 0; i < width; ++i)
      bytes.push_back(static_cast<char>(static_cast<uint64_t>(token) >> (8 * i) & 0xFF));
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string compressed(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(compressed.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               static_cast<uLong>(bytes.size()), kLevel);
  TORCH_CHECK(status == Z_OK, "[SpeechRecognizer] zlib must compress tokens. Got status ", status);
  return static_cast<double>(bytes.size()) / static_cast<double>(size);
}

}  // namespace posenc::speech
