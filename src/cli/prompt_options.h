#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

#include "posenc/models/sentence_stage.h"

namespace posenc::cli {

/// A prompt of the command line: the name of one of a folder's, or a text; else the folder's own.
struct PromptOptions {
  std::optional<std::string> name, text;
};

/// Adds --prompt and --prompt-text, of a prompt that is put before `where`.
std::vector<CLI::Option*> add_prompt_options(CLI::App& sub, PromptOptions& prompt,
                                             const std::string& where);

/// Adds --task, what the texts are for.
CLI::Option* add_task(CLI::App& sub, sentence::Task& task);

}  // namespace posenc::cli
