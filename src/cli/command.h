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

/// A subcommand, which each source registers for itself: `const Command kTable{0, add_table};`
struct Command {
  /// `order`: its place among the others in the help. `add` adds it to the command line; callbacks
  /// throw if the input is rejected.
  Command(int order, void (*add)(CLI::App& app));

  int order;
  void (*add)(CLI::App& app);
};

/// The subcommands of this build, in their order.
std::vector<const Command*> commands();

}  // namespace posenc::cli
