#include "cli/arguments.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/platform/number.h"
#include "cli/error.h"
#include "cli/usage.h"

namespace posenc::cli {
namespace {

std::string got(const std::string& text) {
  return ". Got " + (text.empty() ? "an empty string" : text);
}

// CLI11 expects "" for a valid value, otherwise the message. The name says what the option takes.
template <typename IsRight>
CLI::Validator validator(const std::string& name, const std::string& rule, IsRight is_right) {
  return {[=](const std::string& text) {
            return is_right(text) ? std::string() : "must be " + rule + got(text);
          },
          "", name};
}

// A validator holds no words that can be listed, so that they are part of its name, a line each
// after their source.
std::string name_of_choice(const std::string& source, const std::vector<std::string>& words) {
  return fmt::format("{}\n{}", source, fmt::join(words, "\n"));
}

CLI::Validator choice_of(const std::vector<std::string>& words, const std::string& rule,
                         const std::string& source, const std::string& description) {
  return {[=](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            return "must be " + rule + got(text) + did_you_mean(text, words);
          },
          description, name_of_choice(source, words)};
}

// Why `text` cannot be a path to write; "" if it can.
std::string unwritable(const std::string& text) {
  if (text == "-") {
    return "must name a file, since files are replaced atomically. Got -; use ./- for a file of "
           "that name";
  }
  return text.empty() ? "must name a file" + got(text) : std::string();
}

}  // namespace

std::optional<int64_t> parse_integer(const std::string& text) {
  return platform::parse_number<int64_t>(text);
}

std::optional<double> real_number(const std::string& text) {
  const auto value = platform::parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

CLI::Validator integer(int64_t least, int64_t most) {
  const bool open = most == std::numeric_limits<int64_t>::max();
  const std::string range =
      open ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
  return validator("number", "an integer " + range, [=](const std::string& text) {
    const auto value = parse_integer(text);
    // CLI11 would read 010 as an octal number.
    return value && std::to_string(*value) == text && *value >= least && *value <= most;
  });
}

CLI::Validator real(double least) {
  return validator("number", fmt::format("a number of at least {}", least),
                   [=](const std::string& text) {
                     const auto value = real_number(text);
                     return value && *value >= least;
                   });
}

CLI::Validator choice(const std::vector<std::string>& words) {
  return choice_of(words, fmt::format("{}", fmt::join(words, " or ")), "",
                   fmt::format("{}", fmt::join(words, "|")));
}

CLI::Validator listed_choice(const std::string& what, const std::vector<std::string>& words,
                             const std::string& source) {
  return choice_of(words, what + ", as " + source + " lists them", source, "");
}

CLI::Validator assignment() {
  return {[](const std::string& text) {
            const auto equals = text.find('=');
            const bool good = equals != std::string::npos && equals > 0 && equals + 1 < text.size();
            return good ? std::string() : "must have the form key=value" + got(text);
          },
          "key=value", "key=value"};
}

CLI::Validator input_path() {
  return validator("file", "the name of a file",
                   [](const std::string& text) { return !text.empty(); });
}

CLI::Validator output_path() {
  return {[](const std::string& text) { return unwritable(text); }, "", "output"};
}

CLI::Validator output_folder() {
  return validator("folder", "the name of a folder",
                   [](const std::string& text) { return !text.empty() && text != "-"; });
}

std::vector<CLI::Option*> add_freezing(CLI::App& app, FreezeOptions& freezing) {
  auto* int8 = app.add_flag_callback(
      "--int8", [&freezing] { freezing.weights(WeightDtype::Int8); },
      "multiply in 8 bits: faster, in a quarter of the memory, with slightly different results");
  auto* block = app.add_option_function<int64_t>(
      "--int8-block", [&freezing](int64_t elements) { freezing.int8_block(elements); },
      "with --int8, how many elements of a row have a scale of their own, instead of a scale for "
      "the row: nearer to float32, and somewhat slower");
  block->check(choice({"64", "128"}))->needs(int8);
  auto* bfloat16 = app.add_flag_callback(
      "--bfloat16", [&freezing] { freezing.weights(WeightDtype::BFloat16); },
      "weights in bfloat16: half of the memory, with results that differ less than with --int8");
  bfloat16->excludes(int8);
  auto* compute = app.add_flag_callback(
      "--compute-bfloat16", [&freezing] { freezing.compute(ComputeDtype::BFloat16); },
      "multiply in bfloat16, with --int8 in attention only: faster on processors that have "
      "instructions for it, with results that differ less than with --int8");
  auto* scores = app.add_flag_callback(
      "--float32-scores", [&freezing] { freezing.int8_scores(false); },
      "with --int8, queries times keys of attention in float32: slower for long texts, with "
      "results that differ slightly less");
  scores->needs(int8)->excludes(compute);
  return {int8, block, bfloat16, compute, scores};
}

// More threads than processors only wait for each other, and very large numbers cannot be started.
void add_threads(CLI::App& app) {
  const auto set = [](int64_t requested) {
    const int64_t most = std::max(1u, std::thread::hardware_concurrency());
    at::set_num_threads(static_cast<int>(std::min(requested, most)));
  };
  app.add_option_function<int64_t>(
         "--threads", set, "number of threads, at most one per processor, which is the default")
      ->check(integer(1));
}

void add_allow_unexpected(CLI::App& app, LoadOptions& options) {
  app.add_flag_callback(
      "--allow-unexpected", [&options] { options.allow_unexpected(true); },
      "leave out tensors of the file that its model lacks also where they are inside a module that "
      "it has, such as a bias");
}

void add_adapters(CLI::App& app, LoadOptions& options) {
  auto* const adapter =
      app.add_option_function<std::vector<std::string>>(
             "--adapter",
             [&options](const std::vector<std::string>& folders) {
               for (std::size_t i = 0; i < folders.size(); ++i) {
                 if (options.adapters().size() <= i) options.adapters().emplace_back();
                 options.adapters()[i].folder = folders[i];
               }
             },
             "folder of an adapter of PEFT, which is merged into the weights while they are read; "
             "several are added")
          ->allow_extra_args(false)
          ->check(input_path());
  app.add_option_function<std::vector<double>>(
         "--scale",
         [&options, adapter](const std::vector<double>& scales) {
           if (scales.size() != adapter->count())
             fail_usage("--scale must be given once for each --adapter or never; got {} for {}",
                        scales.size(), adapter->count());
           for (std::size_t i = 0; i < scales.size(); ++i) {
             if (options.adapters().size() <= i) options.adapters().emplace_back();
             options.adapters()[i].scale = scales[i];
           }
         },
         "what the change of each --adapter is multiplied by, in their order; default: 1")
      ->allow_extra_args(false)
      ->check(real(-std::numeric_limits<double>::max()));
  app.add_option_function<std::string>(
         "--base", [&options](const std::string& folder) { options.base(folder); },
         "where MODEL_DIR is the folder of an adapter: the folder of its model; default: the one "
         "that "
         "adapter_config.json names")
      ->check(input_path());
}

ValueRule rule_of(CLI::Option& option) {
  std::string name;
  try {
    name = option.get_validator(0)->get_name();
  } catch (const CLI::OptionNotFound&) {
    return {};  // any text, or a flag
  }
  const auto end = name.find('\n');
  if (end == std::string::npos) return {name, "", {}};
  ValueRule rule{"choice", name.substr(0, end), {}};
  for (std::size_t begin = end + 1; begin < name.size();) {
    const std::size_t next = std::min(name.find('\n', begin), name.size());
    rule.words.push_back(name.substr(begin, next - begin));
    begin = next + 1;
  }
  return rule;
}

}  // namespace posenc::cli
