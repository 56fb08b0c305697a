#include "cli/translate/translate_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/platform/signals.h"
#include "base/text.h"
#include "cli/error.h"
#include "cli/line_reader.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/translate/translator.h"

namespace posenc::cli {
namespace {

// The most batches that are sorted by length together. More would save little padding, and a line
// is not written before those before it in its window. The first window has one batch, and each has
// twice those of the one before it, so that the first lines are soon there.
constexpr int64_t kWindowBatches = 16;
constexpr int64_t kWindowLines = 4096, kWindowTokens = 1 << 20;

// Lines that are sorted by length together.
struct Window {
  std::vector<int64_t> numbers;
  std::vector<std::vector<int64_t>> sources;  // without blank lines
  std::vector<bool> is_blank;
  std::exception_ptr failure;  // of the line after them, to be reported when they are written
};

// A tokenizer may have tokens that the model lacks, such as added ones.
void check_ids(const std::vector<int64_t>& ids, const Translator& translator,
               const LineReader& reader) {
  for (const int64_t id : ids) {
    if (id < translator.source_vocabulary()) continue;
    fail("{}: line {} has the token {} with id {}, but the model has only {} tokens", reader.name(),
         reader.number(), io::in_quotes(translator.tokenizer().id_to_token(id).value_or("")), id,
         translator.source_vocabulary());
  }
}

// Returns the line's ids; none for a blank line.
std::vector<int64_t> ids_of(const std::string& line, const Translator& translator,
                            const LineReader& reader, bool truncate) {
  auto ids = translator.source(line);
  if (ids.empty()) return {};
  check_ids(ids, translator, reader);
  const auto longest = static_cast<std::size_t>(translator.longest());
  if (ids.size() <= longest) return ids;
  if (!truncate) {
    fail(
        "{}: line {} must have at most {} tokens, including EOS, as the model has no more "
        "positions; --truncate truncates it. Got {}",
        reader.name(), reader.number(), longest, ids.size());
  }
  print_error("posenc translate: {}: line {} was truncated from {} tokens to {}\n", reader.name(),
              reader.number(), ids.size(), longest);
  const auto end = std::min(longest, translator.tokens_at_end());
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(longest - end),
            ids.end() - static_cast<std::ptrdiff_t>(end));
  return ids;
}

// Reads the next line, and further ones that are available without waiting, so that a process that
// writes to a pipe line by line gets each answer before it sends the next line. Ends before a bad
// line. Empty at the end.
Window read_window(LineReader& reader, const Translator& translator, int64_t batches,
                   bool truncate) {
  const int64_t most_tokens = std::min(kWindowTokens / kWindowBatches, translator.batch_tokens());
  const int64_t most_lines = std::min(kWindowLines / kWindowBatches, translator.batch_rows());
  Window window;
  std::string line;
  int64_t tokens = 0;
  try {
    while (static_cast<int64_t>(window.numbers.size()) < batches * most_lines &&
           tokens < batches * most_tokens) {
      if (!window.numbers.empty() && !reader.is_ready()) break;
      if (!reader.next(line)) break;
      auto ids = ids_of(line, translator, reader, truncate);
      tokens += static_cast<int64_t>(ids.size());
      window.numbers.push_back(reader.number());
      window.is_blank.push_back(ids.empty());
      if (!ids.empty()) window.sources.push_back(std::move(ids));
    }
  } catch (const CommandError&) {
    window.failure = std::current_exception();
  }
  return window;
}

// Writes the lines of a window in their order, each as soon as it and those before it are found.
class WindowWriter {
 public:
  WindowWriter(const Window& window, LineFormat format) : window_(window), format_(format) {}

  void write(const Translator::Translations& found) {
    const std::size_t before = line_;
    for (; line_ < window_.numbers.size(); ++line_) {
      if (window_.is_blank[line_]) {
        write_line({Translation()}, {});
      } else if (source_ < found.size() && !found[source_].empty()) {
        write_line(found[source_], window_.sources[source_]);
        ++source_;
      } else {
        break;
      }
    }
    if (line_ > before) flush();
  }
  /// Writes what is found after a line that is not, where lines have their numbers.
  void write_rest(const Translator::Translations& found) {
    if (format_ == LineFormat::Text) return;
    for (; line_ < window_.numbers.size(); ++line_) {
      if (window_.is_blank[line_]) {
        write_line({Translation()}, {});
        continue;
      }
      if (source_ < found.size() && !found[source_].empty())
        write_line(found[source_], window_.sources[source_]);
      ++source_;
    }
    flush();
  }
  /// Whether there is a line to write.
  bool is_due(const Translator::Translations& found) const {
    return line_ < window_.numbers.size() &&
           (window_.is_blank[line_] || (source_ < found.size() && !found[source_].empty()));
  }

 private:
  static void flush() {
    if (std::fflush(stdout) != 0) fail("the output could not be written");
  }

  void write_line(const std::vector<Translation>& all, const std::vector<int64_t>& source) const {
    const bool is_aligned = format_ == LineFormat::AlignedJson;
    if (format_ == LineFormat::Json || is_aligned) {
      auto translations = nlohmann::json::array();
      for (const auto& one : all) {
        translations.push_back({{"score", one.score}, {"text", one.text}});
        if (is_aligned)
          translations.back().update({{"ids", one.ids}, {"alignment", one.alignment}});
      }
      nlohmann::json line = {{"line", window_.numbers[line_]},
                             {"translations", std::move(translations)}};
      if (is_aligned) line["source_ids"] = source;
      print("{}\n", line.dump());
      return;
    }
    for (const auto& one : all) {
      if (format_ == LineFormat::Scores) print("{}\t{:.6g}\t", window_.numbers[line_], one.score);
      print("{}\n", one.text);
    }
  }

  const Window& window_;
  LineFormat format_;
  std::size_t line_ = 0, source_ = 0;
};

// From the first byte of the window on, in bytes of a file, or in lines of any other input.
void show(Progress& progress, double share, const LineReader& reader, const Window& window,
          uint64_t bytes_before) {
  if (reader.size() > 0) {
    const auto bytes = static_cast<double>(reader.bytes() - bytes_before);
    progress.show(bytes_before + static_cast<uint64_t>(share * bytes), reader.size());
  } else {
    const auto lines = static_cast<double>(window.numbers.size());
    progress.show(
        fmt::format("{} lines", window.numbers.front() - 1 + static_cast<int64_t>(share * lines)));
  }
}

// A signal to stop takes effect after the batch, when what is finished has been written.
struct StopSignals {
  StopSignals() { platform::catch_stop_signals(); }
  ~StopSignals() { platform::restore_stop_signals(); }
};

void translate_window(Translator& translator, const LineReader& reader, const Window& window,
                      uint64_t bytes_before, LineFormat format) {
  WindowWriter writer(window, format);
  {
    const StopSignals signals;
    Progress progress("translating");
    const auto write = [&](const Translator::Translations& found) {
      if (writer.is_due(found)) progress.hide();
      writer.write(found);
    };
    write({});  // blank lines at the beginning
    translator.translate(window.sources, [&](const auto& found, std::size_t done) {
      write(found);
      show(progress, static_cast<double>(done) / static_cast<double>(window.sources.size()), reader,
           window, bytes_before);
      if (platform::stop_signal() == 0) return true;
      progress.hide();
      writer.write_rest(found);
      return false;
    });
  }
  if (const int number = platform::stop_signal(); number != 0) platform::end_by_signal(number);
}

}  // namespace

void translate_lines(const TranslateOptions& options) {
  Translator translator(options.folder, options.search, options.freezing, options.load);
  LineReader reader(options.file);
  for (int64_t batches = 1;; batches = std::min(2 * batches, kWindowBatches)) {
    const uint64_t bytes_before = reader.bytes();
    const auto window = read_window(reader, translator, batches, options.truncate);
    if (!window.numbers.empty()) {
      translate_window(translator, reader, window, bytes_before, options.format);
    }
    if (window.failure) std::rethrow_exception(window.failure);
    if (window.numbers.empty()) return;
  }
}

}  // namespace posenc::cli
