#pragma once

#include <CLI/App.hpp>

#include <string>

namespace posenc::cli {

/// The help of an argument that takes any file of weights.
constexpr const char* kReadableFiles =
    "weights: TorchScript, torch.save, safetensors or its index, .pt2; recognised by content";

/// Each adds its subcommand to `app`. A callback sets `status` where the check failed, and throws
/// where the input is refused.
void add_verify(CLI::App& app, int& status);
void add_run(CLI::App& app);
void add_table(CLI::App& app);
void add_presets(CLI::App& app);
void add_identify(CLI::App& app);
void add_plot(CLI::App& app);
void add_inspect(CLI::App& app);
void add_convert(CLI::App& app);
void add_translate(CLI::App& app);

}  // namespace posenc::cli
