#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

namespace posenc::cli {

/// A prompt of the command line: the name of one of a folder's, or a text; else the folder's own.
struct PromptOptions {
  std::optional<std::string> name, text;
};

/// Adds --prompt and --prompt-text, of a prompt that is put before `where`.
std::vector<CLI::Option*> add_prompt_options(CLI::App& sub, PromptOptions& prompt,
                                             const std::string& where);

}  // namespace posenc::cli
