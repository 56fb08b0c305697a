// posenc translate: translates lines of text with a Marian model in the Hugging Face format.

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/progress.h"
#include "cli/translate/line_reader.h"
#include "cli/translate/translator.h"
#include "io/base/quote.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kWindowLines = 4096;  // sorted by length together, at most
constexpr std::size_t kWindowTokens = 1 << 20;

struct TranslateOptions {
  std::string folder, file;
  TranslatorOptions search;
  bool n_best = false, truncate = false;
  int64_t threads = 0;
};

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
    refuse("{}: line {} has the added token {} with id {}, but the model has only {} tokens",
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
    refuse(
        "{}: line {} must have at most {} tokens, including EOS; --truncate truncates it. Got {}",
        reader.name(), reader.number(), longest, ids.size());
  }
  complain("posenc translate: {}: line {} was truncated from {} tokens to {}\n", reader.name(),
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
                  bool n_best) {
  auto next = found.begin();
  for (std::size_t i = 0; i < window.numbers.size(); ++i) {
    const auto all = window.is_blank[i] ? std::vector<Translation>(1) : *next++;
    for (const auto& one : all) {
      if (n_best) fmt::print("{}\t{:.6g}\t", window.numbers[i], one.score);
      fmt::print("{}\n", one.text);
    }
  }
  if (std::fflush(stdout) != 0) refuse("the output could not be written");
}

// Shows progress in bytes of a file, or in lines of any other input.
void translate_window(Translator& translator, const LineReader& reader, const Window& window,
                      uint64_t bytes_before, bool n_best) {
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
  write_window(window, found, n_best);
}

// More threads than processors only wait for each other, and very large numbers cannot be started.
int threads_of(int64_t wanted) {
  const int64_t most = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<int>(std::min(wanted, most));
}

void translate(const TranslateOptions& options) {
  if (options.threads > 0) at::set_num_threads(threads_of(options.threads));
  Translator translator(options.folder, options.search);
  LineReader reader(options.file);
  for (;;) {
    const uint64_t bytes_before = reader.bytes();
    const auto window = read_window(reader, translator, options.truncate);
    if (window.numbers.empty()) return;
    translate_window(translator, reader, window, bytes_before, options.n_best);
  }
}

}  // namespace

void add_translate(CLI::App& app) {
  auto options = std::make_shared<TranslateOptions>();
  auto* sub = app.add_subcommand(
      "translate",
      "Translate lines of text with a Marian model from Hugging Face, such as Opus-MT's, from a "
      "folder with config.json, safetensors or pytorch_model.bin, source.spm, target.spm and "
      "vocab.json. Each input line gives one output line, in the same order; an empty line stays "
      "empty.");
  sub->add_option("FILE", options->file, "text file in UTF-8; default, or -: standard input")
      ->check(input_path());
  sub->add_option("--model", options->folder, "the folder of the model")
      ->required()
      ->check(input_path());
  sub->add_option("--beams", options->search.beams,
                  "number of beams; 1: greedy search; default: the model's setting")
      ->check(whole(1, kMostBeams));
  sub->add_option("--max-length", options->search.max_length,
                  "maximum number of tokens in a translation; default: the model's setting")
      ->check(whole(1));
  auto* n_best = sub->add_option(
      "--n-best", options->search.n_best,
      "number of translations of each line, best first, each as LINE, SCORE and TEXT separated by "
      "tabs; uses at least as many beams");
  n_best->check(whole(1, kMostBeams));
  sub->add_option("--batch", options->search.batch,
                  "number of source tokens in a batch; larger batches need more memory")
      ->capture_default_str()
      ->check(whole(1));
  sub->add_option("--threads", options->threads,
                  "number of threads, at most one per processor, which is the default")
      ->check(whole(1));
  sub->add_flag(
      "--truncate", options->truncate,
      "truncate lines that are too long for the model, with a warning, instead of failing");
  sub->footer(
      "Example:\n  posenc translate --model opus-mt-en-de letter.txt > brief.txt\n"
      "  echo 'How are you?' | posenc translate --model opus-mt-en-de --beams 4");
  sub->callback([options, n_best] {
    options->n_best = n_best->count() > 0;
    translate(*options);
  });
}

}  // namespace posenc::cli
