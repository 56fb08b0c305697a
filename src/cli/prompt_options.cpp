#include "cli/prompt_options.h"

namespace posenc::cli {

std::vector<CLI::Option*> add_prompt_options(CLI::App& sub, PromptOptions& prompt,
                                             const std::string& where) {
  const auto setter = [](std::optional<std::string>& value) {
    return [&value](const std::string& given) { value = given; };
  };
  auto* name = sub.add_option_function<std::string>(
      "--prompt", setter(prompt.name),
      "name of one of the model's prompts; '' for none; default: the model's own");
  auto* text = sub.add_option_function<std::string>("--prompt-text", setter(prompt.text),
                                                    "text that is put before " + where);
  return {name, text->excludes(name)};
}

}  // namespace posenc::cli
