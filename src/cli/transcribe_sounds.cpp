// posenc transcribe: files of sound to their text.

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/platform/streams.h"
#include "cli/error.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/transcribe_parts.h"
#include "posenc/speech/speech_recognizer.h"
#include "weights/common/file.h"

namespace posenc::cli {
namespace {

// "[#####     ] 12 of 24 s"
std::string bar_of(double done, double all) {
  constexpr double kWidth = 30.0;
  const double part = all > 0.0 ? std::clamp(done / all, 0.0, 1.0) : 1.0;
  return fmt::format("[{:<30}] {:.0f} of {:.0f} s",
                     std::string(static_cast<std::size_t>(part * kWidth), '#'), done, all);
}

// Prints the segments of sounds as they come, for a reader.
void print_segments(const TranscribeArguments& arguments, Progress& progress,
                    TranscribeOptions& options) {
  options.on_segment([&](const TranscribedSegment& one) {
    progress.hide();
    if (arguments.inputs.size() > 1)
      print("{}: ", shown(arguments.inputs[static_cast<std::size_t>(one.sound)]));
    print("[{} --> {}] {}\n", time_text(one.segment->start, '.'), time_text(one.segment->end, '.'),
          for_terminal(one.segment->text));
    std::fflush(stdout);
    return true;
  });
}

// How much of all sounds is done. Of those whose turn has not come the length is not known.
void show_progress(Progress& progress, std::size_t count, TranscribeOptions& options) {
  std::vector<TranscribeProgress> sounds(count);
  options.progress([&progress, sounds](const TranscribeProgress& one) mutable {
    sounds[static_cast<std::size_t>(one.sound)] = one;
    double done = 0.0, all = 0.0;
    for (const TranscribeProgress& each : sounds) {
      done += each.seconds;
      all += each.duration;
    }
    progress.show(bar_of(done, all));
  });
}

void write_text(const std::string& path, const std::string& text) {
  io::in_file(path, [&] {
    io::AtomicFile file(path);
    file.write(text.data(), text.size());
    file.commit();
  });
}

}  // namespace

void transcribe_sounds(const SpeechRecognizer& recognizer, const TranscribeArguments& arguments) {
  const bool is_shown = arguments.output.empty() && platform::stdout_is_terminal();
  TranscribeOptions options = arguments.options;
  Progress progress("transcribe");
  if (is_shown) print_segments(arguments, progress, options);
  show_progress(progress, arguments.inputs.size(), options);
  const auto found = recognizer.transcribe(arguments.inputs, options, arguments.rate);
  progress.hide();
  if (is_shown) return;
  std::string text;
  for (const Transcript& transcript : found)
    text += transcript_text(transcript, transcript_format(arguments.output),
                            options.timestamps().value_or(Timestamps::None));
  if (arguments.output.empty())
    print("{}", text);
  else
    write_text(arguments.output, text);
}

}  // namespace posenc::cli
