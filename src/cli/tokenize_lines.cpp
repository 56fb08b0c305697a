#include "cli/tokenize_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/error.h"
#include "cli/print.h"
#include "cli/text_lines.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostId = std::numeric_limits<uint32_t>::max();

Tokenizer tokenizer_at(const std::string& path) {
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);
  return is_file ? Tokenizer::from_file(path) : Tokenizer::from_folder(path);
}

std::string json_of(const Encoding& encoding, const std::vector<int>& mask) {
  nlohmann::ordered_json out;
  out["ids"] = encoding.ids;
  out["tokens"] = encoding.tokens;
  out["type_ids"] = encoding.type_ids;
  out["mask"] = mask;
  out["offsets"] = encoding.offsets;
  return out.dump();
}

// What `batch`, which has one row, has beside the tokens of `encoding`: padding.
std::vector<int> pad(const Tokenizer& tokenizer, const TokenBatch& batch, Encoding& encoding) {
  const int64_t length = batch.input_ids.size(1);
  const auto count = static_cast<int64_t>(encoding.ids.size());
  if (length == count) return std::vector<int>(encoding.ids.size(), 1);
  const auto* const ids = batch.input_ids.const_data_ptr<int64_t>();
  const auto* const types = batch.token_type_ids.const_data_ptr<int64_t>();
  const auto* const is_token = batch.attention_mask.const_data_ptr<int64_t>();
  const bool on_left = is_token[0] == 0;
  const int64_t padding = on_left ? 0 : length - 1;
  const auto insert = [&](auto& list, const auto& value) {
    list.insert(on_left ? list.begin() : list.end(), static_cast<std::size_t>(length - count),
                value);
  };
  insert(encoding.tokens, tokenizer.id_to_token(ids[padding]).value_or(""));
  insert(encoding.type_ids, types[padding]);
  insert(encoding.offsets, std::pair<int64_t, int64_t>());
  encoding.ids.assign(ids, ids + length);
  return {is_token, is_token + length};
}

}  // namespace

void tokenize_lines(const TokenizeOptions& options) {
  const Tokenizer tokenizer = tokenizer_at(options.folder);
  auto requested = tokenizer.own_options().add_special_tokens(!options.no_special);
  if (options.max_length > 0) {
    requested.truncation(tokenizer::Truncation::LongestFirst)
        .max_length(options.max_length)
        .stride(0);
  }
  const bool pads =
      requested.padding() == tokenizer::Padding::Length || requested.pad_to_multiple_of() > 1;
  each_line(options.file, [&](const LineReader& reader, const std::string& line) {
    std::pair<std::string, std::string> texts;
    std::string_view text = line;
    std::optional<std::string_view> second;
    if (options.pair) {
      texts = split_pair(reader, line);
      text = texts.first;
      second = texts.second;
    }
    const auto batch = [&] {
      if (!second) return tokenizer.encode({std::string(text)}, requested);
      return tokenizer.encode_pairs({{std::string(text), std::string(*second)}}, requested);
    };
    if (options.json) {
      Encoding encoding = tokenizer.encode_one(text, second, requested).front();
      const auto mask =
          pads ? pad(tokenizer, batch(), encoding) : std::vector<int>(encoding.ids.size(), 1);
      cli::print("{}\n", json_of(encoding, mask));
      return;
    }
    std::vector<int64_t> ids;
    if (pads && !options.count) {
      const at::Tensor row = batch().input_ids;
      ids.assign(row.const_data_ptr<int64_t>(), row.const_data_ptr<int64_t>() + row.numel());
    } else {
      ids = tokenizer.encode_ids(text, second, requested);
    }
    if (options.count) {
      cli::print("{}\n", ids.size());
    } else {
      cli::print("{}\n", fmt::join(ids, " "));
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
        const auto id = parse_integer(word);
        const bool is_number = word.find_first_not_of("0123456789") == std::string::npos;
        if (!id || *id < 0 || *id > kMostId)
          fail("{}: line {} must have ids{}, separated by blanks. Got {}", reader.name(),
               reader.number(), id || is_number ? " from 0 to 4294967295" : "", shown(word));
        ids.push_back(*id);
      }
      begin = end + 1;
    }
    cli::print("{}\n", tokenizer.decode(ids, !options.keep_special));
  });
}

}  // namespace posenc::cli
