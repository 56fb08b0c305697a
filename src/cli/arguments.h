#pragma once

#include <CLI/App.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/inference/freeze_options.h"
#include "posenc/weights/load.h"

// Validators that check the text of options before conversion: CLI11's own messages name C++ types,
// and its conversion accepts other number formats.
namespace posenc::cli {

/// The largest beam width: beyond it, a step would need more memory than any machine has.
constexpr int64_t kMostBeams = 10'000;

/// Limits for tables: the library's own limit for rows, and more channels than any model has.
constexpr int64_t kMostRows = int64_t{1} << 31, kMostChannels = int64_t{1} << 20;

/// Parses the whole of `text` as a number; nullopt if it is not one.
std::optional<int64_t> parse_integer(const std::string& text);
std::optional<double> real_number(const std::string& text);

/// An integer in [least, most].
CLI::Validator integer(int64_t least, int64_t most = std::numeric_limits<int64_t>::max());

/// A finite number of at least `least`.
CLI::Validator real(double least);

/// One of a few `words`, which the help shows.
CLI::Validator choice(const std::vector<std::string>& words);

/// Adds an option that takes one of the names of a table and sets `value` to what is beside it.
template <typename T, std::size_t N, typename Value>
CLI::Option* add_choice(CLI::App& app, const char* option,
                        const std::pair<const char*, T> (&table)[N], Value& value,
                        const std::string& help) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.first);
  const auto set = [&table, &value](const std::string& given) {
    for (const auto& [name, own] : table)
      if (given == name) value = own;
  };
  return app.add_option_function<std::string>(option, set, help)->check(choice(names));
}

/// One of many `words`, which `source` lists; `what` they are: "a preset".
CLI::Validator listed_choice(const std::string& what, const std::vector<std::string>& words,
                             const std::string& source);

/// key=value.
CLI::Validator assignment();

/// A path to read. Must not be empty, as it is when a script's variable is unset.
CLI::Validator input_path();

/// A file of tensors to write, with any extension: `.pt` and `.pth` mean torch.save's format, as in
/// save_weights(), and all others safetensors.
CLI::Validator output_path();

/// A folder to write files into, which need not be there.
CLI::Validator output_folder();

/// Adds --int8 and --bfloat16, each of which sets the dtype of a frozen model's weights,
/// --compute-bfloat16, and --int8-block and --float32-scores, which need --int8.
std::vector<CLI::Option*> add_freezing(CLI::App& app, FreezeOptions& freezing);

/// Adds --threads, the most threads of all that the command computes.
void add_threads(CLI::App& app);

/// Adds --allow-unexpected, an option of loading a model's folder.
void add_allow_unexpected(CLI::App& app, LoadOptions& options);

/// Adds --adapter, once for each adapter, and --scale and --base.
void add_adapters(CLI::App& app, LoadOptions& options);

/// What an option takes, as far as the validators above know it.
struct ValueRule {
  std::string kind;                ///< file, output, folder, number, key=value, choice, or ""
  std::string source;              ///< the command or place that lists the words of many
  std::vector<std::string> words;  ///< of a choice
};
ValueRule rule_of(CLI::Option& option);

}  // namespace posenc::cli
