#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace posenc::cli {

/// Help text of an argument that accepts any weights file.
constexpr const char* kReadableFiles =
    "weights: TorchScript, torch.save, safetensors or its index, or .pt2; recognised by content";

/// The values of --preset: of tables, and of rotary embeddings.
std::vector<std::string> preset_names();
std::vector<std::string> rotary_preset_names();

/// Each function adds its subcommand to `app`. Callbacks throw if the input is rejected.
void add_table(CLI::App& app);
void add_rotary(CLI::App& app);
void add_relative(CLI::App& app);
void add_encode(CLI::App& app);
void add_classify(CLI::App& app);
void add_fill(CLI::App& app);
void add_presets(CLI::App& app);
void add_identify(CLI::App& app);
void add_inspect(CLI::App& app);
void add_convert(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_detokenize(CLI::App& app);
void add_generate(CLI::App& app);
void add_translate(CLI::App& app);

}  // namespace posenc::cli
