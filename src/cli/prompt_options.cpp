#include "cli/prompt_options.h"

#include "cli/arguments.h"

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

CLI::Option* add_task(CLI::App& sub, sentence::Task& task) {
  static constexpr std::pair<const char*, sentence::Task> kTasks[] = {
      {"query", sentence::Task::Query}, {"document", sentence::Task::Document}};
  return add_choice(
      sub, "--task", kTasks, task,
      "what the lines are for, which chooses the prompt, unless it is given, the route of a model "
      "that has several, and the most tokens; default: neither");
}

}  // namespace posenc::cli
