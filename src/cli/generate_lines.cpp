// posenc generate --text.

#include <ATen/Context.h>

#include <nlohmann/json.hpp>

#include "cli/error.h"
#include "cli/generate_parts.h"
#include "cli/print.h"
#include "cli/text_lines.h"
#include "cli/weights.h"
#include "text/text_generator.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Continuation& one, bool with_score) {
  Json line = {{"ids", one.ids}, {"text", one.text}};
  if (with_score) line["score"] = one.score;
  return line;
}

// The prompt of a line: itself, or with --chat what the folder's template writes of the message, or
// of the messages if it begins as a list of objects in JSON does.
std::string prompt_of(const std::string& line, const GenerateArguments& arguments,
                      const TextGenerator& generator) {
  if (!arguments.chat) return line;
  const auto options =
      ChatTemplateOptions().add_generation_prompt(true).variables(arguments.chat_variables);
  const auto first = [&](char c, std::size_t from) {
    const std::size_t at = line.find_first_not_of(" \t", from);
    return at != std::string::npos && line[at] == c ? at + 1 : std::string::npos;
  };
  const std::size_t bracket = first('[', 0);
  const bool is_json = bracket != std::string::npos && first('{', bracket) != std::string::npos;
  return is_json ? generator.chat_template().apply_json(line, options)
                 : generator.chat_template().apply({{"user", line}}, options);
}

}  // namespace

void continue_lines(const GenerateArguments& arguments, const SettingOverrides& overrides) {
  LoadReport report;
  const TextGenerator generator = load_text_generator(arguments.folder, arguments.freezing,
                                                      LoadOptions(arguments.load).report(&report));
  note_unexpected("generate", report);
  const Settings settings = decoder_generation_settings(arguments.folder, overrides);
  auto options = text::text_generate_options(settings, generator.vocab_size());
  options.batch_size(arguments.batch).add_special_tokens(!arguments.chat);
  if (arguments.chat) generator.chat_template();  // or an error before the first line
  for (const std::string& stop : arguments.stop_strings) options.stop_strings().push_back(stop);
  if (arguments.seed) at::manual_seed(*arguments.seed);
  const bool has_beams = options.generation().num_beams() > 1;
  each_lines<std::string>(
      arguments.text, arguments.batch,
      [](const LineReader&, const std::string& line) { return line; },
      [&](const std::vector<std::string>& lines) {
        std::vector<std::string> prompts;
        for (const std::string& line : lines)
          prompts.push_back(prompt_of(line, arguments, generator));
        for (const auto& found : generator.generate(prompts, options))
          for (const Continuation& one : found) print("{}\n", json_of(one, has_beams).dump());
      });
}

}  // namespace posenc::cli
