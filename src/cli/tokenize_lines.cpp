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
#include "cli/text_lines.h"
#include "posenc/text/tokenizer.h"

namespace posenc::cli {
namespace {

Tokenizer tokenizer_at(const std::string& path) {
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  return is_file ? Tokenizer::from_file(path) : Tokenizer::from_folder(path);
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
    std::pair<std::string, std::string> texts;
    std::string_view text = line;
    std::optional<std::string_view> second;
    if (options.pair) {
      texts = split_pair(reader, line);
      text = texts.first;
      second = texts.second;
    }
    if (options.json) {
      fmt::print("{}\n", json_of(tokenizer.encode_one(text, second, wanted).front()));
    } else {
      fmt::print("{}\n", fmt::join(tokenizer.encode_ids(text, second, wanted), " "));
    }
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
