#include "cli/translate/translate_lines.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/error.h"
#include "cli/progress.h"
#include "cli/translate/line_reader.h"
#include "cli/translate/translator.h"
#include "io/base/quote.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kWindowLines = 4096;  // sorted by length together, at most
constexpr std::size_t kWindowTokens = 1 << 20;

// Lines that are translated together before any of them is written.
struct Window {
  std::vector<int64_t> numbers;
  std::vector<std::vector<int64_t>> sources;  // without blank lines
  std::vector<bool> is_blank;
};

// A tokenizer may have added tokens for which the model was not resized.
void check_ids(const std::vector<int64_t>& ids, const Translator& translator,
               const LineReader& reader) {
  for (const int64_t id : ids) {
    if (id < translator.source_vocabulary()) continue;
    fail("{}: line {} has the added token {} with id {}, but the model has only {} tokens",
         reader.name(), reader.number(),
         io::in_quotes(translator.tokenizer().added_token(id)->text), id,
         translator.source_vocabulary());
  }
}

// Returns the line's ids; none for a blank line.
std::vector<int64_t> ids_of(const std::string& line, const Translator& translator,
                            const LineReader& reader, bool truncate) {
  auto ids = translator.tokenizer().encode(line);
  if (ids.size() == 1) return {};  // only the end token
  check_ids(ids, translator, reader);
  const auto longest = static_cast<std::size_t>(translator.longest());
  if (ids.size() <= longest) return ids;
  if (!truncate) {
    fail("{}: line {} must have at most {} tokens, including EOS; --truncate truncates it. Got {}",
         reader.name(), reader.number(), longest, ids.size());
  }
  print_error("posenc translate: {}: line {} was truncated from {} tokens to {}\n", reader.name(),
              reader.number(), ids.size(), longest);
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(longest) - 1, ids.end() - 1);
  return ids;
}

// Reads the next line, and further ones that are available without waiting, so that a process that
// writes to a pipe line by line gets each answer before it sends the next line. Empty at the end.
Window read_window(LineReader& reader, const Translator& translator, bool truncate) {
  Window window;
  std::string line;
  for (std::size_t tokens = 0; window.numbers.size() < kWindowLines && tokens < kWindowTokens;) {
    if (!window.numbers.empty() && !reader.is_ready()) break;
    if (!reader.next(line)) break;
    auto ids = ids_of(line, translator, reader, truncate);
    tokens += ids.size();
    window.numbers.push_back(reader.number());
    window.is_blank.push_back(ids.empty());
    if (!ids.empty()) window.sources.push_back(std::move(ids));
  }
  return window;
}

void write_window(const Window& window, const std::vector<std::vector<Translation>>& found,
                  bool with_scores) {
  auto next = found.begin();
  for (std::size_t i = 0; i < window.numbers.size(); ++i) {
    const auto all = window.is_blank[i] ? std::vector<Translation>(1) : *next++;
    for (const auto& one : all) {
      if (with_scores) fmt::print("{}\t{:.6g}\t", window.numbers[i], one.score);
      fmt::print("{}\n", one.text);
    }
  }
  if (std::fflush(stdout) != 0) fail("the output could not be written");
}

// Shows progress in bytes of a file, or in lines of any other input.
void translate_window(Translator& translator, const LineReader& reader, const Window& window,
                      uint64_t bytes_before, bool with_scores) {
  std::vector<std::vector<Translation>> found;
  {
    Progress progress("translating");
    found = translator.translate(window.sources, [&](std::size_t count) {
      const double share = static_cast<double>(count) / static_cast<double>(window.sources.size());
      if (reader.size() > 0) {
        const auto bytes = static_cast<double>(reader.bytes() - bytes_before);
        progress.show(bytes_before + static_cast<uint64_t>(share * bytes), reader.size());
      } else {
        const auto lines = static_cast<double>(window.numbers.size());
        progress.show(fmt::format(
            "{} lines", window.numbers.front() - 1 + static_cast<int64_t>(share * lines)));
      }
    });
  }
  write_window(window, found, with_scores);
}

// More threads than processors only wait for each other, and very large numbers cannot be started.
int threads_of(int64_t wanted) {
  const int64_t most = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<int>(std::min(wanted, most));
}

}  // namespace

void translate_lines(const TranslateOptions& options) {
  if (options.threads > 0) at::set_num_threads(threads_of(options.threads));
  Translator translator(options.folder, options.search);
  LineReader reader(options.file);
  for (;;) {
    const uint64_t bytes_before = reader.bytes();
    const auto window = read_window(reader, translator, options.truncate);
    if (window.numbers.empty()) return;
    translate_window(translator, reader, window, bytes_before, options.with_scores);
  }
}

}  // namespace posenc::cli
