// Formats of transcripts: JSON, subtitles of SubRip and WebVTT, and text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/transcribe_parts.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const TranscriptSegment& segment, bool with_words) {
  Json result = {{"start", segment.start},
                 {"end", segment.end},
                 {"text", segment.text},
                 {"tokens", segment.tokens}};
  if (!with_words) return result;
  result["words"] = Json::array();
  for (const TranscriptWord& word : segment.words)
    result["words"].push_back({{"text", word.text}, {"start", word.start}, {"end", word.end}});
  return result;
}

Json json_of(const Transcript& transcript, Timestamps times) {
  Json result = {{"text", transcript.text}, {"language", nullptr}};
  if (transcript.language) result["language"] = *transcript.language;
  result["tokens"] = transcript.tokens;
  result["duration"] = transcript.duration;
  if (times == Timestamps::None) return result;
  result["segments"] = Json::array();
  for (const TranscriptSegment& segment : transcript.segments)
    result["segments"].push_back(json_of(segment, times == Timestamps::Word));
  return result;
}

// A text on one line of its own.
std::string line_of(std::string text) {
  constexpr const char* kSpaces = " \t\r\n";
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// A text in which nothing is markup, and no arrow ends a cue.
std::string cue_text(const std::string& text, TranscriptFormat format) {
  if (format == TranscriptFormat::Srt) return line_of(text);
  std::string result;
  for (const char c : line_of(text))
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

struct Cue {
  double start, end;
  std::string text;
};

// Of words, if there are some, otherwise of segments; not of those without text.
std::vector<Cue> cues_of(const Transcript& transcript, TranscriptFormat format, Timestamps times) {
  std::vector<Cue> cues;
  const auto add = [&](double start, double end, const std::string& text) {
    std::string own = cue_text(text, format);
    if (!own.empty()) cues.push_back({start, end, std::move(own)});
  };
  for (const TranscriptSegment& segment : transcript.segments) {
    if (times != Timestamps::Word) add(segment.start, segment.end, segment.text);
    for (const TranscriptWord& word : segment.words) add(word.start, word.end, word.text);
  }
  return cues;
}

std::string lines_of(const Transcript& transcript, Timestamps times) {
  if (times == Timestamps::None) return line_of(transcript.text) + "\n";
  std::string lines;
  for (const TranscriptSegment& segment : transcript.segments)
    if (const std::string line = line_of(segment.text); !line.empty()) lines += line + "\n";
  return lines;
}

}  // namespace

std::string time_text(double seconds, char point) {
  const auto all = static_cast<int64_t>(std::llround(std::max(0.0, seconds) * 1000.0));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", all / 3'600'000, all / 60'000 % 60,
                     all / 1000 % 60, point, all % 1000);
}

TranscriptFormat transcript_format(const std::string& path) {
  const std::string end = io::lower_case(std::filesystem::path(path).extension().string());
  return end == ".srt"   ? TranscriptFormat::Srt
         : end == ".vtt" ? TranscriptFormat::Vtt
         : end == ".txt" ? TranscriptFormat::Text
                         : TranscriptFormat::Json;
}

std::string transcript_text(const Transcript& transcript, TranscriptFormat format,
                            Timestamps times) {
  if (format == TranscriptFormat::Json) return json_of(transcript, times).dump() + "\n";
  if (format == TranscriptFormat::Text) return lines_of(transcript, times);
  const bool is_srt = format == TranscriptFormat::Srt;
  const char point = is_srt ? ',' : '.';
  std::string text = is_srt ? "" : "WEBVTT\n\n";
  int number = 0;
  for (const Cue& cue : cues_of(transcript, format, times)) {
    if (is_srt) text += fmt::format("{}\n", ++number);
    text += fmt::format("{} --> {}\n{}\n\n", time_text(cue.start, point), time_text(cue.end, point),
                        cue.text);
  }
  return text;
}

}  // namespace posenc::cli
