#include "cli/tokenize_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/error.h"
#include "cli/line_reader.h"
#include "posenc/text/tokenizer.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 30;  // in bytes

Tokenizer tokenizer_at(const std::string& path) {
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  return is_file ? Tokenizer::from_file(path) : Tokenizer::from_folder(path);
}

// Calls `work` with each line; what has been written is seen before the next line has to be waited
// for.
template <typename Work>
void each_line(const std::string& file, Work&& work) {
  LineReader reader(file, kLongestText);
  std::string line;
  while (true) {
    if (!reader.is_ready()) std::fflush(stdout);
    if (!reader.next(line)) return;
    try {
      work(reader, line);
    } catch (const c10::Error& error) {
      fail("{}: line {}: {}", reader.name(), reader.number(), message_of(error));
    }
  }
}

std::string json_of(const Encoding& encoding) {
  nlohmann::ordered_json out;
  out["ids"] = encoding.ids;
  out["tokens"] = encoding.tokens;
  out["type_ids"] = encoding.type_ids;
  out["mask"] = std::vector<int>(encoding.ids.size(), 1);
  out["offsets"] = encoding.offsets;
  return out.dump();
}

}  // namespace

void tokenize_lines(const TokenizeOptions& options) {
  const Tokenizer tokenizer = tokenizer_at(options.folder);
  auto wanted = TokenizerOptions().add_special_tokens(!options.no_special);
  if (options.max_length > 0) {
    wanted.truncation(tokenizer::Truncation::LongestFirst).max_length(options.max_length);
  }
  each_line(options.file, [&](const LineReader& reader, const std::string& line) {
    std::string_view text = line;
    std::optional<std::string_view> second;
    if (options.pair) {
      const std::size_t tab = text.find('\t');
      if (tab == std::string_view::npos || text.find('\t', tab + 1) != std::string_view::npos) {
        fail("{}: line {} must have two texts, separated by one tab", reader.name(),
             reader.number());
      }
      second = text.substr(tab + 1);
      text = text.substr(0, tab);
    }
    const Encoding encoding = tokenizer.encode_one(text, second, wanted).front();
    fmt::print("{}\n",
               options.json ? json_of(encoding) : fmt::format("{}", fmt::join(encoding.ids, " ")));
  });
}

void detokenize_lines(const DetokenizeOptions& options) {
  const Tokenizer tokenizer = tokenizer_at(options.folder);
  each_line(options.file, [&](const LineReader& reader, const std::string& line) {
    std::vector<int64_t> ids;
    for (std::size_t begin = 0; begin < line.size();) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      if (end > begin) {
        const std::string word = line.substr(begin, end - begin);
        const auto id = whole_number(word);
        if (!id)
          fail("{}: line {} must have ids separated by blanks. Got {}", reader.name(),
               reader.number(), shown(word));
        ids.push_back(*id);
      }
      begin = end + 1;
    }
    fmt::print("{}\n", tokenizer.decode(ids, !options.keep_special));
  });
}

}  // namespace posenc::cli
